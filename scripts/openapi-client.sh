#!/usr/bin/env bash
# Generates a client from the committed OpenAPI document with a stock generator, and runs the tests that
# use it against a real `dualtrack dev`. Installs what it needs into .dev/openapi; the server's program is
# the one the tests of the workspace have built (target/debug/dualtrack, or DUALTRACK_BIN).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
at=.dev/openapi
wanted=tests/openapi/requirements.txt
DUALTRACK_BIN=${DUALTRACK_BIN:-$PWD/target/debug/dualtrack}
if [ ! -x "$DUALTRACK_BIN" ]; then
    echo "$DUALTRACK_BIN is not there; build it first: cargo build -p dualtrack" >&2
    exit 1
fi

mkdir -p "$at"
if ! cmp -s "$wanted" "$at/installed.txt"; then
    rm -rf "$at/venv"
    python3 -m venv "$at/venv"
    "$at/venv/bin/pip" install -q -r "$wanted"
    cp "$wanted" "$at/installed.txt"
fi
"$at/venv/bin/openapi-python-client" generate --path schemas/openapi/dualtrack.json --config tests/openapi/generator.yaml \
    --meta none --output-path "$at/dualtrack_client" --overwrite --fail-on-warning
PYTHONPATH=$at DUALTRACK_BIN=$DUALTRACK_BIN "$at/venv/bin/python" -m unittest discover tests/openapi
