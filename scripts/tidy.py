#!/usr/bin/env python3
"""Checks the house rules that no compiler checks: scripts/tidy.py [root].

One function per rule, listed in RULES. Each yields (path, line, what to do). A line may break a rule
when it, or the comment right above it, says `gb-exception: <reason>`.
"""
import pathlib
import re
import sys

# Who may include whom; `adapters/x` is the adapter's own folder, `adapters/aws` the shared one.
LAYERS = {
    "base": {"base"},
    "domain": {"domain", "base"},
    "ports": {"ports", "domain", "base"},
    "core": {"core", "ports", "domain", "base"},
    "blueprint": {"blueprint", "domain", "base"},
    "io": {"io", "base"},
    "adapters": {"adapters/aws", "io", "ports", "domain", "base"},
    "api": {"api", "adapters", "io", "ports", "domain", "base"},
    "app": {"app", "api", "adapters", "io", "core", "ports", "blueprint", "domain", "base"},
}
OUTSIDE = {"io", "adapters", "app"}  # the layers that touch the outside world

SYSTEM_HEADERS = re.compile(r"(uv|sqlite3|time|unistd|pthread|netdb|fcntl|poll|signal|dirent|microhttpd)\.h"
                            r"|(curl|sys|netinet|arpa|openssl)/.*")
# Hashes come from OpenSSL; a failed assertion and a log line end in write(2), the latter after a
# look whether the reader still reads.
SYSTEM_HEADERS_IN = {
    "src/base/digest.c": ("openssl/",),
    "src/base/assert.c": ("unistd.h",),
    "src/base/log.c": ("poll.h", "pthread.h", "unistd.h"),
}
HEADERS_OF = {"yaml.h": "blueprint", "pcre2.h": "domain"}
BANNED_CALLS = re.compile(r"(?<![\w.>])(time|clock_gettime|gettimeofday|uv_now|uv_hrtime|rand|random|getrandom"
                          r"|getenv|sleep|usleep|nanosleep|exit|printf|fprintf|puts)\s*\(")
SLEEPS = re.compile(r"(?<![\w.>])(sleep|usleep|nanosleep)\s*\(")
CODEC_NAME = re.compile(r".*_(codec|decode|parse|json|yaml|ini|xml)(_\w+)?$")
STATE_FOLDERS = ("src/core/", "src/adapters/mqtt/")


class Source:
    """One C file: `lines` as written, `code` the same lines without comments and string contents."""

    def __init__(self, root, path):
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8")
        self.lines = self.text.splitlines()
        self.code = blank_comments(self.text).splitlines()
        self.name = path.rsplit("/", 1)[-1]
        self.stem = self.name.rsplit(".", 1)[0]
        self.is_header = self.name.endswith(".h")
        self.is_test = self.name.endswith("_test.c")
        parts = path.split("/")
        self.in_src = parts[0] == "src"
        self.layer = parts[1] if self.in_src and len(parts) > 2 else None
        self.folder = "/".join(parts[1:-1]) if self.in_src else None

    def excepted(self, line):
        """Whether line number `line`, or the comment right above it, gives a reason for an exception."""
        if "gb-exception:" in self.lines[line - 1]:
            return bool(re.search(r"gb-exception:\s*\w", self.lines[line - 1]))
        above = line - 2
        while above >= 0 and self.lines[above].strip() and not self.code[above].strip():
            if re.search(r"gb-exception:\s*\w", self.lines[above]):
                return True
            above -= 1
        return False


