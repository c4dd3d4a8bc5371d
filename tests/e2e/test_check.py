"""`gobridge check` says what a document comes to and opens nothing (spec 06 §9, 01 §11)."""

import json
import shutil
import subprocess

import pytest

import rig

CLUSTER = rig.ROOT / "tests/fuzz/corpus/blueprint/cluster.yaml"


def run(*args):
    command = [str(rig.BRIDGE), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def changed(folder, find, replace):
    text = CLUSTER.read_text()
    assert find in text
    path = folder / "cluster.yaml"
    path.write_text(text.replace(find, replace))
    return path


def explained(path, *flags, code=0):
    result = run("check", path, "-json", *flags)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


def lease_of(path):
    return explained(path)["sessions"][0]["lease"]


def test_scenario_8(folder):
    result = run("check", CLUSTER)
    assert result.returncode == 0
    assert "    = budget                   16m7.5s\n" in result.stdout
    assert "    failover_slo               16m20s              12.5s to spare\n" in result.stdout
    assert result.stderr.count("\n") == 1 and result.stderr.endswith(" [V32]\n")
    assert run("check", CLUSTER, "-strict").returncode == 1
    again = run("-config", CLUSTER, "-validate", "-explain")
    assert (again.returncode, again.stdout, again.stderr) == (0, result.stdout, result.stderr)


def test_scenario_8_as_json(folder):
    answer = explained(CLUSTER)
    lease = answer["sessions"][0]["lease"]
    assert answer["error_count"] == 0
    assert [w["rule"] for w in answer["warnings"]] == ["V32"]
    assert lease["owner_death"]["total"]["ns"] == 967_500_000_000
    assert lease["owner_death"]["margin"]["ns"] == 12_500_000_000
    assert sum(t["sum"]["ns"] for t in lease["owner_death"]["terms"]) == 967_500_000_000
    assert lease["activation"]["total"]["ns"] == 240_000_000_000
    digest = run("-config-digest", CLUSTER).stdout.strip()
    assert answer["content_digest"] == digest and len(digest) == 64


def test_the_border_of_the_objective(folder):
    equal = changed(folder, "failover_slo: 980s", "failover_slo: 967.5s")
    assert lease_of(equal)["owner_death"]["margin"]["ns"] == 0
    less = changed(folder, "failover_slo: 980s", "failover_slo: 967499999999ns")
    strace = shutil.which("strace")
    command = [str(rig.BRIDGE), "check", str(less)]
    if strace:
        command = [strace, "-f", "-e", "trace=%network", "-o", str(folder / "trace"), *command]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (result.returncode, result.stdout) == (1, "")
    assert "budget 16m7.5s of session" in result.stderr
    assert "exceeds declared failover_slo 16m7.499999999s" in result.stderr
    if strace:
        assert "socket(" not in (folder / "trace").read_text()
    answer = explained(less, code=1)
    assert [e["rule"] for e in answer["errors"]] == ["P1"] and "sessions" not in answer


@pytest.mark.parametrize("changes, want", [
    ([], {"lease_ttl": 300_000_000_000, "renew_interval": 62_222_222_222,
          "lease_renew_jitter": 15_555_555_555, "renew_call_timeout": 5_000_000_000,
          "acquire_poll_interval": 5_000_000_000, "step_down_grace": 20_000_000_000}),
    ([("      step_down_grace: 20s\n", "")], {"step_down_grace": 15_000_000_000}),
    ([("      lease_ttl: 300s\n      step_down_grace: 20s\n      max_renew_fails: 3\n", "")],
     {"lease_ttl": 45_000_000_000, "renew_interval": 10_000_000_000,
      "lease_renew_jitter": 1_000_000_000, "renew_call_timeout": 3_000_000_000,
      "acquire_poll_interval": 5_000_000_000, "step_down_grace": 5_000_000_000}),
    ([("      lease_ttl: 300s\n      step_down_grace: 20s\n      max_renew_fails: 3\n", ""),
      ("deployment_mode: clustered", "deployment_mode: standalone"),
      ("failover_slo: 980s", "failover_slo: 1h")],
     {"lease_ttl": 360_000_000_000, "renew_interval": 75_555_555_555}),
])
def test_cadences(folder, changes, want):
    path = CLUSTER
    text = CLUSTER.read_text()
    for find, replace in changes:
        assert find in text
        text = text.replace(find, replace)
    path = folder / "cluster.yaml"
    path.write_text(text)
    cadence = lease_of(path)["cadence"]
    assert {key: cadence[key]["ns"] for key in want} == want


def test_overlays_and_overrides_count(folder):
    overlay = folder / "overlay.yaml"
    overlay.write_text("bridge: {id: other}\nsessions:\n  - {id: mqtt-conn, session_mode: ephemeral}\n")
    answer = explained(CLUSTER, "-overlay", overlay, code=1)
    assert [e["rule"] for e in answer["errors"]].count("P1") == 1
    answer = explained(CLUSTER, "-set", "bridge.id=other", "-set", "routes[ingest].session.failover_slo=967.5s")
    assert answer["bridge_id"] == "other"
    assert answer["sessions"][0]["lease"]["owner_death"]["margin"]["ns"] == 0
    assert explained(CLUSTER, "-set", "routes[ingest].session.failover_slo=967499999999ns",
                     code=1)["errors"][0]["rule"] == "P1"


def test_unreadable(folder):
    result = run("check", folder / "none.yaml", "-json")
    assert (result.returncode, result.stdout) == (1, "")
    assert "none.yaml" in result.stderr
