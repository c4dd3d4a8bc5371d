#!/usr/bin/env bash
# Wraps comments and formats every C file with the pinned clang-format; with --check only names the
# files that differ: scripts/format.sh [--check] [file or folder...]
set -euo pipefail
cd "$(dirname "$0")/.."

check=false
if [[ ${1:-} == --check ]]; then
    check=true
    shift
fi
places=("$@")
[[ $# -gt 0 ]] || for folder in src tests bench; do
    [[ ! -d $folder ]] || places+=("$folder")
done
run() {
    find "${places[@]}" -name '*.[ch]' -print0 | xargs -0 -r -n 20 -P "$(nproc)" "$@"
}

if $check; then # scripts/tidy.py measures the width of comments
    run clang-format-14 --dry-run -Werror
else
    run scripts/wrap.py
    run clang-format-14 -i
    run scripts/wrap.py # the formatter aligns comments, perhaps beyond the last column
    run clang-format-14 -i
fi
