"""Documents that change in bad ways while messages flow: nothing is lost, nothing ends, the log says what happened."""

import copy
import copy
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time

import pytest

import rig
from test_bootstrap import Deployed
from test_reload import changed, replace


@pytest.fixture
def deployed(folder, broker, fake, parts):
    """A process of a deployment, which reads its document every 100 ms."""
    def make(start=True, changes=None):
        doc = rig.document(folder, broker.port, fake.queue_url(), fake.endpoint, changes)
        made = Deployed(folder, doc, {})
        parts.append(made)
        made.seed()
        return made.start(wait="mqtt subscriptions converged") if start else made
    return make


class Deployed(Deployed):
    def seed(self, value="plant"):
        env = {k: v for k, v in self.env.items() if not k.startswith("GOBRIDGE_")}
        result = subprocess.run([str(rig.BRIDGE), "-config", str(self.config), "-seed-managed-subscriptions", value],
                                env=env, capture_output=True, text=True, timeout=30)
        assert result.returncode == 0, result.stderr


def put(bridge, text):
    fresh = bridge.folder / "fresh"
    fresh.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.replace(fresh, bridge.config)


def policy(bridge, n):
    """Any n up to 297 keeps to the session's memory (P7)."""
    return changed(bridge.doc, routes__0__policy__max_in_flight=n)


class Flow(threading.Thread):
    """Publishes with QoS 1, and knows what has to arrive."""

    def __init__(self, publisher, pause=0.005):
        super().__init__(daemon=True)
        self.publisher, self.pause = publisher, pause
        self.sent, self.running = [], True
        self.start()

    def run(self):
        for i in itertools.count():
            if not self.running:
                return
            payload = b"m%06d" % i
            self.publisher.publish("telemetry/x", payload, message_id=payload.decode())
            self.sent.append(payload)
            time.sleep(self.pause)

    def finish(self, fake, seconds=60):
        self.running = False
        self.join()
        self.publisher.flush()
        fake.wait_for_payloads(self.sent, seconds)
        return len(self.sent)


def test_rejected_document_is_judged_once(deployed):
    """Read ten times a second, and refused once: neither the log nor the counter follows the readings."""
    bridge = deployed()
    good = bridge.config.read_text()
    put(bridge, json.dumps(changed(bridge.doc, routes__0__bindings=["nobody"])))
    bridge.wait_log("configuration rejected")
    time.sleep(1.5)
    assert bridge.count("configuration rejected") == 1
    assert bridge.metrics()["ConfigReloads,state=failure"] == 1
    bridge.process.child.send_signal(signal.SIGHUP)  # who asks is told again
    bridge.wait_log("configuration rejected", count=2)
    put(bridge, good)
    bridge.wait_log("configuration applied")
    assert bridge.count("bridge started") == 1
    assert bridge.terminate() == 0


def test_rejected_first_document_is_judged_once(deployed):
    bridge = deployed(start=False)
    put(bridge, "bridge: [")
    bridge.start(wait="idle until it is corrected")
    time.sleep(1.5)
    assert bridge.count("configuration rejected") == 1
    bridge.write(bridge.doc)
    bridge.wait_log("bridge started")
    assert bridge.terminate() == 0


def test_folder_at_the_start_is_watched(deployed):
    """A folder is no pipe: what replaces it is seen."""
    bridge = deployed(start=False)
    text = bridge.config.read_text()
    bridge.config.unlink()
    bridge.config.mkdir()
    bridge.start(wait="idle until it is corrected")
    bridge.config.rmdir()
    put(bridge, text)
    bridge.wait_log("bridge started")
    assert bridge.terminate() == 0


