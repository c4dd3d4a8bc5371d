"""Claimed records leave in batches with a result for each entry (spec 04 B9, acceptance checks 2 to 4 and 7)."""

import pytest

import rig
from fake_sqs import MESSAGE_BYTES_MAX

KIB = 1024


@pytest.fixture
def stored(new_bridge, publisher, fake):
    """A bridge that is down with the given payloads pending in its outbox, and an SQS that has seen nothing of them."""
    def make(payloads, changes=None):
        bridge = new_bridge(changes)
        fake.block()
        for i, payload in enumerate(payloads):
            publisher.publish("telemetry/a", payload, message_id=f"m{i:03}")
        publisher.flush()
        rig.wait_until(lambda: bridge.rows("outbox", "SELECT count(*) AS n FROM outbox")[0]["n"] == len(payloads), 20,
                       "all records are stored")
        bridge.kill()
        fake.unblock()
        rig.wait_until(lambda: fake.waiting() == 0, 10, "SQS has forgotten it")
        assert not fake.payloads()
        return bridge
    return make


def answered(fake):
    """Without the requests of the bridge that was killed."""
    return [r for r in fake.requests if r.answered != "gone"]


def statuses(bridge):
    rows = bridge.rows("outbox", "SELECT envelope_id, status FROM outbox ORDER BY seq")
    return [r["status"] for r in rows]


@pytest.mark.parametrize("count,sends", [(10, [("SendMessageBatch", 10)]),
                                         (11, [("SendMessageBatch", 10), ("SendMessage", 1)])])
def test_ten_claimed_records_are_one_request(stored, fake, count, sends):
    bridge = stored([b"%d" % i for i in range(count)])
    bridge.start(wait=None)
    fake.wait_for_messages(count)
    assert bridge.terminate() == 0
    assert sorted((r.action, r.entries) for r in answered(fake)) == sorted(sends), "both are under way at once"
    assert statuses(bridge) == ["completed"] * count


def test_batches_stay_within_a_mebibyte(stored, fake):
    room = {"sessions.0.options.session.max_payload_bytes": 400 * KIB,
            "sessions.0.options.session.receive_maximum": 20, "routes.0.policy.max_in_flight": 20}
    payloads = [b"%d" % i + b"a" * (300 * KIB - 1) for i in range(5)]
    bridge = stored(payloads, room)
    bridge.start(wait=None)
    fake.wait_for_payloads(payloads)
    assert len(answered(fake)) >= 2
    assert {r.answered for r in fake.requests} <= {"ok", "gone"}, "the fake refuses batches above the limit"
    assert all(r.entries * 300 * KIB <= MESSAGE_BYTES_MAX for r in answered(fake))
    assert bridge.terminate() == 0


def test_each_entry_has_its_own_result(stored, fake):
    bridge = stored([b"%d" % i for i in range(10)])
    omitted = []

    def rule(message):
        if message.body == "3":
            return "InvalidParameterValue", True
        if message.body == "9" and not omitted:
            omitted.append(message)
            return "omit"
        return None
    fake.entry_rule = rule
    bridge.start(wait=None)
    fake.wait_for_payloads([b"%d" % i for i in range(10) if i != 3], 30)
    rig.wait_until(lambda: set(statuses(bridge)) == {"completed"}, 10, "all records are settled")
    (entry,) = bridge.dlq()
    assert rig.payload_of(entry["envelope"]) == b"3" and entry["error_code"] == "INVALID_PAYLOAD"
    assert fake.payloads() == [b"%d" % i for i in range(9) if i != 3] + [b"9"], "the nine once, the omitted one later"
    counters = bridge.metrics()
    assert (counters["MessagesSent"], counters["DLQEntries"], counters["MessagesDropped"]) == (9, 1, 0)
    assert bridge.terminate() == 0


def test_endpoint_takes_all_traffic_of_a_queue_elsewhere(new_bridge, publisher, fake):
    elsewhere = "https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events"
    bridge = new_bridge({"senders.0.options.queue_url": elsewhere})
    publisher.publish("telemetry/a", b"x")
    fake.wait_for_payloads([b"x"])
    assert bridge.terminate() == 0
