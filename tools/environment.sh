#!/usr/bin/env bash
# Makes a virtual environment with the packages of a requirements file; does nothing when it is
# there already, with these packages, in this folder.
#
#   PYTHON=python3.12 tools/environment.sh <folder> <requirements.txt>
set -euo pipefail

folder=$1
requirements=$2
python=${PYTHON:-python3}
stamp=$folder/.packages-$(basename "$requirements" .txt)

if ! command -v "$python" >/dev/null; then
    echo "There is no '$python'. Install Python 3.10 or newer, or name one: make PYTHON=python3.12" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "'$python' is $("$python" --version 2>&1); 3.10 or newer is needed: make PYTHON=python3.12" >&2
    exit 1
fi

# What the environment has to agree with. The folder counts because the scripts in an
# environment hold its name.
identity() {
    "$1" -c 'import sys; print(sys.implementation.cache_tag, getattr(sys, "abiflags", ""))'
}
wanted=$(pwd; identity "$python"; cksum <"$requirements")

if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && "$folder/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

if [ "$(identity "$folder/bin/python" 2>/dev/null)" != "$(identity "$python")" ]; then
    rm -rf "$folder"  # none, a broken one, or one of another Python
fi
echo "setting up $folder ($requirements); the first time, this takes a few minutes"
if ! "$python" -m venv "$folder"; then
    echo "'$python' can't make virtual environments. On Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi
rm -f "$stamp"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
printf '%s\n' "$wanted" >"$stamp"
