"""What a broker and the network between can do: restart, hang, cut, takeover, and what is kept (spec 03 §4, §5)."""

import queue
import random
import socket
import threading

import paho.mqtt.client as mqtt
import pytest

import rig
from fake_sqs import Fault

SESSION = "sessions.0.options.session"
DIRECT = {"routes.0.delivery_mode": "direct_hold", "routes.0.session": None}


def exchange(publisher, fake, *payloads):
    for payload in payloads:
        publisher.publish("telemetry/a", payload, message_id=payload.decode())
    fake.wait_for_payloads(payloads)


# --- loss and return ------------------------------------------------------------------------------


def test_broker_restart(new_bridge, broker, new_publisher, fake):
    bridge = new_bridge()
    publisher = new_publisher()
    exchange(publisher, fake, b"before")
    publisher.close()
    broker.stop()
    bridge.wait_log("mqtt connect failed")
    broker.start()
    bridge.wait_log("mqtt subscriptions converged", count=2)
    exchange(new_publisher(), fake, b"after")
    assert bridge.count("mqtt session was not resumed") == 0  # mosquitto keeps sessions on disk
    assert bridge.metrics()["MQTTReconnects"] == 1


def test_broker_that_lost_its_sessions(new_bridge, broker, new_publisher, fake):
    """03 check 33: resume lost is counted, traffic goes on."""
    bridge = new_bridge()
    broker.process.kill()
    for path in (broker.folder / "data").iterdir():
        path.unlink()
    bridge.wait_log("mqtt connect failed")
    broker.start()
    bridge.wait_log("mqtt subscriptions converged", count=2)
    assert bridge.count("mqtt session was not resumed") == 1
    assert bridge.metrics()["MQTTSessionResumeLost"] == 1
    exchange(new_publisher(), fake, b"after")


def test_hanging_broker_is_found_by_the_keep_alive(new_bridge, broker, publisher, fake):
    bridge = new_bridge({f"{SESSION}.keep_alive": 1, f"{SESSION}.reconnect_timeout": "1s"})
    broker.pause()
    bridge.wait_log("mqtt connection lost", 4)
    lost = [l for l in bridge.lines() if l.get("msg") == "mqtt connection lost"][0]
    assert "PINGRESP" in lost["error"], lost
    bridge.wait_log("mqtt connect failed", 4)
    broker.resume()
    bridge.wait_log("mqtt subscriptions converged", 15, count=2)
    exchange(publisher, fake, b"after")


def test_cut_connections_lose_nothing(new_bridge, proxy, publisher, fake):
    bridge = new_bridge({f"{SESSION}.broker_url": f"tcp://127.0.0.1:{proxy.port}", f"{SESSION}.reconnect_delay": "50ms"})
    wanted = [b"cut-%d" % i for i in range(1000)]
    for i, payload in enumerate(wanted):
        publisher.publish("telemetry/a", payload, message_id=payload.decode())
        if i % 300 == 299:
            fake.wait_for(lambda s: len(s.messages) > i - 250, 20, "the next part is under way")
            proxy.cut()
    publisher.flush()
    fake.wait_for_payloads(wanted)
    assert proxy.accepted >= 4
    assert bridge.metrics()["MQTTReconnects"] >= 3


def test_stalled_connection_is_replaced(new_bridge, proxy, publisher, fake):
    """Packets vanish without a reset, as behind a dead NAT entry."""
    bridge = new_bridge({f"{SESSION}.broker_url": f"tcp://127.0.0.1:{proxy.port}", f"{SESSION}.keep_alive": 1,
                         f"{SESSION}.reconnect_timeout": "1s"})
    proxy.stall()
    bridge.wait_log("mqtt connection lost", 5)
    proxy.resume()
    bridge.wait_log("mqtt subscriptions converged", 15, count=2)
    exchange(publisher, fake, b"after")


