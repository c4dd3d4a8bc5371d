"""Command line, signals, exit codes, log and counters of the real program (spec 08 §2, §3, §7)."""

import json
import re
import signal
import subprocess
import time

import pytest

import rig
from fake_sqs import Fault

SECRETS = {"AWS_ACCESS_KEY_ID": "AKIDSECRETSECRET", "AWS_SECRET_ACCESS_KEY": "sEcReT-kEy-MaTeRiAl",
           "AWS_SESSION_TOKEN": "sEsSiOn-tOkEn-MaTeRiAl"}
DIRECT = {"routes.0.delivery_mode": "direct_hold", "routes.0.session": None}


def call(*args, **options):
    return subprocess.run([str(rig.BRIDGE), *map(str, args)], capture_output=True, text=True, timeout=20, **options)


def listening_ports(pid):
    return subprocess.run(["ss", "-tlnpH"], capture_output=True, text=True).stdout.count(f"pid={pid},")


# --- command line (check 1) -----------------------------------------------------------------------


def test_version():
    result = call("-version")
    assert result.returncode == 0
    assert re.fullmatch(r"gobridge \d+\.\d+\.\d+\n", result.stdout)


@pytest.mark.parametrize("args", [
    ["-no-such-flag"], ["stray"], ["-validate", "-version"], ["-validate", "-seed-managed-subscriptions", "plant"],
    ["-config"], ["-start-empty=perhaps"], ["-seed-managed-subscriptions", ""],
    ["-inspect"], ["-diff", "a"], ["tables"], ["tables", "plan"]])
def test_usage_errors(args):
    result = call(*args)
    assert result.returncode == 2
    assert "usage: gobridge" in result.stderr or "gobridge:" in result.stderr
    assert result.stdout == ""


def test_validate_needs_nothing_to_run(folder):
    """Exit 0 although neither broker nor SQS exists; nothing is created."""
    doc = rig.document(folder, 1, "http://127.0.0.1:1/1/q", "http://127.0.0.1:1")
    bridge = rig.Bridge(folder, doc)
    before = sorted(folder.rglob("*"))
    result = bridge.run("-validate")
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(folder.rglob("*")) == before


BROKEN = """bridge:
  id: x
sessions:
  - id: plant
    transport: mqtt
    options:
      session: {broker_url: "tcp://localhost", client_id: b, keep_alive: 70000}
receivers:
  - {id: in, session_id: plant, topics: [{topic: "a/#", qos: 1}]}
senders:
  - id: out
    transport: sqs
    options: {queue_url: "http://localhost/1/q", region: eu-central-1, batch_size: 11}
bindings:
  - {id: b1, sender_id: nobody}
routes:
  - id: r
    receiver_id: in
    bindings: [b1]
    delivery_mode: drop
"""


def test_validate_prints_file_line_column(folder):
    path = folder / "broken.yaml"
    path.write_text(BROKEN)
    result = call("-config", path, "-validate")
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert all(re.match(rf"{re.escape(str(path))}:\d+:\d+: (error|warning): \S", l) for l in lines), result.stderr
    for line, word in ((7, "keep_alive"), (13, "batch_size"), (15, "nobody"), (20, "drop")):
        assert [l for l in lines if l.startswith(f"{path}:{line}:") and word in l], (line, word, result.stderr)


@pytest.mark.parametrize("http, said", [
    ({"admin_api_key": "a123456789abcde"}, "http.admin_api_key has 15 bytes; at least 16 are required"),
    ({"admin_api_key": "a123456789abcdef", "cors_origins": "*"}, 'http.cors_origins must not hold "*"'),
    ({"admin_api_key": "a123456789abcdef", "tls_cert_file": "c.pem"}, 'only tls_cert_file "c.pem" is written'),
    ({"admin_api_key": "a123456789abcdef", "tls_key_file": "k.pem"}, 'only tls_key_file "k.pem" is written'),
])
def test_validate_refuses_http_settings(folder, http, said):
    """Spec 08 check 4: exit 1, with and without -validate, and no key in the answer."""
    bridge = rig.Bridge(folder, rig.document(folder, 1, "http://127.0.0.1:1/1/q", "http://127.0.0.1:1",
                                             {"http": http}))
    for arguments in (["-validate"], []):
        result = bridge.run(*arguments)
        assert result.returncode == 1
        assert said in result.stderr + result.stdout, result
        assert http["admin_api_key"] not in result.stderr + result.stdout


