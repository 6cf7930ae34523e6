#!/usr/bin/env bash
# Builds the wheels of penstock and penstock-remote into dist/, checks them, installs them into an empty
# environment without a compiler, and runs smoke tests there.
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
maturin build --release --out dist --manifest-path remote/Cargo.toml --target-dir target/remote \
    --interpreter "$python" "$@"

wheel=$PWD/$(echo dist/penstock-*.whl)
remote=$PWD/$(echo dist/penstock_remote-*.whl)
for each in "$wheel" "$remote"; do
    twine check --strict "$each"
    [ "$(uname -s)" != Linux ] || auditwheel show "$each"
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/empty"
# No compiler, no cargo, no cmake: nothing but the environment itself.
(
    export PATH=$folder/empty/bin
    python -m pip install --quiet --disable-pip-version-check --only-binary :all: "$wheel"
    python -I "$PWD/tools/smoke_test.py"
    python -m pip install --quiet --disable-pip-version-check --only-binary :all: "$remote"
    python -I "$PWD/tools/smoke_test_remote.py"
)
ls -l "$wheel" "$remote"
