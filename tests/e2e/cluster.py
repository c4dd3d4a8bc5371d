"""Several bridges over one broker session, with leases, outbox and subscriptions in DynamoDB."""

import threading
import time
import uuid

import rig

SESSION = "plant"
ROLES = ("lease", "outbox", "dlq", "managed_subscriptions")
# Short enough for a test, long enough for a busy machine: worst renew span 3 x (1 + 0.5) s < 5 s.
CADENCE = {"lease_ttl": "5s", "renew_interval": "1s", "renew_call_timeout": "500ms", "acquire_poll_interval": "500ms",
           "max_renew_fails": 3, "step_down_grace": "1s"}


def document(folder, broker_port, queue_url, endpoint, changes=None, cadence=None):
    """The document that all instances share. `changes` as in rig.document; `cadence` goes over CADENCE."""
    suffix = uuid.uuid4().hex[:8]
    doc = rig.document(folder, broker_port, queue_url, endpoint)
    doc["bridge"].update({"deployment_mode": "clustered", "shutdown_timeout": "15s"})
    doc["stores"] = {role: {"type": "dynamodb", "options": {"table_name": f"gb-{role}-{suffix}"}} for role in ROLES}
    session = doc["sessions"][0]
    session["session_mode"] = "exclusive"
    session["options"]["session"].update({"connect_timeout": "2s", "reconcile_timeout": "2s"})
    doc["routes"][0]["session"].update({**CADENCE, **(cadence or {})})
    for path, value in (changes or {}).items():
        rig.set_path(doc, path, value)
    return doc


class Cluster:
    """Instances of one document. Each has a folder, a log and an instance id of its own."""

    def __init__(self, folder, doc, database, names=("a", "b"), same_id=False, endpoints=None):
        self.doc, self.database, self.session = doc, database, doc["sessions"][0]["id"]
        self.client = database.connect()
        self.instances = {}
        for name in names:
            home = folder / name
            home.mkdir()
            identity = "twin" if same_id else name
            env = {**database.env((endpoints or {}).get(name)), "GOBRIDGE_INSTANCE_ID": identity}
            self.instances[name] = rig.Bridge(home, doc, env=env)

    def prepare(self):
        """Creates the tables and attests the new broker session."""
        first = next(iter(self.instances.values()))
        made = first.run("-create-tables", seconds=60)
        assert made.returncode == 0, made.stderr
        first.seed(self.session)

    def start(self, *names):
        for name in names or self.instances:
            self.instances[name].start(wait="bridge started")

    def __getitem__(self, name):
        return self.instances[name]

    def row(self, session=None):
        """The lease row of a session, the first one if none is named, as plain values; empty when there is none."""
        table = self.doc["stores"]["lease"]["options"]["table_name"]
        item = self.client.get_item(TableName=table, Key={"PK": {"S": f"LEASE#{session or self.session}"}},
                                    ConsistentRead=True).get("Item", {})
        return {key: int(value["N"]) if "N" in value else next(iter(value.values())) for key, value in item.items()}

    def owner(self, session=None):
        """Instance id of the holder; empty when nobody holds it."""
        return self.row(session).get("owner", "").partition("#")[0]

    def wait_owner(self, other_than="", seconds=30):
        """The row once somebody else holds the lease."""
        rig.wait_until(lambda: self.owner() not in ("", other_than), seconds, f"an owner other than {other_than!r}")
        return self.row()

    def wait_active(self, name, count=1, seconds=60):
        """The instance serves for the count-th time: connected and converged."""
        self.instances[name].wait_log("mqtt subscriptions converged", seconds, count)

    def outbox_rows(self):
        table = self.doc["stores"]["outbox"]["options"]["table_name"]
        pages = self.client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return [item for page in pages for item in page["Items"] if item["SK"]["S"] != "FENCE"]

    def wait_drained(self, seconds=60):
        """Everything in the outbox has its end."""
        def open_rows():
            return [r for r in self.outbox_rows() if r["status"]["S"] not in ("completed", "expired")]
        end = time.monotonic() + seconds
        while open_rows():
            assert time.monotonic() < end, f"{len(open_rows())} records are open: {open_rows()[:2]}"
            time.sleep(0.2)

    def close(self):
        for instance in self.instances.values():
            instance.close()


class Stream(threading.Thread):
    """A publisher that never stops, so that every fault hits messages on their way."""

    def __init__(self, publisher, rate=100):
        super().__init__(daemon=True)
        self.publisher, self.rate = publisher, rate
        self.sent = []
        self.running = True
        self.start()

    def run(self):
        while self.running:
            payload = b"%d" % len(self.sent)
            self.publisher.publish(f"telemetry/{len(self.sent) % 8}", payload, message_id=f"id-{len(self.sent)}")
            self.sent.append(payload)
            time.sleep(1 / self.rate)

    def stop(self):
        self.running = False
        self.join(10)
        self.publisher.flush()


def other(bridges, name):
    return next(n for n in bridges.instances if n != name)


def nothing_lost(stream, fake, bridges, seconds=90):
    stream.stop()
    fake.wait_for_payloads(stream.sent, seconds)
    bridges.wait_drained()
    duplicates = len(fake.payloads()) - len(stream.sent)
    print(f"{len(stream.sent)} messages, {duplicates} duplicates")
    return duplicates
