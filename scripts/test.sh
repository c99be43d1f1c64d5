#!/usr/bin/env bash
# Every test of the repository; or with `drills` those of faults on real engines, with `lint` none. Prints what
# each runner prints, then one closing line with the sum.
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

# One build for all of it: with fail points, which do nothing until they are armed and which no release
# build can have, and with the drills.
features=stack-tests/drills,stack-tests/failpoints
for program in dualtrack dualtrack-coordinator dualtrack-task-engine dualtrack-auto-replay; do
    features+=",$program/failpoints"
done
# Nobody builds a second time what CI builds, nor looks at it with a debugger.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

if [ "${1:-}" = drills ]; then
    # The programs first: tests with processes run what lies beside them.
    step "programs" cargo test --workspace --features "$features" --no-run --test command_line --test dev
    step "drills" cargo test --workspace --features "$features" --no-fail-fast --test chaos --test deaths
    exit $failed_step
fi
step "format" cargo fmt --all --check
step "lints" cargo clippy --workspace --all-targets --features "$features" -q -- -D warnings
[ "${1:-}" != lint ] || exit $failed_step
# A test that hangs must not take the account of the others with it.
step "rust tests" timeout --kill-after=60 4200 cargo test --workspace --features "$features" --no-fail-fast
FEATURES=$features step "two releases" scripts/two-releases.sh
step "checker tests" python3 -m unittest discover tests/checker
step "generated client" scripts/openapi-client.sh
step "standard tools" scripts/topic-tools.sh

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
