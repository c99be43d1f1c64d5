#!/usr/bin/env bash
# `make run`: builds, runs the demo, and for LOG=kafka brings a real Kafka up and down around it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

LOG=${LOG:-embedded}
DEMO_DIR=${DEMO_DIR:-.}
work=.dev/demo-$LOG
profile=(--release)
[ "${DEMO_PROFILE:-release}" = dev ] && profile=()

cargo build -q "${profile[@]}" -p dualtrack
binary=target/release/dualtrack
[ "${DEMO_PROFILE:-release}" = dev ] && binary=target/debug/dualtrack

args=(demo --dir "$DEMO_DIR" --work "$work" --checker tests/checker/check.py --log "$LOG")
case "$LOG" in
embedded) ;;
kafka)
    name=demo-$$
    trap 'scripts/kafka.sh stop --name "$name" >/dev/null' EXIT
    info=$(scripts/kafka.sh start --name "$name" --watch-pid $$)
    bootstrap=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["bootstrap"])' "$info")
    echo "Kafka is up at $bootstrap"
    args+=(--bootstrap "$bootstrap")
    ;;
*)
    echo "LOG=$LOG is not known: embedded or kafka" >&2
    exit 2
    ;;
esac
"$binary" "${args[@]}"
