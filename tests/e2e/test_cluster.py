"""Exclusive sessions that fail over: real bridges, real broker, leases and outbox in a DynamoDB emulator (spec 06).

GB_FAILOVERS is the number of rounds of each kind (default 2; the hundred that the acceptance asks for take an hour)."""

import os
import re
import signal
import threading
import time

import pytest

import cluster
import rig
from cluster import Stream, nothing_lost, other
from network import Proxy

ROUNDS = int(os.environ.get("GB_FAILOVERS", "2"))


def test_standby_opens_no_broker_connection(new_cluster, broker):
    """06 check 21; and the owner is named in the row (06 check 2)."""
    bridges = new_cluster()
    owner = bridges.owner()
    standby = other(bridges, owner)
    time.sleep(2)
    assert "mqtt connected" not in bridges[standby].text()
    assert bridges.row()["version"] == 1
    assert broker.count("New client connected") == 1


def test_killed_owner_is_replaced(new_cluster, publisher, fake):
    """Kill -9, again and again, under load."""
    bridges = new_cluster()
    stream = Stream(publisher)
    for _ in range(ROUNDS):
        before = bridges.row()
        old = bridges.owner()
        new = other(bridges, old)
        served = bridges[new].count("session is active")
        time.sleep(0.5)
        bridges[old].kill()
        after = bridges.wait_owner(other_than=old)
        assert after["version"] == before["version"] + 1
        bridges[new].wait_log("session is active", 20, served + 1)
        bridges.start(old)
    nothing_lost(stream, fake, bridges)


def test_suspended_owner_does_no_harm(new_cluster, publisher, fake, broker):
    """06 checks 20, 34: nothing but goodbye after the resume, and the same process owns again later."""
    bridges = new_cluster()
    stream = Stream(publisher)
    for _ in range(ROUNDS):
        before = bridges.row()
        old = bridges.owner()
        new = other(bridges, old)
        lost = bridges[old].count("lease.lost")
        time.sleep(0.5)
        bridges[old].process.child.send_signal(signal.SIGSTOP)
        after = bridges.wait_owner(other_than=old)
        assert after["version"] == before["version"] + 1
        bridges[old].process.child.send_signal(signal.SIGCONT)
        bridges[old].wait_log("lease.lost", 20, lost + 1)
        assert bridges[old].alive(), "no restart is needed"
        rows = bridges.outbox_rows()
        assert all(int(r["claim_version"]["N"]) <= after["version"] for r in rows)
        assert bridges.owner() == new
    nothing_lost(stream, fake, bridges)
    for instance in bridges.instances.values():
        assert instance.terminate() == 0


CUT_OFF = {"all": {}, "writes": {"action": "UpdateItem", "contains": "LEASE#"}}


@pytest.mark.parametrize("what", CUT_OFF)
def test_owner_cut_off_from_its_leases(new_cluster, publisher, fake, faults, what):
    """06 check 18: the owner closes its session by its local deadline; only then the standby takes over."""
    ends = {name: faults.open(name) for name in ("a", "b")}
    bridges = new_cluster(endpoints=ends)
    stream = Stream(publisher)
    for _ in range(ROUNDS):
        before = bridges.row()
        old = bridges.owner()
        steps = bridges[old].count("lease.stepdown")
        time.sleep(0.5)
        faults.rule("drop", client=old, times=0, **CUT_OFF[what])
        after = bridges.wait_owner(other_than=old)
        assert after["version"] == before["version"] + 1
        assert bridges[old].count("lease.stepdown") == steps + 1, "the owner let go before the standby took over"
        faults.command("clear")
        assert bridges[old].alive()
    nothing_lost(stream, fake, bridges)


def test_equal_instance_ids(new_cluster, publisher, fake):
    """06 check 1: one owner, and the version does not move."""
    bridges = new_cluster(same_id=True)
    stream = Stream(publisher, rate=20)
    row = bridges.row()
    end = time.monotonic() + float(os.environ.get("GB_TWIN_SECONDS", "8"))
    while time.monotonic() < end:
        time.sleep(0.2)
        now = bridges.row()
        assert (now["owner"], now["version"]) == (row["owner"], 1)
    assert sum("session is active" in i.text() for i in bridges.instances.values()) == 1
    nothing_lost(stream, fake, bridges)


