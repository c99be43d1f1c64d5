#!/usr/bin/env bash
# Every test of the repository. Prints what each runner prints, then one closing line with the sum.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p .dev
log=.dev/test.log
: >"$log"
failed_step=0

step() { # title, command...
    local title=$1
    shift
    local begin=$SECONDS
    echo "== $title"
    "$@" 2>&1 | tee -a "$log"
    local status=${PIPESTATUS[0]}
    echo "== $title: $((SECONDS - begin)) s, exit $status"
    [ "$status" = 0 ] || failed_step=1
}

step "format" cargo fmt --all --check
step "lints" cargo clippy --workspace --all-targets -q -- -D warnings
step "rust tests" cargo test --workspace --no-fail-fast
# Of the whole workspace, or other features would build its dependencies a second time.
step "fail points" cargo test --workspace --features dualtrack/failpoints --test fail_points
step "checker tests" python3 -m unittest discover tests/checker
step "generated client" scripts/openapi-client.sh

passed=$(grep -oE '^test result: .* ([0-9]+) passed' "$log" | grep -oE '[0-9]+ passed' | awk '{n+=$1} END {print n+0}')
failed=$(grep -oE '^test result: .* ([0-9]+) failed' "$log" | grep -oE '[0-9]+ failed' | awk '{n+=$1} END {print n+0}')
python_ran=$(grep -oE '^Ran [0-9]+ test' "$log" | awk '{n+=$2} END {print n+0}')
python_bad=$(grep -oE '^FAILED \(.*\)' "$log" | grep -oE '(failures|errors)=[0-9]+' | grep -oE '[0-9]+' | awk '{n+=$1} END {print n+0}')
passed=$((passed + python_ran - python_bad))
failed=$((failed + python_bad))
if [ "$failed_step" != 0 ] && [ "$failed" = 0 ]; then
    failed=1 # a step that is no test run (format, lints, a build) failed
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