def connect_as(port, client_id):
    """A bare CONNECT; waits for the CONNACK. No library, for those connect again by themselves."""
    connect = b"\x00\x04MQTT\x04\x00\x00\x3c" + len(client_id).to_bytes(2, "big") + client_id.encode()
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(b"\x10" + bytes([len(connect)]) + connect)
        assert s.recv(4)[:2] == b"\x20\x02"


def test_takeover_by_a_second_client(new_bridge, publisher, fake):
    """03 §4.4, check 25: no penalty first; at the second the log names the shared client_id. mosquitto 2.0.11 sends no
    DISCONNECT 0x8E: short lives of connections are the sign."""
    bridge = new_bridge()
    for _ in range(2):
        lost = bridge.count("mqtt connection lost")
        connect_as(publisher.port, "plant-bridge")
        bridge.wait_log("mqtt connection lost", count=lost + 1)
        bridge.wait_log("mqtt subscriptions converged", count=lost + 2)
    bridge.wait_log("another connection uses this client_id")
    exchange(publisher, fake, b"after")


def test_persistent_session_resumes(new_bridge, publisher, fake):
    bridge = new_bridge()
    assert bridge.terminate() == 0
    wanted = [b"waiting-%d" % i for i in range(50)]
    for payload in wanted:
        publisher.publish("telemetry/a", payload)
    publisher.flush()
    bridge.start()
    fake.wait_for_payloads(wanted)
    assert '"session_present":true' in bridge.text()


@pytest.mark.parametrize("protocol", ["v5", "v3.1.1"])
@pytest.mark.parametrize("limit", ["", "max_inflight_messages 0"], ids=["broker's default", "no limit"])
def test_backlog_beyond_the_receive_maximum(folder, fake, parts, protocol, limit):
    """mosquitto 2.0.11 sends more than it is allowed as soon as there is a backlog (docs/decisions/0304)."""
    broker = rig.Broker(folder / "broker", limits=f"max_queued_messages 0\nmax_queued_bytes 0\n{limit}")
    parts.append(broker)
    home = folder / "bridge"
    home.mkdir(mode=0o700)
    bridge = rig.Bridge(home, rig.document(home, broker.port, fake.queue_url(), fake.endpoint, {
        f"{SESSION}.receive_maximum": 50, f"{SESSION}.protocol_version": protocol}))
    parts.append(bridge)
    bridge.seed()
    bridge.start()
    assert bridge.terminate() == 0
    publisher = rig.Publisher(broker.port)
    parts.append(publisher)
    wanted = [b"backlog-%d" % i for i in range(2000)]
    for payload in wanted:
        publisher.publish("telemetry/a", payload, message_id=payload.decode())
    publisher.flush()
    bridge.start()
    fake.wait_for_payloads(wanted)
    assert len(fake.messages) == len(wanted)
    assert bridge.count("mqtt connection lost") == 0


# --- transports and versions ----------------------------------------------------------------------


@pytest.fixture
def authority(folder):
    from tls import Authority
    return Authority(folder)


@pytest.fixture
def tls_station(folder, fake, parts, authority):
    """Makes a bridge and a TLS broker whose certificate names `host`."""
    def make(host="localhost", listener="", changes=None):
        certificate, key = authority.issue("server", host=host)
        broker = rig.Broker(folder / "tls", listener=f"cafile {authority.path}\ncertfile {certificate}\n"
                                                     f"keyfile {key}\n{listener}", verbose=True)
        parts.append(broker)
        home = folder / "bridge"
        home.mkdir(mode=0o700)
        bridge = rig.Bridge(home, rig.document(home, broker.port, fake.queue_url(), fake.endpoint, {
            f"{SESSION}.broker_url": f"tls://localhost:{broker.port}",
            f"{SESSION}.tls": {"enable": True, "ca_cert_file": str(authority.path)}, **(changes or {})}))
        parts.append(bridge)
        bridge.seed()
        return bridge, broker
    return make


