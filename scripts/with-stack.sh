#!/usr/bin/env bash
# Runs a command on engines of its own: starts Kafka, Cassandra and Redis, sets the variables that name
# them, and ends the engines with the command.
#
#   scripts/with-stack.sh [--brief] COMMAND [ARGUMENT…]
#
# --brief: scripts/engine.sh says what it is for.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
brief=()
[ "${1:-}" != --brief ] || { brief=(--brief); shift; }
[ $# -gt 0 ] || { echo "usage: with-stack.sh [--brief] COMMAND [ARGUMENT…]" >&2; exit 2; }

name=own-$$
trap '"$scripts/stack.sh" stop --name "$name" >/dev/null' EXIT
echo "starting Kafka, Cassandra and Redis" >&2
"$scripts/stack.sh" start --name "$name" "${brief[@]}" --watch-pid $$ >/dev/null
# shellcheck source=/dev/null
. "$scripts/../.dev/run/$name.env"
"$@"