def test_strict_makes_warnings_fail(folder):
    bridge = rig.Bridge(folder, rig.document(folder, 1, "http://127.0.0.1:1/1/q", "http://127.0.0.1:1", {
        "routes.0.session.renew_interval": None, "sessions.0.options.session.tls": {"enable": True}}))
    assert bridge.run("-validate").returncode == 0
    assert "warning" in bridge.run("-validate").stderr
    assert bridge.run("-validate", "-strict").returncode == 1


# --- start (check 2) and seeding (check 3) --------------------------------------------------------


def test_missing_document(folder):
    missing = folder / "none.yaml"
    result = call("-config", missing, "-start-empty=false")
    assert result.returncode == 1
    assert str(missing) in result.stderr
    idle = rig.Process("gobridge", [str(rig.BRIDGE), "-config", str(missing), "-monitor-addr", "127.0.0.1:0"],
                       folder / "idle.log")
    rig.wait_until(lambda: "no configuration document" in idle.text(), 10, "the idle process warns")
    assert listening_ports(idle.child.pid) == 1, "the probes are served"
    assert idle.terminate() == 0


def test_broken_document_is_fatal(folder):
    path = folder / "broken.yaml"
    path.write_text("bridge: [")
    result = call("-config", path)
    assert result.returncode == 1
    block = rf"config validation failed:\n  {re.escape(str(path))}:\d+:\d+: error: [^\n]+\n"  # spec 01 §5.1
    assert re.match(block + r"\{", result.stderr), result.stderr


@pytest.mark.parametrize("value", ["=a", "plant=", "plant=a,,b", "plant=a/#/b"])
def test_malformed_seed_is_a_usage_error(new_bridge, value):
    bridge = new_bridge(start=False, seed=False)
    assert bridge.run("-seed-managed-subscriptions", value).returncode == 2
    assert not (bridge.folder / "subscriptions" / "subscriptions.db").exists()


def test_seeding(new_bridge):
    bridge = new_bridge(start=False, seed=False)

    def seed(*values):
        return bridge.run(*[a for v in values for a in ("-seed-managed-subscriptions", v)])

    def filters():
        return [r["filter"] for r in bridge.rows("managed_subscriptions",
                                                 "SELECT filter FROM managed_subscription_filters ORDER BY filter")]

    assert seed("plant", "plant=a").returncode == 2
    assert seed("nobody").returncode == 1
    assert seed("plant=telemetry/#,$share/g/b").returncode == 0
    result = seed("plant=c")
    assert result.returncode == 0
    assert '"msg":"managed subscription baseline seeded"' in result.stderr
    assert seed("plant").returncode == 0
    assert filters() == ["$share/g/b", "c", "telemetry/#"]


def test_unseeded_session_does_not_connect(new_bridge, broker):
    """03 check 6."""
    bridge = new_bridge(start=False, seed=False)
    bridge.start(wait="mqtt session does not connect")
    line = [l for l in bridge.lines() if "does not connect" in l.get("msg", "")][0]
    assert line["session_id"] == "plant" and "-seed-managed-subscriptions plant" in line["error"]
    assert broker.count("plant-bridge") == 0
    assert bridge.terminate() == 0


# --- stop (check 28, without HTTP) ----------------------------------------------------------------