def test_tls(tls_station, authority, fake, parts):
    bridge, broker = tls_station()
    bridge.start()
    publisher = rig.Publisher(broker.port, host="localhost", tls=authority.context())
    parts.append(publisher)
    exchange(publisher, fake, b"encrypted")
    assert bridge.terminate() == 0


def test_tls_with_client_certificate(tls_station, authority, fake, parts):
    certificate, key = authority.issue("plant bridge")
    bridge, broker = tls_station(listener="require_certificate true\nuse_identity_as_username true", changes={
        f"{SESSION}.tls.cert_file": str(certificate), f"{SESSION}.tls.key_file": str(key)})
    bridge.start()
    publisher = rig.Publisher(broker.port, host="localhost", tls=authority.context(certificate, key))
    parts.append(publisher)
    exchange(publisher, fake, b"mutual")
    assert "u'plant bridge'" in broker.process.text()


def refused_reason(bridge):
    bridge.start(wait="mqtt connect failed")
    return [l for l in bridge.lines() if l.get("msg") == "mqtt connect failed"][0]["error"]


PASSWORD = {f"{SESSION}.username": "someone", f"{SESSION}.password": "only over verified TLS"}


def test_tls_refuses_a_foreign_authority(tls_station, folder):
    """03 check 26: the password is never sent."""
    from tls import Authority
    other = Authority(folder, "another authority")
    bridge, broker = tls_station(changes={f"{SESSION}.tls.ca_cert_file": str(other.path), **PASSWORD})
    assert "certificate" in refused_reason(bridge)
    assert "plant-bridge" not in broker.process.text()


def test_tls_refuses_another_host(tls_station):
    bridge, broker = tls_station(host="elsewhere.example", changes=PASSWORD)
    assert "localhost" in refused_reason(bridge)
    assert "plant-bridge" not in broker.process.text()


def test_tls_broker_that_wants_a_certificate(tls_station):
    bridge, broker = tls_station(listener="require_certificate true")
    assert refused_reason(bridge)
    assert "plant-bridge" not in broker.process.text()


def test_plaintext_credentials_are_refused(new_bridge):
    bridge = new_bridge(PASSWORD, start=False, seed=False)
    result = bridge.run("-validate")
    assert result.returncode == 1 and "allow_plaintext_credentials" in result.stderr


def test_websocket(new_bridge, gateway, publisher, fake):
    """Debian's mosquitto has no WebSockets: a strict gateway stands before it and sends fragments and pings."""
    new_bridge({f"{SESSION}.broker_url": f"ws://127.0.0.1:{gateway.port}/mqtt"})
    wanted = [b"x" * size for size in (1, 125, 126, 65535, 65536, 200000)]
    for payload in wanted:
        publisher.publish("telemetry/a", payload)
    fake.wait_for_payloads(wanted)
    assert gateway.pings_answered == 1
    assert gateway.fault == ""


def test_version_3_1_1(new_bridge, publisher, fake):
    """03 check 35: no properties either way, ids from the content, QoS 1 flow."""
    new_bridge({f"{SESSION}.protocol_version": "v3.1.1", f"{SESSION}.message_id": "content_hash"})
    publisher.publish("telemetry/a", b"old", properties=[("ignored", "x")])
    fake.wait_for_messages(1)
    names = set(fake.messages[0].attributes)
    assert names == {"mqtt.topic", "mqtt.qos", "mqtt.retained", "x-bridge.correlation-id"}


