"""The rights that docs/operations.md lists suffice: every request of a cluster that fails over is among them."""

import json
import pathlib
import re
import time

from cluster import Stream, nothing_lost, other

OPERATIONS = pathlib.Path(__file__).parents[2] / "docs" / "operations.md"
INNER = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


def documented():
    """Role of a store -> the actions to run, and those to run or to create."""
    section = OPERATIONS.read_text().split("## Permissions", 1)[1].split("\n## ", 1)[0]
    rights = {}
    for row in section.splitlines():
        if found := re.match(r"\| table of `stores\.(\w+)`", row):
            cells = [set(re.findall(r"`(?:dynamodb:)?([A-Z]\w+)`", cell)) for cell in row.split("|")[2:4]]
            rights[found[1]] = cells[0], cells[0] | cells[1]
    return rights


def asked(exchanges, roles):
    """Role -> the actions that these requests need at its table."""
    needed = {role: set() for role in roles.values()}
    for exchange in exchanges:
        body = json.loads(exchange["sent"])
        if exchange["action"] == "TransactWriteItems":
            for item in body["TransactItems"]:
                for kind, inner in item.items():
                    needed[roles[inner["TableName"]]].add(INNER[kind])
        else:
            needed[roles[body["TableName"]]].add(exchange["action"])
    return needed


def test_documented_rights_suffice(new_cluster, publisher, fake, faults):
    bridges = new_cluster(endpoints={name: faults.open(name) for name in ("a", "b")}, start=False)
    roles = {store["options"]["table_name"]: role for role, store in bridges.doc["stores"].items()}
    rights = documented()
    assert set(rights) == set(roles.values())
    for role, actions in asked(faults.requests(), roles).items():
        assert "CreateTable" in actions and actions <= rights[role][1], role
    before = faults.requests()[-1]["request"]
    bridges.start()
    old = bridges.wait_owner()["owner"].partition("#")[0]
    bridges.wait_active(old)
    stream = Stream(publisher)
    time.sleep(2)
    bridges[old].kill()
    bridges.wait_owner(other_than=old)
    time.sleep(2)
    nothing_lost(stream, fake, bridges)
    assert bridges[other(bridges, old)].terminate() == 0
    needed = asked(faults.requests(before), roles)
    assert {"GetItem", "UpdateItem"} <= needed["lease"] and {"Query", "ConditionCheckItem"} <= needed["outbox"]
    for role, actions in needed.items():
        assert actions <= rights[role][0], role
