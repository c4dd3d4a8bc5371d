#!/usr/bin/env bash
# Shows the product working: broker, SQS server and bridge on this machine, a kill -9 in the middle, nothing missing.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python scripts/demo.py "$@"
