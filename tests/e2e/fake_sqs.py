"""A small, strict SQS over HTTP that can be made faulty: what moto is too slow or too kind for.

It takes SendMessage and SendMessageBatch in the JSON protocol, checks them by the rules of the service, and keeps every
accepted message in order. `rule` and `entry_rule` make the faults; `block()` leaves requests unanswered.
"""

import base64
import dataclasses
import hashlib
import http.server
import json
import re
import select
import socket
import threading
import time
import urllib.parse
import uuid

MESSAGE_BYTES_MAX = 1048576
ENTRIES_MAX = 10
ATTRIBUTES_MAX = 10
MARKER = "x-bridge.payload-encoding"
ATTRIBUTE_NAME = re.compile(r"^(?!AWS\.|Amazon\.|\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)$", re.IGNORECASE)
AUTHORIZATION = re.compile(r"^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/[a-z0-9-]+/sqs/aws4_request, ?"
                           r"SignedHeaders=[a-z0-9;-]+, ?Signature=[0-9a-f]{64}$")


@dataclasses.dataclass
class Message:
    """One accepted message; `payload` has the marker's encoding undone."""

    body: str
    attributes: dict
    group: str
    dedup: str
    arrived: float

    @property
    def payload(self):
        if self.text(MARKER) == "base64":
            return b"" if self.body == "=" else base64.b64decode(self.body, validate=True)
        return self.body.encode()

    def text(self, name):
        return self.attributes.get(name, {}).get("StringValue")


@dataclasses.dataclass
class Request:
    action: str
    entries: int
    bytes: int
    at: float
    answered: str = ""  # "ok", the error code, or what was done to the connection


@dataclasses.dataclass
class Fault:
    """The answer to a whole request; without `status` the connection is treated as `cut` says."""

    status: int = 0
    code: str = ""
    delay: float = 0.0
    cut: str = ""  # "before": closed unanswered; "half": accepted, but half of the answer is sent


class Refused(Exception):
    def __init__(self, code, text="", status=400, sender_fault=True):
        super().__init__(text)
        self.code, self.text, self.status, self.sender_fault = code, text or code, status, sender_fault


def acceptable(text):
    """The characters that SQS takes in a body or a text attribute."""
    return all(c in "\t\n\r" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000"
               for c in text)


def check_attributes(attributes):
    if len(attributes) > ATTRIBUTES_MAX:
        raise Refused("InvalidParameterValue", f"{len(attributes)} attributes")
    size = 0
    for name, value in attributes.items():
        kind = value.get("DataType", "")
        if not ATTRIBUTE_NAME.match(name) or kind.split(".")[0] not in ("String", "Number", "Binary"):
            raise Refused("InvalidParameterValue", f"attribute {name!r} of type {kind!r}")
        raw = transported(value)
        if not raw or (not kind.startswith("Binary") and not acceptable(raw.decode())):
            raise Refused("InvalidParameterValue", f"value of attribute {name!r}")
        if kind == "Number" and not re.match(r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$", raw.decode()):
            raise Refused("InvalidParameterValue", f"attribute {name!r} is no number")
        size += len(name.encode()) + len(kind.encode()) + len(raw)
    return size


def transported(value):
    if value["DataType"].startswith("Binary"):
        return base64.b64decode(value["BinaryValue"], validate=True)
    return value["StringValue"].encode()


def attributes_md5(attributes):
    digest = hashlib.md5()
    for name in sorted(attributes):
        value = attributes[name]
        kind = 2 if value["DataType"].startswith("Binary") else 1
        for part in (name.encode(), value["DataType"].encode()):
            digest.update(len(part).to_bytes(4, "big") + part)
        raw = transported(value)
        digest.update(bytes([kind]) + len(raw).to_bytes(4, "big") + raw)
    return digest.hexdigest()


class FakeSqs:
    """Listens from construction to close()."""

    def __init__(self, *queues):
        self.queues = set(queues or ["telemetry-events"])
        self.messages = []  # accepted, in order
        self.seen = set()  # their payloads
        self.requests = []
        self.rule = None  # Request -> Fault or None
        self.entry_rule = None  # Message -> (code, sender fault), "omit", or None
        self.changed = threading.Condition()
        self.gate = threading.Event()
        self.gate.set()
        self.connections = set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def queue_url(self, name="telemetry-events"):
        return f"{self.endpoint}/123456789012/{name}"

    def block(self):
        """Requests are read and stay unanswered; what they carry is not accepted."""
        self.gate.clear()

    def unblock(self):
        self.gate.set()

    def waiting(self):
        with self.changed:
            return sum(1 for r in self.requests if not r.answered)

    def count(self, answered=None):
        with self.changed:
            return sum(1 for r in self.requests if answered is None or r.answered == answered)

    def payloads(self):
        with self.changed:
            return [m.payload for m in self.messages]

    def distinct(self):
        with self.changed:
            return set(self.seen)

    def wait_for(self, condition, seconds, what):
        """Waits until `condition(self)` holds; it is evaluated after each request."""
        end = time.monotonic() + seconds
        with self.changed:
            while not condition(self):
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"not within {seconds} s: {what}; {len(self.messages)} messages, "
                                         f"{len(self.requests)} requests, last {self.requests[-3:]}")
                self.changed.wait(min(left, 1))

    def wait_for_messages(self, count, seconds=20):
        self.wait_for(lambda s: len(s.messages) >= count, seconds, f"{count} messages arrive")

    def wait_for_payloads(self, payloads, seconds=20):
        wanted = set(payloads)
        self.wait_for(lambda s: wanted <= s.seen, seconds,
                      f"{len(wanted)} different payloads arrive")

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the peer was faster
        self.thread.join(10)

    def begin(self, action, entries, size):
        request = Request(action, entries, size, time.monotonic())
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
        return request

    def end(self, request, answered):
        with self.changed:
            request.answered = answered
            self.changed.notify_all()

    def send(self, url, entry):
        """Checks and keeps one message; its part of the answer."""
        body, attributes = entry.get("MessageBody", ""), entry.get("MessageAttributes", {})
        group, dedup = entry.get("MessageGroupId", ""), entry.get("MessageDeduplicationId", "")
        size = len(body.encode("utf-8", "surrogatepass")) + check_attributes(attributes)
        if not body:
            raise Refused("MissingParameter", "MessageBody")
        if not acceptable(body):
            raise Refused("InvalidMessageContents")
        if size > MESSAGE_BYTES_MAX:
            raise Refused("InvalidParameterValue", "message is too long")
        if url.endswith(".fifo") and not (group and dedup):
            raise Refused("MissingParameter", "MessageGroupId")
        message = Message(body, attributes, group, dedup, time.monotonic())
        verdict = self.entry_rule(message) if self.entry_rule else None
        if verdict == "omit":
            return None
        if verdict:
            code, sender_fault = verdict
            raise Refused(code, sender_fault=sender_fault)
        with self.changed:
            if not (dedup and any(m.dedup == dedup for m in self.messages)):
                self.messages.append(message)
                self.seen.add(message.payload)
        answer = {"MessageId": str(uuid.uuid4()), "MD5OfMessageBody": hashlib.md5(body.encode()).hexdigest()}
        if attributes:
            answer["MD5OfMessageAttributes"] = attributes_md5(attributes)
        return answer

    def send_batch(self, url, entries):
        ids = [e.get("Id", "") for e in entries]
        if not entries:
            raise Refused("EmptyBatchRequest")
        if len(entries) > ENTRIES_MAX:
            raise Refused("TooManyEntriesInBatchRequest")
        if len(set(ids)) != len(ids):
            raise Refused("BatchEntryIdsNotDistinct")
        total = sum(len(e.get("MessageBody", "").encode("utf-8", "surrogatepass")) +
                    check_attributes(e.get("MessageAttributes", {})) for e in entries)
        if total > MESSAGE_BYTES_MAX:
            raise Refused("BatchRequestTooLong")
        good, bad = [], []
        for entry in entries:
            try:
                answer = self.send(url, entry)
            except Refused as e:
                bad.append({"Id": entry["Id"], "Code": e.code, "Message": e.text, "SenderFault": e.sender_fault})
                continue
            if answer is not None:
                good.append({"Id": entry["Id"], **answer})
        return {"Successful": good, "Failed": bad}

    def perform(self, action, document):
        url = document.get("QueueUrl", "")
        if urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1] not in self.queues:
            raise Refused("QueueDoesNotExist")
        if action == "SendMessage":
            answer = self.send(url, document)
            if answer is None:
                raise Refused("InternalError", status=500)
            return answer
        if action == "SendMessageBatch":
            return self.send_batch(url, document.get("Entries", []))
        raise Refused("UnsupportedOperation", action)


