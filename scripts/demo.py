"""The demo: telemetry from an MQTT broker to an SQS queue through a bridge that is killed in the middle."""

import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import rig  # noqa: E402

MESSAGES = 400
BINARY_EVERY = 5
QUIET_SECONDS = 30


def say(text=""):
    print(text, flush=True)


def payload_of(i):
    """Every fifth message is binary: not UTF-8, with zero bytes."""
    if i % BINARY_EVERY == 0:
        return b"\x00\xff\xfe" + i.to_bytes(4, "big") + bytes(range(0, 256, 7))
    return b'{"device":"sensor-%d","reading":%d.5,"sequence":%d}' % (i % 20, i * 3 % 97, i)


def publish_all(publisher, bridge):
    half = MESSAGES // 2
    for i in range(MESSAGES):
        publisher.publish(f"telemetry/sensor-{i % 20}", payload_of(i), message_id=f"m-{i}")
        time.sleep(0.004)
        if i == half:
            bridge.kill()
            say(f"  kill -9 of the bridge after {half} messages; publishing goes on")
        if i == half + 80:
            bridge.start()
            say("  the bridge is back: same session at the broker, same outbox on disk")
    publisher.flush()


def wait_for_arrivals(collector, wanted):
    """Until all have arrived, or nothing has for a while: a busy machine is slow, which is no loss."""
    arrived, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS and not wanted <= set(collector.seen):
        if len(collector.order) != arrived:
            arrived, since = len(collector.order), time.monotonic()
        time.sleep(0.05)


def show(title, rows):
    say()
    say(title)
    for name, value in rows:
        say(f"  {name:<48} {value:>8}")


def run(folder):
    start = time.monotonic()
    parts = []
    try:
        say("Starting mosquitto, a local SQS server and the bridge with SQLite stores ...")
        broker = rig.Broker(folder / "broker")
        parts.append(broker)
        sqs = rig.SqsServer(folder / "sqs")
        parts.append(sqs)
        queue = sqs.create_queue("telemetry-events")
        bridge = rig.Bridge(folder, rig.document(folder, broker.port, queue, sqs.endpoint))
        parts.append(bridge)
        bridge.seed()
        bridge.start()
        collector = rig.Collector(sqs.client, queue)
        publisher = rig.Publisher(broker.port)
        say(f"Publishing {MESSAGES} QoS 1 messages, every {BINARY_EVERY}th of them binary:")
        publish_all(publisher, bridge)
        wanted = {payload_of(i) for i in range(MESSAGES)}
        acknowledged = publisher.acknowledged & wanted
        wait_for_arrivals(collector, wanted)
        publisher.close()
        exit_code = bridge.terminate()
        collector.stop()
    finally:
        for part in reversed(parts):
            part.close()
    missing = [p for p in wanted if p not in collector.seen]
    foreign = [p for p in collector.seen if p not in wanted]
    duplicates = sum(collector.seen.values()) - len(collector.seen)
    counters = bridge.last_metrics()
    show("What happened", [
        ("messages the broker acknowledged to the publisher", len(acknowledged)),
        ("different messages that arrived in the queue", len(wanted) - len(missing)),
        ("of these binary, byte for byte", sum(1 for i in range(0, MESSAGES, BINARY_EVERY)
                                               if payload_of(i) in collector.seen)),
        ("missing", len(missing)),
        ("damaged or foreign", len(foreign)),
        ("duplicates (at least once is the promise)", duplicates),
    ])
    show("What the second bridge counted before it stopped", [
        (name, int(counters.get(name, 0)))
        for name in ("MessagesReceived", "MessagesSent", "OutboxCompletions", "OutboxDuplicateSuppressed",
                     "MessagesDropped", "DLQEntries")])
    say()
    ok = not missing and not foreign and exit_code == 0 and len(acknowledged) == MESSAGES
    say(f"{'Nothing is missing.' if ok else 'FAILED.'} Exit code of the bridge on SIGTERM: {exit_code}. "
        f"{time.monotonic() - start:.1f} s. Nothing is left running.")
    if not ok:
        say(f"Logs are kept in {folder}")
    return ok


def main():
    if not rig.BRIDGE.exists():
        sys.exit("build/gobridge does not exist: run make demo")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gobridge-demo-"))
    os.chmod(folder, 0o700)
    ok = run(folder)
    if ok:
        shutil.rmtree(folder)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