def blank_comments(text):
    """Comments and the contents of strings become blanks; line breaks stay."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] + " " * (len(found) - 2) + found[0]
        return re.sub(r"[^\n]", " ", found)

    return token.sub(blank, text)


def included(source):
    for number, line in enumerate(source.lines, 1):
        match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if match and source.code[number - 1].strip():
            yield number, match.group(1), match.group(2)


def rule_layers(sources):
    """1: arrows point down only"""
    for source in (s for s in sources if s.layer):
        if source.layer not in LAYERS:
            yield source.path, 1, f"src/{source.layer} is not a layer; see LAYERS in scripts/tidy.py"
            continue
        allowed = LAYERS[source.layer] | {source.folder}
        for number, quote, name in included(source):
            folder = name.rsplit("/", 1)[0] if "/" in name else ""
            top = folder.split("/")[0]
            if quote != '"' or (source.is_test and top == "support"):
                continue
            if top not in LAYERS:
                yield source.path, number, f'write the path from src/, like "base/err.h", not "{name}"'
            elif folder not in allowed and top not in allowed:
                yield source.path, number, f"{source.folder} must not include {folder}; ask it through a port"


def rule_pure_core(sources):
    """2: the outside world is reached in io, adapters and app only"""
    for source in (s for s in sources if s.layer and not s.is_test):
        for number, quote, name in included(source):
            if quote != "<":
                continue
            if name in HEADERS_OF and source.layer != HEADERS_OF[name]:
                yield source.path, number, f"<{name}> belongs to src/{HEADERS_OF[name]} only"
            if source.layer in OUTSIDE or not SYSTEM_HEADERS.fullmatch(name):
                continue
            if name.startswith(SYSTEM_HEADERS_IN.get(source.path, ())):
                continue
            yield source.path, number, f"<{name}> belongs to io, adapters and app; go through a port"


def rule_file_size(sources):
    """3: .c 800 lines, header 250, test 1000"""
    for source in sources:
        most = 250 if source.is_header else 1000 if source.is_test else 800
        if len(source.lines) > most:
            yield source.path, most + 1, f"{len(source.lines)} lines; split it by concept below {most}"


def rule_names(sources):
    """5: one concept per file, named after it"""
    for source in sources:
        for part in source.path.split("/")[1:]:
            if set(re.split(r"[_.]", part)) & {"util", "utils", "misc", "common"}:
                yield source.path, 1, f"name {part} after its concept, not util, misc or common"


def rule_conditionals(sources):
    """6: at most 3 #if besides the guard"""
    for source in (s for s in sources if s.in_src):
        found = [n for n, line in enumerate(source.code, 1) if re.match(r"\s*#\s*if", line)]
        most = 4 if source.is_header else 3
        if len(found) > most:
            yield source.path, found[most], "choose the variant by file in the build, not by #if"


def rule_structs(sources):
    """8: structs stay structs"""
    for source in sources:
        for number, line in enumerate(source.code, 1):
            if re.search(r"\btypedef\s+(struct|union|enum)\b", line):
                yield source.path, number, "typedef function types only; write `struct gb_x`"
            if re.search(r"\b(struct|union|enum)\s+gb_\w+_t\b", line):
                yield source.path, number, "no _t at the end of a type's name"


def rule_contracts(sources):
    """11: headers state their contract"""
    for source in (s for s in sources if s.in_src and s.is_header):
        comments = " ".join(re.findall(r"/\*.*?\*/", source.text, re.S))
        if re.search(r"\b(Pure|Values):", comments) or "gb-exception: rule 11" in comments:
            continue
        missing = [word for word in ("Owns", "Thread", "Errors") if not re.search(rf"\b{word}:", comments)]
        if missing:
            words = ", ".join(f"`{word}:`" for word in missing)
            yield source.path, 1, f"the header's comment needs {words} (or `Pure:`, `Values:`)"


def function_of_lines(source):
    """For each line the name of the function it is in, None outside."""
    name = inside = None
    for line in source.code:
        match = re.match(r"[A-Za-z_][\w\s*]*?\b(\w+)\s*\(", line)
        if match and inside is None:
            name = match.group(1)
        if line.startswith("{"):
            inside = name
        yield inside
        if line.startswith("}"):
            inside = None