def test_link_to_nowhere_is_no_absence(deployed, publisher, fake):
    """07 §2.1: the name is there, so what it points to can't be read; what runs goes on."""
    bridge = deployed()
    (bridge.folder / "data").mkdir()
    real = bridge.folder / "data" / "bridge.json"
    os.rename(bridge.config, real)
    bridge.config.symlink_to(real)
    time.sleep(0.5)
    os.rename(bridge.folder / "data", bridge.folder / "away")
    bridge.wait_log("the configuration can't be read")
    time.sleep(0.5)
    publisher.publish("telemetry/x", b"on", message_id="on")
    fake.wait_for_payloads([b"on"], 20)
    assert "configuration is gone" not in bridge.text()
    os.rename(bridge.folder / "away", bridge.folder / "data")
    bridge.wait_log("the configuration can be read again")
    assert bridge.count("bridge started") == 1
    assert bridge.terminate() == 0


def test_deleted_during_a_swap(deployed, publisher, fake):
    """The absence that was seen in the middle of a swap counts once that is over."""
    bridge = deployed(changes={"bridge.drain_timeout": "5s"})
    fake.block()
    publisher.publish("telemetry/x", b"held", message_id="held")
    rig.wait_until(lambda: fake.waiting() > 0, 10, "a request hangs")
    put(bridge, json.dumps(policy(bridge, 7)))
    time.sleep(0.8)  # it waits for the request
    assert bridge.count("configuration applied") == 0
    bridge.config.unlink()
    time.sleep(0.8)
    fake.unblock()
    bridge.wait_log("configuration applied", 10)
    bridge.wait_log("idle: no configuration", 10)
    fake.wait_for_payloads([b"held"])
    assert bridge.terminate() == 0


def test_signal_does_not_shorten_the_settling(deployed):
    """07 check 12 under SIGHUP: what stays shorter than the debounce must not run, valid or not."""
    bridge = deployed()
    bridge.config.write_text(json.dumps(policy(bridge, 76)))
    for _ in range(20):
        bridge.process.child.send_signal(signal.SIGHUP)
        time.sleep(0.002)
    put(bridge, json.dumps(policy(bridge, 77)))
    bridge.wait_log("configuration applied")
    time.sleep(0.5)
    assert bridge.count("configuration applied") == 1
    assert bridge.terminate() == 0


def test_signal_flood_does_not_starve(deployed):
    """A document of megabytes, and a signal every half millisecond: it is applied all the same."""
    bridge = deployed()
    text = json.dumps(policy(bridge, 55))
    running = [True]

    def flood():
        while running[0]:
            bridge.process.child.send_signal(signal.SIGHUP)
            time.sleep(0.0005)
    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    put(bridge, text + " " * (4194304 - len(text)))
    bridge.wait_log("configuration applied", 10)
    running[0] = False
    thread.join()
    assert bridge.terminate() == 0


def half(bridge, n):
    bridge.config.write_text(json.dumps(policy(bridge, n))[:300])


def in_place(bridge, n):
    bridge.config.write_text(json.dumps(policy(bridge, n)))


def rename_over(bridge, n):
    put(bridge, json.dumps(policy(bridge, n)))


def delete(bridge, _n):
    bridge.config.unlink()


def folder_instead(bridge, _n):
    bridge.config.unlink()
    bridge.config.mkdir()


def link_flip(bridge, n):
    target = bridge.folder / f"version-{n}.json"
    target.write_text(json.dumps(policy(bridge, n)))
    (bridge.folder / "link").symlink_to(target)
    os.replace(bridge.folder / "link", bridge.config)


def pipe_instead(bridge, _n):
    bridge.config.unlink()
    os.mkfifo(bridge.config)


def too_large(bridge, n):
    put(bridge, json.dumps(policy(bridge, n)) + " " * 5000000)


def sparse(bridge, _n):
    put(bridge, b"")
    os.truncate(bridge.config, 1 << 40)


def invalid(bridge, _n):
    put(bridge, json.dumps(changed(bridge.doc, routes__0__bindings=["nobody"])))


def no_text(bridge, n):
    put(bridge, bytes(range(256)) * n)


