#!/usr/bin/env bash
# Rule 11: every header of src/ compiles alone.
set -euo pipefail
cd "$(dirname "$0")/.."

find src -name '*.h' -printf '%P\0' | xargs -0 -r -n 1 -P "$(nproc)" sh -c '
    printf "#include \"%s\"\nextern int gb_unit;\n" "$1" |
        gcc -std=c11 -D_GNU_SOURCE -Isrc -Wall -Wextra -Werror -fsyntax-only -x c - ||
        { echo "headers: src/$1 does not compile alone" >&2; exit 1; }' sh
