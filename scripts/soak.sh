#!/usr/bin/env bash
# The long run (make soak): kill -9 of the bridge under load, valgrind when it is installed, and simulated seeds split over
# the cores. Every part runs, whatever the others found; the summary says how each ended.
#   scripts/soak.sh [SEEDS]      default 1000000; 0 leaves the simulator out
#   GB_KILLS=500                 number of kills; 0 leaves them out
#   GB_SEED=N, SOAK_FIRST=N      repeat the kills' moments, first simulated seed
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

seeds=${1:-1000000}
first=${SOAK_FIRST:-1}
kills=${GB_KILLS:-500}
results=build/soak
failed=0
summary=()

part() {
    local title=$1 log=$results/$2.log start=$SECONDS status=0
    shift 2
    printf '=== %s\n' "$title"
    "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    [[ $status == 0 ]] || failed=1
    summary+=("$([[ $status == 0 ]] && echo ok || echo FAILED)  $title, $((SECONDS - start)) s: $(grep -E "$pattern" "$log" | tail -n 1)")
}

# shellcheck disable=SC2317  # called by part
simulate() {
    local jobs share pids=() status=0
    jobs=$(nproc)
    share=$(((seeds + jobs - 1) / jobs))
    for ((i = 0; i < jobs; i++)); do
        build/bin/gobridge-sim -seed $((first + i * share)) -count "$share" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || status=1
    done
    return "$status"
}

mkdir -p "$results"
cmake --preset release --log-level=WARNING >/dev/null && cmake --build build --target gobridge sim || exit 2

if [[ $kills != 0 ]]; then
    pattern='^acknowledged' GB_KILLS=$kills \
        part "$kills kills" kills .venv/bin/pytest tests/e2e/test_kill.py -q -s -p no:cacheprovider
fi
if command -v valgrind >/dev/null; then
    pattern='passed|failed' part "valgrind" valgrind .venv/bin/pytest tests/e2e/soak_valgrind.py -q -s -p no:cacheprovider
else
    summary+=("left out  valgrind: it is not installed (apt-get install valgrind)")
fi
if [[ $seeds != 0 ]]; then
    pattern='violations|^seed' part "$seeds simulated seeds from $first" sim simulate
fi

printf '\nsoak: summary (logs in %s)\n' "$results"
printf '  %s\n' "${summary[@]}"
exit "$failed"
