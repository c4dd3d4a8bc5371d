#!/usr/bin/env bash
# Wraps comments and formats every C file with the pinned clang-format; with --check only names the
# files that differ.
set -euo pipefail
cd "$(dirname "$0")/.."

files() {
    local folder
    for folder in src tests bench; do
        [[ ! -d $folder ]] || find "$folder" -name '*.[ch]' -print0
    done
}
run() {
    files | xargs -0 -r -n 20 -P "$(nproc)" "$@"
}

if [[ ${1:-} == --check ]]; then # scripts/tidy.py measures the width of comments
    run clang-format-14 --dry-run -Werror
else
    run scripts/wrap.py
    run clang-format-14 -i
    run scripts/wrap.py # the formatter aligns comments, perhaps beyond the last column
    run clang-format-14 -i
fi
