#!/usr/bin/env bash
# Simulated failovers of a cluster (make sim-cluster, nightly): seeds one after the other until so many were counted. Ends
# with 1 and the line that replays it when a seed breaks an invariant.
#   scripts/sim_cluster.sh [FAILOVERS]   default 100000
#   SIM_FIRST=N                          first seed, default 1
#   SIM_HOURS=H                          simulated hours of faults in each seed, default 0.2
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset release --log-level=WARNING >/dev/null
cmake --build build --target sim
time build/bin/gobridge-sim -cluster -seed "${SIM_FIRST:-1}" -hours "${SIM_HOURS:-0.2}" -failovers "${1:-100000}"