def does_not_start(bridge, n):
    doc = policy(bridge, n)
    doc["sessions"].append({"id": "extra", "transport": "mqtt", "session_mode": "ephemeral", "options": {"session": {
        "broker_url": "tls://127.0.0.1:1", "client_id": "extra",
        "tls": {"ca_cert_file": str(bridge.folder / "none.pem")}}}})
    doc["receivers"].append({"id": "extra-in", "session_id": "extra", "topics": [{"topic": "a", "qos": 0}]})
    doc["routes"].append({"id": "extra", "receiver_id": "extra-in", "delivery_mode": "direct_hold",
                          "bindings": ["to-sqs"], "policy": {"allow_unfenced": True}})
    put(bridge, json.dumps(doc))


def flood(bridge, _n):
    for _ in range(300):
        bridge.process.child.send_signal(signal.SIGHUP)


EDITS = (half, in_place, rename_over, delete, folder_instead, link_flip, pipe_instead, too_large, sparse, invalid,
         no_text, does_not_start, flood)


def clear(path):
    """Whatever the last edit left there."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    elif path.is_symlink() or path.exists() and not path.is_file():
        path.unlink()


def edit(bridge, step, n):
    if step is not flood:
        clear(bridge.config)
    if step in (delete, folder_instead, pipe_instead) and not bridge.config.exists():
        bridge.config.write_text("")
    step(bridge, n)


@pytest.mark.parametrize("pause", [0.1, 0.45])
def test_every_bad_change_in_any_order(deployed, publisher, fake, pause):
    """Edits in random order, faster and slower than they settle, while messages flow: each message arrives."""
    bridge = deployed()
    shuffled = random.Random(4)
    flow = Flow(publisher)
    for n in range(int(15 / pause)):
        edit(bridge, shuffled.choice(EDITS), 20 + n)
        time.sleep(pause)
        assert bridge.alive(), bridge.text()[-2000:]
    clear(bridge.config)
    started = bridge.count("bridge started")
    rename_over(bridge, 280)
    bridge.wait_log("bridge started", count=started + 1)
    assert flow.finish(fake) > 100
    assert bridge.terminate() == 0
    assert bridge.lines()[-1]["msg"] == "bridge stopped"


@pytest.mark.parametrize("step", [s for s in EDITS if s is not half])
def test_each_bad_change_says_what_happened(deployed, publisher, fake, step):
    bridge = deployed()
    says = {in_place: "configuration applied", rename_over: "configuration applied", link_flip: "configuration applied",
            delete: "idle: no configuration", folder_instead: "the configuration can't be read",
            pipe_instead: "the configuration can't be read", too_large: "at most 4194304 bytes",
            sparse: "at most 4194304 bytes", invalid: "nobody", no_text: "configuration rejected",
            does_not_start: "the configuration before runs again", flood: "bridge started"}[step]
    flow = Flow(publisher)
    edit(bridge, step, 77)
    bridge.wait_log(says)
    clear(bridge.config)
    rename_over(bridge, 78)
    bridge.wait_log("bridge started", count=3 if step in (in_place, rename_over, link_flip, does_not_start) else 2)
    flow.finish(fake)
    assert bridge.terminate() == 0


@pytest.mark.parametrize("round", range(8))
def test_terminated_or_killed_in_a_swap(deployed, publisher, fake, round):
    """SIGTERM ends it in order at each moment of a swap; after a kill the next process goes on."""
    bridge = deployed()
    flow = Flow(publisher)
    for i, step in enumerate((rename_over, does_not_start, invalid, rename_over)):
        edit(bridge, step, 30 + i)
        bridge.process.child.send_signal(signal.SIGHUP)
        time.sleep(0.1 + 0.013 * round + 0.004 * i)
        if round % 2:
            bridge.kill()
        else:
            assert bridge.terminate() == 0
            assert bridge.lines()[-1]["msg"] == "bridge stopped"
        edit(bridge, rename_over, 50 + i)
        bridge.start(wait="mqtt subscriptions converged")
    flow.finish(fake)
    assert bridge.terminate() == 0


DIRECT = {"shared_outbox": {}, "direct_hold": {
    "routes.0.delivery_mode": "direct_hold", "routes.0.session": None,
    "routes.0.policy": {"allow_unfenced": True, "max_in_flight": 5}}}


@pytest.mark.parametrize("mode", DIRECT)
def test_swap_while_the_queue_hangs(deployed, publisher, fake, mode):
    """Sends that do not end within drain_timeout are cut off; their messages come again, the process stays."""
    bridge = deployed(changes={"bridge.drain_timeout": "1s", **DIRECT[mode]})
    fake.block()
    sent = [b"h%d" % i for i in range(40)]
    for payload in sent:
        publisher.publish("telemetry/x", payload, message_id=payload.decode())
    rig.wait_until(lambda: fake.waiting() > 0, 10, "a request hangs")
    put(bridge, json.dumps(policy(bridge, 6)))
    bridge.wait_log("configuration applied", 15)
    assert bridge.alive()
    fake.unblock()
    fake.wait_for_payloads(sent, 30)
    assert bridge.terminate() == 0


@pytest.mark.parametrize("mode", DIRECT)
def test_terminated_in_a_swap_while_the_queue_hangs(deployed, publisher, fake, mode):
    """SIGTERM's own budget counts from then on, shorter than what is left of drain_timeout."""
    bridge = deployed(changes={"bridge.drain_timeout": "20s", "bridge.shutdown_timeout": "3s", **DIRECT[mode]})
    fake.block()
    publisher.publish("telemetry/x", b"held", message_id="held")
    rig.wait_until(lambda: fake.waiting() > 0, 10, "a request hangs")
    put(bridge, json.dumps(policy(bridge, 6)))
    time.sleep(0.8)
    started = time.monotonic()
    assert bridge.terminate() == 1  # a message was left (08 §3), and all the same it ended in order
    assert time.monotonic() - started < 3
    assert "the shutdown was not clean" in bridge.text()
    assert "shutdown_timeout is over" not in bridge.text()
    assert bridge.lines()[-1]["msg"] == "bridge stopped"


WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]


def test_permission_taken_away(deployed, publisher, fake):
    bridge = deployed(start=False)
    bridge.wrapper = WITHOUT_RIGHTS
    bridge.start(wait="mqtt subscriptions converged")
    bridge.config.chmod(0)
    bridge.wait_log("access denied; check owner and mode")
    publisher.publish("telemetry/x", b"on", message_id="on")
    fake.wait_for_payloads([b"on"])
    bridge.config.chmod(0o600)
    bridge.wait_log("the configuration can be read again")
    bridge.config.parent.chmod(0)  # nobody can say that a name is not in there
    bridge.wait_log("access denied; check owner and mode", count=2)
    bridge.config.parent.chmod(0o700)
    bridge.wait_log("the configuration can be read again", count=2)
    assert bridge.count("bridge started") == 1
    assert bridge.terminate() == 0


def test_credentials_of_the_next_document(deployed, publisher, fake, folder):
    """A set that is missing or broken leaves the running document alone; SIGHUP tries again, and tells no secret."""
    bridge = deployed()
    base = folder / "creds"
    base.mkdir()
    bridge.terminate()
    bridge.bootstrap["credential_file_path"] = str(base)
    bridge.env["GOBRIDGE_AWS_BOOTSTRAP_JSON"] = json.dumps(bridge.bootstrap)
    bridge.start(wait="mqtt subscriptions converged")
    doc = copy.deepcopy(bridge.doc)
    doc["sessions"][0]["options"]["credentials_uri"] = "file://plant/secret-name"
    doc["sessions"][0]["options"]["session"]["allow_plaintext_credentials"] = True
    flow = Flow(publisher)
    put(bridge, json.dumps(doc))
    bridge.wait_log("configuration rejected; the running one serves on")
    (base / "plant").mkdir()
    path = base / "plant" / "secret-name.json"
    bad = ["", "{", '{"credentials":{"Password":{"Username":"u","Password":"hunter2"', "\0", "[" * 100000,
           '{"credentials":{"Password":{"Username":"u\\u0000","Password":"hunter2"}}}',
           '{"credentials":{"Password":{"Password":"hunter2"}}}', '{"credentials":[]}',
           '{"credentials":{"Password":{"Username":"u","Password":"hunter2"},"Password":{}}}',
           '{"credentials":{"Password":{"Username":"u","Password":"' + "hunter2" * 20000 + '"}}}', " " * 2000000]
    for i, text in enumerate(bad):
        path.write_text(text)
        bridge.process.child.send_signal(signal.SIGHUP)
        bridge.wait_log("configuration rejected; the running one serves on", count=2 + i)
    path.write_text('{"credentials":{"Password":{"Username":"u","Password":"hunter2"}}}')
    path.chmod(0o600)
    bridge.process.child.send_signal(signal.SIGHUP)
    bridge.wait_log("configuration applied")
    flow.finish(fake)
    assert "hunter2" not in bridge.text() and "secret-name" not in bridge.text()
    assert bridge.terminate() == 0


