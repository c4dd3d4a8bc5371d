"""Payloads and headers arrive unchanged at SQS and MQTT, or end in the DLQ with the reason (spec 02 §1, 04 B9)."""

import queue
import re

import paho.mqtt.client as mqtt
import pytest

import rig
from fake_sqs import MESSAGE_BYTES_MAX, attributes_md5, check_attributes

LARGE = {  # room for messages of 1 MiB inside the memory budget (spec 03 §6.4)
    "sessions.0.options.session.max_payload_bytes": 1100000,
    "sessions.0.options.session.receive_maximum": 12,
    "routes.0.policy.max_in_flight": 12,
}
MARKER_BYTES = len("x-bridge.payload-encoding") + len("String") + len("base64")

ODD_PAYLOADS = [
    *(bytes([b]) for b in range(256)),
    bytes(range(256)),
    b"",
    b"hello",
    "äöü € 😀".encode(),
    b"\xed\xa0\x80",  # a lone surrogate
    b"\xed\xb0\x80\xed\xa0\x80",
    b"\xef\xbf\xbe",  # U+FFFE: text, but none that SQS takes
    b"\xc0\xaf",  # overlong
    b"\xf4\x90\x80\x80",  # above U+10FFFF
    b"\xff\xfe\x00",
    b"text\x00with NUL",
    b"=",  # the body of an encoded empty payload
    b"\t\n\r",
    b"\x7f\x1b[31m",
]


@pytest.mark.parametrize("mode", ["shared_outbox", "direct_hold"])
def test_odd_payloads_arrive_unchanged(new_bridge, publisher, fake, mode):
    changes = {} if mode == "shared_outbox" else {"routes.0.delivery_mode": "direct_hold", "routes.0.session": None}
    bridge = new_bridge(changes)
    for i, payload in enumerate(ODD_PAYLOADS):
        publisher.publish(f"telemetry/{i}", payload)
    fake.wait_for_messages(len(ODD_PAYLOADS))
    by_topic = {int(m.text("mqtt.topic").partition("/")[2]): m.payload for m in fake.messages}
    assert by_topic == dict(enumerate(ODD_PAYLOADS))
    assert not bridge.dlq()


def test_moto_and_botocore_agree(folder, broker, publisher, moto, parts):
    """The same against a server and a client that are not ours."""
    queue_url = moto.create_queue("payloads")
    bridge = rig.Bridge(folder, rig.document(folder, broker.port, queue_url, moto.endpoint))
    parts.append(bridge)
    bridge.seed()
    bridge.start()
    payloads = [b"hello", b"\x00\xff", b"", "äöü €".encode(), bytes(range(256))]
    for payload in payloads:
        publisher.publish("telemetry/a", payload)
    arrived = []
    rig.wait_until(lambda: arrived.extend(rig.receive_batch(moto.client, queue_url)) or len(arrived) >= len(payloads),
                   20, "all arrive")
    assert sorted(p for p, _, _ in arrived) == sorted(payloads)
    assert all(a["mqtt.topic"]["StringValue"] == "telemetry/a" for _, a, _ in arrived)


def test_body_at_the_size_limit_and_beside_it(new_bridge, publisher, fake):
    bridge = new_bridge(LARGE)
    binary = (MESSAGE_BYTES_MAX - MARKER_BYTES) // 4 * 3
    fitting = [b"a" * (MESSAGE_BYTES_MAX - 1), b"b" * MESSAGE_BYTES_MAX, b"\x00" * binary]
    too_large = [b"c" * (MESSAGE_BYTES_MAX + 1), b"\x01" * (binary + 1)]
    for payload in fitting + too_large:
        publisher.publish("telemetry/a", payload)
    fake.wait_for_payloads(fitting)
    rig.wait_until(lambda: len(bridge.dlq()) == 2, 10, "two entries in the DLQ")
    assert fake.distinct() == set(fitting)
    entries = bridge.dlq()
    assert {rig.payload_of(e["envelope"]) for e in entries} == set(too_large)
    for entry in entries:
        assert (entry["error_code"], entry["category"]) == ("PAYLOAD_TOO_LARGE", "rejected")
        assert (entry["route_id"], entry["binding_id"], entry["address"]) == ("ingest", "to-sqs", "telemetry-events")
        assert entry["reason"]
    assert fake.count("ok") == fake.count()


