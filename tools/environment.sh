#!/usr/bin/env bash
# Creates a virtual environment with the packages of a requirements file; does nothing if it exists
# already in this folder, with these packages.
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

# What identifies the environment. The folder is part of it, since scripts in an environment contain
# its path.
identity() {
    "$1" -c 'import sys; print(sys.implementation.cache_tag, getattr(sys, "abiflags", ""))'
}
# The file and those that it includes.
files() {
    echo "$1"
    sed -n 's/^-r //p' "$1" | while read -r other; do files "$(dirname "$1")/$other"; done
}
all=$(files "$requirements")
# shellcheck disable=SC2086 # a list of names without spaces
wanted=$(pwd; identity "$python"; cat $all | cksum)

if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && "$folder/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

if [ "$(identity "$folder/bin/python" 2>/dev/null)" != "$(identity "$python")" ]; then
    rm -rf "$folder"  # missing, broken, or of another Python
fi
echo "setting up $folder ($requirements): downloads packages, a few minutes the first time"
if ! "$python" -m venv "$folder"; then
    echo "'$python' can't create virtual environments. On Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi
rm -f "$stamp"
"$folder/bin/python" -m pip install --disable-pip-version-check -r "$requirements"
printf '%s\n' "$wanted" >"$stamp"