def test_clean_start_is_of_the_process(new_bridge, broker, publisher, fake):
    """A change of the document is no start: what waits at the broker meanwhile is not wiped (03 §2)."""
    bridge = new_bridge({"sessions.0.options.session.clean_start": True, "routes.0.delivery_mode": "shared_outbox"})
    flow = Flow(publisher, 0.0005)
    for n in range(6):
        bridge.write(policy(bridge, 50 + n))
        bridge.process.child.send_signal(signal.SIGHUP)
        bridge.wait_log("configuration applied", count=n + 1)
    flow.finish(fake)
    bridge.terminate()
    publisher.publish("telemetry/x", b"wiped", message_id="wiped")
    publisher.flush()
    bridge.start()
    publisher.publish("telemetry/x", b"last", message_id="last")
    fake.wait_for_payloads([b"last"])
    assert b"wiped" not in fake.distinct()
    assert bridge.terminate() == 0


def test_clean_start_of_an_exclusive_session_wipes_nothing(new_bridge, publisher, fake, folder):
    """03 check 4: what was queued while nobody held the lease is delivered to the next owner."""
    bridge = new_bridge({"sessions.0.session_mode": "exclusive", "sessions.0.options.session.clean_start": True,
                         "stores.lease": {"type": "sqlite", "options": {"path": str(folder / "lease.db")}}})
    assert bridge.terminate() == 0
    publisher.publish("telemetry/x", b"waits", message_id="waits")
    publisher.flush()
    bridge.start()
    fake.wait_for_payloads([b"waits"])
    assert bridge.text().count("clean_start: true is overridden") == 2  # once a start
    assert bridge.terminate() == 0


def processor_seconds(bridge):
    with open(f"/proc/{bridge.pid}/stat") as stat:
        user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_shortest_pace_leaves_the_processor_alone(deployed, publisher, fake):
    """Any interval above 0 is accepted, and none makes the bridge read without a pause."""
    bridge = deployed(start=False)
    bridge.bootstrap["poll_interval"] = "1ns"
    bridge.env["GOBRIDGE_AWS_BOOTSTRAP_JSON"] = json.dumps(bridge.bootstrap)
    bridge.start(wait="mqtt subscriptions converged")
    before = processor_seconds(bridge)
    time.sleep(2)
    assert processor_seconds(bridge) - before < 0.7
    put(bridge, json.dumps(policy(bridge, 51)))
    bridge.wait_log("configuration applied")
    assert bridge.terminate() == 0


