#!/usr/bin/env bash
# Writes the simulated logs of tests/checker/logs anew, after a change of the schema or the fold.
set -euo pipefail
cd "$(dirname "$0")/.."

for seed in 21 24 27; do
    cargo run --release -q -p simulation --bin sim -- --seeds "$seed" --records 120 --dump tests/checker/logs
done
