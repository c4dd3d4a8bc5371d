"""One message, two destinations (spec 02 §7.1, check 23)."""

import queue

import paho.mqtt.client as mqtt

import fake_sqs
import rig


def fan_out(broker_port):
    """Changes that add a second MQTT session as a second destination of the document's route."""
    return {
        "routes.0.dispatch_mode": "fan_out", "routes.0.bindings": ["to-sqs", "to-copy"],
        "sessions": [
            {"id": "plant", "transport": "mqtt", "session_mode": "persistent", "options": {"session": {
                "broker_url": f"tcp://127.0.0.1:{broker_port}", "client_id": "plant-bridge"}}},
            {"id": "target", "transport": "mqtt", "options": {"session": {
                "broker_url": f"tcp://127.0.0.1:{broker_port}", "client_id": "target-bridge"}}},
        ],
    }


def test_a_failing_leg_resends_no_other(new_bridge, broker, publisher, fake, parts):
    bridge = new_bridge(start=False)
    doc = bridge.doc
    for path, value in fan_out(broker.port).items():
        rig.set_path(doc, path, value)
    doc["senders"].append({"id": "copy", "session_id": "target", "options": {"sender": {"qos": 1}}})
    doc["bindings"].append({"id": "to-copy", "sender_id": "copy", "address": "copy/all"})
    bridge.write(doc)
    subscriber = rig.Publisher(broker.port, client_id="subscriber")
    parts.append(subscriber)
    arrived, subscribed = queue.Queue(), queue.Queue()
    subscriber.client.on_message = lambda _c, _u, m: arrived.put(m.payload)
    subscriber.client.on_subscribe = lambda *_: subscribed.put(1)
    subscriber.client.subscribe("copy/#", options=mqtt.SubscribeOptions(qos=1))
    subscribed.get(timeout=10)
    fake.rule = lambda _request: fake_sqs.Fault(status=503, code="ServiceUnavailable")
    bridge.start()
    bridge.wait_log("mqtt subscriptions converged", count=2)
    wanted = [b"m%d" % i for i in range(20)]
    for payload in wanted:
        publisher.publish("telemetry/a", payload, message_id=payload.decode())
    assert sorted(arrived.get(timeout=10) for _ in wanted) == sorted(wanted)
    rig.wait_until(lambda: bridge.metrics()["OutboxCompletions"] == 20, 10, "one leg of each message is complete")
    bridge.wait_metric("OutboxRecordFailures", 20)  # the other legs were released, all of them
    assert not fake.payloads() and arrived.empty()
    fake.rule = None
    fake.wait_for_payloads(wanted, 40)
    assert bridge.terminate() == 0
    assert sorted(fake.payloads()) == sorted(wanted)
    assert arrived.empty(), "the leg that had arrived did not come again"
    assert not bridge.rows("outbox", "SELECT 1 FROM outbox WHERE status IN ('pending', 'claimed')")