def test_bad_overlays(folder, broker, publisher, fake, parts):
    """Each layer is judged by its own name, also behind one that can't be used."""
    doc = rig.document(folder, broker.port, fake.queue_url(), fake.endpoint)
    first, second = folder / "first.yaml", folder / "second.yaml"
    for overlay in (first, second):
        overlay.write_text("config_watch: {mode: poll, poll_interval: 100ms}\n")
    bridge = rig.Bridge(folder, doc, args=["-overlay", str(first), "-overlay", str(second)])
    parts.append(bridge)
    bridge.seed()
    bridge.start()
    flow = Flow(publisher)
    first.write_bytes(b"#" * 4194305)
    second.write_text("bridge: {log_level: loud}\n")
    bridge.wait_log("configuration rejected; the running one serves on")
    assert "first.yaml: a document has at most 4194304 bytes" in bridge.text()
    first.write_text("bridge: {shutdown_timeout: 9s}\n")
    bridge.wait_log("configuration rejected; the running one serves on", count=2)
    assert "second.yaml:1:" in bridge.text() and "loud" in bridge.text()
    second.unlink()
    bridge.wait_log("the configuration can't be read")
    second.write_text("{}\n")
    bridge.wait_log("configuration applied")
    flow.finish(fake)
    assert bridge.terminate() == 0


class Parameters(threading.Thread):
    """SSM that answers with whatever it is told, or with nothing at all."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.answer, self.asked, self.open = None, 0, []
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.open.append(connection)
            connection.recv(65536)
            self.asked += 1
            if self.answer is not None:
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                                   % (len(self.answer), self.answer))
                connection.close()

    def close(self):
        self.socket.close()
        for connection in self.open:
            connection.close()


@pytest.fixture
def with_parameter(deployed, parts):
    """A running bridge, its document with a parameter, and the service that has it."""
    service = Parameters()
    parts.append(service)
    bridge = deployed(start=False)
    bridge.env["AWS_ENDPOINT_URL_SSM"] = service.endpoint
    bridge.start(wait="mqtt subscriptions converged")
    doc = copy.deepcopy(bridge.doc)
    doc["sessions"][0]["options"]["credentials_uri"] = "pms://plant/secret-name"
    doc["sessions"][0]["options"]["session"]["allow_plaintext_credentials"] = True
    return bridge, json.dumps(doc), service


def test_parameters_that_hang(with_parameter, publisher, fake):
    """What runs goes on meanwhile, and SIGTERM does not wait for them."""
    bridge, text, service = with_parameter
    put(bridge, text)
    rig.wait_until(lambda: service.asked > 0, 10, "the parameter is asked for")
    publisher.publish("telemetry/x", b"on", message_id="on")
    fake.wait_for_payloads([b"on"])
    started = time.monotonic()
    assert bridge.terminate() == 0
    assert time.monotonic() - started < 3


def test_parameters_that_are_garbage(with_parameter, publisher, fake):
    bridge, text, service = with_parameter
    flow = Flow(publisher)
    bad = [b"", b"{", b"null", b'{"Parameter": 1}', b'{"Parameter": {"Value": 1}}', b'{"Parameter": {"Value": ""}}',
           b'{"Parameter": {"Value": "hunter2"}}', b'{"Parameter": {"Value": ":hunter2"}}',
           b'{"Parameter": {"Value": "{\\"user\\": \\"u\\", \\"password\\": \\"hunter2"}}',
           b'{"Parameter": {"Value": "u:hunter2\\u0000"}}', b"[" * 1000000, b'{"Parameter": {"Value": "u:hun\xff"}}',
           b'{"Parameter": {"Value": "u:' + b"hunter2" * 10000 + b'"}}']
    service.answer = bad[0]
    put(bridge, text)
    for i, answer in enumerate(bad):
        bridge.wait_log("configuration rejected; the running one serves on", count=i + 1, seconds=40)
        service.answer = bad[i + 1] if i + 1 < len(bad) else b'{"Parameter": {"Value": "u:hunter2"}}'
        bridge.process.child.send_signal(signal.SIGHUP)
    bridge.wait_log("configuration applied", 40)
    flow.finish(fake)
    assert "hunter2" not in bridge.text() and "secret-name" not in bridge.text()
    assert bridge.terminate() == 0
