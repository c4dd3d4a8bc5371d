#!/usr/bin/env bash
# A million simulated seeds (or the number given), split over the cores; the first violation ends it
# with the command that replays it. SOAK_FIRST sets the first seed.
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:-1000000}
first=${SOAK_FIRST:-1}
jobs=$(nproc)
share=$(((count + jobs - 1) / jobs))

cmake --preset release --log-level=WARNING >/dev/null
cmake --build build --target sim

pids=()
for ((i = 0; i < jobs; i++)); do
    build/bin/gobridge-sim -seed $((first + i * share)) -count "$share" &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
    wait "$pid" || status=1
done
exit "$status"
