#!/usr/bin/env bash
# Reads the topic with standard tools: Confluent's Python consumer with the coordinator as its schema
# registry, and kcat. Starts a real Kafka of its own and ends it; installs what it needs into .dev/topic
# (kcat by apt-get as root). The server's program is the one the tests of the workspace have built
# (target/debug/dualtrack, or DUALTRACK_BIN).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/packages.sh
. scripts/packages.sh
at=.dev/topic
wanted=tests/topic/requirements.txt
DUALTRACK_BIN=${DUALTRACK_BIN:-$PWD/target/debug/dualtrack}
if [ ! -x "$DUALTRACK_BIN" ]; then
    echo "$DUALTRACK_BIN is not there; build it first: cargo build -p dualtrack" >&2
    exit 1
fi
if ! command -v kcat >/dev/null; then
    [ "$(id -u)" = 0 ] || { echo "kcat is missing: install the Debian package kcat" >&2; exit 1; }
    install_packages kcat >&2
fi

mkdir -p "$at"
if ! cmp -s "$wanted" "$at/installed.txt"; then
    rm -rf "$at/venv"
    python3 -m venv "$at/venv"
    "$at/venv/bin/pip" install -q -r "$wanted"
    cp "$wanted" "$at/installed.txt"
fi
name=topic-tools-$$
started=$(scripts/kafka.sh start --name "$name" --brief --watch-pid $$)
trap 'scripts/kafka.sh stop --name "$name"' EXIT
KAFKA_BOOTSTRAP=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["bootstrap"])' "$started")
export KAFKA_BOOTSTRAP DUALTRACK_BIN
"$at/venv/bin/python" -m unittest discover tests/topic
