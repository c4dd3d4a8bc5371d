"""MQTT sessions against a real broker: what a kill, a second process, a wrong authority and a changed filter do."""

import socket
import ssl
import subprocess
import threading
import time

import pytest

import rig

DIRECT = {"routes.0.delivery_mode": "direct_hold", "routes.0.session": None}


@pytest.fixture
def verbose(folder, parts):
    made = rig.Broker(folder / "verbose", verbose=True)
    parts.append(made)
    return made


def bridge_on(folder, fake, parts, port, changes=None, name="bridge"):
    home = folder / name
    home.mkdir(mode=0o700)
    made = rig.Bridge(home, rig.document(home, port, fake.queue_url(), fake.endpoint, changes))
    parts.append(made)
    return made


def lines(broker, *texts):
    return [l for l in broker.process.text().splitlines() if all(t in l for t in texts)]


@pytest.mark.parametrize("version", ["v5", "v3.1.1"])
@pytest.mark.parametrize("qos,receipt", [(1, "PUBACK"), (2, "PUBREC")])
def test_killed_before_settlement(folder, verbose, fake, parts, new_publisher, version, qos, receipt):
    """03 checks 8, 9 and 35: nothing is acknowledged before the destination has it; then the broker sends again."""
    bridge = bridge_on(folder, fake, parts, verbose.port, {
        **DIRECT, "receivers.0.topics.0.qos": qos, "sessions.0.options.session.protocol_version": version})
    bridge.seed()
    bridge.start()
    publisher = new_publisher(verbose.port)
    fake.block()
    publisher.publish("telemetry/a", b"held", qos=qos, message_id="m1")
    publisher.flush()
    fake.wait_for(lambda s: s.waiting() == 1, 10, "the send is under way")
    assert not lines(verbose, f"Received {receipt} from plant-bridge")
    bridge.kill()
    fake.unblock()
    bridge.start()
    fake.wait_for_payloads([b"held"])
    verbose.wait_log(f"Received {receipt} from plant-bridge")
    if qos == 2:
        verbose.wait_log("Received PUBCOMP from plant-bridge")
    assert len(lines(verbose, "Sending PUBLISH to plant-bridge")) == 2
    assert bridge.terminate() == 0
    assert set(fake.payloads()) == {b"held"}


def test_content_hash_is_the_same_for_a_second_copy(folder, verbose, fake, parts, new_publisher):
    """03 check 35: the outbox knows the copy, so it is acknowledged and stored once."""
    bridge = bridge_on(folder, fake, parts, verbose.port, {
        "sessions.0.options.session.protocol_version": "v3.1.1",
        "sessions.0.options.session.message_id": "content_hash"})
    bridge.seed()
    bridge.start()
    publisher = new_publisher(verbose.port)
    fake.block()
    for payload in (b"same", b"same", b"other"):
        publisher.publish("telemetry/a", payload)
    publisher.flush()
    verbose.wait_log("Received PUBACK from plant-bridge", count=3)
    ids = [row["envelope_id"] for row in bridge.rows("outbox", "SELECT envelope_id FROM outbox")]
    assert len(ids) == 2 and all(i.startswith("mqtt-sha256:") for i in ids)
    assert bridge.metrics()["OutboxDuplicateSuppressed"] == 1
    fake.unblock()
    fake.wait_for_payloads([b"same", b"other"])


def test_two_processes_with_one_client_id(folder, verbose, fake, parts):
    """03 check 25, where the broker does not tell: mosquitto 2.0 closes without 0x8E (docs/decisions/0305)."""
    bridges = [bridge_on(folder, fake, parts, verbose.port, {
        "sessions.0.options.session.reconnect_max_delay": "64s"}, name=name) for name in ("one", "two")]
    start = time.monotonic()
    for bridge in bridges:
        bridge.seed()
        bridge.start(wait="mqtt connected")
    rig.wait_until(lambda: verbose.count("already connected") >= 6, 30, "six takeovers")
    # One takeover each is free, then each waits 1 s, 2 s ..; without penalties six take milliseconds.
    assert time.monotonic() - start > 2
    for bridge in bridges:
        errors = [l for l in bridge.lines() if l.get("level") == "ERROR" and "client_id" in l.get("msg", "")]
        assert errors and all(l["client_id"] == "plant-bridge" for l in errors)
        assert bridge.terminate() == 0


def certificate(folder, name, authority=None):
    """A key and a certificate for 127.0.0.1, signed by `authority` or by itself."""
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    sign = ["-CA", str(authority[1]), "-CAkey", str(authority[0])] if authority else []
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", str(key), "-out", str(cert), *sign], check=True, capture_output=True)
    return key, cert


class TlsListener:
    """Takes TLS connections and keeps what arrives in clear and after the handshake."""

    def __init__(self, key, cert):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.attempts, self.received = 0, b""
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return  # closed
            self.attempts += 1
            plain.settimeout(2)
            try:
                with self.context.wrap_socket(plain, server_side=True) as stream:
                    while data := stream.recv(4096):
                        self.received += data
            except OSError:
                pass  # the client broke the handshake off, or says nothing more

    def close(self):
        self.listener.close()


@pytest.mark.parametrize("trusted", [True, False], ids=["its authority", "another authority"])
def test_password_is_sent_to_the_right_broker_only(folder, fake, parts, trusted):
    """03 check 26; the right authority shows that the listener would have seen the password."""
    server = certificate(folder, "server")
    other = certificate(folder, "other")
    listener = TlsListener(*server)
    parts.append(listener)
    session = "sessions.0.options.session"
    bridge = bridge_on(folder, fake, parts, listener.port, {
        f"{session}.broker_url": f"tls://127.0.0.1:{listener.port}", f"{session}.username": "plant",
        f"{session}.password": "the-secret", f"{session}.reconnect_timeout": "2s",
        f"{session}.tls.ca_cert_file": str((server if trusted else other)[1])})
    bridge.seed()
    bridge.start(wait=None)
    if trusted:
        rig.wait_until(lambda: b"the-secret" in listener.received, 10, "CONNECT arrives")
        return
    rig.wait_until(lambda: listener.attempts >= 3, 15, "three attempts")
    bridge.wait_log("certificate verify failed")
    assert listener.received == b""
    assert "the-secret" not in bridge.text()
    assert bridge.terminate() == 0


@pytest.mark.parametrize("old", ["telemetry/#", "$share/g/telemetry/#"])
def test_changed_filter(folder, verbose, fake, parts, new_publisher, old):
    """03 check 15."""
    bridge = bridge_on(folder, fake, parts, verbose.port, {"receivers.0.topics.0.topic": old})
    bridge.seed()
    bridge.start()
    assert bridge.terminate() == 0
    rig.set_path(bridge.doc, "receivers.0.topics.0.topic", "other/#")
    bridge.write(bridge.doc)
    bridge.start()
    assert lines(verbose, "plant-bridge", "other/#")
    verbose.wait_log("Received UNSUBSCRIBE from plant-bridge")
    unsubscribed = verbose.process.text().partition("Received UNSUBSCRIBE from plant-bridge\n")[2].splitlines()
    assert unsubscribed[0].partition(": ")[2].strip() == old
    rows = bridge.rows("managed_subscriptions", "SELECT filter FROM managed_subscription_filters")
    assert [row["filter"] for row in rows] == ["other/#"]
    publisher = new_publisher(verbose.port)
    publisher.publish("telemetry/a", b"not wanted")
    publisher.publish("other/a", b"wanted")
    fake.wait_for_payloads([b"wanted"])
    assert fake.payloads() == [b"wanted"]
    assert bridge.terminate() == 0
