"""An HTTP/1.1 proxy in front of a DynamoDB emulator that makes faults by script and records every exchange.

Each client gets a port of its own by "open", so that rules and orders can name it. Tests in Python call the methods of
FaultProxy; others send one command, a JSON object, a line to the control port and read one line back, with "ok" and,
where that is false, "error". A control connection is a session: its ports, rules and records end with it.

  {"do": "open", "client": "A", "meter": true}   -> "port"; meter: asks for ReturnConsumedCapacity for the client
  {"do": "rule", "effect": EFFECT, ...}          -> "rule"; the first rule that is due decides
       "client", "action" ("PutItem"), "contains" (text in the body)   which requests; all where left out
       "skip": 0, "times": 1                     passes so many of them, then acts on so many (0: on all that follow)
       "hold": "request" or "answer"             waits for a release before forwarding, or before answering
       "delay_ms", "answer_delay_ms"             waits so long there
       "status", "code", "message", "body", "headers", "apply": true   what an answer of ours is; applied first
  {"do": "release", "client": "A"} or {"do": "release", "request": 7}   lets one held request go; -> "request" once the
                                                                        emulator has answered it
  {"do": "state", "client": "A"}   -> "arrived", "finished", "rules": hits of each, "waiting": how many are held,
                                      "held": [{"request", "client", "action", "at", "gone"}]
  {"do": "requests", "since": 0}   -> "requests": all exchanges after that number, with bodies
  {"do": "capacity", "client": "A", "action": "PutItem"}   -> "units" as the emulator counts, and "capacity":
                     [{"client", "action", "table", "index", "units", "requests"}]; index "": table and indexes
  {"do": "cut"}        closes all connections; {"do": "clear"} forgets rules and records and lets held requests go

EFFECT: pass; drop (closed, not forwarded); cut (applied, closed unanswered); half (applied, closed after half of the
answer); silent (applied, never answered); corrupt (one byte of the answer changed, checksum kept); answer (see above);
or one of PRESETS by name. A request whose client has gone is forwarded all the same: a network does that, too.
"""

import asyncio
import collections
import dataclasses
import json
import threading
import uuid

from http_stream import HEAD_BYTES_MAX, Gone, Message, Upstream, answer_of, read_body, read_head

LINE_BYTES_MAX = 1 << 20
RECORD_BYTES_MAX = 256 << 20  # then the oldest are forgotten
RELEASE_SECONDS = 30
PREFIX = "com.amazonaws.dynamodb.v20120810#"
PRESETS = {  # name: status, code
    "throttle": (400, "ThrottlingException"),
    "throughput": (400, "ProvisionedThroughputExceededException"),
    "request_limit": (400, "RequestLimitExceeded"),
    "internal": (500, "InternalServerError"),
    "unavailable": (503, "ServiceUnavailable"),
    "expired_token": (403, "ExpiredTokenException"),
    "denied": (400, "AccessDeniedException"),
    "conflict": (400, "TransactionCanceledException"),
}
EFFECTS = {"pass", "drop", "cut", "half", "silent", "corrupt", "answer", *PRESETS}
METERED = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "TransactWriteItems", "TransactGetItems",
           "BatchGetItem", "BatchWriteItem"}


@dataclasses.dataclass
class Rule:
    effect: str = "pass"
    client: str = ""
    action: str = ""
    contains: str = ""
    skip: int = 0
    times: int = 1
    hold: str = ""
    delay_ms: int = 0
    answer_delay_ms: int = 0
    status: int = 0
    code: str = ""
    message: str = ""
    body: object = None
    headers: dict = dataclasses.field(default_factory=dict)
    apply: bool = False
    seen: int = 0
    hits: int = 0

    def matches(self, exchange):
        return (self.client in ("", exchange.client) and self.action in ("", exchange.action) and
                self.contains.encode() in exchange.request)

    def is_due(self, exchange):
        if not self.matches(exchange):
            return False
        self.seen += 1
        due = self.seen > self.skip and (self.times == 0 or self.seen <= self.skip + self.times)
        self.hits += due
        return due


@dataclasses.dataclass
class Exchange:
    number: int
    client: str
    action: str
    request: bytes
    effect: str = "pass"
    status: int = 0  # what the emulator said; 0: it was not asked, or had not answered
    answer: bytes = b""
    ended: str = ""  # "answered", "closed", or "gone" when the client had left before the answer
    answered: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    def view(self):
        return {"request": self.number, "client": self.client, "action": self.action, "effect": self.effect,
                "status": self.status, "ended": self.ended, "sent": self.request.decode(errors="replace"),
                "answer": self.answer.decode(errors="replace")}


@dataclasses.dataclass
class Held:
    exchange: Exchange
    at: str
    reader: asyncio.StreamReader
    gate: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)


