"""-overlay, -set and the environment on the real program (spec 01 §8, decision 0140)."""

import json
import re
import socket
import subprocess

import pytest

import rig

MARK = "Zx9hunterZx9hunterZx9"
KEY = "0123456789abcdef"


def make_bridge(folder, changes=None, **options):
    return rig.Bridge(folder, rig.document(folder, 1, "http://127.0.0.1:1/1/q", "http://127.0.0.1:1", changes),
                      **options)


def overlay(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def digest(bridge, *flags):
    result = subprocess.run([str(rig.BRIDGE), "-config-digest", str(bridge.config), *map(str, flags)],
                            capture_output=True, text=True, timeout=20)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"[0-9a-f]{64}\n", result.stdout)
    return result.stdout


HTTP = {"http": {"admin_api_key": KEY, "cors_origins": ["https://a"]}}


@pytest.mark.parametrize("text, flags, changes", [
    ("bridge: {instance_id: two}", [], {"bridge.instance_id": "two"}),
    ("sessions: [{id: plant, session_mode: persistent}]", [], {}),
    ("routes: [{id: ingest, receiver_id: telemetry-in, bindings: [to-sqs]}]", [],
     {"routes": [{"id": "ingest", "receiver_id": "telemetry-in", "bindings": ["to-sqs"]}]}),
    ('http: {admin_api_key: "[REDACTED]", monitor_api_key: "", cors_origins: []}', [], {"http.cors_origins": []}),
    ("", ["-set", "bridge.log_level=debug", "-set", "bridge.log_level=warn"], {"bridge.log_level": "warn"}),
    ("bridge: {log_level: debug}", ["-set", "routes[ingest].policy={max_in_flight: 7}"],
     {"bridge.log_level": "debug", "routes.0.policy": {"max_in_flight": 7}}),
    ("", ["-set", "receivers[telemetry-in].topics[0].qos=0", "-set=http.cors_origins="],
     {"receivers.0.topics.0.qos": 0, "http.cors_origins": None}),
])
def test_layers_equal_the_document_they_make(folder, text, flags, changes):
    """01: 29, by the content digest."""
    bridge = make_bridge(folder, HTTP)
    layered = digest(bridge, "-overlay", overlay(folder, "o.yaml", text), *flags)
    before = digest(bridge)
    for path, value in changes.items():
        rig.set_path(bridge.doc, path, value)
    bridge.write(bridge.doc)
    assert layered == digest(bridge)
    assert (layered == before) == (not changes)


def test_layers_apply_in_order(folder):
    bridge = make_bridge(folder)
    flags = ["-overlay", overlay(folder, "a.yaml", "bridge: {instance_id: a, log_level: warn}"),
             "-set", "bridge.instance_id=c",  # after every overlay, wherever it stands
             "-overlay", overlay(folder, "b.json", '{"bridge": {"instance_id": "b"}}')]
    same = ["-set", "bridge.log_level=warn", "-set", "bridge.instance_id=c"]
    assert digest(bridge, *flags) == digest(bridge, *same)
    assert digest(bridge, *flags) != digest(bridge, *same[:2])


def test_findings_name_file_or_flag(folder):
    bridge = make_bridge(folder)
    bad = overlay(folder, "bad.yaml", "bridge:\n  log_levl: x\n")
    result = bridge.run("-validate", "-overlay", bad)
    assert result.returncode == 1
    assert result.stderr.startswith(f'{bad}:2:3: error: unknown key "bridge.log_levl"'), result.stderr
    result = bridge.run("-validate", "-set", "bridge.id=x", "-set", "routes[ingst].policy.max_in_flight=1",
                        "-set", "bridge.log_level=loud")
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith('-set 2 (routes[ingst].policy.max_in_flight): error: routes has no entry "ingst"; '
                               'did you mean "ingest"?'), result.stderr
    assert lines[1].startswith("-set 3 (bridge.log_level): error: "), result.stderr
    missing = folder / "missing.yaml"
    for mode in (["-validate"], []):  # no idle start for want of an overlay
        result = bridge.run(*mode, "-overlay", missing)
        assert (result.returncode, f"{missing}: error: " in result.stderr) == (1, True), result.stderr


@pytest.mark.parametrize("flags", [["-set", "bridge.id"], ["-set", "=x"], ["-set"], ["-overlay"],
                                   ["-set", "http.admin_api_key=", MARK], ["-set", f"http.admin_api_key {MARK}"],
                                   ["-set", "http.admin_api_key=", f"-{MARK}"]])
def test_usage_errors_hold_no_value(flags):
    result = subprocess.run([str(rig.BRIDGE), "-validate", *flags], capture_output=True, text=True, timeout=20)
    assert result.returncode == 2
    assert "usage: gobridge" in result.stderr
    assert MARK not in result.stderr + result.stdout


