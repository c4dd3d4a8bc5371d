#!/usr/bin/env bash
# Measures the bridge beside its floors and writes bench/RESULTS.md: scripts/bench.sh [--help]
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh bench
cmake --preset release --log-level=WARNING >/dev/null
cmake --build build --target gobridge source sink subscriber commit loadlibs
exec /usr/bin/python3 scripts/bench.py "$@"
