"""Clusters in trouble: a table that is throttled, slow or deaf, an owner that hangs on its way in, all started at once.

GB_FAILOVERS is the number of rounds of each kind (default 2)."""

import os
import re
import signal
import time

import pytest

import cluster
import rig
from cluster import Stream, nothing_lost, other

ROUNDS = int(os.environ.get("GB_FAILOVERS", "2"))
LEASES = {"contains": "LEASE#"}


def one_connection(broker, client="plant-bridge"):
    """The broker never saw two owners."""
    connected = 0
    for line in broker.process.text().splitlines():
        assert "already connected" not in line, line
        if re.search(rf"New client connected .* as {client} ", line):
            connected += 1
            assert connected == 1, f"two owners: {line}"
        elif re.search(rf"Client {client} .*(closed|disconnected|exceeded timeout)", line):
            connected -= 1


@pytest.fixture
def troubled(new_cluster, faults):
    """Two instances, each with a way of its own to the tables."""
    return new_cluster(endpoints={name: faults.open(name) for name in ("a", "b")})


def test_all_started_at_once(new_cluster, publisher, fake, broker):
    bridges = new_cluster(start=False)
    stream = Stream(publisher)
    for version in range(1, ROUNDS + 1):
        served = {name: bridges[name].count("session is active") for name in ("a", "b")}
        for name in ("a", "b"):
            bridges[name].start(wait=None)
        assert bridges.wait_owner()["version"] == version
        owner = bridges.owner()
        bridges[owner].wait_log("session is active", 20, served[owner] + 1)
        time.sleep(1)
        assert bridges.row()["version"] == version
        assert sum(bridges[name].count("session is active") - served[name] for name in ("a", "b")) == 1
        for name in ("a", "b"):
            bridges[name].process.child.send_signal(signal.SIGTERM)
        assert [bridges[name].wait_exit(20) for name in ("a", "b")] == [0, 0]
        assert bridges.row()["version"] == version
    bridges.start()
    nothing_lost(stream, fake, bridges)
    one_connection(broker)


def test_throttled_leases(troubled, faults, publisher, fake, broker):
    """06 check 18: nobody can renew or take over; when it is over, somebody owns again in the same process."""
    stream = Stream(publisher)
    before = troubled.row()
    faults.rule("throttle", times=0, **LEASES)
    old = before["owner"].partition("#")[0]
    troubled[old].wait_log("lease.lost", 20)
    time.sleep(3)
    assert troubled.row()["version"] == before["version"]
    faults.command("clear")
    rig.wait_until(lambda: troubled.row()["version"] > before["version"], 30, "somebody owns again")
    nothing_lost(stream, fake, troubled)
    one_connection(broker)
    assert all(troubled[name].alive() for name in ("a", "b"))


def test_throttled_outbox(troubled, faults, publisher, fake, broker):
    """Messages wait at the broker; the lease is none of its business."""
    stream = Stream(publisher)
    before = troubled.row()
    time.sleep(1)
    faults.rule("throttle", times=0, contains=troubled.doc["stores"]["outbox"]["options"]["table_name"])
    time.sleep(8)
    faults.command("clear")
    nothing_lost(stream, fake, troubled)
    assert troubled.row()["version"] == before["version"] and troubled.row()["owner"] == before["owner"]
    one_connection(broker)


def test_slow_tables(troubled, faults, publisher, fake, broker):
    """Just below the time-out of a renewal: slower, and otherwise as ever."""
    stream = Stream(publisher, rate=20)
    before = troubled.row()
    faults.rule("pass", times=0, delay_ms=300)
    time.sleep(8)
    assert troubled.row()["version"] == before["version"] and troubled.row()["owner"] == before["owner"]
    faults.command("clear")
    nothing_lost(stream, fake, troubled)
    one_connection(broker)


def test_renewals_are_applied_and_never_answered(troubled, faults, publisher, fake, broker):
    """A one-way cut: the row goes on changing, its owner does not know. It steps down by its own clock."""
    stream = Stream(publisher)
    for _ in range(ROUNDS):
        before = troubled.row()
        old = before["owner"].partition("#")[0]
        steps = troubled[old].count("lease.stepdown")
        faults.rule("silent", client=old, action="UpdateItem", times=0, **LEASES)
        rig.wait_until(lambda: troubled.owner() not in ("", old), 40, "the other one owns")
        assert troubled[old].count("lease.stepdown") == steps + 1
        faults.command("clear")
    nothing_lost(stream, fake, troubled)
    one_connection(broker)
    assert all(troubled[name].alive() for name in ("a", "b"))


def test_new_owner_hangs_in_its_activation(new_cluster, publisher, fake, broker):
    """It has won the lease and is suspended before it serves; the next one does not wait for it."""
    bridges = new_cluster()
    stream = Stream(publisher)
    for _ in range(ROUNDS):
        old = bridges.owner()
        new = other(bridges, old)
        bridges[old].kill()
        end = time.monotonic() + 30
        while bridges.owner() != new:
            assert time.monotonic() < end
            time.sleep(0.002)
        bridges[new].process.child.send_signal(signal.SIGSTOP)
        version = bridges.row()["version"]
        bridges.start(old)
        rig.wait_until(lambda: bridges.owner() == old, 30, "the next one owns")
        assert bridges.row()["version"] == version + 1
        bridges[new].process.child.send_signal(signal.SIGCONT)
        bridges[new].wait_log("lease.lost", 20, bridges[new].count("the lease was taken over"))
        assert bridges.owner() == old and bridges[new].alive()
    nothing_lost(stream, fake, bridges)
    assert all(bridges[name].terminate() == 0 for name in ("a", "b"))
