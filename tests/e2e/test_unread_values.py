"""A value that cannot be read is refused once; no rule speaks about the default in its place (decision 0105)."""

import copy
import json
import re
import subprocess

import pytest

import rig

CORPUS = rig.ROOT / "tests/fuzz/corpus/blueprint"
UNREADABLE = [[[1]], 1.5]
READING = re.compile(r" \[(K\d|D\d|V10|V42)\]$")  # V10, V42: also of single keys


def places(node, path=()):
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def said(folder, document):
    path = folder / "bridge.json"
    path.write_text(json.dumps(document))
    result = subprocess.run([rig.BRIDGE, "-config", path, "-validate"], capture_output=True, text=True, timeout=30)
    return {re.sub(r"^\S+: (?=error|warning)", "", line) for line in result.stderr.splitlines()}


@pytest.mark.parametrize("name", ["standalone", "direct", "cluster"])
def test_unread_values_say_nothing_more(folder, name):
    document = json.loads((CORPUS / f"{name}.json").read_text())
    known = said(folder, document)
    checked = 0
    for path in places(document):
        for value in UNREADABLE[:1] if path[-1] == "multiplier" else UNREADABLE:
            changed = copy.deepcopy(document)
            node = changed
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = value
            new = said(folder, changed) - known
            assert new, path
            assert all(READING.search(line) for line in new), (path, value, new)
            checked += 1
    assert checked > 60
