"""The disk under the outbox: full, damaged, or used by somebody else (spec 05 §8, docs/decisions/0005)."""

import hashlib
import os
import pathlib
import subprocess

import pytest

import rig

KIB = 1024
BODY = 20 * KIB


@pytest.fixture
def small_disk(folder):
    """A file system of 12 MiB of its own; needs the right to mount."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    path = folder / "disk"
    path.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "tmpfs", str(path)],
                          capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"can't mount a tmpfs here: {made.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path):
    """Takes what is left on the disk; removing the file gives it back."""
    filler = path / "filler"
    with open(filler, "wb", buffering=0) as f:
        try:
            while f.write(b"\0" * 4 * KIB):
                pass
        except OSError:
            pass  # full, as wanted
    return filler


def body(i):
    return b"%06d" % i + b"x" * (BODY - 6)


# Without a DLQ store: nothing may be dead-lettered, and nothing may be dropped for the disk's sake either.
NO_DLQ = {
    "stores.dlq": None,
    "routes.0.policy.on_expired": "drop",
    "routes.0.policy.on_permanent_failure": "drop",
    "routes.0.policy.backoff": {"initial_interval": "200ms", "max_interval": "500ms"},
}


@pytest.mark.parametrize("budget", ["60s", "1s"], ids=["held in place", "handed back"])
def test_full_disk_acknowledges_nothing_and_recovers(folder, small_disk, fake, parts, budget):
    broker = rig.Broker(folder / "broker", verbose=True)
    parts.append(broker)
    home = folder / "bridge"
    home.mkdir(mode=0o700)
    changes = {**NO_DLQ, "stores.outbox.options.path": str(small_disk / "outbox.db"),
               "routes.0.policy.send_retry_budget": budget}
    bridge = rig.Bridge(home, rig.document(home, broker.port, fake.queue_url(), fake.endpoint, changes))
    parts.append(bridge)
    bridge.seed()
    bridge.start()
    pid = bridge.pid
    publisher = rig.Publisher(broker.port)
    parts.append(publisher)
    publisher.publish("telemetry/a", b"before")
    fake.wait_for_payloads([b"before"])

    filler = fill(small_disk)
    wanted = [body(i) for i in range(120)]
    for i, payload in enumerate(wanted):
        publisher.publish("telemetry/a", payload, message_id=None if i % 2 else f"full-{i}")
    publisher.flush()
    bridge.wait_log("outbox refused a record; the source is not acknowledged")
    assert "full" in [l for l in bridge.lines() if "outbox refused" in l.get("msg", "")][0]["error"]
    assert bridge.metrics()["SQLiteStoreUnhealthy"] >= 1
    if budget == "1s":
        bridge.wait_log("mqtt session is recycled: a delivery was handed back")
    # The witness is the broker: it saw no more acknowledgements than there are records on disk.
    assert broker.count("Received PUBACK from plant-bridge") <= \
        bridge.rows("outbox", "SELECT count(*) AS n FROM outbox")[0]["n"]
    assert broker.count("Received PUBACK from plant-bridge") < len(wanted)

    filler.unlink()
    fake.wait_for_payloads(wanted, 45)  # a second recycle comes 30 s after the first
    broker.wait_log("Received PUBACK from plant-bridge", count=1 + len(wanted))
    counters = bridge.metrics()
    assert counters["MessagesDropped"] == 0
    assert bridge.pid == pid and bridge.alive()
    assert bridge.terminate() == 0


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


DAMAGES = {
    "not a database": lambda data: b"this is a shopping list\n" * 200,
    "shorter than a page": lambda data: b"short",
    "schema page overwritten": lambda data: data[:100] + b"\xff" * 3900 + data[4000:],
    "other magic": lambda data: b"SQLite format 9\0" + data[16:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_database_is_refused_and_left_alone(new_bridge, damage):
    bridge = new_bridge()
    assert bridge.terminate() == 0
    path = bridge.folder / "outbox.db"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    before = digest(path)
    bridge.start(wait=None)
    assert bridge.wait_exit(10) == 1
    refusal = [l for l in bridge.lines() if l.get("msg") == "start failed"]
    assert len(refusal) == 1 and str(path) in refusal[0]["error"], bridge.text()[-800:]
    assert digest(path) == before


def test_second_bridge_on_one_file_is_refused(new_bridge, publisher, fake):
    first = new_bridge()
    second = new_bridge({"stores.outbox.options.path": str(first.folder / "outbox.db"),
                         "sessions.0.options.session.client_id": "other"}, name="second", start=False)
    second.start(wait=None)
    assert second.wait_exit(10) == 1
    assert "in use by another process" in second.text()
    assert str(first.folder / "outbox.db") in second.text()
    publisher.publish("telemetry/a", b"the first goes on")
    fake.wait_for_payloads([b"the first goes on"])
