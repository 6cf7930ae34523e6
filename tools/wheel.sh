#!/usr/bin/env bash
# Builds a wheel into dist/, checks it, installs it into an empty environment without a compiler, and
# runs a smoke test there.
#
#   PYTHON=python3.12 tools/wheel.sh <environment with requirements/wheel.txt> [arguments of maturin]
set -euo pipefail
cd "$(dirname "$0")/.."

environment=$(cd "$1" && pwd)
shift
python=$(command -v "${PYTHON:-python3}")
export PATH=$environment/bin:$PATH

# On Linux, a wheel runs on systems whose libc is as new as the one that it was built with, or newer.
# The release workflow builds in containers with an old one.
rm -rf dist
maturin build --release --out dist --interpreter "$python" --features python,require-simd "$@"

wheel=$PWD/$(echo dist/*.whl)
twine check --strict "$wheel"
[ "$(uname -s)" != Linux ] || auditwheel show "$wheel"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/empty"
# No compiler, no cargo, no cmake: nothing but the environment itself.
(
    export PATH=$folder/empty/bin
    python -m pip install --quiet --disable-pip-version-check --only-binary :all: "$wheel"
    python -I "$PWD/tools/smoke_test.py"
)
ls -l "$wheel"
