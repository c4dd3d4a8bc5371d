"""Exclusive sessions with their managed subscriptions in DynamoDB: seeding, changed and refused filters, failing over."""

import pytest

import cluster
import rig
from network import RefusingBroker


@pytest.fixture
def verbose(folder, parts):
    made = rig.Broker(folder / "verbose", verbose=True)
    parts.append(made)
    return made


@pytest.fixture
def make(folder, verbose, fake, dynamodb, parts):
    def made(port=verbose.port, changes=None, names=("a",)):
        doc = cluster.document(folder, port, fake.queue_url(), fake.endpoint, changes)
        bridges = cluster.Cluster(folder, doc, dynamodb, names=names)
        parts.append(bridges)
        assert bridges[names[0]].run("-create-tables", seconds=60).returncode == 0
        return bridges
    return made


def test_unseeded_session_takes_no_connection(make, verbose):
    """03 check 6, 01 check 36: no CONNECT before the baseline."""
    bridges = make()
    bridges.start()
    bridges["a"].wait_log("mqtt session does not connect")
    line = [l for l in bridges["a"].lines() if "does not connect" in l.get("msg", "")][0]
    assert line["session_id"] == "plant" and "-seed-managed-subscriptions plant" in line["error"]
    assert verbose.count("plant-bridge") == 0
    bridges["a"].seed()
    bridges["a"].wait_log("session is active", 40)
    assert bridges["a"].terminate() == 0


def test_filter_changed_while_the_owner_changes(make, verbose, fake, new_publisher):
    """03 check 15: the successor runs a document with another filter; the predecessor's is taken back at the broker."""
    bridges = make(names=("a", "b"))
    bridges["a"].seed()
    bridges.start("a")
    bridges["a"].wait_log("session is active", 20)
    rig.set_path(bridges["b"].doc, "receivers.0.topics.0.topic", "other/#")
    bridges["b"].write(bridges["b"].doc)
    bridges.start("b")
    bridges["a"].kill()
    bridges["b"].wait_log("session is active", 30)
    verbose.wait_log("Received UNSUBSCRIBE from plant-bridge")
    unsubscribed = verbose.process.text().partition("Received UNSUBSCRIBE from plant-bridge\n")[2].splitlines()
    assert unsubscribed[0].partition(": ")[2].strip() == "telemetry/#"
    publisher = new_publisher(verbose.port)
    publisher.publish("telemetry/a", b"not wanted")
    publisher.publish("other/a", b"wanted")
    fake.wait_for_payloads([b"wanted"])
    assert fake.payloads() == [b"wanted"]
    assert bridges["b"].terminate() == 0


def test_refused_filter_gives_others_a_chance(make, verbose, parts):
    """03 check 23: not full, tried again, the lease given back between tries; another session is not touched."""
    refusing = RefusingBroker(verbose.port)
    parts.append(refusing)
    bridges = make()
    doc = bridges["a"].doc
    mill = {**doc["sessions"][0], "id": "mill",
            "options": {"session": {**doc["sessions"][0]["options"]["session"], "client_id": "mill-bridge"}}}
    doc["sessions"].append(mill)
    doc["sessions"][0]["options"] = {"session": {**doc["sessions"][0]["options"]["session"],
                                                 "broker_url": f"tcp://127.0.0.1:{refusing.port}"}}
    doc["receivers"][0]["topics"].append({"topic": "forbidden/#", "qos": 1})
    doc["receivers"].append({"id": "mill-in", "session_id": "mill", "topics": [{"topic": "mill/#", "qos": 1}]})
    doc["bindings"].append({"id": "mill-to-sqs", "sender_id": "sqs-out", "address": "telemetry-events"})
    doc["routes"].append({**doc["routes"][0], "id": "mill", "receiver_id": "mill-in", "bindings": ["mill-to-sqs"],
                          "session": {**doc["routes"][0]["session"], "session_id": "mill"}})
    bridges["a"].write(doc)
    bridges["a"].seed("plant")
    bridges["a"].seed("mill")
    bridges.start()
    rig.wait_until(lambda: bridges.row("plant").get("version", 0) >= 3, 60, "the lease is given back and taken again")
    active = [l["session_id"] for l in bridges["a"].lines() if l.get("msg") == "session is active"]
    assert active == ["mill"]
    assert refusing.refused >= 2
    assert bridges.row("mill")["version"] == 1
    assert bridges["a"].alive()
    refusing.refusal = 0
    bridges["a"].wait_log("session is active", 90, 2)
    assert bridges.row("mill")["version"] == 1
    assert bridges["a"].terminate() == 0


def test_standby_claims_nothing_and_inherits_the_broker_session(make, verbose, fake, new_publisher):
    """02 checks 2, 3, 03 checks 5, 36: the owner dies with records that it has persisted and messages that wait."""
    bridges = make(names=("a", "b"))
    bridges["a"].seed()
    bridges.start("a")
    bridges["a"].wait_log("session is active", 20)
    bridges.start("b")
    fake.block()
    publisher = new_publisher(verbose.port)
    sent = [b"%d" % i for i in range(200)]
    for payload in sent[:100]:
        publisher.publish("telemetry/a", payload, message_id=payload.decode())
    rig.wait_until(lambda: len(bridges.outbox_rows()) == 100, 20, "all are persisted")
    assert bridges["b"].metrics()["DrainSkippedNoLease"] > 0
    assert verbose.count("as plant-bridge ") == 1
    bridges["a"].kill()
    for payload in sent[100:]:
        publisher.publish("telemetry/a", payload, message_id=payload.decode())
    fake.unblock()
    bridges["b"].wait_log("session is active", 40)
    fake.wait_for_payloads(sent, 60)
    connected = [l for l in bridges["b"].lines() if l.get("msg") == "mqtt connected"]
    assert [l["session_present"] for l in connected] == [True]
    bridges.wait_drained()
    assert bridges["b"].terminate() == 0
