"""The cluster demo: two bridges, one broker session, one owner at a time. The owner is killed; nothing is missing.

Tables and queue are made in local servers. The numbers are read from the lease row and from the queue, not from the
bridges."""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import cluster  # noqa: E402
import rig  # noqa: E402
from emulators import DynamoDb  # noqa: E402

RATE = 40  # messages a second
QUIET_SECONDS = 30


def say(text=""):
    print(text, flush=True)


class Stream(threading.Thread):
    """Publishes all the time; the publisher's own count says what the broker took."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.publisher = rig.Publisher(port)
        self.sent = []
        self.running = True
        self.start()

    def run(self):
        while self.running:
            i = len(self.sent)
            payload = b'{"device":"sensor-%d","sequence":%d}' % (i % 20, i)
            self.publisher.publish(f"telemetry/sensor-{i % 20}", payload, message_id=f"m-{i}")
            self.sent.append(payload)
            time.sleep(1 / RATE)

    def stop(self):
        self.running = False
        self.join(10)
        self.publisher.flush()
        self.publisher.close()


def wait_for_arrivals(collector, wanted):
    arrived, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS and not wanted <= set(collector.seen):
        if len(collector.order) != arrived:
            arrived, since = len(collector.order), time.monotonic()
        time.sleep(0.05)


def hand_over(bridges, what, act):
    """Does it to the owner and says how the standby took over; the name of the new owner."""
    before = bridges.row()
    old = before["owner"].partition("#")[0]
    new = next(name for name in bridges.instances if name != old)
    served = bridges[new].count("mqtt subscriptions converged")
    say()
    say(f"{what} {old}, which owns the session under version {before['version']}:")
    start = time.monotonic()
    act(bridges[old])
    after = bridges.wait_owner(other_than=old, seconds=60)
    owned = time.monotonic() - start
    bridges.wait_active(new, served + 1)
    active = time.monotonic() - start
    say(f"  after {owned:5.2f} s {new} holds the lease, version {after['version']}")
    say(f"  after {active:5.2f} s it is connected and all its subscriptions are confirmed")
    return new


def run(folder):
    start = time.monotonic()
    parts = []
    try:
        say("Starting mosquitto, a local DynamoDB, a local SQS server and two bridges ...")
        broker = rig.Broker(folder / "broker")
        parts.append(broker)
        database = DynamoDb(folder / "dynamodb")
        parts.append(database)
        sqs = rig.SqsServer(folder / "sqs")
        parts.append(sqs)
        queue = sqs.create_queue("telemetry-events")
        bridges = cluster.Cluster(folder, cluster.document(folder, broker.port, queue, sqs.endpoint), database)
        parts.append(bridges)
        bridges.prepare()
        bridges.start()
        owner = bridges.wait_owner()["owner"].partition("#")[0]
        bridges.wait_active(owner)
        standby = next(name for name in bridges.instances if name != owner)
        say(f"  {owner} owns the session; {standby} stands by without a connection to the broker")
        ttl = cluster.CADENCE["lease_ttl"]
        say(f"  lease_ttl {ttl}: what a dead owner costs at least; {database.kind} stands for DynamoDB")
        collector = rig.Collector(sqs.client, queue)
        stream = Stream(broker.port)
        time.sleep(2)
        second = hand_over(bridges, "kill -9 of", lambda bridge: bridge.kill())
        bridges.start(owner)
        say(f"  {owner} is back and stands by")
        time.sleep(2)
        third = hand_over(bridges, "SIGTERM for", lambda bridge: bridge.terminate())
        time.sleep(2)
        stream.stop()
        wanted = set(stream.sent)
        wait_for_arrivals(collector, wanted)
        exit_code = bridges[third].terminate()
        collector.stop()
        assert third == owner and second == standby
    finally:
        for part in reversed(parts):
            part.close()
    missing = [p for p in wanted if p not in collector.seen]
    foreign = [p for p in collector.seen if p not in wanted]
    acknowledged = stream.publisher.acknowledged & wanted
    say()
    say("What happened to the messages")
    for name, value in (
            ("acknowledged to the publisher by the broker", len(acknowledged)),
            ("different ones that arrived in the queue", len(wanted) - len(missing)),
            ("missing", len(missing)),
            ("damaged or foreign", len(foreign)),
            ("duplicates (at least once is the promise)", sum(collector.seen.values()) - len(collector.seen))):
        say(f"  {name:<48} {value:>8}")
    say()
    ok = not missing and not foreign and exit_code == 0 and len(acknowledged) == len(wanted)
    say(f"{'Nothing is missing.' if ok else 'FAILED.'} Exit code of the last bridge on SIGTERM: {exit_code}. "
        f"{time.monotonic() - start:.1f} s. Nothing is left running.")
    if not ok:
        say(f"Logs are kept in {folder}")
    return ok


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    if not rig.BRIDGE.exists():
        sys.exit("build/gobridge does not exist: run make demo-cluster")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gobridge-demo-"))
    os.chmod(folder, 0o700)
    ok = run(folder)
    if ok:
        shutil.rmtree(folder)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
