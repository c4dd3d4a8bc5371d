#!/usr/bin/env bash
# Fuzzes every parser: scripts/fuzz.sh [seconds for each target, default 3600] [target...]
# Seeds: tests/fuzz/corpus/<name>/; dictionary: tests/fuzz/<name>.dict. What is found stays in
# build/fuzz-out/<name>/: corpus/ (inputs with new coverage), crash-*, timeout-*, oom-*, log.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-3600}
shift || true
targets=("$@")
if [[ ${#targets[@]} == 0 ]]; then
    for source in tests/fuzz/*_fuzz.c; do
        [[ -e $source ]] || continue
        name=${source##*/}
        targets+=("${name%_fuzz.c}")
    done
fi
if [[ ${#targets[@]} == 0 ]]; then
    echo "fuzz: no targets in tests/fuzz"
    exit 0
fi

cmake --preset fuzz --log-level=WARNING >/dev/null
cmake --build --preset fuzz
export ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-14/bin/llvm-symbolizer
export UBSAN_OPTIONS=print_stacktrace=1

# AddressSanitizer of clang 14 may collide with the address randomisation of newer kernels.
fixed=""
setarch -R true 2>/dev/null && fixed="setarch -R"
export seconds fixed

fuzz_one() {
    local name=$1 out=build/fuzz-out/$1
    local seeds=tests/fuzz/corpus/$name dict=tests/fuzz/$name.dict
    local args=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$out/")
    mkdir -p "$out/corpus"
    [[ ! -f $dict ]] || args+=(-dict="$dict")
    args+=("$out/corpus")
    [[ ! -d $seeds ]] || args+=("$seeds")
    # shellcheck disable=SC2086  # `fixed` is a command with its option, or nothing
    if $fixed "build/fuzz/bin/${name}_fuzz" "${args[@]}" >"$out/log" 2>&1; then
        echo "fuzz: $name: $(grep -E '^Done ' "$out/log" || echo 'ended')"
        return 0
    fi
    tail -n 60 "$out/log" >&2
    echo "fuzz: $name: FAILED, see $out/" >&2
    return 1
}
export -f fuzz_one

printf '%s\n' "${targets[@]}" | xargs -P 2 -I '{}' bash -c 'fuzz_one "$1"' fuzz '{}' || exit 1
