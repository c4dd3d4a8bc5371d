"""Real parts for the demo and the end-to-end tests: broker, SQS server, bridge process, publisher.

Everything listens on 127.0.0.1 on free ports, lives in one temporary folder and is ended by its own process id.
"""

import base64
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import boto3
import botocore.config
import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

ROOT = pathlib.Path(__file__).resolve().parents[2]
BRIDGE = pathlib.Path(os.environ.get("GOBRIDGE_BINARY", ROOT / "build" / "gobridge"))
MARKER = "x-bridge.payload-encoding"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "eu-central-1"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def is_listening(port):
    with socket.socket() as s:
        s.settimeout(0.2)
        return s.connect_ex(("127.0.0.1", port)) == 0


class Process:
    """A child process with its output in a file."""

    def __init__(self, name, args, log, env=None):
        self.name = name
        self.log = pathlib.Path(log)
        self.output = open(self.log, "ab")
        self.child = subprocess.Popen(args, stdout=self.output, stderr=self.output, stdin=subprocess.DEVNULL,
                                      env=env, start_new_session=True)

    def kill(self):
        self.child.kill()
        self.child.wait()
        self.output.close()

    def terminate(self, seconds=30):
        """SIGTERM; the exit code."""
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(seconds)
        finally:
            self.close()

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        self.output.close()

    def text(self):
        return self.log.read_text(errors="replace")


class Broker:
    """mosquitto on a fixed port, so that it can be stopped and started again with its sessions."""

    LIMITS = "max_queued_messages 0\nmax_queued_bytes 0\nmax_inflight_messages 0"

    def __init__(self, folder, extra="", listener="", limits=LIMITS, verbose=False):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.extra = extra + ("\nlog_type all" if verbose else "")
        self.limits = limits
        self.listener = listener  # lines that belong to the listener, such as TLS
        self.process = None
        (self.folder / "data").mkdir(exist_ok=True)
        os.chmod(self.folder / "data", 0o777)
        self.start()

    def start(self):
        config = self.folder / "mosquitto.conf"
        config.write_text(f"listener {self.port} 127.0.0.1\n{self.listener}\nallow_anonymous true\nuser root\n"
                          f"persistence true\npersistence_location {self.folder}/data/\n"
                          f"max_queued_messages 0\nmax_queued_bytes 0\nmax_inflight_messages 100\n{self.extra}\n")
        self.process = Process("mosquitto", [shutil.which("mosquitto") or "/usr/sbin/mosquitto", "-c", str(config)],
                               self.folder / "mosquitto.log")
        wait_until(lambda: is_listening(self.port), 10, "mosquitto listens")

    def stop(self):
        self.process.terminate(10)

    def pause(self):
        """The process hangs; its sockets stay."""
        self.process.child.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.child.send_signal(signal.SIGCONT)

    def count(self, text):
        return self.process.text().count(text)

    def wait_log(self, text, seconds=10, count=1):
        wait_until(lambda: self.count(text) >= count, seconds, f"{count} times {text!r} in the broker's log")

    def close(self):
        if self.process.child.poll() is None:
            self.resume()
        self.process.close()