def wait_for_held_send(fake, publisher, payload):
    publisher.publish("telemetry/a", payload, message_id=payload.decode())
    fake.wait_for(lambda s: s.waiting() == 1, 10, "the send is under way")


def test_sigterm_settles_a_slow_send_within_the_budget(new_bridge, broker, publisher, fake):
    bridge = new_bridge(DIRECT)
    fake.block()
    wait_for_held_send(fake, publisher, b"slow")
    bridge.process.child.send_signal(signal.SIGTERM)
    bridge.wait_log("shutdown signal received")
    publisher.publish("telemetry/a", b"too late", message_id="too late")
    publisher.flush()
    fake.unblock()
    assert bridge.wait_exit(10) == 0
    assert fake.payloads() == [b"slow"]
    assert bridge.last_metrics()["MessagesSent"] == 1
    assert '"msg":"bridge stopped"' in bridge.text()
    bridge.start()  # the late one waited at the broker, the settled one does not come again
    fake.wait_for_messages(2)
    assert bridge.terminate() == 0
    assert fake.payloads() == [b"slow", b"too late"]


@pytest.mark.parametrize("action", ["dlq", "drop"])
def test_send_beyond_the_budget_stays_unacknowledged(new_bridge, publisher, fake, action):
    """Exit 1 within shutdown_timeout + 1 s; 02 check 19: neither dropped nor dead-lettered."""
    bridge = new_bridge({**DIRECT, "bridge.shutdown_timeout": "2s", "routes.0.policy.on_permanent_failure": action})
    fake.block()
    wait_for_held_send(fake, publisher, b"held")
    start = time.monotonic()
    bridge.process.child.send_signal(signal.SIGTERM)
    assert bridge.wait_exit(10) == 1
    assert time.monotonic() - start < 3
    counters = bridge.last_metrics()
    assert counters["MessagesDropped"] == 0 and counters["DLQEntries"] == 0 and counters["MessagesSent"] == 0
    fake.unblock()
    bridge.start()
    fake.wait_for_payloads([b"held"])
    assert bridge.terminate() == 0


def test_outbox_send_beyond_the_budget_stays_in_the_outbox(new_bridge, publisher, fake):
    bridge = new_bridge({"bridge.shutdown_timeout": "2s"})
    fake.block()
    wait_for_held_send(fake, publisher, b"held")
    start = time.monotonic()
    bridge.process.child.send_signal(signal.SIGTERM)
    assert bridge.wait_exit(10) == 1
    assert time.monotonic() - start < 3
    assert bridge.rows("outbox", "SELECT status FROM outbox")[0]["status"] in ("pending", "claimed")
    fake.unblock()
    bridge.start()
    fake.wait_for_payloads([b"held"])


def test_second_signal_exits_at_once(new_bridge, publisher, fake):
    bridge = new_bridge(DIRECT)
    fake.block()
    wait_for_held_send(fake, publisher, b"held")
    bridge.process.child.send_signal(signal.SIGINT)
    bridge.wait_log("shutdown signal received")
    bridge.process.child.send_signal(signal.SIGTERM)
    assert bridge.wait_exit(2) == 2


def test_stop_while_the_broker_is_away(new_bridge, broker):
    bridge = new_bridge()
    broker.stop()
    bridge.wait_log("mqtt connect failed")
    assert bridge.terminate(5) == 0


def test_hangup_and_pipe_signals_are_survived(new_bridge, publisher, fake):
    bridge = new_bridge()
    for number in (signal.SIGHUP, signal.SIGPIPE):
        bridge.process.child.send_signal(number)
    publisher.publish("telemetry/a", b"x")
    fake.wait_for_payloads([b"x"])
    assert bridge.terminate() == 0


