#!/usr/bin/env bash
# The whole check, as `make check` and CI run it. Stops at the first step that fails. The last line
# sums what ctest and pytest counted: N passed, N failed, N skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzz_seconds=12
jobs=$(nproc)
results=$PWD/build/check
mkdir -p "$results"
rm -f "$results"/*.xml

export ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-14/bin/llvm-symbolizer
export TSAN_OPTIONS="external_symbolizer_path=$ASAN_SYMBOLIZER_PATH halt_on_error=1"
export UBSAN_OPTIONS=print_stacktrace=1

# The sanitizers of clang 14 may collide with the address randomisation of newer kernels.
fixed=()
setarch -R true 2>/dev/null && fixed=(setarch -R)

step() {
    local title=$1 start=$SECONDS
    shift
    current=$title
    printf '\n=== %s\n' "$title"
    "$@"
    printf -- '--- %s: ok, %d s\n' "$title" $((SECONDS - start))
}

# shellcheck disable=SC2317  # called by the trap
finish() {
    local status=$?
    printf '\n'
    [[ -z ${emulator_missing:-} ]] || printf 'NOTICE: DynamoDB was moto alone, what needs dynoxide was skipped: %s\n' "$emulator_missing"
    [[ $status == 0 ]] || printf 'check: FAILED in the step: %s\n' "${current:-start}"
    printf 'check: %d min %d s\n' $((SECONDS / 60)) $((SECONDS % 60))
    python3 scripts/tally.py "$status" "$results"/*.xml || true
    exit "$status"
}
trap finish EXIT

configure_and_build() {
    cmake --preset "$1" --log-level=WARNING >/dev/null
    cmake --build --preset "$1"
}

run_tests() {
    local preset=$1
    configure_and_build "$preset"
    .venv/bin/python tests/e2e/emulators.py "${fixed[@]}" ctest --preset "$preset" -j "$jobs" --progress \
        --no-tests=error --output-junit "$results/ctest-$preset.xml"
}

# What was run on dynoxide once more on moto. Where moto was the only one, the same without any: ctest counts it as
# skipped, which it was.
run_second_emulator() {
    local with=(.venv/bin/python tests/e2e/emulators.py --emulator moto)
    [[ -z $emulator_missing ]] || with=()
    "${with[@]}" ctest --preset release -L '^dynamodb$' --no-tests=error --output-junit "$results/ctest-emulator.xml"
}

end_to_end() {
    if [[ ! -d tests/e2e ]]; then
        echo "NOTICE: tests/e2e does not exist; no end-to-end tests were run"
        return
    fi
    .venv/bin/pytest tests/e2e -q -n "$jobs" --dist worksteal --junitxml="$results/pytest.xml"
}

step "setup" scripts/setup.sh check
emulator_missing=$(.venv/bin/python tests/e2e/emulators.py --missing dynoxide)
step "house rules" python3 scripts/tidy.py
step "house rules: self-test" python3 tests/tidy_test.py
step "mutation run: self-test" python3 tests/mutate_test.py
step "format" scripts/format.sh --check
step "headers compile alone" scripts/headers.sh
step "release build and tests (gcc)" run_tests release
step "DynamoDB tests on the second emulator" run_second_emulator
step "symbols and globals" scripts/symbols.sh build
step "lint" scripts/lint.py
step "ASan and UBSan build and tests (clang)" run_tests asan
step "TSan build and tests" run_tests tsan
step "fuzz, $fuzz_seconds s each" scripts/fuzz.sh "$fuzz_seconds"
step "end to end" end_to_end
