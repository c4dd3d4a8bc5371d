"""Malformed certificates, credentials, documents, rows and responses: a named error, no crash, no acknowledgement."""

import contextlib
import http.server
import json
import socket
import sqlite3
import threading

import pytest

import rig
from tls import Authority

DIRECT = {"routes.0.delivery_mode": "direct_hold", "routes.0.session": None,
          "routes.0.policy.send_retry_budget": "60s"}
SESSION = "sessions.0.options.session."
NO_CHAIN = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture
def verbose(folder, parts):
    made = rig.Broker(folder / "verbose", verbose=True)
    parts.append(made)
    return made


@pytest.fixture
def bridge_at(folder, parts):
    """A bridge of its own folder between any broker and any SQS."""
    def make(broker_port, endpoint, changes=None, **options):
        home = folder / "bridge"
        home.mkdir(mode=0o700)
        doc = rig.document(home, broker_port, f"{endpoint}/123456789012/telemetry-events", endpoint, changes)
        made = rig.Bridge(home, doc, **options)
        parts.append(made)
        made.seed()
        return made
    return make


@pytest.fixture
def listener():
    """A port that notices whoever comes."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        s.setblocking(False)
        yield s


def errors(bridge, msg):
    return [l for l in bridge.lines() if l.get("msg") == msg]


# --- certificates -----------------------------------------------------------------------------------


def tls_rows(folder):
    authority, other = Authority(folder), Authority(folder, "other")
    certificate, key = map(str, authority.issue("client"))
    _, other_key = map(str, other.issue("stranger"))
    garbage = folder / "garbage.pem"
    garbage.write_bytes(b"\0\xff no PEM")
    damaged = folder / "damaged.pem"
    damaged.write_bytes(authority.path.read_bytes().replace(b"MII", b"!!!", 1))
    return {
        "no PEM": ({"ca_cert_file": str(garbage)}, ("tls.ca_cert_file", str(garbage))),
        "damaged PEM": ({"ca_cert_file": str(damaged)}, ("tls.ca_cert_file", str(damaged))),
        "missing": ({"ca_cert_file": "/nonexistent/ca.pem"}, ("tls.ca_cert_file", "no such file")),
        "folder": ({"ca_cert_file": str(folder)}, ("tls.ca_cert_file", "is a directory")),
        "text instead of PEM": ({"ca_cert_pem": "x"}, ("tls.ca_cert_pem", "no PEM certificate")),
        "key of another": ({"cert_file": certificate, "key_file": other_key}, ("tls.key_file", "does not belong")),
        "swapped": ({"cert_file": key, "key_file": certificate}, ("tls.cert_file", "no PEM certificate")),
    }


@pytest.mark.parametrize("row", ["no PEM", "damaged PEM", "missing", "folder", "text instead of PEM",
                                 "key of another", "swapped"])
def test_bad_certificates_end_the_start(folder, bridge_at, listener, row):
    """Spec 04 D4: INVALID_CONFIG before connecting."""
    tls, words = tls_rows(folder)[row]
    bridge = bridge_at(1, "http://127.0.0.1:1",
                       {SESSION + "broker_url": f"tls://127.0.0.1:{listener.getsockname()[1]}", SESSION + "tls": tls})
    bridge.start(wait=None)
    assert bridge.wait_exit(10) == 1
    (line,) = errors(bridge, "start failed")
    assert line["error_code"] == "INVALID_CONFIG" and "session plant" in line["error"]
    assert all(w in line["error"] for w in words), line["error"]
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_unused_certificates_are_not_read(bridge_at, verbose, fake):
    bridge = bridge_at(verbose.port, fake.endpoint, {SESSION + "tls": {"ca_cert_file": "/nonexistent/ca.pem"}})
    bridge.start()
    assert bridge.terminate() == 0


# --- credentials ------------------------------------------------------------------------------------


class Canned:
    """An HTTP server that gives one answer to everything; `body` None closes the connection without one."""

    def __init__(self, body=b"", status=200, headers=None):
        self.body, self.status, self.headers, self.calls = body, status, headers or {}, 0
        canned = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                canned.calls += 1
                self.close_connection = True
                if canned.body is None:
                    return
                self.send_response(canned.status)
                headers = {"Content-Length": str(len(canned.body)), **canned.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(canned.body)

            do_GET = do_PUT = do_POST = answer

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def canned(parts):
    def make(*args, **options):
        made = Canned(*args, **options)
        parts.append(made)
        return made
    return make


def unacknowledged(bridge, broker, code, *words):
    """A published message is not acknowledged; the reason is in the log by its name; the process lives."""
    publisher = rig.Publisher(broker.port)
    publisher.publish("telemetry/a", b"x", message_id="m1")
    publisher.flush()
    publisher.close()
    bridge.wait_log("send failed; the source is not acknowledged", 20)
    line = errors(bridge, "send failed; the source is not acknowledged")[0]
    assert line["error_code"] == code, line
    assert all(w in line["error"] for w in words), line["error"]
    assert line["envelope_id"] and line["route_id"] == "ingest"
    assert broker.count("Received PUBACK from plant-bridge") == 0
    assert bridge.alive()
    return line


PROFILES = {
    "no such profile": ("[other]\nregion=x\n", ("AWS profile", "does not exist")),
    "half a header": ("[default\n", ("line 1",)),
    "no key and value": ("[default]\nnonsense\n", ("line 2", "key = value")),
    "half a pair": ("[default]\naws_access_key_id=AKIDX\n", ("aws_secret_access_key",)),
    "binary": ("\0\1\2", ("line 1",)),
    "external program": ("[default]\ncredential_process = /bin/true\n", ("credential_process is not supported",)),
}


@pytest.mark.parametrize("row", PROFILES)
def test_bad_profiles(folder, bridge_at, verbose, fake, row):
    text, words = PROFILES[row]
    (folder / "credentials").write_text(text)
    bridge = bridge_at(verbose.port, fake.endpoint, {**DIRECT, "senders.0.options.profile": "default"},
                       env={**NO_CHAIN, "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
                            "AWS_CONFIG_FILE": "/nonexistent"})
    bridge.start()
    publisher = rig.Publisher(verbose.port)
    publisher.publish("telemetry/a", b"x", message_id="m1")
    publisher.flush()
    publisher.close()
    bridge.wait_log("aws credentials not obtained")
    line = errors(bridge, "aws credentials not obtained")[0]
    assert line["error_code"] == "INVALID_CONFIG" and all(w in line["error"] for w in words), line
    assert "AKIDX" not in bridge.text()
    assert not fake.requests
    assert bridge.terminate() == 0


CONTAINER_DOCUMENTS = {
    "no JSON": (b"<html>", "not a JSON object"),
    "empty": (b"", "not a JSON object"),
    "cut": (b'{"AccessKeyId":"A","Secre', "not a JSON object"),
    "no secret": (b'{"AccessKeyId":"A"}', "SecretAccessKey is missing"),
    "bad time": (b'{"AccessKeyId":"A","SecretAccessKey":"s","Token":"t","Expiration":"soon"}', "no RFC 3339 time"),
    "refused": (b'{"Code":"Failed"}', "Code is not Success"),
    "deep": (b'{"a":' * 5000, "not a JSON object"),
}


@pytest.mark.parametrize("row", CONTAINER_DOCUMENTS)
def test_bad_container_credentials(bridge_at, verbose, fake, canned, row):
    body, word = CONTAINER_DOCUMENTS[row]
    agent = canned(body)
    bridge = bridge_at(verbose.port, fake.endpoint, DIRECT,
                       env={**NO_CHAIN, "AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.endpoint + "/creds",
                            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_CONFIG_FILE": "/nonexistent"})
    bridge.start()
    unacknowledged(bridge, verbose, "TEMPORARY_AUTH_FAILURE", word)
    assert agent.calls >= 1 and not fake.requests
    assert bridge.terminate() == 1, "the held message is left unsettled"


def test_no_credentials_at_all(bridge_at, verbose, fake):
    bridge = bridge_at(verbose.port, fake.endpoint, {**DIRECT, "stores.dlq": None},
                       env={**NO_CHAIN, "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
                            "AWS_CONFIG_FILE": "/nonexistent"})
    bridge.start()
    publisher = rig.Publisher(verbose.port)
    publisher.publish("telemetry/a", b"x", message_id="m1")
    publisher.close()
    bridge.wait_log("environment, web identity, shared files, container, instance metadata")
    assert bridge.alive() and not fake.requests
    bridge.kill()


# --- documents --------------------------------------------------------------------------------------

DOCUMENTS = {
    "cut JSON": ("bridge.json", b'{"bridge": {'),
    "JSON list": ("bridge.json", b"[]"),
    "tab in YAML": ("bridge.yaml", b"bridge:\n\tid: x\n"),
    "NUL bytes": ("bridge.yaml", b"\0\0"),
    "no UTF-8": ("bridge.yaml", b"bridge: {id: \xff\xfe}\n"),
    "empty": ("bridge.yaml", b""),
    "a key twice": ("bridge.yaml", b"bridge: {id: x}\nbridge: {id: y}\n"),
    "aliases without end": ("bridge.yaml", b"bridge: &a [*a]\n"),
    "very deep": ("bridge.json", b'{"a":' * 100000),
    "too large": ("bridge.yaml", b"# " + b"x" * (32 << 20)),
    "a number as id": ("bridge.yaml", b"bridge: {id: [1]}\n"),
}


@pytest.mark.parametrize("mode", [("-validate",), ("-seed-managed-subscriptions", "plant"), ()],
                         ids=["validate", "seed", "run"])
@pytest.mark.parametrize("row", DOCUMENTS)
def test_bad_documents(folder, row, mode):
    name, data = DOCUMENTS[row]
    bridge = rig.Bridge(folder, {})
    bridge.config = folder / name
    bridge.config.write_bytes(data)
    result = bridge.run(*mode)
    assert result.returncode == 1, result
    assert str(bridge.config) in result.stderr
    assert len(result.stderr) < 20000
    assert not list(folder.glob("*.db"))


def test_missing_and_unreadable_documents(folder):
    bridge = rig.Bridge(folder, {})
    for path in (folder / "none.yaml", folder):
        bridge.config = path
        result = bridge.run("-validate")
        assert result.returncode == 1 and str(path) in result.stderr


# --- responses of SQS -------------------------------------------------------------------------------

RESPONSES = {
    "HTML": (dict(body=b"<html>ok</html>"), "UNAVAILABLE"),
    "empty": (dict(body=b""), "UNAVAILABLE"),
    "cut JSON": (dict(body=b'{"MessageId":'), "UNAVAILABLE"),
    "a list": (dict(body=b"[]"), "UNAVAILABLE"),
    "wrong digest": (dict(body=b'{"MessageId":"m","MD5OfMessageBody":"00000000000000000000000000000000"}'),
                     "UNAVAILABLE"),
    "deep": (dict(body=b'{"a":' * 50000), "UNAVAILABLE"),
    "no UTF-8": (dict(body=b'{"MessageId":"\xff\xfe"}'), "UNAVAILABLE"),
    "closed": (dict(body=None), "CONNECTION_LOST"),
    "too short": (dict(body=b"{}", headers={"Content-Length": "500"}), "CONNECTION_LOST"),
    "huge": (dict(body=b" " * (20 << 20)), "UNAVAILABLE"),
    "redirect": (dict(status=302, headers={"Location": "http://127.0.0.1:1/"}), "UNAVAILABLE"),
    "error without code": (dict(status=400, body=b"\0\1"), "UNAVAILABLE"),
    "error of another type": (dict(status=400, body=b'{"__type":[1],"message":{}}'), "UNAVAILABLE"),
}


@pytest.mark.parametrize("row", RESPONSES)
def test_bad_responses(bridge_at, verbose, canned, row):
    options, code = RESPONSES[row]
    sqs = canned(**options)
    bridge = bridge_at(verbose.port, sqs.endpoint, {**DIRECT, "bridge.shutdown_timeout": "3s"})
    bridge.start()
    unacknowledged(bridge, verbose, code)
    assert sqs.calls >= 1
    sqs.status, sqs.headers, sqs.body = 200, {}, b'{"MessageId":"m"}'
    verbose.wait_log("Received PUBACK from plant-bridge", 20)  # the same message, once SQS has come to its senses
    assert bridge.terminate() == 0


BATCH_RESPONSES = {
    "unknown ids": b'{"Successful":[{"Id":"77"},{"Id":""},{"Id":"-1"},{"Id":"99999999999999999999"}]}',
    "ids of another type": b'{"Successful":[{"Id":0},7,null,{"Id":["0"]}],"Failed":{}}',
    "nothing": b"{}",
}


@pytest.mark.parametrize("row", BATCH_RESPONSES)
def test_bad_batch_responses_complete_nothing(bridge_at, verbose, canned, row):
    sqs = canned(body=None)
    bridge = bridge_at(verbose.port, sqs.endpoint)
    bridge.start()
    publisher = rig.Publisher(verbose.port)
    for i in range(20):
        publisher.publish("telemetry/a", b"%d" % i, message_id=f"m{i}")
    publisher.flush()
    publisher.close()
    rig.wait_until(lambda: len(bridge.rows("outbox", "SELECT id FROM outbox")) == 20, 10, "all are stored")
    bridge.kill()  # so that the next life claims them together
    sqs.body = BATCH_RESPONSES[row]
    bridge.start(wait="send failed; the record stays in the outbox and is tried again")
    assert not bridge.rows("outbox", "SELECT id FROM outbox WHERE status NOT IN ('pending', 'claimed')")
    assert bridge.terminate() == 0


# --- rows -------------------------------------------------------------------------------------------


def damage(bridge, store, statement):
    path = bridge.doc["stores"][store]["options"]["path"]
    with contextlib.closing(sqlite3.connect(path)) as db:
        with db:
            assert db.execute(statement).rowcount > 0


@pytest.fixture
def damaged(bridge_at, verbose, fake):
    """A bridge that starts over an outbox with one damaged record and a good one; the id of the damaged."""
    def make(change):
        bridge = bridge_at(verbose.port, fake.endpoint)
        fake.block()
        bridge.start()
        publisher = rig.Publisher(verbose.port)
        for payload in (b"bad", b"good"):
            publisher.publish("telemetry/a", payload, message_id=f"m-{payload.decode()}")
        publisher.flush()
        publisher.close()
        rig.wait_until(lambda: len(bridge.rows("outbox", "SELECT id FROM outbox")) == 2, 10, "both are stored")
        bridge.kill()
        fake.unblock()
        (bad,) = [r["id"] for r in bridge.rows("outbox", "SELECT * FROM outbox")
                  if rig.payload_of(json.loads(r["envelope_json"])) == b"bad"]
        damage(bridge, "outbox", f"UPDATE outbox SET {change} WHERE id = '{bad}'")
        bridge.start(wait=None)
        return bridge, bad
    return make


@pytest.mark.parametrize("change", [
    "envelope_json = '{'", "envelope_json = x'00ff'", "envelope_json = '[]'", "created_at = 'soon'", "seq = 'x'",
    "route_id = x'00'", "envelope_id = 'other'", "status = 'lost'", "binding_id = 'nobody'"])
def test_damaged_outbox_row_is_named_and_stops_nothing_else(damaged, fake, change):
    bridge, bad = damaged(change)
    fake.wait_for_payloads([b"good"])
    name = "unknown binding" if "binding" in change else bad
    rig.wait_until(lambda: name in bridge.text(), 15, f"the log names the record; {bridge.text()[-1500:]}")
    assert bridge.alive()
    assert fake.payloads() == [b"good"]
    (row,) = bridge.rows("outbox", f"SELECT status FROM outbox WHERE id = '{bad}'")
    assert row["status"] not in ("completed", "expired"), "it is kept"
    bridge.kill()


@pytest.mark.parametrize("change", ["claim_version = 'x'", "claim_version = -1", "claimed_at = 'x'",
                                    "replay_count = -1", "headers_json = '{'"])
def test_damaged_notes_beside_a_readable_message_do_not_hold_it_up(damaged, fake, change):
    bridge, _ = damaged(change)
    fake.wait_for_payloads([b"bad", b"good"])
    assert bridge.terminate() == 0


SUBSCRIPTIONS = {
    "no text": "INSERT INTO managed_subscription_filters SELECT storage_identity, x'00ff' "
               "FROM managed_subscription_baselines",
    "no filter": "INSERT INTO managed_subscription_filters SELECT storage_identity, 'a/#/b' "
                 "FROM managed_subscription_baselines",
    "empty": "INSERT INTO managed_subscription_filters SELECT storage_identity, '' "
             "FROM managed_subscription_baselines",
}


@pytest.mark.parametrize("row", SUBSCRIPTIONS)
def test_damaged_history_keeps_the_session_from_connecting(bridge_at, verbose, fake, row):
    bridge = bridge_at(verbose.port, fake.endpoint)
    damage(bridge, "managed_subscriptions", SUBSCRIPTIONS[row])
    bridge.start(wait=None)
    bridge.wait_log("mqtt session does not connect")
    (line,) = errors(bridge, "mqtt session does not connect: its subscription history is unknown")[:1]
    assert line["error_code"] == "INVALID_CONFIG"
    assert bridge.doc["stores"]["managed_subscriptions"]["options"]["path"] in line["error"], line
    assert "plant-bridge" not in verbose.process.text()
    assert bridge.terminate() == 0


def test_damaged_fence_ends_the_start(bridge_at, verbose, fake):
    bridge = bridge_at(verbose.port, fake.endpoint)
    bridge.start()
    assert bridge.terminate() == 0
    damage(bridge, "outbox", "UPDATE outbox_partition_fence SET max_version = 'many'")
    bridge.start(wait=None)
    assert bridge.wait_exit(20) == 1
    (line,) = errors(bridge, "start failed")
    assert line["error_code"] == "INVALID_CONFIG"
    assert "SESSION#plant" in line["error"] and "max_version" in line["error"]