def own_answer(rule, exchange):
    """The answer that a rule makes up."""
    status, code = PRESETS.get(rule.effect, (400, "ValidationException"))
    status, code = rule.status or status, rule.code or code
    body = rule.body
    if body is None:
        body = {"__type": PREFIX + code, "message": rule.message or f"{code} made by the test"}
        if rule.effect == "conflict":
            count = len(json.loads(exchange.request or b"{}").get("TransactItems", []))
            body["CancellationReasons"] = [{"Code": "TransactionConflict", "Message": "made by the test"}] * count
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {"content-type": "application/x-amz-json-1.0", "x-amzn-requestid": str(uuid.uuid4())}
    return answer_of(status, {**headers, **{n.lower(): str(v) for n, v in rule.headers.items()}}, raw)


def corrupted(body):
    """One digit differs, or one letter where there is none, so that only a checksum can tell."""
    for kinds, values in ((b"0123456789", b"12"), (b"abcdefghijklmnopqrstuvwxyz", b"xy")):
        for i in reversed(range(len(body))):
            if body[i] in kinds:
                return body[:i] + bytes([values[body[i] == values[0]]]) + body[i + 1:]
    return b" " + body


def metered(body):
    document = json.loads(body)
    document.setdefault("ReturnConsumedCapacity", "INDEXES")
    return json.dumps(document).encode()


