"""Documents that change in bad ways while messages flow: nothing is lost, nothing ends, the log says what happened."""

import copy
import itertools
import json
import os
import signal
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
