#!/usr/bin/env bash
# `make run`, `make run-stack`: builds, runs the demo, and brings a real Kafka (LOG=kafka) or all three
# engines (LOG=stack) up and down around it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

LOG=${LOG:-embedded}
DEMO_DIR=${DEMO_DIR:-.}
work=.dev/demo-$LOG
profile=(--release)
[ "${DEMO_PROFILE:-release}" = dev ] && profile=()

packages=(-p dualtrack)
[ "$LOG" = stack ] && packages+=(-p dualtrack-coordinator -p dualtrack-task-engine -p dualtrack-auto-replay)
cargo build -q "${profile[@]}" "${packages[@]}"
binary=target/release/dualtrack
[ "${DEMO_PROFILE:-release}" = dev ] && binary=target/debug/dualtrack

args=(demo --dir "$DEMO_DIR" --work "$work" --checker tests/checker/check.py)
case "$LOG" in
embedded) args+=(--log embedded) ;;
kafka)
    name=demo-$$
    trap 'scripts/kafka.sh stop --name "$name" >/dev/null' EXIT
    info=$(scripts/kafka.sh start --name "$name" --brief --watch-pid $$)
    bootstrap=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["bootstrap"])' "$info")
    echo "Kafka is up at $bootstrap"
    args+=(--log kafka --bootstrap "$bootstrap")
    ;;
stack)
    exec scripts/with-stack.sh --brief "$binary" "${args[@]}" --stack
    ;;
*)
    echo "LOG=$LOG is not known: embedded, kafka or stack" >&2
    exit 2
    ;;
esac
"$binary" "${args[@]}"
