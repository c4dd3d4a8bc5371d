#!/usr/bin/env python3
"""Brings comment lines below 100 columns, in place: scripts/wrap.py <file>...

clang-format leaves comments alone, because it would run the lines of a contract block together. Here
a line that is too long gives its end to the line below it when that goes on in the same paragraph, else to
a new line; `Owns:` and the like keep their hanging indent. A comment behind code moves above the code.
"""
import re
import sys

COLUMNS = 100
LINE = re.compile(r"(?P<lead>\s*(?:/\*+| \*|\*)) (?P<pad>\s*)(?P<tag>[A-Z][a-z]+: +|- )?(?P<text>.*)$")
BEHIND = re.compile(r"(?P<indent>\s*)(?P<code>\S.*?)\s*(?P<comment>/\*.*\*/)$")


def move_up(lines):
    """A comment behind code, on a line too long, goes above it."""
    for line in lines:
        match = BEHIND.match(line)
        if len(line) <= COLUMNS or not match or "#" in match["code"] or match["code"].startswith(("/*", "*")):
            yield line
            continue
        yield match["indent"] + match["comment"]
        yield match["indent"] + match["code"]


def wrap(lines):
    lines = list(move_up(lines))
    out = []
    inside = False
    while lines:
        line = lines.pop(0)
        starts = line.lstrip().startswith("/*")
        match = LINE.match(line) if inside or starts else None
        ends = "*/" in line
        if match and len(line) > COLUMNS:
            cut = line.rfind(" ", 0, COLUMNS + 1)
            first = len(line) - len(match["text"])
            if line[cut:].strip() == "*/":
                cut = line.rfind(" ", 0, cut)  # the end of the comment stays with its last word
            if cut > first:
                lead = match["lead"].replace("/**", " * ").replace("/*", " *") if starts else match["lead"]
                hang = match["pad"] + " " * len(match["tag"] or "")
                rest = line[cut:].strip()
                below = LINE.match(lines[0]) if lines and not ends else None
                if below and not below["tag"] and below["pad"] == hang and below["text"] not in ("", "/"):
                    rest += " " + lines.pop(0)[below.start("text"):]
                lines.insert(0, f"{lead} {hang}{rest}")
                line, ends = line[:cut].rstrip(), False
        out.append(line)
        inside = (inside or starts) and not ends
    return out


def main(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if all(len(line) <= COLUMNS for line in text.splitlines()):
            continue
        wrapped = "\n".join(wrap(text.splitlines())) + "\n"
        if wrapped != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(wrapped)


if __name__ == "__main__":
    main(sys.argv[1:])
