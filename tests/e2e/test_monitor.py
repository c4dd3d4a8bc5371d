"""The monitor API of the real program (spec 08 §2-§4, §6)."""

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import cluster
import rig

KEY = "monitor-key-of-16-bytes"
ADMIN = "admin-key-with-16-bytes"
BASE = "/api/v1/monitor"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


def ask(port, path, method="GET", headers=None):
    url = path if path.startswith("/api/") else f"{BASE}/{path}"
    request = urllib.request.Request(f"http://127.0.0.1:{port}{url}", method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return Answer(reply.status, reply.headers, reply.read().decode())
    except urllib.error.HTTPError as refused:
        return Answer(refused.code, refused.headers, refused.read().decode())


def port_of(bridge):
    bridge.wait_log('"msg":"HTTP servers started"')
    return [line for line in bridge.lines() if line.get("msg") == "HTTP servers started"][-1]["monitor_port"]


def make(folder, parts, fake, broker, changes=None, **options):
    bridge = rig.Bridge(folder, rig.document(folder, broker.port, fake.queue_url(), fake.endpoint, changes), **options)
    parts.append(bridge)
    return bridge


@pytest.fixture
def idle(folder, parts):
    """A process without a document: the probes only."""
    bridge = rig.Bridge(folder, {}, env={"GOBRIDGE_MONITOR_API_KEY": "", "GOBRIDGE_ADMIN_API_KEY": ""})
    bridge.config.unlink()
    parts.append(bridge)
    bridge.start(wait="idle until it exists")
    return bridge


@pytest.fixture
def empty(folder, parts):
    """A document without routes."""
    doc = {"bridge": {"id": "x", "instance_id": "one"},
           "http": {"monitor_addr": "127.0.0.1:0", "admin_api_key": ADMIN, "monitor_api_key": KEY},
           "telemetry": {"metrics": {"exporter": "prometheus"}}}
    bridge = rig.Bridge(folder, doc)
    parts.append(bridge)
    return bridge.start(wait='"msg":"bridge started"')


def test_idle_is_live_and_not_ready(idle):
    """Check 2."""
    port = port_of(idle)
    assert ask(port, "live").json == {"status": "alive"}
    assert (ask(port, "ready").status, ask(port, "ready").json) == (503, {"error": "not ready"})
    assert (ask(port, "health").status, ask(port, "health").json) == (503, {"status": "unavailable"})
    assert ask(port, "ready?level=live").json == {"status": "ready", "role": "standalone", "level": "live",
                                                  "requested": "live"}
    for path in ("ready", "health", "ready?level=full"):
        refused = ask(port, path)
        assert (refused.status, refused.headers["Cache-Control"]) == (503, "no-cache, max-age=0")
    assert ask(port, "deephealth").status == 404, "without any key only the probes are served"
    assert idle.terminate() == 0


def test_missing_document_is_fatal_when_asked(folder):
    """Check 2."""
    result = subprocess.run([str(rig.BRIDGE), "-config", str(folder / "none"), "-start-empty=false",
                             "-monitor-addr", "127.0.0.1:0"], capture_output=True, text=True, timeout=20)
    assert result.returncode == 1


def test_empty_runtime(empty):
    """Checks 7, 14 and the key names of the bodies."""
    port = port_of(empty)
    assert ask(port, "health").json == {"status": "ok"}
    assert ask(port, "live").status == 200
    deep = ask(port, "deephealth", headers={"X-API-Key": ADMIN})
    assert deep.status == 503
    assert deep.json == {"running": True, "healthy": True, "instance_id": "one", "role": "standalone",
                         "ready_for_traffic": False, "empty": True, "service_level": "none", "level": "running",
                         "sessions": [], "routes": [],
                         "config_watch": {"degraded": False, "reconfigure_pending": False}}
    assert ask(port, "topology", headers={"Authorization": f"Bearer {KEY}"}).json == {
        "instance_id": "one", "running": True, "routes": []}
    assert ask(port, "/api/v1/admin/bridge", headers={"X-API-Key": ADMIN}).status == 404


def test_keys_are_asked_for_and_guessing_is_slowed(empty):
    """Checks 5 and 6, in the monitor's realm."""
    port = port_of(empty)
    refused = ask(port, "deephealth")
    assert (refused.status, refused.json) == (401, {"error": "invalid or missing API key"})
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="gobridge-monitor"'
    for n in range(4):
        assert ask(port, "topology", headers={"X-API-Key": "wrong", "X-Forwarded-For": f"10.0.0.{n}"}).status == 401
    sixth = ask(port, "topology", headers={"X-API-Key": "wrong", "X-Forwarded-For": "10.0.0.9"})
    assert (sixth.status, sixth.headers["Retry-After"]) == (429, "60")
    assert sixth.json == {"error": "too many failed authentication attempts"}
    assert ask(port, "topology", headers={"X-API-Key": KEY}).status == 200
    assert ask(port, "live").status == 200
    assert KEY not in empty.text() and ADMIN not in empty.text()


def test_methods_paths_and_headers(empty):
    """Checks 8, 9, 10, 11."""
    port = port_of(empty)
    posted = ask(port, "live", method="POST")
    assert (posted.status, posted.headers["Allow"]) == (405, "GET, HEAD")
    missing = ask(port, "nothing")
    assert (missing.status, missing.json) == (404, {"error": "not found"})
    plain = ask(port, "live")
    assert len(plain.headers["X-Correlation-ID"]) == 32 and plain.headers["X-Content-Type-Options"] == "nosniff"
    assert plain.headers["Content-Type"] == "application/json"
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    given = ask(port, "live", headers={"X-Correlation-ID": "c" * 300,
                                       "traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert given.headers["X-Correlation-ID"] == "c" * 256
    assert (given.headers["X-Trace-ID"], given.headers["X-Span-ID"]) == (trace, "00f067aa0ba902b7")
    broken = ask(port, "live", headers={"traceparent": f"00-{trace[:-1]}g-00f067aa0ba902b7-01"})
    assert broken.headers["X-Trace-ID"] != trace and len(broken.headers["X-Trace-ID"]) == 32
    assert ask(port, "ready").headers["Cache-Control"] == "no-cache, max-age=0"
    assert ask(port, "ready?level=banana").status == 400
    assert ask(port, "ready?level=down").status == 400
    assert ask(port, "ready?level=%20FULL").json["requested"] == "full"
    assert ask(port, "live", method="HEAD").body == ""


def test_levels_follow_the_broker(folder, parts, fake, broker):
    """Check 12; the metrics, and the shutdown of check 28."""
    bridge = make(folder, parts, fake, broker, {
        "http": {"monitor_addr": "127.0.0.1:0", "admin_api_key": ADMIN},
        "telemetry": {"metrics": {"exporter": "prometheus"}}})
    bridge.seed()
    bridge.start()
    port = port_of(bridge)
    key = {"X-API-Key": ADMIN}
    rig.wait_until(lambda: ask(port, "ready").status == 200, 10, "ready at level full")
    assert ask(port, "ready").json == {"status": "ready", "role": "standalone"}
    deep = ask(port, "deephealth", headers=key)
    assert (deep.status, deep.json["level"], deep.json["service_level"]) == (200, "full", "full")
    session = deep.json["sessions"][0]
    assert session["connected"] and session["ready"] and not session["has_lease"]
    assert session["subscriptions_active"] == session["subscriptions_wanted"] > 0
    assert deep.json["routes"][0]["ready"] is True
    assert ask(port, "routes", headers=key).json["routes"] == [{
        "id": deep.json["routes"][0]["id"], "delivery_mode": "shared_outbox",
        "dispatch_mode": "single", "max_in_flight": 200, "max_replay": 5, "ack_after": "outbox_persist",
        "on_expired": "dlq", "on_perm_failure": "dlq", "on_filtered": "drop"}]
    text = ask(port, "metrics", headers=key)
    assert text.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE MessagesReceived counter" in text.body
    broker.close()
    rig.wait_until(lambda: ask(port, "ready").status == 503, 10, "not ready without the broker")
    assert ask(port, "health").status == 200
    assert ask(port, "ready?level=running").status == 200
    down = ask(port, "ready?level=connected")
    assert (down.status, down.json["level"], down.json["status"]) == (503, "running", "not_ready")
    bridge.process.child.send_signal(signal.SIGTERM)
    assert bridge.wait_exit(40) == 0


def test_healthcheck(empty):
    """Check 37, first half."""
    port = port_of(empty)
    env = {**empty.env, "GOBRIDGE_ADMIN_API_KEY": ""}

    def check(address):
        return subprocess.run([str(rig.BRIDGE), "-config", str(empty.folder / "none"), "-healthcheck", "-monitor-addr",
                               address], env=env, capture_output=True, text=True, timeout=10).returncode
    assert check(f":{port}") == 0
    assert check(f"127.0.0.1:{port}") == 0
    empty.terminate()
    start = time.monotonic()
    assert check(f":{port}") == 1
    assert time.monotonic() - start < 4


def test_two_bridges_and_one_address(empty, folder, parts):
    """A written address that is taken is fatal and says so."""
    port = port_of(empty)
    result = subprocess.run([str(rig.BRIDGE), "-config", str(folder / "none"), "-monitor-addr", f"127.0.0.1:{port}"],
                            capture_output=True, text=True, timeout=20)
    assert result.returncode == 1
    assert f"-monitor-addr: can't listen on 127.0.0.1:{port}" in result.stderr
    assert "another process listens there" in result.stderr


def test_the_default_address_is_no_condition(folder, parts):
    """Two bridges on one host: the second one runs, and says what it lacks."""
    with socket.socket(socket.AF_INET6) as taken:
        try:
            taken.bind(("::", 8081))
            taken.listen()
        except OSError:
            pass  # somebody else has it: as good
        idle = rig.Process("gobridge", [str(rig.BRIDGE), "-config", str(folder / "none")], folder / "idle.log")
        parts.append(idle)
        rig.wait_until(lambda: "no monitor API: its default address is taken" in idle.text(), 10, "the warning")
        assert "can't listen on :8081" in idle.text()
        assert idle.terminate() == 0


def test_a_read_error_degrades_and_keeps_serving(empty):
    """Check 34 in part: what /deephealth says of a rejected document."""
    port = port_of(empty)
    empty.config.write_text("{ not a document")
    empty.process.child.send_signal(signal.SIGHUP)
    rig.wait_until(lambda: ask(port, "deephealth", headers={"X-API-Key": KEY}).json["config_watch"]["degraded"], 10,
                   "degraded")
    watch = ask(port, "deephealth", headers={"X-API-Key": KEY}).json
    assert watch["running"] and watch["config_watch"]["last_apply_error"]
    assert ask(port, "health").status == 200


def test_probes_during_the_shutdown(folder, parts, fake, broker, publisher):
    """Check 28: live and not ready while a send settles."""
    bridge = make(folder, parts, fake, broker, {"routes.0.delivery_mode": "direct_hold", "routes.0.session": None})
    bridge.seed()
    bridge.start()
    port = port_of(bridge)
    rig.wait_until(lambda: ask(port, "ready").status == 200, 10, "ready at level full")
    fake.block()
    publisher.publish("telemetry/a", b"slow", message_id="slow")
    fake.wait_for(lambda s: s.waiting() == 1, 10, "the send is under way")
    bridge.process.child.send_signal(signal.SIGTERM)
    bridge.wait_log("shutdown signal received")
    assert (ask(port, "live").status, ask(port, "ready").status) == (200, 503)
    assert ask(port, "health").json == {"status": "not_running"}
    fake.unblock()
    assert bridge.wait_exit(10) == 0


def test_standby_and_takeover(folder, parts, fake, broker, dynoxide, faults):
    """Check 13, over the monitor API alone, and then an outage of the lease store."""
    doc = cluster.document(folder, broker.port, fake.queue_url(), fake.endpoint)
    pair = cluster.Cluster(folder, doc, dynoxide, endpoints={name: faults.open(name) for name in ("a", "b")})
    parts.append(pair)
    key = {"X-API-Key": ADMIN}
    for name in ("a", "b"):
        pair[name].env["GOBRIDGE_ADMIN_API_KEY"] = ADMIN
    pair.prepare()
    pair.start("a")
    pair.wait_active("a")
    pair.start("b")
    ports = {name: port_of(pair[name]) for name in ("a", "b")}
    rig.wait_until(lambda: ask(ports["a"], "ready").status == 200, 20, "the owner is full")
    rig.wait_until(lambda: ask(ports["b"], "ready?level=subscribed").status == 200, 20, "the standby is subscribed")
    bare = ask(ports["b"], "ready")
    assert (bare.status, bare.json) == (503, {"error": "not ready"})
    assert ask(ports["b"], "ready?level=full").json == {"status": "not_ready", "role": "standby", "level": "subscribed",
                                                        "requested": "full"}
    own, standby = (ask(ports[n], "deephealth", headers=key) for n in ("a", "b"))
    assert (own.status, own.json["role"], own.json["service_level"]) == (200, "active", "full")
    assert (standby.status, standby.json["role"], standby.json["service_level"]) == (503, "standby", "none")
    before = own.json["sessions"][0]
    assert before["has_lease"] and before["lease_owner"].startswith("a#") and before["lease"]["renew_interval_ms"] == 1000
    rig.wait_until(lambda: ask(ports["a"], "deephealth", headers=key).json["sessions"][0]["lease"]["state"] == "active",
                   20, "the manager has seen it")
    rig.wait_until(lambda: ask(ports["b"], "deephealth", headers=key).json["sessions"][0].get("lease_owner")
                   == before["lease_owner"], 10, "the standby names the owner")
    pair["a"].process.child.kill()
    rig.wait_until(lambda: ask(ports["b"], "ready").status == 200, 40, "the standby takes over")
    after = ask(ports["b"], "deephealth", headers=key).json
    assert (after["role"], after["service_level"], after["level"]) == ("active", "full", "full")
    session = after["sessions"][0]
    assert session["lease_owner"].startswith("b#") and session["fencing_version"] > before["fencing_version"]
    assert pair["b"].metrics()["LeaseTransfers"] == 1
    assert "store_error" not in session["lease"]
    faults.rule("drop", client="b", times=0)

    def look():
        return ask(ports["b"], "deephealth", headers=key).json["sessions"][0]

    rig.wait_until(lambda: look()["lease"]["state"] == "standby", 30, "the owner steps down")
    rig.wait_until(lambda: "store_error" in look()["lease"], 10, "it says that the store does not answer")
    assert "lease_owner" not in look(), "who owned it before its own term says nothing"
    assert (look()["lease"]["evidence_ms"], look()["lease"]["renewal_failures"]) == (0, 0)
    faults.command("clear")
    rig.wait_until(lambda: ask(ports["b"], "ready").status == 200, 40, "it takes the lease back")
    assert "store_error" not in look()["lease"]
    assert pair["b"].terminate() == 0
