#!/usr/bin/env bash
# Formats every C file with the pinned clang-format; with --check only names the ones that differ.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
[[ ${1:-} != --check ]] || mode=(--dry-run -Werror)
for folder in src tests bench; do
    [[ ! -d $folder ]] || find "$folder" -name '*.[ch]' -print0
done | xargs -0 -r -n 20 -P "$(nproc)" clang-format-14 "${mode[@]}"
