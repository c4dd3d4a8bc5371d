#!/usr/bin/env python3
"""Writes docs/gobridge.schema.json and docs/configuration.md: generate.py [--check] <build/bin/schema_tables>.

With --check nothing is written; exit 1 when a file is not what it would be.
"""
import json
import pathlib
import sys

import json_schema
import markdown
import tables

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        raise SystemExit(__doc__)
    known = tables.Tables(arguments[-1])
    wanted = {"gobridge.schema.json": json.dumps(json_schema.write(known), indent=1, ensure_ascii=False) + "\n",
              "configuration.md": markdown.write(known)}
    stale = [name for name, text in wanted.items()
             if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != text]
    for name in stale:
        if check:
            print(f"docs/{name} is not up to date with src/blueprint and scripts/reference; run: make docs")
        else:
            (DOCS / name).write_text(wanted[name], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