def test_qos_2_survives_a_kill(new_bridge, new_publisher, fake):
    """03 check 9: PUBREC is withheld until settlement, so a killed bridge gets the message again."""
    bridge = new_bridge({**DIRECT, "receivers.0.topics.0.qos": 2})
    publisher = new_publisher(in_flight=20)  # more than that mosquitto takes for a violation
    fake.block()
    publisher.publish("telemetry/a", b"twice at most", qos=2, message_id="m1")
    fake.wait_for(lambda s: s.waiting() == 1, 10, "the send is under way")
    bridge.kill()
    fake.unblock()
    bridge.start()
    fake.wait_for_payloads([b"twice at most"])
    wanted = [b"qos2-%d" % i for i in range(200)]
    for payload in wanted:
        publisher.publish("telemetry/a", payload, qos=2, message_id=payload.decode())
    fake.wait_for_payloads(wanted)
    assert len(fake.messages) == 201
    assert fake.messages[0].attributes["mqtt.qos"]["StringValue"] == "2"


# --- destination trouble --------------------------------------------------------------------------


def test_direct_hold_bridges_an_outage_of_ten_seconds(new_bridge, publisher, fake, folder):
    """02 check 15."""
    bridge = new_bridge(DIRECT)
    down = threading.Event()
    down.set()
    fake.rule = lambda r: Fault(status=503, code="ServiceUnavailable") if down.is_set() else None
    timer = threading.Timer(10, down.clear)
    timer.start()
    publisher.publish("telemetry/a", b"patient", message_id="m1")
    fake.wait_for_payloads([b"patient"], 30)
    timer.cancel()
    bridge.wait_metric("MessagesSent", 1)
    counters = bridge.metrics()
    assert counters["SendRetries"] > 0
    assert counters["RouteErrors"] == 0
    assert counters["DLQEntries"] == 0
    assert counters["MQTTUnsettled"] == 0
    assert fake.payloads() == [b"patient"]


def test_anonymous_message_beyond_the_budget_is_dead_lettered(new_bridge, publisher, fake):
    """02 check 16: a redelivery would carry another id and could never be counted."""
    bridge = new_bridge({**DIRECT, "routes.0.policy.send_retry_budget": "0s"})
    fake.rule = lambda r: Fault(status=503, code="ServiceUnavailable")
    publisher.publish("telemetry/a", b"nameless")
    rig.wait_until(lambda: len(bridge.dlq()) == 1, 10, "an entry in the DLQ")
    assert bridge.metrics()["DLQEntries,category=unstable_identity,route_id=ingest"] == 1


@pytest.mark.parametrize("action", ["dlq", "drop"])
@pytest.mark.parametrize("mode", ["shared_outbox", "direct_hold"])
def test_permanent_refusal(new_bridge, publisher, fake, mode, action):
    """02 check 6; 04 check 4: only the refused entry of a batch is dead-lettered."""
    changes = {"routes.0.policy.on_permanent_failure": action}
    bridge = new_bridge({**(DIRECT if mode == "direct_hold" else {}), **changes})
    fake.entry_rule = lambda m: ("InvalidParameterValue", True) if m.body == "3" else None
    fake.block()
    for i in range(10):
        publisher.publish("telemetry/a", b"%d" % i, message_id=f"m{i}")
    publisher.flush()
    fake.unblock()
    fake.wait_for_payloads([b"%d" % i for i in range(10) if i != 3])
    rig.wait_until(lambda: (c := bridge.metrics())["DLQEntries"] + c["MessagesDropped"] == 1, 10, "the refusal counts")
    assert bridge.metrics()["MessagesSent"] == 9
    entries = bridge.dlq()
    if action == "drop":
        assert not entries and bridge.metrics()["MessagesDropped"] == 1
        return
    entry = entries[0]
    assert (entry["route_id"], entry["binding_id"], entry["address"]) == ("ingest", "to-sqs", "telemetry-events")
    assert (entry["error_code"], entry["category"]) == ("INVALID_PAYLOAD", "rejected")
    assert rig.payload_of(entry["envelope"]) == b"3" and entry["envelope"]["id"] == "m3"


