"""The benchmark: scripts/bench.py [--rounds N] [--seconds S] [--rows a,b] [--out FILE].

Rows are measured one after the other, all of them in each round, and a row's figure is the median of
its rounds. Every program listens on 127.0.0.1 on a free port and ends with this script: each waits
for orders on its stdin and stops at its end. Needs the programs of bench/ and the bridge in build/.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DYNOXIDE = next(iter(sorted(pathlib.Path(os.environ.get("GB_TOOLS", ROOT / ".tools")).glob("dynoxide-*/bin/dynoxide"))), None)
MOSQUITTO = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
ENVIRONMENT = {**os.environ, "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench",
               "AWS_REGION": "eu-central-1"}
WINDOW = 1000  # the subscriber's Receive Maximum, and the route's max_in_flight
# mosquitto 2.0.11 overruns its own limit and the client's Receive Maximum, the further the more a
# publisher sends at once (more than 1,000 in flight were seen with 100); the bridge would refuse that
# as the protocol demands. So it asks for little, and the bridge allows for much.
MOSQUITTO_INFLIGHT = 100
MOSQUITTO_WINDOW = 20
MOSQUITTO_RECEIVE_MAXIMUM = 5000
BACKLOG = 8000  # messages that an outbox may hold at full speed, below max_outbox_depth
PACED_RATE = 1000
PACED_SECONDS = 3
COMMIT_BATCH = 256
TIME_LIMIT_S = 300
TICKS = os.sysconf("SC_CLK_TCK")
PERF = shutil.which("perf")
PROFILE_LINES = 25
MIB = 1024.0  # of the KiB in /proc


class Failed(Exception):
    """A row that could not be measured, with the reason."""


class Absent(Failed):
    """What the row needs is not there, which is no fault."""


# --- processes ------------------------------------------------------------------------------------


class Program:
    """A child that answers each order on its stdin with one JSON line on its stdout."""

    def __init__(self, binary, *args):
        self.name = pathlib.Path(binary).name
        self.child = subprocess.Popen([str(binary), *map(str, args)], text=True, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def answer(self, seconds=15.0):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"{self.name} said nothing for {seconds:.0f} s") from None
        if line is None:
            raise Failed(f"{self.name} ended: {self.child.stderr.read().strip()}")
        return json.loads(line)

    def ask(self, order, seconds=15.0):
        try:
            self.child.stdin.write(order + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{self.name} ended: {self.child.stderr.read().strip()}") from None
        return self.answer(seconds)

    def close(self):
        try:
            self.child.stdin.close()
        except BrokenPipeError:
            pass
        end(self.child, 5)
        self.reader.join()
        self.child.stdout.close()
        self.child.stderr.close()


def end(child, seconds):
    """The exit code; kills what does not end by itself."""
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return None


class Daemon:
    """A child that is ended by SIGTERM, its output in a file."""

    def __init__(self, args, log, environment=ENVIRONMENT):
        self.log = log
        with open(log, "wb") as output:
            self.child = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=output,
                                          stderr=output, env=environment)

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_for(self, condition, seconds, what):
        deadline = time.monotonic() + seconds
        while not condition():
            if self.child.poll() is not None:
                raise Failed(f"{self.child.args[0]} ended with {self.child.returncode}: {self.text()[-600:].strip()}")
            if time.monotonic() > deadline:
                raise Failed(f"not within {seconds} s: {what}: {self.text()[-600:].strip()}")
            time.sleep(0.01)

    def close(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        return end(self.child, 15)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def status_kib(pid, *keys):
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in keys:
            found[key] = int(value.split()[0])
    return [found[key] for key in keys]


class MemoryWatch:
    """The peak of anonymous memory, sampled; the kernel keeps the peak of RSS itself."""

    def __init__(self, pid):
        self.pid = pid
        self.anon = 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stop.wait(0.05):
            try:
                self.anon = max(self.anon, status_kib(self.pid, "RssAnon")[0])
            except (OSError, KeyError):  # the process has ended: the row fails elsewhere
                return

    def close(self):
        self.stop.set()
        self.thread.join()
        return self.anon


class Profile:
    """Where a process spends its time, by perf."""

    def __init__(self, pid, folder):
        self.data = folder / "perf.data"
        self.command = [PERF, "record", "-q", "-F", "999", "-o", str(self.data), "-p", str(pid)]

    def __enter__(self):
        self.child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.child.send_signal(signal.SIGINT)  # ends the recording, not the process recorded
        end(self.child, 20)

    def by(self, key):
        command = [PERF, "report", "-i", str(self.data), "--stdio", "--percent-limit", "1", "-s", key]
        text = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False).stdout
        lines = [line.rstrip(" -") for line in text.splitlines() if line.strip() and not line.startswith("#")]
        return lines[:PROFILE_LINES]

    def symbols(self):
        return [*self.by("dso"), "", *self.by("dso,symbol")]


# --- the bridge's document ------------------------------------------------------------------------


def document(row, folder, broker_port, sink_port):
    private = folder / "subscriptions"
    private.mkdir(mode=0o700)
    sender = {"queue_url": f"http://127.0.0.1:{sink_port}/000000000000/bench",
              "endpoint": f"http://127.0.0.1:{sink_port}", "region": "eu-central-1", "batch_size": 10}
    if row.linger:
        sender["linger"] = row.linger
    stores = {"managed_subscriptions": {"type": "sqlite", "options": {"path": str(private / "subscriptions.db")}}}
    route = {"id": "bench", "receiver_id": "in", "bindings": ["to-sqs"], "delivery_mode": "direct_hold",
             "policy": {"max_in_flight": WINDOW, "on_expired": "drop", "on_permanent_failure": "drop",
                        "allow_unfenced": True}}
    if row.outbox == "memory":
        stores["outbox"] = {"type": "memory", "options": {"acknowledge_volatile": True}}
    elif row.outbox == "sqlite":
        stores["outbox"] = {"type": "sqlite", "options": {"path": str(folder / "outbox.db")}}
    elif row.outbox == "dynamodb":
        stores["outbox"] = {"type": "dynamodb", "options": {"table_name": "bench"}}
    if row.outbox:
        route["delivery_mode"] = "shared_outbox"
        route["policy"]["max_outbox_depth"] = 1000  # bounds the memory of what waits; the source is held back
        route["session"] = {"session_id": "source", "sender_id": "sqs", "drain_batch_size": 500,
                            "drain_max_batch_size": 1000,
                            "drain_strategy": {"type": "adaptive_backoff", "min_interval": "1ms",
                                               "max_interval": "1s", "multiplier": 2.0}}
    session = {"broker_url": f"tcp://127.0.0.1:{broker_port}", "client_id": "bench-bridge",
               "receive_maximum": MOSQUITTO_RECEIVE_MAXIMUM if row.mosquitto else WINDOW,
               "max_payload_bytes": 4096, "ingress_memory_budget_bytes": 2 * 1024 ** 3}
    return {
        "bridge": {"id": "bench", "shutdown_timeout": "10s", "log_level": "warn"},
        "stores": stores,
        "sessions": [{"id": "source", "transport": "mqtt", "session_mode": "persistent",
                      "options": {"session": session}}],
        "receivers": [{"id": "in", "session_id": "source", "topics": [{"topic": "bench/#", "qos": 1}]}],
        "senders": [{"id": "sqs", "transport": "sqs", "options": sender}],
        "bindings": [{"id": "to-sqs", "sender_id": "sqs", "address": "bench"}],
        "routes": [route],
    }


# --- rows -----------------------------------------------------------------------------------------


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.count = 0
        self.profiling = False
        self.failed = False
        self.deadline = time.monotonic() + TIME_LIMIT_S

    def binary(self, name):
        return self.options.binaries / name

    def new_folder(self):
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        return folder


def wait_delivered(target, wanted, seconds=30):
    """The report of the sink or subscriber once `wanted` different messages are there."""
    deadline = time.monotonic() + seconds
    while True:
        report = target.ask("report")
        if report["distinct"] >= wanted:
            return report
        if time.monotonic() > deadline:
            raise Failed(f"only {report['distinct']} of {wanted} messages were delivered")
        time.sleep(0.02)


def paced(source, target):
    """Latency at PACED_RATE, after half a second that does not count."""
    warm_up = source.ask(f"run {PACED_RATE} 0.5", 60)
    wait_delivered(target, warm_up["sent"])
    target.ask("reset")
    run = source.ask(f"run {PACED_RATE} {PACED_SECONDS}", 60)
    report = wait_delivered(target, run["sent"])
    target.ask("reset")
    return {"p50_ms": report["p50_us"] / 1000, "p99_ms": report["p99_us"] / 1000}


def full_speed(bench, source, target, pid, others):
    """Rate and CPU of `pid` from the first message sent to the last one delivered."""
    cpu = cpu_seconds(pid)
    others_cpu = [cpu_seconds(p) for p in others]
    run = source.ask(f"run 0 {bench.options.seconds}", bench.options.seconds + 60)
    report = wait_delivered(target, run["sent"])
    cpu = cpu_seconds(pid) - cpu
    took = (max(report["last_ns"], run["last_ack_ns"]) - run["begin_ns"]) / 1e9
    busiest = max(cpu_seconds(p) - c for p, c in zip(others, others_cpu))
    if run["refused"] > 0 or report["foreign"] > 0:
        raise Failed(f"{run['refused']} messages refused, {report['foreign']} payloads changed")
    return {"sent": run["sent"], "rate": run["sent"] / took, "cpu": cpu / run["sent"] * 1e5, "busy": cpu / took,
            "other_busy": busiest / took, "duplicates": report["received"] - report["distinct"]}


class SubscriberRow:
    key = "subscriber"
    title = "bare subscriber, one write per PUBACK"

    def measure(self, bench):
        parts = []
        try:
            parts.append(source := Program(bench.binary("source")))
            port = source.answer()["listening"]
            parts.append(target := Program(bench.binary("subscriber"), "--port", port, "--receive-maximum", WINDOW))
            target.answer()
            source.answer()
            figures = paced(source, target)
            figures.update(full_speed(bench, source, target, target.child.pid, [source.child.pid]))
            peak, anon = status_kib(target.child.pid, "VmHWM", "RssAnon")
            return {**figures, "peak_rss": peak / MIB, "peak_anon": anon / MIB}
        finally:
            for part in reversed(parts):
                part.close()


class CommitRow:
    def __init__(self, key, title, lifecycle):
        self.key = key
        self.title = title
        self.lifecycle = lifecycle

    def measure(self, bench):
        path = bench.new_folder() / "outbox.db"
        program = Program(bench.binary("commit"), "--path", path, "--seconds", 2, "--batch", COMMIT_BATCH,
                          "--lifecycle", int(self.lifecycle))
        try:
            result = program.answer(60)
        finally:
            program.close()
        return {"rate": result["rows_per_s"], "cpu": result["cpu_s"] / result["rows"] * 1e5,
                "busy": result["cpu_s"] / result["seconds"]}


class LoadRow:
    key = "loadlibs"
    title = "a process that only loads the libraries"

    def measure(self, bench):
        program = Program(bench.binary("loadlibs"))
        try:
            result = program.answer()
        finally:
            program.close()
        return {"idle_rss": result["rss_kib"] / MIB, "idle_anon": result["anon_kib"] / MIB}


class BridgeRow:
    def __init__(self, key, title, outbox=None, linger=None, mosquitto=False):
        self.key = key
        self.title = title
        self.outbox = outbox
        self.linger = linger
        self.mosquitto = mosquitto

    def start_source(self, bench, folder, counter, parts):
        """(source or None, port of the broker); with mosquitto the source comes when the bridge is there."""
        if not self.mosquitto:
            held_back = ["--counter", counter, "--backlog", BACKLOG] if self.outbox else []
            parts.append(source := Program(bench.binary("source"), *held_back))
            return source, source.answer()["listening"]
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        config = folder / "mosquitto.conf"
        config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n"
                          f"max_inflight_messages {MOSQUITTO_INFLIGHT}\nmax_queued_messages 0\nmax_queued_bytes 0\nset_tcp_nodelay true\n"
                          "log_dest stderr\nlog_type subscribe\nlog_type error\n")
        parts.append(broker := Daemon([MOSQUITTO, "-c", config], folder / "mosquitto.log"))
        self.broker = broker
        broker.wait_for(lambda: can_connect(port), 10, "mosquitto listens")
        return None, port

    def start_store(self, folder, parts):
        """A DynamoDB emulator, and what the bridge finds it by."""
        self.store = None
        if self.outbox != "dynamodb":
            return ENVIRONMENT
        if DYNOXIDE is None:
            raise Absent("dynoxide is missing: scripts/emulators.sh builds it where Rust is new enough")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        parts.append(store := Daemon([DYNOXIDE, "serve", "--host", "127.0.0.1", "--port", port], folder / "store.log"))
        store.wait_for(lambda: can_connect(port), 10, "dynoxide listens")
        self.store = store
        return {**ENVIRONMENT, "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{port}"}

    def start_bridge(self, bench, folder, ports, parts):
        config = folder / "bridge.json"
        config.write_text(json.dumps(document(self, folder, *ports), indent=1))
        command = [str(bench.options.bridge), "-config", str(config), "-monitor-addr", "127.0.0.1:0"]
        environment = self.start_store(folder, parts)
        steps = [["-seed-managed-subscriptions", "source"]] + ([["-create-tables"]] if self.store else [])
        for step in steps:
            done = subprocess.run(command + step, env=environment, text=True, capture_output=True, timeout=20, check=False)
            if done.returncode != 0:
                raise Failed(f"{step[0]} ended with {done.returncode}: {(done.stderr + done.stdout)[-600:].strip()}")
        parts.append(bridge := Daemon(command, folder / "bridge.log", environment))
        return bridge

    def measure(self, bench):
        folder = bench.new_folder()
        parts = []
        try:
            counter = folder / "arrived"
            parts.append(sink := Program(bench.binary("sink"), "--counter", counter))
            sink_port = sink.answer()["listening"]
            source, port = self.start_source(bench, folder, counter, parts)
            bridge = self.start_bridge(bench, folder, (port, sink_port), parts)
            if source is None:
                bridge.wait_for(lambda: "bench/#" in self.broker.text(), 20, "the bridge subscribes")
                parts.append(source := Program(bench.binary("source"), "--publish-to", port, "--window",
                                              MOSQUITTO_WINDOW))
                source.answer()
            else:
                bridge.wait_for(lambda: not source.lines.empty(), 20, "the bridge subscribes")
                source.answer()
            figures = self.run(bench, folder, source, sink, bridge, parts)
            code = bridge.close()
            if code != 0:
                raise Failed(f"the bridge ended with {code} on SIGTERM: {bridge.text()[-600:].strip()}")
            return figures
        finally:
            for part in reversed(parts):
                part.close()

    def run(self, bench, folder, source, sink, bridge, parts):
        pid = bridge.child.pid
        time.sleep(0.7)  # what the start needed is given back, or never will be
        idle_rss, idle_anon = status_kib(pid, "VmRSS", "RssAnon")
        watch = MemoryWatch(pid)
        try:
            figures = paced(source, sink)
            others = [part.child.pid for part in parts if part is not bridge]
            store_cpu = cpu_seconds(self.store.child.pid) if self.store else 0
            with Profile(pid, folder) if bench.profiling else contextlib.nullcontext() as profile:
                figures.update(full_speed(bench, source, sink, pid, others))
            if self.store:
                store_cpu = cpu_seconds(self.store.child.pid) - store_cpu
                figures["store_cpu"] = store_cpu / figures["sent"] * 1e5
            if profile:
                figures["profile"] = profile.symbols()
        except Failed as failed:
            raise Failed(f"{failed}; the bridge's log ends: {bridge.text()[-600:].strip()}") from None
        finally:
            peak_anon = watch.close()
        figures.update(idle_rss=idle_rss / MIB, idle_anon=idle_anon / MIB, peak_anon=peak_anon / MIB,
                       peak_rss=status_kib(pid, "VmHWM")[0] / MIB)
        requests = sink.ask("requests")
        figures["per_request"] = requests["messages"] / max(requests["requests"], 1)
        return figures


def can_connect(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


ROWS = [
    SubscriberRow(),
    CommitRow("commit", f"bare commit loop, {COMMIT_BATCH} rows a transaction", lifecycle=False),
    CommitRow("commit3", "the same, each row also claimed and completed", lifecycle=True),
    LoadRow(),
    BridgeRow("direct", "`direct_hold`"),
    BridgeRow("linger", "`direct_hold`, `linger: 2ms`", linger="2ms"),
    BridgeRow("memory", "`shared_outbox` on memory", outbox="memory"),
    BridgeRow("sqlite", "`shared_outbox` on SQLite with fsync", outbox="sqlite"),
    BridgeRow("dynamodb", "`shared_outbox` on DynamoDB, an emulator", outbox="dynamodb"),
    BridgeRow("mosquitto", "`direct_hold`, `linger: 2ms`, through mosquitto", linger="2ms", mosquitto=True),
]


# --- results --------------------------------------------------------------------------------------


def median_of(rounds):
    keys = {key for figures in rounds for key in figures}
    return {key: statistics.median(f[key] for f in rounds if key in f) for key in keys}


# (what, row, figure, of row, figure of that row, how they relate, limit)
RATIO, LEAST, ADDED, PLAIN = "at most x", "at least x", "at most +", "at most"
CHECKS = [
    ("`direct_hold`: rate of the bare subscriber", "linger", "rate", "subscriber", LEAST, 0.60),
    ("`direct_hold`: CPU per message of the bare subscriber", "linger", "cpu", "subscriber", RATIO, 1.5),
    ("memory outbox: CPU per message of the bare subscriber", "memory", "cpu", "subscriber", RATIO, 2.0),
    ("SQLite outbox: rate of `direct_hold`", "sqlite", "rate", "linger", LEAST, 0.50),
    ("SQLite outbox: rate of the bare commit loop", "sqlite", "rate", "commit", LEAST, 0.60),
    ("`direct_hold` at 1,000 msg/s: p99 added to the bare subscriber, ms", "direct", "p99_ms", "subscriber", ADDED, 2.0),
]
MEMORY_CHECKS = [("RSS idle, MiB", "idle_rss", 16.0), ("RSS peak, MiB", "peak_rss", 28.0),
                 ("anonymous idle, MiB", "idle_anon", 4.0), ("anonymous peak, MiB", "peak_anon", 12.0)]


def judge(results):
    """Lines of the table of limits: (what, measured, limit, ok or miss or not measured)."""
    lines = []
    for what, row, figure, other, relation, limit in CHECKS:
        mine, theirs = results.get(row, {}).get(figure), results.get(other, {}).get(figure)
        wanted = {LEAST: f"≥ {limit:.0%}", RATIO: f"≤ {limit:g} ×", ADDED: f"≤ {limit:g}"}[relation]
        if mine is None or theirs is None:
            lines.append((what, "-", wanted, "not measured"))
            continue
        value = mine - theirs if relation == ADDED else mine / theirs
        shown = f"{value:.0%}" if relation == LEAST else f"{value:.2f}"
        ok = value >= limit if relation == LEAST else value <= limit
        lines.append((what, shown, wanted, "ok" if ok else "miss"))
    for what, figure, limit in MEMORY_CHECKS:
        for row in (r for r in ROWS if isinstance(r, BridgeRow) and not r.mosquitto):
            value = results.get(row.key, {}).get(figure)
            verdict = "not measured" if value is None else "ok" if value <= limit else "miss"
            lines.append((f"{row.title}: {what}", "-" if value is None else f"{value:.1f}", f"≤ {limit:g}", verdict))
    return lines


COLUMNS = [("msg/s", "rate", "{:,.0f}"), ("CPU s per 100,000", "cpu", "{:.2f}"),
           ("emulator's", "store_cpu", "{:.2f}"), ("busy", "busy", "{:.0%}"),
           ("busiest other", "other_busy", "{:.0%}"), ("p50 ms", "p50_ms", "{:.2f}"), ("p99 ms", "p99_ms", "{:.2f}"),
           ("RSS idle", "idle_rss", "{:.1f}"), ("RSS peak", "peak_rss", "{:.1f}"),
           ("anon idle", "idle_anon", "{:.1f}"), ("anon peak", "peak_anon", "{:.1f}"),
           ("per request", "per_request", "{:.1f}"), ("duplicates", "duplicates", "{:.0f}")]


def table(header, rows):
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def output_of(*command):
    try:
        run = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=10, check=False)
    except OSError:
        return "unknown"
    return (run.stdout + run.stderr).strip()


def machine():
    model = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "unknown")
    memory = status_of_meminfo() / 1024 / 1024
    release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    libraries = ", ".join(f"{name} {output_of('pkg-config', '--modversion', name)}" for name in
                          ("libuv", "libssl", "libcurl", "sqlite3"))
    mosquitto = (output_of(MOSQUITTO, "-h").splitlines() or ["unknown"])[0]
    dirty = " with changes" if output_of("git", "status", "--porcelain", "src", "bench") else ""
    return [
        ("processor", f"{model}, {os.cpu_count()} cores"),
        ("memory", f"{memory:.0f} GiB"),
        ("system", f"{release.get('PRETTY_NAME', 'unknown').strip(chr(34))}, Linux {os.uname().release}"),
        ("compiler", output_of("gcc", "--version").splitlines()[0]),
        ("libraries", libraries),
        ("broker", mosquitto),
        ("commit", output_of("git", "rev-parse", "--short", "HEAD") + dirty),
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
    ]


def status_of_meminfo():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal"):
            return int(line.split()[1])
    return 0


INTRODUCTION = f"""\
# Benchmark