def rule_state_writer(sources):
    """23: one writer of `state`"""
    for source in (s for s in sources if s.path.startswith(STATE_FOLDERS) and not s.is_test):
        functions = function_of_lines(source)
        for number, (line, function) in enumerate(zip(source.code, functions), 1):
            if not re.search(r"[\w\])](->|\.)state\s*=(?!=)", line):
                continue
            if function is None or not re.fullmatch(r"(\w+_)?set_state", function):
                yield source.path, number, f"{function or 'this'} must call set_state, the only writer of state"


def rule_fuzz_targets(sources):
    """29: every decoder has a fuzz target"""
    targets = "\n".join(s.text for s in sources if s.path.startswith("tests/fuzz/") and s.name.endswith("_fuzz.c"))
    named = set(re.findall(r"\w+", targets))
    for source in (s for s in sources if s.layer and not s.is_test):
        is_part = not source.is_header and any(  # x_json.c is covered by the target that includes x_json.h
            other.path == source.path[:-1] + "h" for other in sources)
        if CODEC_NAME.match(source.stem) and not is_part and source.stem not in named:
            yield (source.path, 1, f"include it in a tests/fuzz/*_fuzz.c, or name it there: `Covers: {source.stem}`")


def rule_banned_calls(sources):
    """32: time, randomness, environment and output come through ports"""
    for source in (s for s in sources if s.layer):
        banned = BANNED_CALLS
        if source.is_test:  # tests wait for nothing (rule 36), but may print
            banned = SLEEPS
        if source.layer in OUTSIDE:
            continue
        for number, line in enumerate(source.code, 1):
            for match in banned.finditer(line):
                yield source.path, number, f"no {match.group(1)}() here; it comes through a port or from the caller"


def rule_todo(sources):
    """38: a TODO carries an issue number"""
    for source in sources:
        for number, line in enumerate(source.lines, 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b(?!\s*\(?#\d)", line):
                yield source.path, number, "write `TODO #<issue>: ...` or do it now"


def rule_dead_code(sources):
    """38: no commented-out code"""
    for source in sources:
        for number, line in enumerate(source.lines, 1):
            code = source.code[number - 1].strip()
            if re.match(r"#\s*if\s+0\b", code):
                yield source.path, number, "delete the code under #if 0; git keeps it"
            elif not code and re.match(r"\s+(//.*[;{}]|/\*\s*[\w>.\[\]-]+(\s*=\s.*|\(.*\))\s*;\s*\*/)\s*$", line):
                yield source.path, number, "delete commented-out code; git keeps it"


def rule_macros(sources):
    """38: no macro returns or jumps"""
    for source in (s for s in sources if s.in_src):
        defining = False
        for number, line in enumerate(source.code, 1):
            defining = defining or bool(re.match(r"\s*#\s*define\b", line))
            if defining and re.search(r"\b(return|goto|break|continue)\b", line):
                yield source.path, number, "a macro must not return or jump; write the statement out"
            defining = defining and line.rstrip().endswith("\\")


def rule_columns(sources):
    """39: 100 columns, comments too"""
    for source in sources:
        for number, line in enumerate(source.lines, 1):
            if len(line) > 100:
                yield source.path, number, f"{len(line)} columns; `make format` wraps at 100"


RULES = (rule_layers, rule_pure_core, rule_file_size, rule_names, rule_conditionals, rule_structs,
         rule_contracts, rule_state_writer, rule_fuzz_targets, rule_banned_calls, rule_todo,
         rule_dead_code, rule_macros, rule_columns)


def check(root):
    """All findings under `root`, as printed."""
    paths = sorted(str(path.relative_to(root)) for folder in ("src", "tests", "bench")
                   for path in (root / folder).rglob("*.[ch]"))
    sources = [Source(root, path) for path in paths]
    by_path = {source.path: source for source in sources}
    findings = []
    for rule in RULES:
        for path, line, advice in rule(sources):
            if not by_path[path].lines or not by_path[path].excepted(line):
                findings.append(f"{path}:{line}: rule {rule.__doc__.split(':')[0]}: {advice}")
    return findings


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    findings = check(root)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings, {len(RULES)} rules")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
