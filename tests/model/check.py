#!/usr/bin/env python3
"""Searches lease.pml and its weakened variants with Spin: one line for each, exit code 1 on any surprise.

    check.py            all of it (make model)
    check.py --quick    what `make check` runs
    check.py NAME...    those lines
    check.py --trace NAME   the steps of a counter-example, one line for the row and for each instance that is busy
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

MODEL = pathlib.Path(__file__).resolve().parent / "lease.pml"
LIMIT_S = 300
MEMORY_MB = 1500


@dataclass
class Run:
    name: str
    options: str = ""  # -D of the preprocessor, without the letters; WEAK_<NAME> leaves a rule out
    holds: bool = False
    quick: bool = False


def weak(names: str, options: str = "", **more) -> Run:
    title = names.replace(" ", "+") + ("" if not options else f" ({options})")
    return Run(title, " ".join([*(f"WEAK_{name}" for name in names.split()), *options.split()]), **more)


def live(title: str, options: str, **more) -> Run:
    return Run(title, f"LIVE TTL=6 {options}", **more)


AT_ONCE = "READ_AT_ONCE ANSWER_AT_ONCE"
RUNS = [
    Run("base", holds=True, quick=True),
    Run("base, TTL 3", "TTL=3", holds=True),
    Run("base, three instances", f"N=3 {AT_ONCE}", holds=True),
    Run("base, outbox fence", f"FENCE {AT_ONCE}", holds=True),
    Run("base, nothing forgotten early", f"NO_PRUNE {AT_ONCE}", holds=True),
    # Steps of §6.1.
    weak("CREATE"),
    weak("BASELINE_EARLY", quick=True),
    weak("REQUIRED"),
    weak("NO_FP", holds=True),
    weak("RESET NO_FP", "NO_REPEAT"),
    weak("RESET", "NO_REPEAT", holds=True),
    weak("GENERATION", quick=True),
    weak("GENERATION", "AUTHORITY"),
    weak("GENERATION", "NO_REPEAT", holds=True),
    weak("NO_BASELINE"),
    weak("MATCH_TUPLE", holds=True),
    weak("MATCH_EVID"),
    weak("MATCH_EVID", f"AUTHORITY N=3 {AT_ONCE}"),
    weak("NEGATIVE"),
    # Rules of §6.1.
    weak("EVID_TUPLE", holds=True),
    weak("EVID_EVID"),
    weak("EVID_EVID", "NO_REPEAT", holds=True),
    weak("TAKE_TUPLE", quick=True),
    weak("TAKE_EVID"),
    weak("TAKE_EVID", "NO_REPEAT", holds=True),
    weak("KEEP_BASELINE", holds=True),
    weak("LATENCY"),
    weak("LATENCY_READ", "READ_AT_ONCE"),
    weak("SAME_VERSION"),
    weak("RESET", quick=True),
    weak("RESET_RENEW"),
    weak("RESET_TAKE", holds=True),
    weak("RESET_RELEASE", holds=True),
    # Renew, release, authority.
    weak("VERSION"),
    weak("OWNER"),
    weak("DEADLINE", quick=True),
    weak("NO_CHECK"),
    weak("SUSPEND"),
    weak("RENEW_ASSUMED"),
    weak("RELEASE_EARLY"),
    weak("KEEP_AFTER_LOSS", holds=True),
    weak("FENCE", f"FENCE {AT_ONCE}"),
    # A dead owner is replaced; time in ticks.
    live("live, one standby, within 15", "BOUND=15", holds=True, quick=True),
    live("live, one standby, within 14", "BOUND=14"),
    live("live, calls of 1, within the budget", "CALL=1", holds=True),
    live("live, two standbys, within the budget", "STANDBYS=2", holds=True),
    live("live, two standbys, TTL 12, within the budget", "TTL=12 STANDBYS=2"),
    live("live, two standbys, TTL 12, within TTL * MAX_POLL / MIN_POLL + 2 * MAX_POLL", "TTL=12 STANDBYS=2 BOUND=30",
         holds=True, quick=True),
    live("live, two standbys, 45 s and polls of 5 s (ticks of 1.25 s), within 55", "TTL=36 STANDBYS=2 BOUND=55",
         holds=True),
    live("live, two standbys, 45 s and polls of 5 s (ticks of 1.25 s), within 54", "TTL=36 STANDBYS=2 BOUND=54"),
    live("live, released, within one poll", "RELEASED BOUND=5", holds=True),
    live("live, OBSERVE_RELEASED", "RELEASED BOUND=5 WEAK_OBSERVE_RELEASED"),
    live("live, own row, within one poll", "OWN BOUND=5", holds=True),
    live("live, OBSERVE_OWN", "OWN BOUND=5 WEAK_OBSERVE_OWN"),
    live("live, confirmed by another, within one poll", "CONFIRMED=6 BOUND=5", holds=True),
    live("live, CONFIRM_AGAIN", "CONFIRMED=6 BOUND=5 WEAK_CONFIRM_AGAIN"),
    live("live, 4 of 6 confirmed by another, within two polls", "CONFIRMED=4 BOUND=10", holds=True),
    live("live, NO_INHERIT", "CONFIRMED=4 BOUND=10 WEAK_NO_INHERIT"),
    live("live, ANOTHER_POLL", "WEAK_ANOTHER_POLL"),
]


def defines(run: Run) -> list[str]:
    last = {option.split("=")[0]: option for option in run.options.split()}
    return [f"-D{option}" for option in last.values()]


def search(run: Run, folder: str, trace: bool = False) -> tuple[str, str]:
    """("refuted", depth), ("holds", size) or ("unfinished", why); leaves the trail in the folder."""
    flags = [*defines(run), *(["-DTRACE"] if trace else [])]
    spin = subprocess.run(["spin", "-a", *flags, str(MODEL)], cwd=folder, capture_output=True, text=True, check=False)
    if spin.returncode != 0 or "rror" in spin.stdout:
        return "unfinished", "spin: " + spin.stdout + spin.stderr
    large = run.holds and "LIVE" not in run.options  # most of the time goes into the compiler otherwise
    subprocess.run(["gcc", "-O1" if large else "-O0", "-w", "-DSAFETY", "-DBFS", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}",
                    "-o", "pan", "pan.c"], cwd=folder, check=True)
    start = time.monotonic()
    try:
        out = subprocess.run(["./pan", "-w22"], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
                             check=False).stdout
    except subprocess.TimeoutExpired:
        return "unfinished", f"after {LIMIT_S} s"
    spent = time.monotonic() - start
    if found := re.search(r"assertion violated .*\(at depth (\d+)\)", out):
        return "refuted", f"depth {found[1]}"
    size = re.search(r"([0-9.e+]+) states, stored", out)
    if "errors: 0" not in out or "not completed" in out or size is None:
        return "unfinished", " ".join(out.split())[:300]
    return "holds", f"states {float(size[1]):.0f}, {spent:.1f} s"


def show(run: Run) -> int:
    with tempfile.TemporaryDirectory() as folder:
        print(*search(run, folder, trace=True))
        out = subprocess.run(["spin", *defines(run), "-DTRACE", "-T", "-B", "-t", "-k", "lease.pml.trail", str(MODEL)],
                             cwd=folder, capture_output=True, text=True, check=False).stdout
        for line in out.splitlines():
            if "q=0(" not in line:
                print(line.strip())
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            print(f"check.py: {tool} is missing; scripts/setup.sh check installs it", file=sys.stderr)
            return 1
    runs = [run for run in RUNS if run.quick or not args.quick]
    if args.names:
        runs = [run for run in RUNS if run.name in args.names]
        if len(runs) != len(set(args.names)):
            parser.error("no such line; the names are: " + "; ".join(run.name for run in RUNS))
    if args.trace:
        return show(runs[0])
    wrong = 0
    for run in runs:
        with tempfile.TemporaryDirectory() as folder:
            verdict, detail = search(run, folder)
        expected = "holds" if run.holds else "refuted"
        wrong += verdict != expected
        surprise = "" if verdict == expected else f" -- EXPECTED: {expected}"
        print(f"{run.name}: {verdict}, {detail}{surprise}", flush=True)
    print(f"{len(runs)} runs, {wrong} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
