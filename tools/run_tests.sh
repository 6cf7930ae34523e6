#!/usr/bin/env bash
# Runs pytest in two steps: on all cores, then, one after another, the tests that are not to run
# beside others (`alone`).
#
#   PY=.venv/bin/python tools/run_tests.sh "<markers>" [pytest's arguments]
set -uo pipefail

markers=$1
shift
found=false
failed=0

step() {
    "$PY" -m pytest "$@"
    case $? in
        0) found=true ;;
        5) ;;  # nothing of this step was chosen
        *) found=true; failed=1 ;;
    esac
}

step -n auto --dist loadfile -m "($markers) and not alone" "$@"
step -m "($markers) and alone" "$@"

if ! $found; then
    echo "no test was chosen" >&2
    exit 5
fi
exit $failed