def handler_of(sqs):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def setup(self):
            super().setup()
            sqs.connections.add(self.connection)

        def finish(self):
            sqs.connections.discard(self.connection)
            try:
                super().finish()
            except OSError:
                pass  # the client has gone

        def handle(self):
            try:
                super().handle()
            except ConnectionError:
                pass  # killed between two requests

        def log_message(self, *_args):
            pass

        def do_POST(self):
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            action = self.headers.get("X-Amz-Target", "").partition("AmazonSQS.")[2]
            document = json.loads(raw)
            entries = len(document.get("Entries", [])) or 1
            request = sqs.begin(action, entries, len(raw))
            answered = "lost"
            try:
                answered = self.serve(request, action, document)
            except OSError:
                self.close_connection = True  # the client has gone
            finally:
                sqs.end(request, answered)

        def serve(self, request, action, document):
            if not AUTHORIZATION.match(self.headers.get("Authorization", "")):
                return self.error(Refused("MissingAuthenticationToken", status=403))
            if not self.headers.get("Content-Type", "").startswith("application/x-amz-json-1.0"):
                return self.error(Refused("InvalidRequest", "Content-Type"))
            sqs.gate.wait()
            if self.client_has_gone():
                self.close_connection = True
                return "gone"
            fault = (sqs.rule(request) if sqs.rule else None) or Fault()
            if fault.delay:
                time.sleep(fault.delay)
            if fault.cut == "before":
                self.close_connection = True
                return "cut"
            if fault.status:
                return self.error(Refused(fault.code, status=fault.status))
            try:
                answer = json.dumps(sqs.perform(action, document)).encode()
            except Refused as e:
                return self.error(e)
            if fault.cut == "half":
                self.answer(200, answer, len(answer) // 2)
                return "half"
            self.answer(200, answer, len(answer))
            return "ok"

        def client_has_gone(self):
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

        def error(self, refused):
            body = json.dumps({"__type": f"com.amazonaws.sqs#{refused.code}", "message": refused.text}).encode()
            self.answer(refused.status, body, len(body))
            return refused.code

        def answer(self, status, body, sent):
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("x-amzn-RequestId", str(uuid.uuid4()))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:sent])
            self.wfile.flush()
            if sent < len(body):
                self.close_connection = True

    return Handler