def test_clean_stop_hands_over_at_once(new_cluster, broker):
    """06 checks 22, 24: disconnected, then released; the standby serves within one poll and a second."""
    bridges = new_cluster()
    old = bridges.owner()
    new = other(bridges, old)
    start = time.monotonic()
    assert bridges[old].terminate() == 0
    bridges[new].wait_log("session is active", 10)
    assert time.monotonic() - start < 1 + 0.625 + 1
    assert bridges.row()["version"] == 2
    text = broker.process.text()
    closed = [m.start() for m in re.finditer(r"Client plant-bridge .*disconnected", text)]
    opened = [m.start() for m in re.finditer(r"New client connected .* as plant-bridge ", text)]
    assert len(closed) == 1 and len(opened) == 2 and closed[0] < opened[1]


def test_version_rises_with_each_term_of_one_process(new_cluster):
    """06 check 34 without a second instance: what was released is taken again, and the session connects again."""
    bridges = new_cluster(names=("a",))
    for version in (2, 3):
        table = bridges.doc["stores"]["lease"]["options"]["table_name"]
        bridges.client.update_item(  # as a successor would have done, then released
            TableName=table, Key={"PK": {"S": "LEASE#plant"}},
            UpdateExpression="SET #o = :o, expires_at = :z, #v = :v",
            ExpressionAttributeNames={"#o": "owner", "#v": "version"},
            ExpressionAttributeValues={":o": {"S": ""}, ":z": {"N": "0"}, ":v": {"N": str(version * 10)}})
        bridges["a"].wait_log("session is active", 20, version)
        assert bridges.row()["version"] == version * 10 + 1
    assert bridges["a"].terminate() == 0


def test_broker_path_is_handed_over(folder, broker, fake, dynamodb, parts):
    """06 check 25: the owner alone has lost the broker; it hands over, ends, and is not seen again before a restart."""
    proxy = Proxy(broker.port)
    parts.append(proxy)
    doc = cluster.document(folder, proxy.port, fake.queue_url(), fake.endpoint,
                           {"routes.0.session.broker_health_step_down": "2s"})
    bridges = cluster.Cluster(folder, doc, dynamodb, names=("a",))
    parts.append(bridges)
    bridges.prepare()
    bridges.start()
    bridges["a"].wait_log("session is active", 20)
    proxy.stall()
    proxy.cut()
    assert bridges["a"].wait_exit(30) == 1
    assert bridges.owner() == ""
    assert bridges["a"].last_metrics()["BrokerHealthStepDown"] == 1
    assert "broker_health_step_down" in bridges["a"].text()


def test_unreachable_broker_gives_others_a_chance(folder, broker, fake, dynamodb, parts):
    """06 §7.2: a session that can't connect gives its lease back instead of sitting on it."""
    doc = cluster.document(folder, broker.port, fake.queue_url(), fake.endpoint)
    bridges = cluster.Cluster(folder, doc, dynamodb, names=("a",))
    parts.append(bridges)
    bridges.prepare()
    broker.stop()
    bridges.start()
    bridges["a"].wait_log("lease.release", 20, 2)
    assert bridges["a"].alive()
    broker.start()
    bridges["a"].wait_log("session is active", 40)
    assert bridges["a"].terminate() == 0


