#!/usr/bin/env python3
"""Mutation run over the rules of the blueprint: each small change of a rule must make a test fail.

    scripts/mutate.py [--sample N] [--list] [file...]      default: all files of SOURCES

Each comparison is moved by one (`<` to `<=`, `==` to `!=`), `&&` and `||` are swapped, `!` is dropped, conditions
without an operator are negated, numbers are moved by one both ways, `+ 1` and `- 1` are dropped, a loop over all
entries leaves out its first or its last one. A mutant is one file, compiled without optimisation and linked with the
objects of all others into a shared library of its own; the tests of the folder are built once and run against it until
one fails. Its own test comes first. The work is done in build/mutate, by twice as many workers as there are processors.

Exit 0: each mutant was caught, did not compile, or stands in mutate_equivalent.txt beside this file with a reason.
Exit 1: the survivors are printed as FILE:LINE:COLUMN: what was changed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import queue
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutate"
EQUIVALENT = ROOT / "scripts" / "mutate_equivalent.txt"
LAYERS = ("base", "domain", "blueprint")
TESTS = ("src/blueprint/*_test.c", "src/domain/lease_*_test.c", "src/domain/failover_*_test.c")
# Allocation ladders take long, and the reader of documents comes before the rules.
LEFT_OUT = re.compile(r"(_oom|/document|/findings)_test\.c$")
SOURCES = (
    "src/blueprint/validate*.[ch]", "src/blueprint/resolve.c", "src/blueprint/decode_value.c",
    "src/blueprint/schema*.c", "src/blueprint/merge*.c", "src/blueprint/diff*.c", "src/blueprint/normal*.c",
    "src/blueprint/bootstrap*.c", "src/blueprint/credentials.c", "src/domain/lease_cadence.c", "src/domain/failover_budget.c",
)
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O0", "-w", "-fPIC", "-fno-semantic-interposition"]
LIBRARIES = ["-lyaml", "-lcrypto", "-lpcre2-8", "-lm"]
TEST_SECONDS = 30

# --- mutations --------------------------------------------------------------------------------------

TOKEN = re.compile(r"""
    (?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\#(?:\\\n|[^\n])*)
  | (?P<char>'(?:\\.|[^'\\])*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.\d*|\.\d+|\d+)[uUlL]*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])
""", re.X | re.S)
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
# A mutant there is a broken test, not a broken rule.
UNTOUCHED_CALLS = ("calloc", "gb_wipe", "GB_ASSERT", "_Static_assert", "snprintf", "__attribute__")
# How much of a value a text shows, and room for a text.
DISPLAY = re.compile(r"\w*(?:SHOWN_MAX|PATH_MAX|PLACE_MAX|PIECE_MIN)$")
# What it releases, wipes and grows is for AddressSanitizer and the allocation ladders.
PLUMBING = re.compile(r"\bfree\(|\bgb_wipe\(|\bcapacity\b|\bPIECE_MIN\b")
BUFFER = re.compile(r"\b(?:char|uint8_t|size_t)\s+\w+\s*$")


class Mutant:
    def __init__(self, path, text, start, end, new, what):
        self.path, self.text, self.start, self.end, self.new, self.what = path, text, start, end, new, what

    @property
    def line(self):
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self):
        return self.start - self.text.rfind("\n", 0, self.start)

    @property
    def source_line(self):
        return self.text.split("\n")[self.line - 1].strip()

    def apply(self):
        return self.text[:self.start] + self.new + self.text[self.end:]

    def key(self):
        return f"{self.path} | {self.source_line} | {self.what}"

    def __str__(self):
        return f"{self.path}:{self.line}:{self.column}: {self.what}   {self.source_line}"


def tokens_of(text):
    return [(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text) if m.lastgroup != "skip"]


def matching(tokens, at):
    """Index of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += tokens[i][1] in "([{" if tokens[i][0] == "sign" else 0
        depth -= tokens[i][1] in ")]}" if tokens[i][0] == "sign" else 0
        if depth == 0:
            return i
    raise ValueError("brackets do not match")


def untouched(tokens):
    """Indices inside calls that are no rules."""
    out = set()
    for i, (kind, value, _, _) in enumerate(tokens[:-1]):
        if kind == "word" and value in UNTOUCHED_CALLS and tokens[i + 1][1] == "(":
            out.update(range(i, matching(tokens, i + 1) + 1))
    return out


def numbers(value):
    """What a literal may be moved to."""
    digits = value.rstrip("uUlL")
    suffix = value[len(digits):]
    if digits.lower().startswith("0x"):
        n = int(digits, 16)
        return [hex(n + 1) + suffix, hex(n - 1) + suffix] if n > 0 else [hex(n + 1) + suffix]
    if "." in digits:
        return [f"{float(digits) + 0.01:.4f}", f"{float(digits) - 0.01:.4f}"]
    n = int(digits)
    return [str(n + 1) + suffix] + ([str(n - 1) + suffix] if n > 0 else [])


