"""The cadence and the failover budgets against a second implementation of spec 06 §4 and §9, in whole numbers."""

import json
import random
import subprocess

import pytest

import rig

S, MS, LONGEST = 10**9, 10**6, 2**63 - 1
DOCUMENT = (rig.ROOT / "tests/fuzz/corpus/blueprint/cluster.yaml").read_text()
WRITTEN = ("      lease_ttl: 300s\n      step_down_grace: 20s\n      max_renew_fails: 3\n",
           "      failover_slo: 980s\n      startup_allowance: 10s\n      broker_health_step_down: off\n")


def cadence(keys, clustered):
    baseline = clustered and "lease_ttl" not in keys and "renew_interval" not in keys
    ttl = keys.get("lease_ttl") or (45 * S if baseline else 360 * S)
    fails = keys.get("max_renew_fails") or 3
    share = ttl * 3 // (fails * 4)
    derived = max(MS, (share - min(5 * S, share // 2)) * 8 // 9)
    renew = keys.get("renew_interval") or (10 * S if baseline else derived)
    spread = S if baseline else 0 if keys.get("renew_interval") else renew // 4
    jitter = keys.get("lease_renew_jitter") or spread
    call = keys.get("renew_call_timeout") or (3 * S if baseline else max(S, min(5 * S, renew // 2)))
    grace = keys.get("step_down_grace") or (5 * S if baseline else 15 * S)
    if grace >= ttl:
        grace = ttl // 2
    asked = renew, call
    if fails * (renew + jitter // 2 + call) >= ttl:
        limit = ttl * 9 // 10 // fails
        call = min(call, limit - MS)
        room = limit - call - renew
        jitter, renew = (min(jitter, 2 * room), renew) if room >= 0 else (0, max(MS, limit - call))
    poll = keys.get("acquire_poll_interval") or max(MS, min(renew, ttl // 4, 5 * S))
    return {"lease_ttl": ttl, "renew_interval": renew, "lease_renew_jitter": jitter,
            "renew_call_timeout": call, "acquire_poll_interval": poll, "step_down_grace": grace}, \
        (renew, call) != asked


def budgets(c, keys):
    poll, activation, startup = c["acquire_poll_interval"], 240 * S, keys.get("startup_allowance", 0)
    longest = max(MS, -(-5 * poll // 4))
    shortest = max(MS, poll - poll // 2 // 2)
    calls = 1 + -(-c["lease_ttl"] // shortest)
    death = c["lease_ttl"] + 2 * longest + calls * c["renew_call_timeout"] + activation + startup
    step_down = keys.get("broker_health_step_down")
    if not step_down:
        return death, None
    grace = c["step_down_grace"]
    path = (step_down + c["renew_interval"] + c["lease_renew_jitter"] // 2 + 2 * min(5 * S, grace) + grace +
            2 * longest + 4 * c["renew_call_timeout"] + activation + startup)
    return death, path


def want(keys, clustered):
    """The rules that are broken, the cadence and the budgets."""
    c, cut = cadence(keys, clustered)
    short = c["renew_interval"] < 250 * MS or c["acquire_poll_interval"] < 250 * MS
    rules = {"V40"} if cut else set()
    if c["lease_ttl"] < 5 * S or (short and not cut):
        rules.add("V41")
    death, path = budgets(c, keys)
    if not rules and "failover_slo" in keys:
        if death > keys["failover_slo"]:
            rules.add("P1")
        if path and path > keys["failover_slo"] and death <= LONGEST:
            rules.add("P2")
    return rules, c, death, path


def draw(rng):
    keys = {}
    wide = [lambda: rng.randrange(1, 400 * S), lambda: rng.randrange(1, 60) * S,
            lambda: rng.randrange(1, 20 * S), lambda: rng.randrange(1, LONGEST)]
    ranges = {"lease_ttl": wide[0], "renew_interval": wide[2], "lease_renew_jitter": wide[2],
              "renew_call_timeout": wide[2], "acquire_poll_interval": wide[2], "step_down_grace": wide[1]}
    for key, make in ranges.items():
        if rng.random() < (0.7 if key == "lease_ttl" else 0.25):
            keys[key] = rng.choice(wide)() if rng.random() < 0.05 else make()
    if rng.random() < 0.1:
        keys["acquire_poll_interval"] = rng.randrange(1, 500 * MS)
    if rng.random() < 0.3:
        keys["max_renew_fails"] = rng.randrange(1, 9)
    if rng.random() < 0.3:
        keys["startup_allowance"] = rng.randrange(0, 600 * S + 1)
    if rng.random() < 0.5:
        keys["broker_health_step_down"] = rng.choice(wide)()
    if rng.random() < 0.7:
        keys["failover_slo"] = rng.choice(wide[:3])() * rng.choice((1, 10, 100))
    return keys, rng.random() < 0.5


def objective_at_the_border(rng, keys, clustered):
    """Half of the objectives are the budget itself or one nanosecond less."""
    rules, _, death, path = want({k: v for k, v in keys.items() if k != "failover_slo"}, clustered)
    border = max(death, path or 0)
    if "failover_slo" in keys and not rules and border <= LONGEST and rng.random() < 0.5:
        keys["failover_slo"] = border - rng.randrange(2)


@pytest.mark.parametrize("seed", range(4))
def test_cadence_and_budgets_agree(folder, seed):
    rng = random.Random(seed)
    path = folder / "document.yaml"
    met, accepted = set(), 0
    for _ in range(75):
        keys, clustered = draw(rng)
        objective_at_the_border(rng, keys, clustered)
        lines = [f"      {k}: {v}{'' if k == 'max_renew_fails' else 'ns'}\n" for k, v in keys.items()]
        if "broker_health_step_down" not in keys:
            lines.append("      broker_health_step_down: off\n")
        text = DOCUMENT.replace(WRITTEN[0], "".join(lines)).replace(WRITTEN[1], "")
        if not clustered:
            text = text.replace("deployment_mode: clustered", "deployment_mode: standalone")
        path.write_text(text)
        result = subprocess.run([str(rig.BRIDGE), "check", str(path), "-json"], capture_output=True, text=True,
                                timeout=30)
        answer = json.loads(result.stdout)
        rules, c, death, broker = want(keys, clustered)
        said = {e["rule"] for e in answer["errors"]}
        assert said == rules, (keys, clustered, result.stderr)
        met |= rules
        if rules:
            continue
        accepted += 1
        lease = answer["sessions"][0]["lease"]
        assert {k: lease["cadence"][k]["ns"] for k in c} == c, (keys, clustered)
        for key, sum_ns in (("owner_death", death), ("broker_path", broker)):
            if sum_ns is None:
                assert lease[key] is None
            elif sum_ns > LONGEST:
                assert "unknown" in lease[key], (key, keys)
            else:
                assert lease[key]["total"]["ns"] == sum_ns, (key, keys)
    assert met == {"V40", "V41", "P1", "P2"} and accepted > 15