def test_entry_in_neither_list_is_sent_again(new_bridge, publisher, fake):
    bridge = new_bridge()
    omitted = []

    def omit_once(message):
        if message.body == "5" and not omitted:
            omitted.append(message)
            return "omit"
        return None
    fake.entry_rule = omit_once
    fake.block()
    for i in range(10):
        publisher.publish("telemetry/a", b"%d" % i, message_id=f"m{i}")
    publisher.flush()
    fake.unblock()
    fake.wait_for_payloads([b"%d" % i for i in range(10)])
    assert omitted and not bridge.dlq()


FAULTS = {
    "500": Fault(status=500, code="InternalError"), "503": Fault(status=503, code="ServiceUnavailable"),
    "throttled": Fault(status=400, code="RequestThrottled"), "429": Fault(status=429, code="TooManyRequests"),
    "too long": Fault(status=400, code="BatchRequestTooLong"), "413": Fault(status=413, code="RequestEntityTooLarge"),
    "cut unanswered": Fault(cut="before"), "half an answer": Fault(cut="half"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_requests_lose_nothing(new_bridge, publisher, fake, name):
    """The first two multi-entry requests fail; too long ones are halved (04 B10)."""
    bridge = new_bridge({"routes.0.policy.backoff": {"initial_interval": "100ms", "max_interval": "200ms"}})
    faulty = []

    def fail_twice(request):
        if request.entries == 1 or len(faulty) == 2:
            return None
        faulty.append(request)
        return FAULTS[name]
    fake.rule = fail_twice
    fake.block()
    wanted = [b"%d" % i for i in range(40)]
    for payload in wanted:
        publisher.publish("telemetry/a", payload, message_id=payload.decode())
    publisher.flush()
    fake.unblock()
    fake.wait_for_payloads(wanted, 30)
    assert len(faulty) == 2
    assert not bridge.dlq()
    if name == "half an answer":  # what was accepted and not confirmed comes twice
        fake.wait_for(lambda s: len(s.messages) > len(wanted), 15, "the unconfirmed ones come again")
    else:
        assert len(fake.messages) == len(wanted)


# --- expiry and conservation ----------------------------------------------------------------------


@pytest.mark.parametrize("action", ["dlq", "drop"])
def test_expired_message(new_bridge, publisher, fake, action):
    """02 check 7: expired while it waited in the outbox."""
    bridge = new_bridge({"routes.0.policy.on_expired": action})
    fake.block()
    publisher.publish("telemetry/a", b"first")
    fake.wait_for(lambda s: s.waiting() == 1, 10, "a send is under way")
    publisher.publish("telemetry/a", b"short-lived", message_id="m1", MessageExpiryInterval=1)
    publisher.flush()
    now = "CAST(strftime('%s','now') AS INTEGER) * 1000"
    rig.wait_until(lambda: bridge.rows("outbox", f"SELECT 1 FROM outbox WHERE expires_at > 0 AND expires_at < {now}"),
                   10, "the record has expired")
    fake.unblock()
    rig.wait_until(lambda: (c := bridge.metrics())["DLQEntries"] + c["MessagesExpired"] == 1, 15, "the expiry counts")
    assert fake.payloads() == [b"first"]
    entries = bridge.dlq()
    if action == "drop":
        assert not entries
        return
    assert (entries[0]["error_code"], entries[0]["category"]) == ("MESSAGE_EXPIRED", "expired")
    assert rig.payload_of(entries[0]["envelope"]) == b"short-lived"


def test_conservation_over_a_thousand_mixed_messages(new_bridge, publisher, fake):
    """02 check 31: received = sent + dropped + filtered + expired + dlq, per message and in the counters."""
    bridge = new_bridge({"receivers.0.topics.0.qos": 2, "routes.0.policy.on_expired": "drop",
                         "routes.0.policy.backoff": {"initial_interval": "100ms", "max_interval": "200ms"}})
    rng = random.Random(7)
    fake.entry_rule = lambda m: ("InvalidParameterValue", True) if m.payload.startswith(b"refuse") else None
    fake.rule = lambda r: FAULTS[rng.choice(["500", "cut unanswered", "throttled"])] if rng.random() < 0.05 else None
    kinds = ["plain", "binary", "refuse", "anonymous", "qos0", "qos2"]
    sent = {kind: set() for kind in kinds}
    for i in range(1000):
        kind = kinds[i % len(kinds)]
        payload = kind.encode() + (b"\x00" if kind == "binary" else b"-") + b"%d" % i
        sent[kind].add(payload)
        publisher.publish(f"telemetry/{i % 9}", payload, qos={"qos0": 0, "qos2": 2}.get(kind, 1),
                          message_id=None if kind == "anonymous" else f"m{i}")
    publisher.flush()
    # A burst may fill the ingress queue: QoS 0 is then dropped and counted (03 §6.4), everything else must arrive.
    possible = set().union(*(p for k, p in sent.items() if k != "refuse"))
    fake.wait_for_payloads(possible - sent["qos0"], 60)
    rig.wait_until(lambda: len(fake.distinct()) + bridge.metrics()["MQTTRouterDropped"] == len(possible), 30,
                   "each QoS 0 message has arrived or was counted as dropped")
    rig.wait_until(lambda: len(bridge.dlq()) == len(sent["refuse"]), 30, "all refused ones are dead letters")
    rig.wait_until(lambda: (c := bridge.metrics())["MessagesSent"] == len(fake.distinct()) and c["MQTTUnsettled"] == 0,
                   30, "all are settled")
    assert possible - fake.distinct() <= sent["qos0"] and fake.distinct() <= possible
    assert {rig.payload_of(e["envelope"]) for e in bridge.dlq()} == sent["refuse"]
    assert bridge.terminate() == 0
    c = bridge.last_metrics()
    assert c["MessagesReceived"] + c["MQTTRouterDropped"] == 1000
    assert c["MessagesReceived"] == (c["MessagesSent"] + c["MessagesDropped"] + c["MessagesFiltered"] +
                                     c["MessagesExpired"] + c["DLQEntries"])


def test_two_sessions_on_two_brokers(new_bridge, broker, folder, publisher, parts):
    """MQTT to MQTT with the target restarting in between."""
    target = rig.Broker(folder / "target")
    parts.append(target)
    bridge = new_bridge({
        "senders": [{"id": "out", "session_id": "target"}],
        "bindings": [{"id": "to-target", "sender_id": "out", "address": "copy"}],
        "routes.0.bindings": ["to-target"], **DIRECT,
        "sessions": [
            {"id": "plant", "transport": "mqtt", "session_mode": "persistent", "options": {"session": {
                "broker_url": f"tcp://127.0.0.1:{broker.port}", "client_id": "plant-bridge"}}},
            {"id": "target", "transport": "mqtt", "options": {"session": {
                "broker_url": f"tcp://127.0.0.1:{target.port}", "client_id": "target-bridge",
                "reconnect_delay": "100ms", "reconnect_max_delay": "300ms"}}}]})
    bridge.wait_log("mqtt subscriptions converged", count=2)  # the target's says nothing about the plant's
    arrived = queue.Queue()
    subscriber = rig.Publisher(target.port, client_id="subscriber", clean=False)
    parts.append(subscriber)
    subscriber.client.on_message = lambda _c, _u, m: arrived.put(m.payload)
    subscribed = queue.Queue()
    subscriber.client.on_subscribe = lambda *_: subscribed.put(1)
    subscriber.client.subscribe("copy", options=mqtt.SubscribeOptions(qos=1))
    subscribed.get(timeout=10)
    wanted = {b"%d" % i for i in range(300)}
    for i, payload in enumerate(sorted(wanted)):
        publisher.publish("telemetry/a", payload, message_id=payload.decode())
        if i == 100:
            target.stop()
        if i == 200:
            target.start()
    seen = set()
    while seen != wanted:
        seen.add(arrived.get(timeout=20))
