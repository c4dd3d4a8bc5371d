"""Failing over with real processes, again and again: how long it takes, and whether anything is lost.

    make failover                                        # a few minutes
    .venv/bin/python scripts/failover.py --rounds 100 --scenario kill

Bridges that run examples/cluster.yaml, but for addresses and timings, under a steady load of QoS 1, a real mosquitto, a
local DynamoDB behind a proxy that can cut an instance off, and a sink that speaks SQS. Prints Markdown. Exit code 1: a
message was lost, a limit was exceeded, or an owner did what it must not."""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import cluster  # noqa: E402
import fake_sqs  # noqa: E402
import rig  # noqa: E402
from emulators import DynamoDb  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402
from network import Proxy  # noqa: E402

RATE = 50  # messages a second
WAIT_SECONDS = 60
EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples" / "cluster.yaml"
LEASE_TTL, POLL = 5.0, 0.5  # cluster.CADENCE
STEP_DOWN = 2.0  # broker_health_step_down
UNPLANNED = LEASE_TTL + 1.25 * POLL + 1
CLEAN = 1 + POLL
SEED = 20261201


def document(broker_port, fake, step_down):
    """The example with other host names and timings."""
    doc = yaml.safe_load(EXAMPLE.read_text())
    changes = {
        "sessions.0.options.session.broker_url": f"tcp://127.0.0.1:{broker_port}",
        "sessions.0.options.session.tls": None,
        "sessions.0.options.session.keep_alive": 5,
        "sessions.0.options.session.connect_timeout": "2s",
        "sessions.0.options.session.reconcile_timeout": "2s",
        "sessions.0.options.session.unmatched_grace": "1s",
        "senders.0.options.queue_url": fake.queue_url(),
        "senders.0.options.endpoint": fake.endpoint,
        "routes.0.session.broker_health_step_down": step_down,
        "routes.0.session.failover_slo": "30s",
        "routes.0.session.startup_allowance": "1s",
        **{f"routes.0.session.{key}": value for key, value in cluster.CADENCE.items()},
    }
    for path, value in changes.items():
        rig.set_path(doc, path, value)
    return doc


class Scene:
    """The broker, the sink, the tables and the instances of one scenario."""

    def __init__(self, folder, names, own_paths=False):
        self.parts = []
        self.names = names
        self.broker = self.part(rig.Broker(folder / "broker"))
        self.fake = self.part(fake_sqs.FakeSqs())
        self.database = self.part(DynamoDb(folder / "dynamodb"))
        self.faults = self.part(FaultProxy(self.database.port))
        self.paths = {name: self.part(Proxy(self.broker.port)) for name in names}
        doc = document(self.broker.port, self.fake, f"{STEP_DOWN:g}s" if own_paths else "off")
        self.bridges = self.part(cluster.Cluster(folder, doc, self.database, names=names,
                                                 endpoints={name: self.faults.open(name) for name in names}))
        self.bridges.prepare()
        for name in names if own_paths else ():  # another way to the broker is another session to the history
            own = json.loads(json.dumps(doc))
            own["sessions"][0]["options"]["session"]["broker_url"] = f"tcp://127.0.0.1:{self.paths[name].port}"
            self.bridges[name].write(own)
            self.bridges[name].seed(self.bridges.session)
        checked = subprocess.run([rig.BRIDGE, "check", self.bridges[names[0]].config, "-json"], check=True,
                                 capture_output=True, text=True)
        self.budgets = json.loads(checked.stdout)["sessions"][0]["lease"]

    def part(self, part):
        self.parts.append(part)
        return part

    def close(self):
        for part in reversed(self.parts):
            part.close()


@dataclasses.dataclass
class Sample:
    owned: float  # from the fault until the row names another owner
    active: float  # until that one is connected and all its subscriptions are confirmed
    activation: float  # the part of it after the row names it
    gap: float  # the longest silence at the sink


# --- what happens to the owner, and how it comes back ---------------------------------------------


def kill(scene, old):
    scene.bridges[old].kill()


def start_again(scene, old):
    scene.bridges.start(old)


def suspend(scene, old):
    scene.bridges[old].process.child.send_signal(signal.SIGSTOP)