class Session:
    """Ports, rules and records of one test. All methods run on the proxy's loop; see command()."""

    def __init__(self, target):
        self.target = target
        self.rules = []
        self.exchanges = collections.deque()
        self.recorded_bytes = 0
        self.arrived = self.finished = 0
        self.held = []
        self.servers = []
        self.writers = set()
        self.tasks = set()
        self.units = {}

    async def command(self, document):
        verb = getattr(self, "do_" + str(document.pop("do", "")), None)
        if verb is None:
            raise ValueError("do: open, rule, release, state, requests, capacity, cut, clear")
        return await verb(**document)

    async def do_open(self, client="A", meter=False):
        async def serve(reader, writer):
            task = asyncio.current_task()
            self.tasks.add(task)
            self.writers.add(writer)
            try:
                await self.serve(client, meter, reader, writer)
            except (Gone, OSError):
                pass  # recorded where it matters
            finally:
                self.writers.discard(writer)
                self.tasks.discard(task)
                writer.close()
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
        self.servers.append(server)
        return {"port": server.sockets[0].getsockname()[1]}

    async def do_rule(self, **fields):
        rule = Rule(**fields)
        if rule.effect not in EFFECTS:
            raise ValueError(f"effect: one of {', '.join(sorted(EFFECTS))}")
        if rule.hold not in ("", "request", "answer"):
            raise ValueError("hold: request or answer")
        self.rules.append(rule)
        return {"rule": len(self.rules) - 1}

    async def do_release(self, client="", request=0):
        for held in self.held:
            if client in ("", held.exchange.client) and request in (0, held.exchange.number):
                self.held.remove(held)
                held.gate.set()
                await asyncio.wait_for(held.exchange.answered.wait(), RELEASE_SECONDS)
                return {"request": held.exchange.number}
        raise ValueError("no such request is held")

    async def do_state(self, client=""):
        held = [{"request": h.exchange.number, "client": h.exchange.client, "action": h.exchange.action, "at": h.at,
                 "gone": h.reader.at_eof()} for h in self.held if client in ("", h.exchange.client)]
        return {"arrived": self.arrived, "finished": self.finished, "rules": [r.hits for r in self.rules],
                "waiting": len(held), "held": held}

    async def do_requests(self, since=0):
        return {"requests": [e.view() for e in self.exchanges if e.number > since]}

    async def do_capacity(self, client="", action=""):
        names = ("client", "action", "table", "index")
        rows = [{**dict(zip(names, key)), "units": units, "requests": requests}
                for key, (units, requests) in sorted(self.units.items())
                if client in ("", key[0]) and action in ("", key[1])]
        return {"units": sum(row["units"] for row in rows if not row["index"]), "capacity": rows}

    async def do_cut(self):
        for writer in list(self.writers):
            writer.transport.abort()
        return {}

    async def do_clear(self):
        self.rules.clear()
        self.exchanges.clear()
        self.recorded_bytes = 0
        self.units.clear()
        for held in self.held:
            held.gate.set()
        self.held.clear()
        return {}

    async def close(self):
        for server in self.servers:
            server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def serve(self, client, meter, reader, writer):
        upstream = Upstream(self.target)
        try:
            while await self.serve_one(client, meter, reader, writer, upstream):
                pass
        finally:
            upstream.close()

    async def serve_one(self, client, meter, reader, writer, upstream):
        """Whether the connection may carry another request."""
        first, headers = await read_head(reader)
        if headers.pop("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await read_body(reader, headers, False)
        self.arrived += 1
        exchange = Exchange(self.arrived, client, headers.get("x-amz-target", "").rpartition(".")[2], body)
        self.record(exchange, len(body))
        rule = next((r for r in self.rules if r.is_due(exchange)), None) or Rule()
        exchange.effect = rule.effect
        if meter and exchange.action in METERED:
            body = metered(body)
        headers["content-length"] = str(len(body))
        headers.pop("connection", None)
        try:
            exchange.ended = await self.act(rule, exchange, Message(first, headers, body), (reader, writer, upstream))
        except (Gone, OSError):
            exchange.ended = "gone"
        finally:
            exchange.answered.set()
            self.finished += 1
        return exchange.ended == "answered"

    def record(self, exchange, size):
        self.exchanges.append(exchange)
        self.recorded_bytes += size
        while self.recorded_bytes > RECORD_BYTES_MAX and len(self.exchanges) > 1:
            oldest = self.exchanges.popleft()
            self.recorded_bytes -= len(oldest.request) + len(oldest.answer)

    async def act(self, rule, exchange, message, streams):
        reader, writer, upstream = streams
        if rule.delay_ms:
            await asyncio.sleep(rule.delay_ms / 1000)
        if rule.hold == "request":
            await self.hold(exchange, "request", reader)
        if rule.effect == "drop":
            return "closed"
        ours = rule.effect == "answer" or rule.effect in PRESETS
        if not ours or rule.apply:
            exchange.status, headers, exchange.answer = await upstream.exchange(message)
            self.recorded_bytes += len(exchange.answer)
            self.account(exchange)
        if rule.hold == "answer":
            await self.hold(exchange, "answer", reader)
        exchange.answered.set()
        if rule.answer_delay_ms:
            await asyncio.sleep(rule.answer_delay_ms / 1000)
        if rule.effect == "cut":
            return "closed"
        if rule.effect == "silent":
            await reader.read(1)
            return "gone"
        answer = own_answer(rule, exchange) if ours else answer_of(exchange.status, headers, exchange.answer)
        if rule.effect == "corrupt":
            answer.body = corrupted(answer.body)
        raw = answer.bytes()
        if rule.effect == "half":
            raw = raw[:len(raw) - (len(answer.body) + 1) // 2]
        if reader.at_eof():
            return "gone"
        writer.write(raw)
        await writer.drain()
        return "closed" if rule.effect == "half" else "answered"

    async def hold(self, exchange, at, reader):
        held = Held(exchange, at, reader)
        self.held.append(held)
        await held.gate.wait()

    def account(self, exchange):
        if b"ConsumedCapacity" not in exchange.answer:
            return
        consumed = json.loads(exchange.answer).get("ConsumedCapacity")
        for part in consumed if isinstance(consumed, list) else [consumed] if consumed else []:
            table = part.get("TableName", "")
            self.add(exchange, table, "", part.get("CapacityUnits", 0))
            for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
                for index, units in (part.get(kind) or {}).items():
                    self.add(exchange, table, index, units.get("CapacityUnits", 0))

    def add(self, exchange, table, index, units):
        """Index "" is the whole request, its indexes included."""
        key = (exchange.client, exchange.action, table, index)
        total, requests = self.units.get(key, (0.0, 0))
        self.units[key] = (total + units, requests + 1)


class FaultProxy:
    """The proxy's thread, a session for the test that made it, and the control port for others."""

    def __init__(self, target):
        self.target = target
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.session = Session(target)
        self.control_port = self.call(self.listen())

    def call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(RELEASE_SECONDS + 5)

    def command(self, do, **fields):
        return self.call(self.session.command({"do": do, **fields}))

    def open(self, client="A", meter=False):
        """The endpoint of a new client."""
        return f"http://127.0.0.1:{self.command('open', client=client, meter=meter)['port']}"

    def rule(self, effect="pass", **fields):
        return self.command("rule", effect=effect, **fields)["rule"]

    def release(self, client="", request=0):
        return self.command("release", client=client, request=request)["request"]

    def state(self):
        return self.command("state")

    def held(self, client=""):
        return self.command("state", client=client)["held"]

    def requests(self, since=0):
        return self.command("requests", since=since)["requests"]

    async def listen(self):
        self.server = await asyncio.start_server(self.control, "127.0.0.1", 0, limit=LINE_BYTES_MAX)
        return self.server.sockets[0].getsockname()[1]

    async def control(self, reader, writer):
        session = Session(self.target)
        try:
            while line := await reader.readline():
                try:
                    answer = {"ok": True, **await session.command(json.loads(line))}
                except (ValueError, TypeError, AttributeError, TimeoutError) as e:
                    answer = {"ok": False, "error": str(e) or type(e).__name__}
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass  # the test has gone
        finally:
            await session.close()
            writer.close()

    async def shut_down(self):
        self.server.close()
        await self.session.close()
        others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def close(self):
        self.call(self.shut_down())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()
