"""The log lines of one message share its ids (spec 08 §7, acceptance check 30)."""

import pytest

import rig

DEBUG = {"bridge.log_level": "debug"}
DIRECT = {"routes.0.delivery_mode": "direct_hold", "routes.0.session": None}


def lines(bridge, msg):
    return [l for l in bridge.lines() if l.get("msg") == msg]


def ids(line):
    assert line["route_id"] == "ingest"
    return line["envelope_id"], line["correlation_id"]


def test_intake_send_and_dead_letter_share_the_ids(new_bridge, publisher, fake):
    bridge = new_bridge(DEBUG)
    fake.entry_rule = lambda m: ("InvalidParameterValue", True) if m.body == "refused" else None
    publisher.publish("telemetry/a", b"good", message_id="m-good", CorrelationData=b"order-7")
    publisher.publish("telemetry/a", b"refused", message_id="m-refused")
    bridge.wait_log("message written to the DLQ")
    bridge.wait_log("outbox record sent")
    bridge.wait_log("delivery completed", count=2)
    assert bridge.terminate() == 0
    accepted = [ids(l) for l in lines(bridge, "delivery completed")]
    (sent,), (dead,) = lines(bridge, "outbox record sent"), lines(bridge, "message written to the DLQ")
    assert len(set(accepted)) == 2 and all(e and c for e, c in accepted)
    assert {ids(sent), ids(dead)} == set(accepted)
    assert ids(sent)[1] == "order-7", "given by the publisher"
    assert dead["error_code"] == "INVALID_PAYLOAD" and dead["level"] == "WARN"
    (entry,) = bridge.dlq()
    assert (entry["envelope"]["id"], entry["correlation_id"]) == ids(dead)
    assert entry["id"] == dead["entry_id"]


def test_direct_delivery_tells_its_latency(new_bridge, publisher, fake):
    bridge = new_bridge({**DEBUG, **DIRECT})
    publisher.publish("telemetry/a", b"x", message_id="m" * 500)
    bridge.wait_log("delivery completed")
    assert bridge.terminate() == 0
    (line,) = lines(bridge, "delivery completed")
    assert line["latency_ms"] >= 0 and line["correlation_id"]
    assert 0 < len(line["envelope_id"]) <= 128, "long ids are cut"


@pytest.mark.parametrize("mode", [{}, DIRECT], ids=["shared_outbox", "direct_hold"])
def test_a_dropped_message_is_named(new_bridge, publisher, fake, mode):
    bridge = new_bridge({**mode, "stores.dlq": None, "routes.0.policy.on_expired": "drop",
                         "routes.0.policy.on_permanent_failure": "drop"})
    fake.entry_rule = lambda m: ("InvalidParameterValue", True)
    publisher.publish("telemetry/a", b"x", message_id="m-1", CorrelationData=b"order-8")
    bridge.wait_log("dropped by policy")
    assert bridge.terminate() == 0
    (line,) = [l for l in bridge.lines() if "dropped by policy" in l.get("msg", "")]
    assert ids(line)[1] == "order-8" and line["error_code"] == "INVALID_PAYLOAD"
    assert bridge.last_metrics()["MessagesDropped"] == 1