def test_terminal_stop_is_not_zero(new_bridge, publisher, fake):
    """03 check 18: messages of a removed filter without a DLQ to put them in."""
    filters = {"receivers.0.topics": [{"topic": "other/#", "qos": 1}], "stores.dlq": None,
               "routes.0.policy.on_expired": "drop", "routes.0.policy.on_permanent_failure": "drop"}
    bridge = new_bridge()
    assert bridge.terminate() == 0
    publisher.publish("telemetry/a", b"pinned")  # waits at the broker under a filter that the new document removes
    publisher.flush()
    for path, value in filters.items():
        rig.set_path(bridge.doc, path, value)
    bridge.write(bridge.doc)
    bridge.start(wait=None)
    assert bridge.wait_exit(20) == 1
    assert "mqtt session is terminal" in bridge.text()
    assert '"msg":"terminal: the process stops and must be restarted"' in bridge.text()
    assert not fake.payloads()


# --- log and counters (checks 30, 31) -------------------------------------------------------------


def test_log_lines_parse_and_hold_no_secret(new_bridge, broker, publisher, fake):
    password = "pAsSwOrD-oF-tHe-bRoKeR"
    bridge = new_bridge({"sessions.0.options.session.username": "someone",
                         "sessions.0.options.session.password": password,
                         "sessions.0.options.session.allow_plaintext_credentials": True,
                         "bridge.log_level": "debug"}, args=["-log-level", "debug"], env=SECRETS)
    publisher.publish("telemetry/a", b"pAyLoAd-oF-a-mEsSaGe")
    fake.wait_for_messages(1)
    fake.entry_rule = lambda m: ("InvalidParameterValue", True)
    publisher.publish("telemetry/a", b"pAyLoAd-refused")
    rig.wait_until(lambda: len(bridge.dlq()) == 1, 10, "an entry in the DLQ")
    fake.rule = lambda r: Fault(status=400, code="AccessDenied")
    publisher.publish("telemetry/a", b"pAyLoAd-denied")
    bridge.wait_log("outbox record released")
    broker.stop()
    bridge.wait_log("mqtt connect failed")
    assert bridge.terminate() == 0
    text = bridge.text()
    for line in text.splitlines():
        record = json.loads(line)
        if record["msg"] == "metrics":
            continue
        assert record["level"] in ("DEBUG", "INFO", "WARN", "ERROR")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", record["time"])
        assert record["instance_id"]
    assert '"level":"DEBUG"' in text
    for secret in (password, *SECRETS.values(), "pAyLoAd"):
        assert secret not in text


def test_drop_without_dlq_and_expiry_are_counted(new_bridge, publisher, fake):
    """Check 31: MessagesDropped, MessagesExpired, and the conservation identity."""
    bridge = new_bridge({"stores.dlq": None, "routes.0.policy.on_expired": "drop",
                         "routes.0.policy.on_permanent_failure": "drop"})
    fake.entry_rule = lambda m: ("InvalidParameterValue", True) if m.body == "refused" else None
    publisher.publish("telemetry/a", b"refused")
    publisher.publish("telemetry/a", b"good")
    rig.wait_until(lambda: bridge.metrics()["MessagesDropped"] == 1 and bridge.metrics()["MessagesSent"] == 1, 10,
                   "one dropped, one sent")
    fake.block()
    publisher.publish("telemetry/a", b"opens the gate")
    fake.wait_for(lambda s: s.waiting() == 1, 10, "a send is under way")
    publisher.publish("telemetry/a", b"expires", MessageExpiryInterval=1)
    publisher.flush()
    time.sleep(1.1)  # the message's own time
    fake.unblock()
    bridge.wait_metric("MessagesExpired", 1)
    c = bridge.metrics()
    assert c["MessagesReceived"] == 4
    assert (c["MessagesSent"], c["MessagesDropped"], c["MessagesExpired"]) == (2, 1, 1)
    assert c["MessagesReceived"] == c["MessagesSent"] + c["MessagesDropped"] + c["MessagesExpired"] + c["DLQEntries"]
    assert b"expires" not in fake.distinct()
