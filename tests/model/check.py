#!/usr/bin/env python3
"""Searches lease.pml and its weakened variants with Spin; exits 1 when one does not end as written here."""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
VARIANTS = {  # defines: must a counter-example exist?
    "": False, "NO_RESET": False, "NO_FP": False, "NO_RESET NO_FP": True, "BASELINE_EARLY": True, "LATENCY": True,
    "NO_EVIDENCE": True, "NO_TUPLE": True, "NO_VERSION": True, "DEADLINE": True, "RESUME": True,
    "RELEASE_EARLY": True, "NO_BASELINE_MATCH": True,
}


def search(names: str, limit_s: int = 120) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        defines = [f"-DWEAK_{name}" for name in names.split()]
        subprocess.run(["spin", "-a", *defines, HERE / "lease.pml"], cwd=folder, check=True, capture_output=True)
        subprocess.run(["gcc", "-O2", "-w", "-DSAFETY", "-DBFS", "-DCOLLAPSE", "-DMEMLIM=1500", "-o", "pan", "pan.c"],
                       cwd=folder, check=True)
        start = time.monotonic()
        try:
            out = subprocess.run(["./pan", "-m200000", "-w24", "-E"], cwd=folder, capture_output=True, text=True,
                                 timeout=limit_s, check=False).stdout
        except subprocess.TimeoutExpired:
            return "unfinished", f"{limit_s} s"
        spent = time.monotonic() - start
    if "assertion violated" in out:
        return "refuted", "depth " + re.search(r"at depth (\d+)", out)[1]
    if "errors: 0" not in out or "max search depth too small" in out or "Search not completed" in out:
        return "unfinished", " ".join(out.split())[:100]
    return "holds", f"states {re.search(r'([0-9.e+]+) states, stored', out)[1]}, {spent:.0f} s"


def main() -> int:
    wrong = 0
    for names in sys.argv[1:] or VARIANTS:
        verdict, detail = search(names)
        expected = "refuted" if VARIANTS[names] else "holds"
        wrong += verdict != expected
        print(f"{names or 'base'}: {verdict}, {detail}" + ("" if verdict == expected else f" (expected {expected})"),
              flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
