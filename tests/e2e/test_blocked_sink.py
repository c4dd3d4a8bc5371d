"""A destination that stands still for longer than three keep-alive intervals (spec 02 check 33, 03 check 11).

Order is promised per `x-bridge.ordering-key` behind an outbox, and for direct_hold with one delivery at a time; the
two variants are those. The outbox takes everything meanwhile; direct_hold fills the receive window.
"""

import time

import pytest

import rig

KEEP_ALIVE = 2
BLOCKED = 3 * KEEP_ALIVE + 0.5  # seconds, measured from the moment the window is full
WINDOW = 20
MESSAGES = 400
BODY = 4096

VARIANTS = {
    "shared_outbox, one ordering key": {
        "routes.0.trust_bridge_headers": True,
    },
    "direct_hold, one in flight": {
        "routes.0.delivery_mode": "direct_hold",
        "routes.0.session": None,
        "routes.0.policy.max_in_flight": 1,
        "routes.0.policy.send_retry_budget": "60s",
    },
}


def body(i):
    return b"%06d" % i + b"y" * (BODY - 6)


def keyed(mode):
    return [("x-bridge.ordering-key", "the only key")] if mode.startswith("shared") else []


def first_arrivals(payloads):
    return list(dict.fromkeys(payloads))


@pytest.mark.parametrize("mode", VARIANTS)
def test_blocked_sink_keeps_connection_memory_and_order(folder, fake, parts, new_publisher, mode):
    broker = rig.Broker(folder / "verbose", verbose=True)
    parts.append(broker)
    home = folder / "bridge"
    home.mkdir(mode=0o700)
    changes = {**VARIANTS[mode], "sessions.0.options.session.keep_alive": KEEP_ALIVE,
               "sessions.0.options.session.receive_maximum": WINDOW}
    bridge = rig.Bridge(home, rig.document(home, broker.port, fake.queue_url(), fake.endpoint, changes))
    parts.append(bridge)
    bridge.seed()
    bridge.start()
    publisher = new_publisher(broker.port)
    fake.block()
    wanted = [body(i) for i in range(MESSAGES)]
    for i, payload in enumerate(wanted):
        publisher.publish("telemetry/a", payload, message_id=f"m{i}", properties=keyed(mode))
    publisher.flush()
    fake.wait_for(lambda s: s.waiting() >= 1, 10, "a send is outstanding")
    full = 0.0 if mode.startswith("shared") else 1.0
    rig.wait_until(lambda: bridge.metrics()["MQTTReceiveWindowUtilization"] == full, 10, "the window is full or empty")
    if mode.startswith("shared"):
        broker.wait_log("Received PUBACK from plant-bridge", count=MESSAGES)
    pings = broker.count("Sending PINGRESP to plant-bridge")
    resident = bridge.rss_kib()
    end = time.monotonic() + BLOCKED
    samples = []
    while time.monotonic() < end:
        samples.append(bridge.rss_kib())
        time.sleep(0.1)  # sampling
    assert max(samples) - resident < 1024, f"memory grew: {resident} -> {max(samples)} KiB"
    assert broker.count("Sending PINGRESP to plant-bridge") >= pings + 2
    assert bridge.metrics()["MQTTReceiveWindowUtilization"] == full
    assert not fake.payloads()
    fake.unblock()
    fake.wait_for_payloads(wanted, 60)
    broker.wait_log("Received PUBACK from plant-bridge", count=MESSAGES)
    assert first_arrivals(fake.payloads()) == wanted
    for trouble in ("has exceeded timeout", "closed its connection", "already connected"):
        assert not [l for l in broker.process.text().splitlines() if trouble in l and "plant-bridge" in l], trouble
    assert bridge.terminate() == 0


def test_max_in_flight_bounds_the_outstanding_sends(new_bridge, publisher, fake):
    new_bridge({**VARIANTS["direct_hold, one in flight"], "routes.0.policy.max_in_flight": 2})
    fake.block()
    for i in range(10):
        publisher.publish("telemetry/a", b"%d" % i)
    fake.wait_for(lambda s: s.waiting() == 2, 10, "two sends are outstanding")
    with pytest.raises(AssertionError):
        fake.wait_for(lambda s: s.waiting() > 2, 1, "a third send")
    fake.unblock()
    fake.wait_for_messages(10)