Written by `make bench`. Messages of 200 bytes, QoS 1, from the load source (which plays the broker) to a
fast SQS sink; Receive Maximum and `max_in_flight` {WINDOW}, `batch_size` 10. Everything runs on the one
machine described below, so source and sink take their share of its cores.

- Rate and CPU: from the first message sent to the last one delivered, as fast as it goes. CPU is user and
  system time of the process measured (all its threads); *busy* is that per second, in cores; *busiest other*
  is source, sink or mosquitto, whichever used more: where it is near 100 %, it may be the limit, not the bridge.
- p50, p99: from the time a message was due to its arrival, at {PACED_RATE:,} messages/s.
- RSS and anonymous memory in MiB.
- The bare subscriber acknowledges each message with a write of its own and does nothing else. The bare commit
  loop writes the outbox's rows, {COMMIT_BATCH} in a transaction, each with an fsync.
- With an outbox the source holds back while {BACKLOG:,} messages are sent and not arrived: a steady state is
  measured, not the filling of a store.

What a message costs in DynamoDB is in [RESULTS-dynamodb.md](RESULTS-dynamodb.md).
"""


def profile_missed(bench, results):
    """A further run under perf of each row that missed its limit of rate or CPU: {title: lines}."""
    missed = {row for what, row, figure, *_ in CHECKS if figure != "p99_ms"
              for line in judge(results) if line[0] == what and line[3] == "miss"}
    profiles = {}
    bench.profiling = True
    for row in (r for r in ROWS if r.key in missed):
        if PERF is None or time.monotonic() > bench.deadline:
            profiles[row.title] = ["no time left" if PERF else "perf is not installed"]
            continue
        try:
            profiles[row.title] = row.measure(bench)["profile"]
        except (Failed, OSError, subprocess.TimeoutExpired) as failed:
            profiles[row.title] = [str(failed)]
    return profiles


def report(results, failures, profiles, options, rounds_done):
    lines = [INTRODUCTION, f"Each figure is the median of {rounds_done} interleaved rounds of {options.seconds:g} s.", ""]
    rows = [[row.title] + [form.format(results[row.key][key]) if key in results[row.key] else ""
                           for _, key, form in COLUMNS] for row in ROWS if row.key in results]
    lines += table(["", *(name for name, _, _ in COLUMNS)], rows)
    lines += ["", "## Limits", "",
              "`direct_hold` stands here for the row with `linger: 2ms` where rates are compared (without it each",
              "message is a request of its own), and for the row without it where latency is.", ""]
    lines += table(["what", "measured", "limit", ""], judge(results))
    if failures:
        lines += ["", "## Not measured", ""]
        lines += [f"- {title}: {reason}" for title, reason in failures.items()]
    if profiles:
        lines += ["", "## Where the rows that miss spend their time", "",
                  "From one further run at full speed; share of the bridge's CPU time, library, function."]
        for title, symbols in profiles.items():
            lines += ["", f"{title}:", "", "```", *symbols, "```"]
    lines += ["", "## Machine", ""]
    lines += table(["", ""], machine())
    return "\n".join(lines) + "\n"


def measure_all(bench, rows):
    measured = {row.key: [] for row in rows}
    failures = {}
    rounds = 0
    for _ in range(bench.options.rounds):
        for row in rows:
            if row.title in failures:
                continue
            if time.monotonic() > bench.deadline:
                return measured, failures, max(rounds, 1)
            try:
                measured[row.key].append(row.measure(bench))
                shown = {k: round(v, 2) for k, v in sorted(measured[row.key][-1].items())}
                print(f"round {rounds + 1}: {row.key}: {shown}", flush=True)
            except (Failed, OSError, subprocess.TimeoutExpired) as failed:
                failures[row.title] = " ".join(str(failed).split())
                bench.failed |= not isinstance(failed, Absent)
                print(f"round {rounds + 1}: {row.key}: FAILED: {failed}", flush=True)
        rounds += 1
    return measured, failures, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run at full speed")
    parser.add_argument("--rows", default=",".join(row.key for row in ROWS), help="default: all of %(default)s")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--bridge", type=pathlib.Path, default=ROOT / "build" / "gobridge")
    parser.add_argument("--out", type=pathlib.Path, help="default: bench/RESULTS.md when all rows are measured")
    options = parser.parse_args()
    wanted = options.rows.split(",")
    rows = [row for row in ROWS if row.key in wanted]
    if unknown := set(wanted) - {row.key for row in ROWS}:
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}")
    out = options.out or (ROOT / "bench" / "RESULTS.md" if len(rows) == len(ROWS) else None)
    # Beside the results, so that SQLite's fsync meets a real file system, not a tmpfs.
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=ROOT / "build") as folder:
        bench = Bench(options, pathlib.Path(folder))
        measured, failures, rounds = measure_all(bench, rows)
        results = {key: median_of(rounds_of) for key, rounds_of in measured.items() if rounds_of}
        profiles = profile_missed(bench, results)
    text = report(results, failures, profiles, options, rounds)
    if out is not None:
        out.write_text(text)
    print("\n" + text + (f"bench: written to {out}" if out else "bench: some rows only, so no file was written"))
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
