"""Clusters in trouble: a table that is throttled, slow or deaf, an owner that hangs on its way in, all started at once.

GB_FAILOVERS is the number of rounds of each kind (default 2)."""

import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest

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
    stream = None
    for version in range(1, ROUNDS + 1):
        served = {name: bridges[name].count("session is active") for name in ("a", "b")}
        for name in ("a", "b"):
            bridges[name].start(wait=None)
        assert bridges.wait_owner()["version"] == version
        owner = bridges.owner()
        bridges[owner].wait_log("session is active", 20, served[owner] + 1)
        stream = stream or Stream(publisher)  # from the first subscription on
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


def live(bridge):
    """The status of /live; 0: nobody answers."""
    port = next(line["monitor_port"] for line in reversed(bridge.lines()) if line.get("msg") == "HTTP servers started")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/monitor/live", timeout=2) as reply:
            return reply.status
    except urllib.error.HTTPError as e:
        return e.code
    except OSError:
        return 0


@pytest.fixture
def hanging(folder, new_cluster, faults):
    """Two instances; the file that makes the owner's close hang."""
    library, trigger = folder / "hanging_close.so", folder / "hang"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library,
                    pathlib.Path(__file__).with_name("hanging_close.c"), "-ldl"], check=True)
    bridges = new_cluster(endpoints={name: faults.open(name) for name in ("a", "b")}, start=False)
    bridges["a"].env.update({"LD_PRELOAD": str(library), "GB_HANGING_CLOSE": str(trigger)})
    bridges.start("a")
    bridges.wait_active("a")
    bridges.start("b")
    return bridges, trigger


def test_hanging_close_keeps_the_lease(hanging, publisher, fake):
    """06 check 23: no release, the process ends non-zero, and the other one waits for the whole TTL."""
    bridges, trigger = hanging
    stream = Stream(publisher)
    time.sleep(1)
    trigger.touch()
    bridges["a"].process.child.send_signal(signal.SIGTERM)
    assert bridges.wait_owner(other_than="a")["version"] == 2
    takeover = next(line for line in bridges["b"].lines() if line.get("msg") == "the lease was taken over")
    assert takeover["observed_ms"] >= takeover["required_ms"] == 5000
    assert bridges["a"].wait_exit(30) not in (0, -signal.SIGKILL)
    trigger.unlink()
    nothing_lost(stream, fake, bridges)


def test_lost_lease_with_a_hanging_close(hanging, faults, publisher, fake):
    """03 check 37: terminal, not live, and the process ends."""
    bridges, trigger = hanging
    stream = Stream(publisher)
    assert live(bridges["a"]) == 200
    trigger.touch()
    faults.rule("drop", client="a", action="UpdateItem", times=0, **LEASES)
    rig.wait_until(lambda: live(bridges["a"]) == 503, 20, "it is not live")
    faults.command("clear")
    assert bridges["a"].wait_exit(30) not in (0, -signal.SIGKILL)
    assert bridges.wait_owner(other_than="a")["version"] == 2
    takeover = next(line for line in bridges["b"].lines() if line.get("msg") == "the lease was taken over")
    assert takeover["observed_ms"] >= takeover["required_ms"]
    trigger.unlink()
    nothing_lost(stream, fake, bridges)