def loop_mutants(path, text, tokens, at):
    """`for (...; i < count; ...)`: the last entry is left out; the index of the first is a number like others."""
    close = matching(tokens, at + 1)
    for i in range(at + 2, close):
        if tokens[i][1] == "<" and tokens[i - 1][0] == "word":
            yield Mutant(path, text, tokens[i][2], tokens[i][3], "+ 1 <", "last entry left out")


def index_comparisons(tokens):
    """`<` of loop heads: one more step reads past the end, which is a crash or nothing, not a rule."""
    out = set()
    for i, token in enumerate(tokens[:-1]):
        if token[1] != "for" or tokens[i + 1][1] != "(":
            continue
        for j in range(i + 2, matching(tokens, i + 1)):
            if tokens[j][1] == "<":
                out.add(j)
    return out


def is_unary(tokens, i):
    before = tokens[i - 1]
    return not (before[0] in ("word", "number", "char") and before[1] != "return" or before[1] in (")", "]"))


def conditions(path, text, tokens):
    for i, token in enumerate(tokens[:-1]):
        if token[1] != "if" or tokens[i + 1][1] != "(":
            continue
        close = matching(tokens, i + 1)
        inner = [t[1] for t in tokens[i + 2:close]]
        if any(t in SWAPS or t == "!" for t in inner):
            continue
        start, end = tokens[i + 2][2], tokens[close - 1][3]
        yield Mutant(path, text, start, end, f"!({text[start:end]})", "condition negated")


def is_of_declaration(tokens, i):
    """`sizeof x[0]`, `char x[SIZE_MAX * 2]`: neither is a value that a rule compares."""
    if tokens[i - 1][1] == "[" and tokens[i - 3][1] == "sizeof":
        return True
    start, end = i, i
    while tokens[start][0] in ("word", "number") or tokens[start][1] in "+*":
        start -= 1
    while tokens[end][0] in ("word", "number") or tokens[end][1] in "+*":
        end += 1
    between = [t[1] for t in tokens[start:end + 1]]
    return tokens[start - 2][1] == "char" and between[0] == "[" and between[-1] == "]"


def number_mutants(path, text, tokens, i):
    _, value, start, end = tokens[i]
    before = tokens[i - 1][1] if i > 0 else ""
    after = tokens[i + 1][1] if i + 1 < len(tokens) else ""
    if [t[1] for t in tokens[i - 2:i - 1]] == ["errno"] or is_of_declaration(tokens, i):
        return
    if before == "[" and after == "]" and BUFFER.search(text[:tokens[i - 1][2]]):
        return
    if before in ("=", "/") and DISPLAY.match(tokens[i - 2][1]):
        return
    if before in "+-" and value == "1" and not is_unary(tokens, i - 1):
        yield Mutant(path, text, tokens[i - 1][2], end, "", f"{before} 1 dropped")
        return
    if before == "{" and after == "}" and value == "0":
        return  # {0}: an empty struct
    for new in numbers(value):
        yield Mutant(path, text, start, end, new, f"{value} to {new}")


def mutants_of(path):
    return mutants_in(path, (ROOT / path).read_text())


def mutants_in(path, text):
    tokens = tokens_of(text)
    outside = untouched(tokens)
    indices = index_comparisons(tokens)
    out = list(conditions(path, text, tokens))
    for i, (kind, value, start, end) in enumerate(tokens):
        if i in outside:
            continue
        if value == "for" and kind == "word":
            out += loop_mutants(path, text, tokens, i)
        elif kind == "sign" and value in SWAPS and i not in indices:
            out.append(Mutant(path, text, start, end, SWAPS[value], f"{value} to {SWAPS[value]}"))
        elif value == "!" and kind == "sign":
            out.append(Mutant(path, text, start, end, "", "! dropped"))
        elif kind == "number":
            out += number_mutants(path, text, tokens, i)
    return sorted((m for m in out if not PLUMBING.search(m.source_line)), key=lambda m: m.start)


# --- building and running ---------------------------------------------------------------------------


def run(args, **options):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)


def must(args):
    result = run(args)
    if result.returncode != 0:
        sys.exit(f"mutate: {' '.join(map(str, args))}\n{result.stdout.decode()}")


def object_of(source):
    return WORK / "objects" / (source.replace("/", "_")[:-2] + ".o")


def compile_args(source, out, include=None):
    own = ["-I", str(include)] if include else []
    return ["gcc", *FLAGS, *own, "-I", str(ROOT / "src"), "-I", str(ROOT / "tests"), "-c", str(source), "-o", str(out)]


def link_args(objects, out):
    return ["gcc", "-shared", "-fuse-ld=gold", "-o", str(out), *map(str, objects), *LIBRARIES]