def test_rolling_restart_of_three(folder, broker, fake, dynamodb, parts, new_publisher):
    """Two exclusive sessions, three instances, each restarted under load; one connection for each client id."""
    doc = cluster.document(folder, broker.port, fake.queue_url(), fake.endpoint)
    second = {"id": "mill", "transport": "mqtt", "session_mode": "exclusive", "options": {"session": {
        **doc["sessions"][0]["options"]["session"], "client_id": "mill-bridge"}}}
    doc["sessions"].append(second)
    doc["receivers"].append({"id": "mill-in", "session_id": "mill", "topics": [{"topic": "mill/#", "qos": 1}]})
    doc["bindings"].append({"id": "mill-to-sqs", "sender_id": "sqs-out", "address": "telemetry-events"})
    doc["routes"].append({**doc["routes"][0], "id": "mill", "receiver_id": "mill-in", "bindings": ["mill-to-sqs"],
                          "session": {**doc["routes"][0]["session"], "session_id": "mill"}})
    bridges = cluster.Cluster(folder, doc, dynamodb, names=("a", "b", "c"))
    parts.append(bridges)
    bridges.prepare()
    bridges["a"].seed("mill")
    bridges.start()
    publisher = new_publisher()
    for session in ("plant", "mill"):
        rig.wait_until(lambda s=session: bridges.owner(s) != "", 20, f"an owner of {session}")
    sent, running = [], [True]

    def publish():
        while running[0]:
            i = len(sent)
            sent.append(b"%d" % i)
            publisher.publish(f"{('telemetry', 'mill')[i % 2]}/{i % 8}", sent[-1], message_id=f"id-{i}")
            time.sleep(0.01)
    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    for name in ("a", "b", "c"):
        assert bridges[name].terminate() == 0
        bridges.start(name)
        for session in ("plant", "mill"):
            rig.wait_until(lambda s=session: bridges.owner(s) not in ("", name) or
                           bridges.owner(s) == name and bridges[name].alive(), 20, f"an owner of {session}")
        time.sleep(1)
    running[0] = False
    thread.join(10)
    publisher.flush()
    fake.wait_for_payloads(sent, 90)
    for client in ("plant-bridge", "mill-bridge"):
        connected = 0
        for line in broker.process.text().splitlines():
            if re.search(rf"New client connected .* as {client} ", line):
                connected += 1
                assert connected <= 1, f"two owners of {client}: {line}"
            elif re.search(rf"Client {client} (closed|disconnected|.*disconnected)", line):
                connected -= 1
            assert "already connected" not in line


def test_lease_of_one_machine(new_bridge, folder, publisher, fake):
    """06 check 35, 05 check 39: leases in SQLite, no AWS; after a kill the next process owns at version + 1."""
    lease = str(folder / "lease.db")
    bridge = new_bridge({"stores.lease": {"type": "sqlite", "options": {"path": lease}},
                         "sessions.0.session_mode": "exclusive",
                         "routes.0.session.lease_ttl": "30s"}, start=False)
    bridge.start(wait="session is active")
    assert bridge.count("SPLIT-BRAIN RISK") == 1
    publisher.publish("telemetry/x", b"one", message_id="one")
    fake.wait_for_payloads([b"one"], 20)
    bridge.kill()
    publisher.publish("telemetry/x", b"two", message_id="two")
    started = time.monotonic()
    bridge.start(wait="session is active")
    assert time.monotonic() - started < 5, "not a moment of the 30 s is waited for"
    fake.wait_for_payloads([b"two"], 20)
    assert [r["version"] for r in bridge.rows("lease", "SELECT version FROM lease")] == [2]
    assert bridge.terminate() == 0
    rig.set_path(bridge.doc, "bridge.deployment_mode", "clustered")
    bridge.write(bridge.doc)
    refused = bridge.run("-validate")
    assert refused.returncode == 1 and "[C1]" in refused.stderr


def test_lease_table_with_time_to_live(new_cluster):
    """06 check 11: the row is the fencing counter; a table that deletes it is refused before anything connects."""
    bridges = new_cluster(names=("a",), start=False)
    table = bridges.doc["stores"]["lease"]["options"]["table_name"]
    bridges.client.update_time_to_live(TableName=table,
                                       TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
    result = bridges["a"].run()
    assert result.returncode == 1
    assert table in result.stderr and "mqtt connected" not in result.stderr
    rig.set_path(bridges.doc, "stores.lease.options.preflight_advisory", True)
    bridges["a"].write(bridges.doc)
    bridges["a"].start(wait="session is active")
    assert "preflight_advisory lets it pass" in bridges["a"].text()
    assert bridges["a"].terminate() == 0
