#!/usr/bin/env bash
# This release and one that knows rules 2 (feature rules-next), beside each other and one after the other.
# FEATURES: those of the build that target/ holds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}/debug
mkdir -p .dev
cp -f "$target/dualtrack" .dev/dualtrack-rules-1
# The older one in its place again, however this ends: other tests may follow.
trap 'mv -f .dev/dualtrack-rules-1 "$target/dualtrack"' EXIT
DUALTRACK_RULES_1="$PWD/.dev/dualtrack-rules-1" cargo test --workspace --no-fail-fast \
    --features "${FEATURES:+$FEATURES,}dualtrack/rules-next" --test rules_next --test behaviour