class SqsServer:
    """moto's server as SQS."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.process = Process("moto_server", [str(pathlib.Path(sys.executable).parent / "moto_server"),
                                               "-H", "127.0.0.1", "-p", str(self.port)],
                               self.folder / "sqs.log")
        wait_until(lambda: is_listening(self.port), 30, "moto_server listens")
        self.client = boto3.client("sqs", endpoint_url=self.endpoint, region_name="eu-central-1",
                                   aws_access_key_id="local", aws_secret_access_key="local",
                                   config=botocore.config.Config(retries={"max_attempts": 5}))

    def create_queue(self, name, **attributes):
        """What was received stays hidden for long: nobody needs to delete it, which is slow in moto."""
        attributes.setdefault("VisibilityTimeout", "3600")
        return self.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    def close(self):
        self.process.close()


def receive_batch(client, queue_url, wait=0):
    """Up to ten messages that were not received before, as (payload bytes, attributes, message)."""
    answer = client.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=wait,
                                    MessageAttributeNames=["All"], AttributeNames=["All"])
    messages = answer.get("Messages", [])
    out = []
    for m in messages:
        attributes = m.get("MessageAttributes", {})
        body = m["Body"].encode()
        if attributes.get(MARKER, {}).get("StringValue") == "base64":
            body = b"" if body == b"=" else base64.b64decode(body, validate=True)
        out.append((body, attributes, m))
    return out


class Collector(threading.Thread):
    """Empties a queue in the background and counts each payload."""

    def __init__(self, client, queue_url):
        super().__init__(daemon=True)
        self.client, self.queue_url = client, queue_url
        self.seen = {}
        self.order = []
        self.running = True
        self.start()

    def run(self):
        while self.running:
            try:
                batch = receive_batch(self.client, self.queue_url)
            except Exception:  # the server is being stopped
                time.sleep(0.1)
                continue
            for payload, _, _ in batch:
                self.seen[payload] = self.seen.get(payload, 0) + 1
                self.order.append(payload)
            if not batch:
                time.sleep(0.02)

    def stop(self):
        self.running = False
        self.join(10)


class Publisher:
    """Publishes with QoS 1 or 2 and knows what the broker has acknowledged."""

    def __init__(self, port, client_id="publisher", host="127.0.0.1", tls=None, clean=True, in_flight=200):
        self.port = port
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5)
        if tls is not None:
            self.client.tls_set_context(tls)
        self.client.max_inflight_messages_set(in_flight)
        self.client.max_queued_messages_set(0)
        self.acknowledged = set()
        self.waiting = {}
        self.early = set()
        self.lock = threading.Lock()
        self.client.on_publish = self._on_publish
        forever = Properties(PacketTypes.CONNECT)
        forever.SessionExpiryInterval = 0 if clean else 3600
        self.client.connect(host, port, clean_start=clean, properties=forever)
        self.client.loop_start()
        wait_until(self.client.is_connected, 10, "publisher connects")

    def _on_publish(self, _client, _userdata, mid, _reason, _properties):
        with self.lock:
            payload = self.waiting.pop(mid, None)
            if payload is None:
                self.early.add(mid)
            else:
                self.acknowledged.add(payload)

    def publish(self, topic, payload, qos=1, message_id=None, properties=None, retain=False, **fields):
        """`properties` are user properties; `fields` the others by paho's name, such as MessageExpiryInterval."""
        props = Properties(PacketTypes.PUBLISH)
        for name, value in fields.items():
            setattr(props, name, value)
        user = list(properties or [])
        if message_id is not None:
            user.append(("mqtt.message-id", message_id))
        if user:
            props.UserProperty = user
        info = self.client.publish(topic, payload, qos=qos, properties=props, retain=retain)
        with self.lock:
            if info.mid in self.early:
                self.early.discard(info.mid)
                self.acknowledged.add(bytes(payload))
            else:
                self.waiting[info.mid] = bytes(payload)
        return info

    def flush(self, seconds=60):
        wait_until(lambda: not self.waiting, seconds, "broker acknowledges all publishes")

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


def document(folder, broker_port, queue_url, endpoint, changes=None):
    """A bridge document for SQLite stores, as JSON; `changes` replace parts by dotted path."""
    folder = pathlib.Path(folder)
    private = folder / "subscriptions"
    private.mkdir(mode=0o700, exist_ok=True)
    os.chmod(private, 0o700)
    doc = {
        "bridge": {"id": "plant-bridge", "shutdown_timeout": "10s"},
        "stores": {
            "outbox": {"type": "sqlite", "options": {"path": str(folder / "outbox.db")}},
            "dlq": {"type": "sqlite", "options": {"path": str(folder / "dlq.db")}},
            "managed_subscriptions": {"type": "sqlite", "options": {"path": str(private / "subscriptions.db")}},
        },
        "sessions": [{
            "id": "plant", "transport": "mqtt", "session_mode": "persistent",
            "options": {"session": {
                "broker_url": f"tcp://127.0.0.1:{broker_port}", "client_id": "plant-bridge", "keep_alive": 5,
                "reconnect_delay": "200ms", "reconnect_max_delay": "1s", "unmatched_grace": "1s"}},
        }],
        "receivers": [{"id": "telemetry-in", "session_id": "plant",
                       "topics": [{"topic": "telemetry/#", "qos": 1}]}],
        "senders": [{"id": "sqs-out", "transport": "sqs",
                     "options": {"queue_url": queue_url, "region": "eu-central-1", "endpoint": endpoint}}],
        "bindings": [{"id": "to-sqs", "sender_id": "sqs-out", "address": queue_url.rsplit("/", 1)[-1]}],
        "routes": [{
            "id": "ingest", "receiver_id": "telemetry-in", "delivery_mode": "shared_outbox", "bindings": ["to-sqs"],
            "policy": {"max_in_flight": 200},
            "session": {"session_id": "plant", "sender_id": "sqs-out",
                        "drain_strategy": {"type": "adaptive_backoff", "min_interval": "10ms",
                                           "max_interval": "1s", "multiplier": 1.5}},
        }],
    }
    for path, value in (changes or {}).items():
        set_path(doc, path, value)
    return doc


