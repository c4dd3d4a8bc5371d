"""What an idle owner and an idle standby cost in DynamoDB: capacity units an hour, as the emulator reports them.

    .venv/bin/python scripts/dynamodb_idle.py [--minutes 5]

Two bridges with the cadence and the drain strategy of a clustered document that sets none, over a local emulator; no
message comes. Prints Markdown, measured over the minutes and scaled to an hour. The first half minute, in which they
start, is left out."""

import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import cluster  # noqa: E402
import fake_sqs  # noqa: E402
import rig  # noqa: E402
from emulators import DynamoDb  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402

START_SECONDS = 30
READS = {"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"}


def capacity(proxy):
    """Requests and units by client, action and table or index."""
    return {(c["client"], c["action"], c["table"], c["index"]): (c["requests"], c["units"])
            for c in proxy.command("capacity")["capacity"]}


def show(name, before, after, hours, roles):
    totals = {"reads": 0.0, "writes": 0.0}
    for key, (requests, units) in sorted(after.items()):
        if key[0] != name:
            continue
        was = before.get(key, (0, 0.0))
        requests, units = requests - was[0], units - was[1]
        if not requests and not units:
            continue
        kind = "reads" if key[1] in READS else "writes"
        totals[kind] += units
        print(f"| {key[1]} | {roles[key[2]]}{', ' + key[3] if key[3] else ''} | {requests / hours:.0f} | "
              f"{units / hours if kind == 'writes' else 0:.0f} | {units / hours if kind == 'reads' else 0:.0f} |")
    print(f"| all | | | **{totals['writes'] / hours:.0f}** | **{totals['reads'] / hours:.0f}** |")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=5)
    minutes = options.parse_args().minutes
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            database = DynamoDb(folder / "dynamodb")
            parts.append(database)
            proxy = FaultProxy(database.port)
            parts.append(proxy)
            broker = rig.Broker(folder / "broker")
            parts.append(broker)
            queue = fake_sqs.FakeSqs()
            parts.append(queue)
            doc = cluster.document(folder, broker.port, queue.queue_url(), queue.endpoint)
            for key in (*cluster.CADENCE, "drain_strategy"):
                doc["routes"][0]["session"].pop(key, None)
            ends = {name: proxy.open(name, meter=True) for name in ("a", "b")}
            bridges = cluster.Cluster(folder, doc, database, endpoints=ends)
            parts.append(bridges)
            bridges.prepare()
            bridges.start("a")
            bridges["a"].wait_log("session is active", 60)
            bridges.start("b")
            time.sleep(START_SECONDS)
            before = capacity(proxy)
            print(f"measuring for {minutes:g} minutes", file=sys.stderr, flush=True)
            start = time.monotonic()
            time.sleep(minutes * 60)
            after, hours = capacity(proxy), (time.monotonic() - start) / 3600
            roles = {store["options"]["table_name"]: role for role, store in doc["stores"].items()}
            for name, role in (("a", "The idle owner"), ("b", "The idle standby")):
                print(f"\n{role}, an hour:\n\n| call | on | calls | write units | read units |\n|---|---|---|---|---|")
                show(name, before, after, hours, roles)
        finally:
            for part in reversed(parts):
                part.close()


if __name__ == "__main__":
    main()
