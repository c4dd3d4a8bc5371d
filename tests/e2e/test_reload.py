"""A document that changes while the bridge runs (spec 07 §2.2, §5, §6.2)."""

import copy
import os
import signal
import time

import pytest

import rig


def replace(bridge, doc):
    """As an editor does it: a new file in place of the old one."""
    fresh = bridge.folder / "fresh.json"
    old, bridge.config = bridge.config, fresh
    bridge.write(doc)
    bridge.config = old
    os.replace(fresh, old)


def changed(doc, **paths):
    new = copy.deepcopy(doc)
    for path, value in paths.items():
        rig.set_path(new, path.replace("__", "."), value)
    return new


@pytest.fixture
def running(new_bridge):
    return new_bridge()


def send(publisher, fake, *payloads):
    for payload in payloads:
        publisher.publish("telemetry/x", payload, message_id=payload.decode())
    fake.wait_for_payloads(payloads, 20)


def test_rejected_reload_leaves_the_level(running, publisher, fake):
    """01 check 15: the level of a rejected document is not taken over, and what runs goes on."""
    running.wait_log("mqtt subscriptions converged")
    bad = changed(running.doc, bridge__log_level="error", routes__0__bindings=["nobody"])
    replace(running, bad)
    running.wait_log("configuration rejected; the running one serves on")
    assert "nobody" in running.text()
    send(publisher, fake, b"after")
    assert running.metrics()["ConfigReloads,state=failure"] == 1
    assert running.terminate() == 0
    assert "shutdown signal received" in running.text()


def test_accepted_reload_takes_the_level(running, broker, publisher, fake):
    """07 check 15: full replacement; with MQTT the old disconnect precedes the new connect."""
    before = running.count("bridge started")
    replace(running, changed(running.doc, bridge__log_level="warn"))
    running.wait_log("configuration applied")
    assert running.count("bridge started") == before + 1
    send(publisher, fake, b"after")
    counters = running.metrics()
    assert counters["ConfigReloads,state=success"] == 1 and counters["ConfigReloads,state=failure"] == 0
    assert running.terminate() == 0
    assert "shutdown signal received" not in running.text()


def test_same_content_changes_nothing(running, publisher, fake):
    """07 check 11: other spelling, other order, a higher version: nobody is disconnected."""
    connected = running.count("mqtt connected")
    doc = changed(running.doc, version=7, bridge__shutdown_timeout="10000ms")
    replace(running, doc)
    running.wait_log("configuration applied")
    line = [l for l in running.lines() if l.get("msg") == "configuration applied"][-1]
    assert (line["swap"], line["config_version"]) == ("none", 7)
    send(publisher, fake, b"after")
    assert running.count("mqtt connected") == connected
    assert running.terminate() == 0


def test_what_does_not_start_goes_back(running, publisher, fake, folder):
    """07 check 16: built only after the old runtime has stopped; then that one serves again."""
    broken = copy.deepcopy(running.doc)
    broken["sessions"].append({"id": "extra", "transport": "mqtt", "session_mode": "ephemeral", "options": {"session": {
        "broker_url": "tls://127.0.0.1:1", "client_id": "extra", "tls": {"ca_cert_file": str(folder / "none.pem")}}}})
    broken["receivers"].append({"id": "extra-in", "session_id": "extra", "topics": [{"topic": "a", "qos": 0}]})
    broken["routes"].append({"id": "extra", "receiver_id": "extra-in", "delivery_mode": "direct_hold",
                             "bindings": ["to-sqs"], "policy": {"allow_unfenced": True}})
    replace(running, broken)
    running.wait_log("configuration rejected: it does not start")
    running.wait_log("the configuration before runs again")
    assert "none.pem" in running.text()
    send(publisher, fake, b"after")
    counters = running.metrics()
    assert counters["ConfigReloads,state=failure"] == 1 and counters["ConfigReloads,state=success"] == 0
    assert running.terminate() == 0


def test_durable_change_is_refused(running, publisher, fake, folder):
    """07 check 17."""
    replace(running, changed(running.doc, stores__outbox__options__path=str(folder / "other.db")))
    running.wait_log("not while the bridge runs")
    assert not (folder / "other.db").exists()
    send(publisher, fake, b"after")
    assert running.terminate() == 0


def test_missing_file_drains_to_idle(running, broker, publisher, fake):
    """07 check 8: the bridge drains, and a file of version 1 runs in the same process."""
    pid, text = running.pid, running.config.read_text()
    running.config.unlink()
    running.wait_log("idle: no configuration")
    assert running.alive()
    fresh = running.folder / "fresh.json"
    fresh.write_text(text)
    os.replace(fresh, running.config)
    running.wait_log("bridge started", count=2)
    assert running.pid == pid
    send(publisher, fake, b"after")
    assert running.terminate() == 0


def test_unreadable_file_changes_nothing(running, publisher, fake):
    """07 check 10: a folder in place of the file is no absence."""
    text = running.config.read_text()
    running.config.unlink()
    running.config.mkdir()
    running.wait_log("the configuration can't be read")
    send(publisher, fake, b"after")
    running.config.rmdir()
    fresh = running.folder / "fresh.json"
    fresh.write_text(text)
    os.replace(fresh, running.config)
    running.wait_log("the configuration can be read again")
    assert running.count("bridge started") == 1
    assert running.terminate() == 0


def test_torn_write_is_never_applied(running):
    """07 check 12: half a document, shorter than the debounce, then the whole one."""
    whole = changed(running.doc, routes__0__policy__max_in_flight=100)
    running.config.write_text("{\"bridge\": {")
    time.sleep(0.02)
    running.write(whole)
    running.wait_log("configuration applied")
    assert "configuration rejected" not in running.text()
    assert running.count("configuration applied") == 1
    assert running.terminate() == 0


def test_sighup_looks_at_once(running):
    running.config.touch()
    replace(running, changed(running.doc, routes__0__policy__max_in_flight=99))
    running.process.child.send_signal(signal.SIGHUP)
    running.wait_log("configuration applied", 2)
    assert running.terminate() == 0


def test_stop_in_the_middle_of_a_swap(running):
    for i in range(5):
        replace(running, changed(running.doc, routes__0__policy__max_in_flight=50 + i))
        running.process.child.send_signal(signal.SIGHUP)
        time.sleep(0.02 * i + 0.1)
    assert running.terminate() == 0
    assert running.lines()[-1]["msg"] == "bridge stopped"