def set_path(doc, path, value):
    """routes.0.policy.max_in_flight = 1; a value of None removes the key."""
    keys = path.split(".")
    at = doc
    for key in keys[:-1]:
        at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
    last = keys[-1]
    if isinstance(at, list):
        at[int(last)] = value
    elif value is None:
        at.pop(last, None)
    else:
        at[last] = value


class Bridge:
    """The real program over a document."""

    def __init__(self, folder, doc, env=None, args=(), wrapper=()):
        self.folder = pathlib.Path(folder)
        self.config = self.folder / "bridge.json"
        self.doc = doc
        self.log = self.folder / "bridge.log"
        self.env = {**os.environ, **CREDENTIALS, **(env or {})}
        self.args = list(args)
        self.wrapper = list(wrapper)  # such as valgrind
        self.process = None
        self.write(doc)

    def write(self, doc):
        self.doc = doc
        self.config.write_text(json.dumps(doc, indent=2))

    def run(self, *args, seconds=30):
        return subprocess.run([str(BRIDGE), "-config", str(self.config), *args], env=self.env,
                              capture_output=True, text=True, timeout=seconds)

    def seed(self, value="plant"):
        result = self.run("-seed-managed-subscriptions", value)
        assert result.returncode == 0, result.stderr
        return result

    def start(self, wait="mqtt subscriptions converged", seconds=30):
        seen = self.count(wait) if wait else 0
        self.process = Process("gobridge", [*self.wrapper, str(BRIDGE), "-config", str(self.config),
                                            *(() if "-monitor-addr" in self.args else ("-monitor-addr", "127.0.0.1:0")),
                                            *self.args],
                               self.log, self.env)
        if wait:
            wait_until(lambda: self.count(wait) > seen or not self.alive(), seconds, f"the bridge logs {wait!r}")
            assert self.alive(), self.process.text()[-2000:]
        return self

    @property
    def pid(self):
        return self.process.child.pid

    def alive(self):
        return self.process is not None and self.process.child.poll() is None

    def wait_exit(self, seconds):
        code = self.process.child.wait(seconds)
        self.process.close()
        return code

    def rss_kib(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")

    def text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def count(self, text):
        return self.text().count(text)

    def wait_log(self, text, seconds=10, count=1):
        wait_until(lambda: self.count(text) >= count, seconds, f"{count} times {text!r} in {self.text()[-1500:]}")

    def lines(self):
        out = []
        for line in self.text().splitlines():
            try:
                out.append(json.loads(line))
            except json.JSONDecodeError:
                out.append({"raw": line})
        return out

    def metrics(self):
        """Counters by name, summed over dimensions, from a SIGUSR1 snapshot."""
        seen = self.count('"msg":"metrics"')
        self.process.child.send_signal(signal.SIGUSR1)
        wait_until(lambda: self.count('"msg":"metrics"') > seen and self.log.read_bytes().endswith(b"\n"), 10,
                   "the bridge prints its metrics")
        return self.last_metrics()

    def last_metrics(self):
        snapshot = [l for l in self.lines() if l.get("msg") == "metrics"][-1]["snapshot"]["metrics"]
        totals = Counters()
        for m in snapshot:
            value = m.get("value", m.get("count", 0))
            if isinstance(value, (int, float)):
                totals[m["name"]] = totals.get(m["name"], 0) + value
            key = m["name"] + "".join(f",{k}={v}" for k, v in sorted(m.get("dimensions", {}).items()))
            totals[key] = value
        return totals

    def wait_metric(self, name, value, seconds=20):
        wait_until(lambda: self.metrics()[name] >= value, seconds, f"{name} reaches {value}")

    def rows(self, store, query, *parameters):
        """A query on a copy-free read-only view of one of the bridge's SQLite files."""
        path = self.doc["stores"][store]["options"]["path"]
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(query, parameters)]

    def dlq(self):
        """The dead letters, oldest first; `envelope` decoded."""
        rows = self.rows("dlq", "SELECT * FROM dlq ORDER BY failed_at, id")
        for row in rows:
            row["envelope"] = json.loads(row["envelope_json"])
        return rows

    def kill(self):
        self.process.kill()

    def terminate(self, seconds=30):
        return self.process.terminate(seconds)

    def close(self):
        if self.process is not None:
            self.process.close()


def payload_of(envelope):
    """The payload of a stored envelope."""
    if "payload_b64" in envelope:
        return base64.b64decode(envelope["payload_b64"], validate=True)
    return envelope.get("payload", "").encode()


class Counters(dict):
    """A counter that was never touched is 0."""

    def __missing__(self, key):
        return 0