def resume(scene, old):
    lost = scene.bridges[old].count("lease.lost")
    scene.bridges[old].process.child.send_signal(signal.SIGCONT)
    scene.bridges[old].wait_log("lease.lost", 20, lost + 1)
    child = scene.bridges[old].process.child
    assert child.poll() is None, f"{old} ended with {child.returncode}, and no restart is needed"


def cut(scene, old):
    scene.faults.rule("drop", client=old, times=0)


def heal(scene, old):
    scene.faults.command("clear")
    child = scene.bridges[old].process.child
    assert child.poll() is None, f"{old} ended with {child.returncode}, and no restart is needed"


def lose_broker(scene, old):
    scene.paths[old].stall()
    scene.paths[old].cut()


def regain_broker(scene, old):
    assert scene.bridges[old].wait_exit(30) == 1, "a broker path that was handed over ends the process"
    scene.paths[old].resume()
    scene.bridges.start(old)


def stop(scene, old):
    assert scene.bridges[old].terminate() == 0


@dataclasses.dataclass
class Scenario:
    what: str
    act: object
    undo: object
    limit: float  # of `active`, at the 99th percentile
    budget: str  # the member of `gobridge check -json`
    kicked: bool = False  # the broker still has the old connection, and ends it
    warm: bool = True  # a standby has been watching


SCENARIOS = {
    "kill": Scenario("owner killed (kill -9)", kill, start_again, UNPLANNED, "owner_death"),
    "suspend": Scenario("owner suspended, resumed after the takeover", suspend, resume, UNPLANNED, "owner_death", True),
    "cut": Scenario("owner cut off from DynamoDB", cut, heal, UNPLANNED, "owner_death"),
    "broker": Scenario("owner cut off from the broker", lose_broker, regain_broker, STEP_DOWN + 3 + CLEAN, "broker_path",
                       True),
    "stop": Scenario("owner stopped (SIGTERM)", stop, start_again, CLEAN, "owner_death"),
    "cold": Scenario("owner killed, the standby started then", kill, lambda scene, old: None, UNPLANNED + 2 * POLL,
                     "owner_death", warm=False),
}


# --- rounds -------------------------------------------------------------------------------------


def longest_silence(fake, since):
    with fake.changed:
        at = sorted(m.arrived for m in fake.messages if m.arrived >= since)
    return max((b - a for a, b in zip([since, *at], at)), default=0.0)


def wait_active(bridge, count):
    end = time.monotonic() + WAIT_SECONDS
    while bridge.count("session is active") < count:
        assert time.monotonic() < end, f"{bridge.log}: not active within {WAIT_SECONDS} s"
        time.sleep(0.01)


def missing(scene, stream):
    return set(stream.sent) - scene.fake.distinct()


def wait_delivered(scene, stream, at_most):
    """Until no more than that many are on their way; False: nothing has come for a minute."""
    end, last = time.monotonic() + WAIT_SECONDS, None
    while len(on_way := missing(scene, stream)) > at_most:
        if last is None or len(on_way) < last:
            end, last = time.monotonic() + WAIT_SECONDS, len(on_way)
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def one_round(scene, scenario, stream):
    if random.random() < 0.5:  # the other half begins with a backlog
        assert wait_delivered(scene, stream, RATE), "the backlog does not end"
    before = scene.bridges.row()
    old = before["owner"].partition("#")[0]
    served = {name: scene.bridges[name].count("session is active") for name in scene.names}
    time.sleep(random.uniform(0.5, 1.5))  # the standby has seen the row; any moment between two renewals
    start = time.monotonic()
    scenario.act(scene, old)
    if not scenario.warm:
        scene.bridges.start(next(name for name in scene.names if name != old))
    while scene.bridges.owner() in ("", old):
        assert time.monotonic() < start + WAIT_SECONDS, f"nobody took over from {old}"
        time.sleep(0.01)
    owned = time.monotonic() - start
    after = scene.bridges.row()
    new = after["owner"].partition("#")[0]
    assert after["version"] > before["version"], f"version {before['version']}, then {after['version']}"
    wait_active(scene.bridges[new], served[new] + 1)
    active = time.monotonic() - start
    arrived = len(scene.fake.payloads())
    rig.wait_until(lambda: len(scene.fake.payloads()) > arrived, WAIT_SECONDS, "messages flow again")
    sample = Sample(owned, active, active - owned, longest_silence(scene.fake, start - 0.5))
    scenario.undo(scene, old)
    return sample


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * share // 100) - 1))]