def test_every_mode_takes_layers(folder):
    bridge = make_bridge(folder)
    flags = ["-set", "bridge.id=another"]

    def call(*args):
        return subprocess.run([str(rig.BRIDGE), *map(str, args), *flags], capture_output=True, text=True, timeout=20)

    inspected = call("-inspect", bridge.config)
    assert json.loads(inspected.stdout)["bridge_id"] == "another"
    assert json.loads(call("check", bridge.config, "-json").stdout)["bridge_id"] == "another"
    assert call("-diff", bridge.config, bridge.config).returncode == 0
    assert re.fullmatch(r"[0-9a-f]{64}\n", call("-deployment-fingerprint", bridge.config).stdout)
    other = folder / "other.db"
    flags = ["-set", f"stores.managed_subscriptions.options.path={folder}/subscriptions/other.db"]
    seeded = bridge.run("-seed-managed-subscriptions", "plant", *flags)
    assert seeded.returncode == 0, seeded.stderr
    assert (folder / "subscriptions" / "other.db").exists() and not other.exists()


@pytest.mark.parametrize("env, flags, want", [
    ("env", ["-set", "bridge.instance_id=set"], "env"),
    ("", ["-set", "bridge.instance_id=set"], "set"),
    ("", [], "doc"),
    ("", ["-set", "bridge.instance_id="], None),
])
def test_instance_identity(folder, parts, env, flags, want):
    """01 §8.2: the environment, the document, the host name."""
    bridge = make_bridge(folder, {"bridge.instance_id": "doc"}, env={"GOBRIDGE_INSTANCE_ID": env}, args=flags)
    parts.append(bridge)
    bridge.seed()
    bridge.start(wait="bridge started")
    assert bridge.terminate() == 0
    named = {line["instance_id"] for line in bridge.lines() if "instance_id" in line}
    host = re.escape(socket.gethostname()) + "-[0-9a-f]{8}"
    assert len(named) == 1 and re.fullmatch(want or host, named.pop()), bridge.text()


SECRETS = ["http.admin_api_key", "http.monitor_api_key", "sessions[plant].options.session.password",
           "sessions[plant].options.session.tls.key_pem", "bridge.cluster.forwarder.forward_token",
           "bridge.cluster.forwarder.cluster_api_key", "bridge.cluster.forwarder.receiver_api_keys.telemetry-in"]
VALUES = [MARK, f'"{MARK}"', f"[{MARK}]", f"{{{MARK}: 1, {MARK}: 2}}", f"!{MARK} x", f"&{MARK} x", f"*{MARK}",
          f'"{MARK}', f"@{MARK}", f"{MARK}: {MARK}: 1"]


def test_no_mode_shows_a_secret(folder):
    """01: 34, on everything that the program prints."""
    bridge = make_bridge(folder, HTTP)
    for value in VALUES:
        flags = [part for path in SECRETS for part in ("-set", f"{path}={value}")]
        said = ""
        for mode in (["-config", bridge.config, "-validate"], ["-inspect", bridge.config],
                     ["-config-digest", bridge.config], ["-diff", bridge.config, bridge.config],
                     ["-config", bridge.config, "-log-level", "debug"],
                     ["-config", bridge.config, "-seed-managed-subscriptions", "plant"]):
            result = subprocess.run([str(rig.BRIDGE), *map(str, mode), *flags], capture_output=True, text=True,
                                    timeout=20)
            said += result.stdout + result.stderr
        assert MARK not in said, said
        assert said


def test_log_holds_no_secret(folder, parts):
    """01: 34: a bridge that runs with secrets, at debug, against a broker that is not there."""
    bridge = make_bridge(folder, {
        "bridge.log_level": "debug",
        "sessions.0.options.session.username": "u", "sessions.0.options.session.password": MARK,
        "sessions.0.options.session.allow_plaintext_credentials": True,
    }, env={"GOBRIDGE_ADMIN_API_KEY": MARK, "GOBRIDGE_MONITOR_API_KEY": MARK})
    parts.append(bridge)
    bridge.seed()
    bridge.start(wait="mqtt connect failed")
    assert bridge.terminate() == 0
    assert MARK not in bridge.text()


def test_environment_fills_missing_keys(folder, parts):
    """08 §2: at a run, not for the verdict on a document."""
    bridge = make_bridge(folder, {"http": {"admin_addr": ":0"}}, env={"GOBRIDGE_ADMIN_API_KEY": "short"})
    parts.append(bridge)
    assert "http.admin_api_key is required" in bridge.run("-validate").stderr
    result = bridge.run()
    assert result.returncode == 1
    assert "environment: error: GOBRIDGE_ADMIN_API_KEY has 5 bytes" in result.stderr
    assert "is required" not in result.stderr
