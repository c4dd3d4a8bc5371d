#!/usr/bin/env bash
# Two bridges over one broker session in a local DynamoDB: the owner is killed, the standby takes over, nothing missing.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python scripts/demo_cluster.py "$@"
