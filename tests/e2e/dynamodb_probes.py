"""What spec 05 asks of DynamoDB, as small experiments: each knows AWS's rule and what AWS answers by it.

The experiments are in probes_writes.py, probes_reads.py and probes_units.py; test_emulators.py runs them. As a program
it prints docs/emulators.md.
"""

import dataclasses
import itertools
import sys

import botocore.exceptions

AREAS = ("Tables", "Values", "Conditions", "Updates", "Transactions", "Reads", "Capacity", "HTTP")
GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
API = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_"


@dataclasses.dataclass
class Probe:
    area: str
    title: str
    rule: str  # AWS's, in our words
    source: str  # the page of AWS's documentation that says so
    aws: object  # what AWS answers by it
    run: object
    slow: bool = False

    @property
    def name(self):
        return self.run.__name__


PROBES = {}


def probe(area, title, rule, source, aws, slow=False):
    def keep(function):
        assert function.__name__ not in PROBES
        PROBES[function.__name__] = Probe(area, title, rule, source, aws, function, slow)
        return function
    return keep


def S(value):
    return {"S": value}


def N(value):
    return {"N": str(value)}


def update_of(key, expression, values, **more):
    """An action of a transaction."""
    return ("Update", {"Key": key, "UpdateExpression": expression, "ExpressionAttributeValues": values, **more})


def code_of(call):
    """"ok", or the code of the error."""
    try:
        call()
    except botocore.exceptions.ClientError as e:
        return e.response["Error"]["Code"]
    return "ok"


def failure_of(call):
    """The error's whole answer."""
    try:
        call()
    except botocore.exceptions.ClientError as e:
        return e.response
    raise AssertionError("no error")


class Bench:
    """A table shaped as the outbox (spec 05 §9.2) and one with a hash key alone; a probe takes its own partitions."""

    TABLE, PLAIN = "probe-outbox", "probe-plain"

    def __init__(self, client):
        self.c = client
        self.numbers = itertools.count(1)
        index = lambda name, projection, *keys: {
            "IndexName": name, "Projection": {"ProjectionType": projection},
            "KeySchema": [{"AttributeName": k, "KeyType": t} for k, t in zip(keys, ("HASH", "RANGE"))]}
        types = {"PK": "S", "SK": "S", "claim_sort": "S", "record_id": "S", "has_expiry": "S", "expires_at": "N"}
        self.created = client.create_table(
            TableName=self.TABLE, BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
            GlobalSecondaryIndexes=[index("ClaimIndex", "ALL", "PK", "claim_sort"),
                                    index("RecordIDIndex", "KEYS_ONLY", "record_id"),
                                    index("ExpiryIndex", "KEYS_ONLY", "has_expiry", "expires_at")])
        self.create_plain(self.PLAIN)

    def create_plain(self, name, **more):
        return self.c.create_table(TableName=name, BillingMode="PAY_PER_REQUEST",
                                   KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
                                   AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}], **more)

    def name(self, stem="p"):
        return f"{stem}-{next(self.numbers)}"

    def key(self):
        return {"PK": S(self.name()), "SK": S("a")}

    def put(self, item, **more):
        return self.c.put_item(TableName=self.TABLE, Item=item, **more)

    def update(self, key, expression, values=None, **more):
        if values:
            more["ExpressionAttributeValues"] = values
        return self.c.update_item(TableName=self.TABLE, Key=key, UpdateExpression=expression, **more)

    def get(self, key):
        return self.c.get_item(TableName=self.TABLE, Key=key, ConsistentRead=True).get("Item")

    def query(self, partition, **more):
        return self.c.query(TableName=self.TABLE, KeyConditionExpression="PK = :pk",
                            ExpressionAttributeValues={":pk": S(partition), **more.pop("values", {})}, **more)

    def transact(self, *actions, **more):
        """Each action is (name, parameters); the table is added."""
        return self.c.transact_write_items(
            TransactItems=[{name: {"TableName": self.TABLE, **parameters}} for name, parameters in actions], **more)

    def fill(self, count, **attributes):
        """A partition with `count` items with sort keys a, b, c..."""
        partition = self.name()
        for i in range(count):
            self.put({"PK": S(partition), "SK": S(chr(ord("a") + i)), **attributes})
        return partition


def shown(value):
    """An observation as it stands in the table of docs/emulators.md."""
    if isinstance(value, dict):
        return ", ".join(f"{k}: {shown(v)}" for k, v in value.items()) or "nothing"
    if isinstance(value, (list, tuple)):
        return " / ".join(shown(v) for v in value) or "nothing"
    return f"{value:g}" if isinstance(value, float) else str(value)


def document(differences):
    lines = [HEAD]
    assert {p.area for p in PROBES.values()} == set(AREAS)
    for area in AREAS:
        lines += [f"### {area}", "", "| tried | AWS's rule | AWS | dynoxide | moto |", "|---|---|---|---|---|"]
        for p in (p for p in PROBES.values() if p.area == area):
            seen = [f"**{shown(d[p.name])}**" if p.name in d else "same" for d in differences.values()]
            cells = (p.title, f"{p.rule} ([AWS]({p.source}))", shown(p.aws), *seen)
            lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        lines.append("")
    return "\n".join(lines)


HEAD = """\
# DynamoDB emulators

Tests run against dynoxide 3.2.0 and moto's server 5.2.5; neither is trusted alone. This page is written by
`.venv/bin/python tests/e2e/dynamodb_probes.py >docs/emulators.md` from the experiments in `tests/e2e/probes_*.py`, and
`tests/e2e/test_emulators.py` fails when an emulator answers otherwise than written here. What stands under AWS follows
from AWS's pages that are linked; it was not tried at the service.

## What follows for tests

- **dynoxide decides**: its answers to every operation we use are AWS's but for the rows in bold below. `make check`
  runs the contract tests on it and once more on moto; without it (no Rust) on moto alone, and what needs dynoxide is
  counted as skipped.
- **Neither makes faults.** No throttling, no TransactionConflict, no TransactionInProgress, no index that lags, no
  stale read: one process answers one request after the other. `tests/e2e/fault_proxy.py` answers such things, holds
  requests to order them, cuts and corrupts answers. An index that lags is a rule that answers its queries with an
  empty page.
- **Capacity**: take dynoxide's figures, with the exceptions below; moto's are constants.
- **Writes that fail their condition** cost units at AWS and say nothing about it: no emulator can show them. Our meter
  counts them by AWS's rule (the larger of the item's sizes, at least 1).
- **Index entries in transactions**: AWS's pages double the items of a transaction and say nothing of their index
  entries. dynoxide counts those once, as its authors measured at the service (nubo-db/dynoxide pull request 188); so do
  we (docs/decisions/0600-index-entries-in-transactions.md).
- Neither checks signatures or permissions; `denied` and `expired_token` of the proxy stand for those.
- Neither deletes what is past its `ttl`, so a test may move its clock freely.
- moto answers some 270 puts a second and closes each connection: nothing is measured on it.

## What was tried
"""


def main():
    import probes_reads  # noqa: F401
    import probes_units  # noqa: F401
    import probes_writes  # noqa: F401
    from test_emulators import DIFFERENCES
    sys.stdout.write(document(DIFFERENCES))


if __name__ == "__main__":
    sys.modules["dynamodb_probes"] = sys.modules["__main__"]
    main()