def run(folder, name, rounds, instances):
    """The samples and what else was seen."""
    scenario = SCENARIOS[name]
    scene = None
    try:
        scene = Scene(folder, ("a", "b", "c")[:instances], own_paths=name == "broker")
        scene.bridges.start(*(scene.names if scenario.warm else scene.names[:1]))
        scene.bridges.wait_owner()
        rig.wait_until(lambda: any(scene.bridges[n].count("session is active") for n in scene.names), WAIT_SECONDS,
                       "an owner serves")
        publisher = rig.Publisher(scene.broker.port)
        stream = cluster.Stream(publisher, RATE)
        samples = []
        for i in range(rounds):
            samples.append(one_round(scene, scenario, stream))
            print(f"{name} {i + 1}/{rounds}: owned after {samples[-1].owned:.2f} s, active after {samples[-1].active:.2f} s",
                  file=sys.stderr, flush=True)
        stream.stop()
        publisher.close()
        wait_delivered(scene, stream, 0)
        lost = missing(scene, stream)
        kicks = scene.broker.count("already connected")
        budget = scene.budgets[scenario.budget]["total"]["ns"] / 1e9
        result = {
            "scenario": name, "what": scenario.what, "instances": instances, "rounds": rounds,
            "messages": len(stream.sent), "lost": len(lost),
            "duplicates": len(scene.fake.payloads()) - len(set(stream.sent)) + len(lost),
            "kicked": kicks, "limit": scenario.limit, "budget": budget,
            **{key: [getattr(s, key) for s in samples] for key in ("owned", "active", "activation", "gap")},
        }
        result["faults"] = faults_of(result, scenario)
        return result
    finally:
        if scene is not None:
            scene.close()


def faults_of(result, scenario):
    faults = []
    if result["lost"]:
        faults.append(f"{result['lost']} messages lost")
    if max(result["active"]) > result["budget"]:
        faults.append(f"{max(result['active']):.2f} s is above the budget of {result['budget']:.1f} s")
    if percentile(result["active"], 99) > result["limit"]:
        faults.append(f"p99 {percentile(result['active'], 99):.2f} s is above {result['limit']:.3f} s")
    if result["kicked"] and not scenario.kicked:
        faults.append(f"the broker ended {result['kicked']} connections of an owner that should have gone by itself")
    return faults


HEAD = """| what happens | instances | rounds | seconds until | p50 | p95 | p99 | max | limit | budget | messages | lost | duplicates |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def show(result):
    """Four lines of the table."""
    names = {"owned": "another owns the lease", "active": "it is active", "activation": "of these, the activation",
             "gap": "silence at the destination"}
    for key, text in names.items():
        first, middle = key == "owned", key == "active"
        cells = [result["what"] if first else "", result["instances"] if first else "",
                 result["rounds"] if first else "", text]
        cells += [f"{percentile(result[key], share):.2f}" for share in (50, 95, 99, 100)]
        cells += [f"{result['limit']:.3f}", f"{result['budget']:.1f}", result["messages"], result["lost"],
                  result["duplicates"]] if middle else [""] * 5
        print(f"| {' | '.join(str(c) for c in cells)} |", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--scenario", choices=SCENARIOS, action="append", help="may be repeated; all by default")
    options.add_argument("--instances", type=int, choices=(2, 3), default=2)
    options.add_argument("--json", metavar="FILE", help="every sample")
    args = options.parse_args()
    if not rig.BRIDGE.exists():
        sys.exit("build/gobridge does not exist: run make failover")
    random.seed(SEED)
    results = []
    print(HEAD, flush=True)
    for name in args.scenario or SCENARIOS:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="gobridge-failover-"))
        os.chmod(folder, 0o700)
        try:
            results.append(run(folder, name, args.rounds, args.instances))
        except AssertionError as e:
            sys.exit(f"{name}: {e}\nLogs are kept in {folder}")
        shutil.rmtree(folder)
        show(results[-1])
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1))
    faults = [f"{r['scenario']}: {fault}" for r in results for fault in r["faults"]]
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
