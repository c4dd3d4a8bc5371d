#!/usr/bin/env python3
"""Runs clang-tidy over the C files, two at a time: scripts/lint.py [file...].

A file that passed is not checked again until it, a header it includes or .clang-tidy changes: build/lint
holds the digest of all of them. Needs no build.
"""
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLANG = "clang-14"
CLANG_TIDY = "clang-tidy-14"
FOLDERS = ("src", "tests", "bench")
FLAGS = ["-std=c11", "-D_GNU_SOURCE", '-DGB_VERSION="lint"', "-Isrc", "-Itests", "-Ibench",
         "-Wall", "-Wextra", "-Wno-unused-command-line-argument"]


def digest(path):
    """Of everything the result depends on; None when the file does not even preprocess."""
    listed = subprocess.run([CLANG, "-MM", *FLAGS, path], cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if listed.returncode != 0:
        return None
    files = listed.stdout.replace("\\\n", " ").split(":", 1)[1].split()
    total = hashlib.sha256(" ".join(FLAGS).encode())
    for name in [".clang-tidy", *sorted(files)]:
        total.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    return total.hexdigest()


def lint(path):
    """(path, the lines of its findings; empty = passed, None = passed before)."""
    stamp = ROOT / "build/lint" / (path + ".ok")
    key = digest(path)
    if key is not None and stamp.exists() and stamp.read_text() == key:
        return path, None
    run = subprocess.run([CLANG_TIDY, "--quiet", path, "--", *FLAGS], cwd=ROOT, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = [line.replace(f"{ROOT}/", "") for line in run.stdout.splitlines()
             if not re.match(r"\d+ warnings? (generated|treated)|Suppressed |Use -header-filter", line)]
    if run.returncode == 0 and key is not None:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(key)
    return path, lines if run.returncode != 0 else []


def main(names):
    paths = [os.path.relpath(name, ROOT) for name in names] or sorted(
        str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.c"))
    failed = 0
    skipped = 0
    seen = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for path, lines in pool.map(lint, paths):
            skipped += lines is None
            failed += bool(lines)
            fresh = [line for line in lines or [] if "error:" not in line or line not in seen]
            seen.update(fresh)
            if fresh:
                print("\n".join(fresh), flush=True)
    print(f"lint: {len(paths)} files, {skipped} unchanged since they passed, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