class Build:
    """All objects, the library without a mutant, and the tests that are linked against it."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.sources = [str(p.relative_to(ROOT)) for layer in LAYERS
                        for p in sorted((ROOT / "src" / layer).glob("*.c")) if not p.name.endswith("_test.c")]
        self.test_sources = [str(p.relative_to(ROOT)) for pattern in TESTS for p in sorted(ROOT.glob(pattern))
                             if not LEFT_OUT.search(str(p))]
        self.seconds = {}

    def all(self):
        for name in ("objects", "tests"):
            (WORK / name).mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(lambda s: must(compile_args(ROOT / s, object_of(s))), self.sources))
            must(link_args([object_of(s) for s in self.sources], WORK / "libmutant.so"))
            list(pool.map(self.build_test, self.test_sources))
        for test in self.test_sources:
            start = time.monotonic()
            code = self.run_test(test, WORK)
            self.seconds[test] = time.monotonic() - start
            if code != 0:
                sys.exit(f"mutate: {test} fails without a mutant")

    def program(self, test):
        return WORK / "tests" / pathlib.Path(test).stem

    def build_test(self, test):
        out = WORK / "tests" / (pathlib.Path(test).stem + ".o")
        must(compile_args(ROOT / test, out))
        must(["gcc", "-o", str(self.program(test)), str(out), "-L", str(WORK), "-lmutant", "-lcmocka", *LIBRARIES])

    def run_test(self, test, folder):
        try:
            return run([str(self.program(test))], cwd=ROOT, timeout=TEST_SECONDS,
                       env={**os.environ, "LD_LIBRARY_PATH": str(folder)}).returncode
        except subprocess.TimeoutExpired:
            return -1

    def order(self, path):
        """Tests that share most of the file's name first, then the fast ones."""
        stem = pathlib.Path(path).stem

        def rank(test):
            return -len(os.path.commonprefix([pathlib.Path(test).stem, stem])) // 4, self.seconds[test]
        return sorted(self.test_sources, key=rank)

    def objects_with(self, mutant, folder):
        """The mutant's objects, compiled; None when they do not compile."""
        affected = [mutant.path]
        include = None
        changed = folder / pathlib.Path(mutant.path).name
        if mutant.path.endswith(".h"):
            include = folder / "include"
            changed = include / pathlib.Path(mutant.path).relative_to("src")
            needle = f'#include "{pathlib.Path(mutant.path).relative_to("src")}"'
            affected = [s for s in self.sources if needle in (ROOT / s).read_text()]
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(mutant.apply())
        objects = {s: object_of(s) for s in self.sources}
        for source in affected:
            objects[source] = folder / object_of(source).name
            file = ROOT / source if include else changed
            if run(compile_args(file, objects[source], include)).returncode != 0:
                return None
        return list(objects.values())


def try_mutant(build, folders, mutant):
    """`caught`, `no build` or `survived`."""
    folder = folders.get()
    try:
        objects = build.objects_with(mutant, folder)
        if objects is None or run(link_args(objects, folder / "libmutant.so")).returncode != 0:
            return "no build"
        for test in build.order(mutant.path):
            if build.run_test(test, folder) != 0:
                return "caught"
        return "survived"
    finally:
        folders.put(folder)


def run_all(build, mutants):
    folders = queue.Queue()
    for i in range(build.jobs):
        folder = WORK / f"worker{i}"
        folder.mkdir(exist_ok=True)
        folders.put(folder)
    count = {"caught": 0, "no build": 0, "survived": 0}
    survivors = []
    with concurrent.futures.ThreadPoolExecutor(build.jobs) as pool:
        futures = {pool.submit(try_mutant, build, folders, m): m for m in mutants}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            verdict = future.result()
            count[verdict] += 1
            if verdict == "survived":
                survivors.append(futures[future])
                print(f"survived: {futures[future]}", flush=True)
            if done % 100 == 0:
                print(f"mutate: {done} of {len(mutants)}, {len(survivors)} survived", flush=True)
    return count, survivors


def equivalents():
    """`file | line of code | mutation` -> reason."""
    out = {}
    if EQUIVALENT.exists():
        for line in EQUIVALENT.read_text().splitlines():
            if line and not line.startswith("#"):
                key, reason = line.rsplit(" | ", 1)
                out[key] = reason
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="only so many, spread evenly")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--jobs", type=int, default=2 * os.cpu_count(), help="most of the time is waiting")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    files = options.files or [str(p.relative_to(ROOT)) for pattern in SOURCES for p in sorted(ROOT.glob(pattern))
                              if not p.name.endswith("_test.c")]
    known = equivalents()
    everything = [m for f in files for m in mutants_of(f)]
    mutants = [m for m in everything if m.key() not in known]
    if options.sample:
        mutants = mutants[::max(1, len(mutants) // options.sample)]
    if options.list:
        print("\n".join(map(str, mutants)))
        return 0
    stale = set(known) - {m.key() for m in everything} if not options.files else set()
    start = time.monotonic()
    build = Build(options.jobs)
    build.all()
    print(f"mutate: {len(mutants)} mutants of {len(files)} files, {len(build.test_sources)} tests", flush=True)
    count, survivors = run_all(build, mutants)
    print("\nsurvivors:" if survivors else "", *sorted(map(str, survivors)), sep="\n")
    for key in sorted(stale):
        print(f"no longer in the code, remove from {EQUIVALENT.name}: {key}")
    print(f"mutate: {count['caught']} caught, {count['survived']} survived, {count['no build']} did not compile, "
          f"{len(everything) - len([m for m in everything if m.key() not in known])} equivalent, "
          f"{time.monotonic() - start:.0f} s")
    return 1 if survivors or stale else 0


if __name__ == "__main__":
    sys.exit(main())