def test_body_above_the_broker_side_limit_is_poison(new_bridge, publisher, fake):
    """03 check 27: acknowledged, dropped, counted; the next message flows."""
    bridge = new_bridge({"sessions.0.options.session.max_payload_bytes": 1000})
    publisher.publish("telemetry/a", b"x" * 1001)
    publisher.publish("telemetry/a", b"many", properties=[(f"p{i}", "v") for i in range(129)])
    publisher.publish("telemetry/a", b"next")
    fake.wait_for_payloads([b"next"])
    counters = bridge.metrics()
    assert counters["MQTTIngressPoisonDropped"] == 2
    assert fake.payloads() == [b"next"]
    assert counters["MQTTUnsettled"] == 0


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_batch_at_the_byte_limit(new_bridge, publisher, fake, beside):
    """Ten records that together are one byte below, at, and one byte above 1 MiB (04 check 3)."""
    bridge = new_bridge(LARGE)
    publisher.publish("telemetry/a", b"probe", message_id="id-p")
    fake.wait_for_messages(1)
    attributes = check_attributes(fake.messages[0].attributes)
    fake.block()
    publisher.publish("telemetry/a", b"first", message_id="id-f")
    fake.wait_for(lambda s: len(s.requests) == 2, 10, "the first is under way")
    total = MESSAGE_BYTES_MAX - 10 * attributes + beside
    sizes = [total // 10] * 9 + [total - total // 10 * 9]
    wanted = [b"%d" % i * size for i, size in enumerate(sizes)]
    for i, payload in enumerate(wanted):
        publisher.publish("telemetry/a", payload, message_id=f"id-{i}")
    rig.wait_until(lambda: bridge.rows("outbox", "SELECT count(*) AS n FROM outbox")[0]["n"] == 12, 10,
                   "all are in the outbox")
    fake.unblock()
    fake.wait_for_payloads(wanted)
    assert sorted(r.entries for r in fake.requests[2:]) == ([10] if beside <= 0 else [1, 9])
    assert fake.count("ok") == fake.count()


def test_ten_thousand_topics(new_bridge, publisher, fake):
    new_bridge({"sessions.0.options.session.receive_maximum": 200})
    count = 10000
    for i in range(count):
        publisher.publish(f"telemetry/site-{i % 7}/device-{i}", b"%d" % i)
    fake.wait_for_messages(count, 40)
    topics = {m.text("mqtt.topic") for m in fake.messages}
    assert topics == {f"telemetry/site-{i % 7}/device-{i}" for i in range(count)}
    for m in fake.messages:
        assert m.text("mqtt.topic").endswith(f"/device-{m.body}")


def one_message(fake):
    fake.wait_for_messages(1)
    return fake.messages[-1]


def test_attributes_of_an_anonymous_message(new_bridge, publisher, fake):
    """02 check 12, 03 check 38, 04 check 11."""
    new_bridge()
    publisher.publish("telemetry/line 1/ü", b"x")
    m = one_message(fake)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", m.text("mqtt.message-id"))
    assert m.text("mqtt.topic") == "telemetry/line 1/ü"
    assert m.attributes["mqtt.qos"] == {"DataType": "Number", "StringValue": "1"}
    assert m.attributes["mqtt.retained"] == {"DataType": "String", "StringValue": "false"}
    assert re.fullmatch(r"[0-9a-f]{32}", m.text("x-bridge.correlation-id"))
    assert set(m.attributes) == {"mqtt.message-id", "mqtt.topic", "mqtt.qos", "mqtt.retained",
                                 "x-bridge.correlation-id"}


FORGED = [("X-Bridge.Tenant-Id", "acme"), ("x-bridge.route-override", "elsewhere"), ("x-bridge.route-id", "forged"),
          ("x-bridge.source-id", "forged"), ("mqtt.topic", "forged"), ("sqs.ApproximateReceiveCount", "999"),
          ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("plant", "Malmö")]


@pytest.mark.parametrize("trusted", [False, True])
def test_reserved_headers_from_the_wire(new_bridge, publisher, fake, trusted):
    """02 checks 11 and 13, 03 check 29."""
    bridge = new_bridge({"routes.0.trust_bridge_headers": trusted})
    publisher.publish("telemetry/a", b"x", properties=FORGED)
    m = one_message(fake)
    assert m.text("traceparent") == dict(FORGED)["traceparent"]
    assert m.text("plant") == "Malmö"
    assert m.text("mqtt.topic") == "telemetry/a"
    names = {n.lower() for n in m.attributes}
    assert ("x-bridge.tenant-id" in names) == trusted
    assert not names & {"x-bridge.route-override", "x-bridge.route-id", "x-bridge.source-id",
                        "sqs.approximatereceivecount"}
    assert not bridge.dlq()


def test_ten_attributes_by_rank_then_name(new_bridge, publisher, fake):
    """04 check 10, with the four headers that every MQTT message has."""
    bridge = new_bridge({"routes.0.trust_bridge_headers": True})
    application = [(f"a{i}", f"value {i}") for i in range(9)]
    publisher.publish("telemetry/a", b"x", message_id="m1", properties=[
        ("gobridge.subject", "temperature"), ("traceparent", dict(FORGED)["traceparent"]),
        ("x-bridge.idempotency-key", "k1"), *application])
    m = one_message(fake)
    assert set(m.attributes) == {"Subject", "traceparent", "x-bridge.idempotency-key", *(f"a{i}" for i in range(7))}
    assert m.text("Subject") == "temperature"
    # a7, a8, mqtt.message-id, mqtt.topic, mqtt.qos, mqtt.retained and the correlation id found no place.
    assert bridge.metrics()["SQSDroppedAttributes"] == 7
    assert attributes_md5(m.attributes)


@pytest.mark.parametrize("payload", [b"nul \x00", b"", b"\xff"])
def test_text_encoding_refuses_what_sqs_refuses(new_bridge, publisher, fake, payload):
    """04 check 12: no call is made, the DLQ has the reason."""
    bridge = new_bridge({"senders.0.options.payload_encoding": "text"})
    publisher.publish("telemetry/a", payload)
    rig.wait_until(lambda: len(bridge.dlq()) == 1, 10, "an entry in the DLQ")
    entry = bridge.dlq()[0]
    assert (entry["error_code"], entry["category"]) == ("INVALID_PAYLOAD", "rejected")
    assert rig.payload_of(entry["envelope"]) == payload
    assert fake.count() == 0


@pytest.mark.parametrize("encoding,payload,body", [
    ("auto", b"\x00\xff", "AP8="), ("auto", b"", "="), ("auto", b"hello", "hello"), ("base64", b"hello", "aGVsbG8=")])
def test_payload_encoding(new_bridge, publisher, fake, encoding, payload, body):
    """04 check 41, sending side."""
    new_bridge({"senders.0.options.payload_encoding": encoding})
    publisher.publish("telemetry/a", payload)
    m = one_message(fake)
    assert (m.body, m.payload) == (body, payload)
    assert ("x-bridge.payload-encoding" in m.attributes) == (body != payload.decode("latin-1"))


def mqtt_to_mqtt(broker_port):
    """Changes that turn the SQS side of the document into a second MQTT session on the same broker."""
    return {
        "senders": [{"id": "out", "session_id": "target", "options": {"sender": {"qos": 1}}}],
        "bindings": [{"id": "to-target", "sender_id": "out", "address": "copy/{device}"}],
        "routes.0.bindings": ["to-target"], "routes.0.session": None,
        "sessions": [
            {"id": "plant", "transport": "mqtt", "session_mode": "persistent", "options": {"session": {
                "broker_url": f"tcp://127.0.0.1:{broker_port}", "client_id": "plant-bridge"}}},
            {"id": "target", "transport": "mqtt", "options": {"session": {
                "broker_url": f"tcp://127.0.0.1:{broker_port}", "client_id": "target-bridge"}}},
        ],
    }


def test_mqtt_to_mqtt_keeps_payload_and_properties(new_bridge, broker, publisher, parts):
    """02 checks 24 and 35, 03 check 30, on an untrusted route."""
    bridge = new_bridge(mqtt_to_mqtt(broker.port))
    bridge.wait_log("mqtt subscriptions converged", count=2)
    arrived = queue.Queue()
    subscriber = rig.Publisher(broker.port, client_id="subscriber")
    parts.append(subscriber)
    subscriber.client.on_message = lambda _c, _u, m: arrived.put(m)
    subscribed = queue.Queue()
    subscriber.client.on_subscribe = lambda *_: subscribed.put(1)
    subscriber.client.subscribe("copy/#", options=mqtt.SubscribeOptions(qos=1))
    subscribed.get(timeout=10)
    correlation = b"\x00\x01binary\xff"
    publisher.publish("telemetry/a", b"\x00\xff", message_id="m1", properties=[("device", "d7"), ("place", "Malmö")],
                      CorrelationData=correlation, ContentType="application/cbor", ResponseTopic="answers/here",
                      MessageExpiryInterval=600)
    m = arrived.get(timeout=10)
    assert (m.topic, m.payload, m.qos) == ("copy/d7", b"\x00\xff", 1)
    assert m.properties.CorrelationData == correlation
    assert m.properties.ContentType == "application/cbor"
    assert m.properties.ResponseTopic == "answers/here"
    assert 590 <= m.properties.MessageExpiryInterval <= 600
    user = dict(m.properties.UserProperty)
    assert user["mqtt.message-id"] == "m1" and user["place"] == "Malmö" and user["device"] == "d7"
    publisher.publish("telemetry/a", b"nowhere", properties=[("device", "A#")])
    publisher.publish("telemetry/a", b"missing")
    rig.wait_until(lambda: len(bridge.dlq()) == 2, 10, "two entries in the DLQ")
    assert {e["error_code"] for e in bridge.dlq()} == {"INVALID_TOPIC", "ADDRESS_TEMPLATE"}
    assert arrived.empty()
