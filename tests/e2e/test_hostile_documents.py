"""Hostile documents get an answer: in under a second, under 64 MiB, with a place, never with a crash (decision 0160)."""

import json
import re
import subprocess
import sys

import pytest

import hostile
import rig

CPU_SECONDS = 1.0  # processor time: the machine may be busy
RSS_KIB = 64 * 1024
OUTPUT_BYTES = 200_000
PLACED = re.compile(r":[1-9]\d*:[1-9]\d*: error: .* \[[A-Z]\d+\]$", re.M)
# Nothing in such a document has a place.
UNPLACED = ("empty", "more than 4 MiB", "much more", "spaces only", "comments only")

# A child's peak memory counts that of the process it was forked from, so a small one starts them.
STARTER = r"""
import json, os, sys
for line in sys.stdin:
    args, log = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        os.dup2(2, 1)
        os.execv(args[0], args)
    _, status, used = os.wait4(pid, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss]), flush=True)
"""


@pytest.fixture(scope="module")
def starter():
    with subprocess.Popen([sys.executable, "-S", "-E", "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        def run(args, log):
            child.stdin.write(json.dumps([args, str(log)]) + "\n")
            child.stdin.flush()
            return (*json.loads(child.stdout.readline()), log.read_text(errors="replace"))
        yield run
        child.stdin.close()


def bounded(name, result, documents=1):
    code, cpu, rss, output = result
    shown = f"{name}: exit {code}, {cpu:.2f} s, {rss} KiB: {output[:300]}"
    assert code in (0, 1), shown
    assert cpu < documents * CPU_SECONDS, shown
    assert rss < RSS_KIB * documents, shown
    return code, output, shown


def judge(name, result, outcome):
    code, output, shown = bounded(name, result)
    assert len(output) < OUTPUT_BYTES, shown
    assert (code == 0) == (outcome == hostile.OK), shown
    if code == 0:
        assert ": error: " not in output, shown
        return
    if not name.startswith(UNPLACED):
        assert PLACED.search(output), shown
    if outcome != hostile.NO:
        assert outcome in output, shown


@pytest.mark.parametrize("row", hostile.table(), ids=lambda row: row[0])
def test_large_documents(folder, starter, row):
    name, extension, make, outcome = row
    path = folder / f"bridge.{extension}"
    path.write_bytes(make())
    judge(name, starter([str(rig.BRIDGE), "-config", str(path), "-validate"], folder / "log"), outcome)


@pytest.mark.parametrize("extension", ["json", "yaml"])
@pytest.mark.parametrize("rows", [hostile.numbers, hostile.durations])
def test_numbers_at_every_edge(folder, starter, rows, extension):
    path = folder / f"bridge.{extension}"
    for name, data, outcome in rows():
        path.write_bytes(data)
        judge(name, starter([str(rig.BRIDGE), "-config", str(path), "-validate"], folder / "log"), outcome)


@pytest.mark.parametrize("row", [r for r in hostile.table() if not r[0].endswith(", yaml")], ids=lambda row: row[0])
def test_other_modes(folder, starter, row):
    name, extension, make, _outcome = row
    path, small = folder / f"bridge.{extension}", folder / "small.json"
    path.write_bytes(make())
    small.write_bytes(hostile.dump(hostile.base()))
    for mode in (["-inspect", path], ["-config-digest", path], ["-deployment-fingerprint", path],
                 ["check", path, "-json"], ["-config", path, "-set", "bridge.log_level=debug", "-validate"]):
        bounded(f"{name}, {mode[0]}", starter([str(rig.BRIDGE), *map(str, mode)], folder / "log"), 1 + ("-set" in mode))
    for mode in (["-diff", small, path], ["-diff", path, path], ["-config", path, "-overlay", path, "-validate"]):
        bounded(f"{name}, {mode}", starter([str(rig.BRIDGE), *map(str, mode)], folder / "log"), 2)
