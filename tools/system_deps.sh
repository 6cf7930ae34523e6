#!/usr/bin/env bash
# Installs the system packages needed for building: a C compiler, cmake and nasm (for image codecs),
# and support for virtual environments. Without permission, prints what to install.
set -euo pipefail

python=${PYTHON:-python3}

missing=()
command -v cc >/dev/null || missing+=(compiler)
command -v cmake >/dev/null || missing+=(cmake)
command -v nasm >/dev/null || missing+=(nasm)
if command -v "$python" >/dev/null && ! "$python" -c 'import ensurepip' 2>/dev/null; then
    missing+=(venv)
fi
[ ${#missing[@]} -eq 0 ] && exit 0

# The packages of a tool, by package manager.
package() {
    case "$1:$2" in
        apt-get:compiler) echo gcc libc6-dev ;;
        dnf:compiler) echo gcc ;;
        apt-get:venv) echo python3-venv ;;
        dnf:venv) echo python3-pip ;;
        brew:compiler | brew:venv) ;;  # part of Xcode, and of Homebrew's Python
        *) echo "$2" ;;
    esac
}

manager=
for candidate in apt-get dnf brew; do
    command -v $candidate >/dev/null && manager=$candidate && break
done
packages=()
for tool in "${missing[@]}"; do
    for name in $(package "$manager" "$tool"); do packages+=("$name"); done
done

become=
allowed=true
if [ "$manager" != brew ] && [ "$(id -u)" -ne 0 ]; then
    become="sudo -n"
    sudo -n true 2>/dev/null || allowed=false
fi

if [ -n "$manager" ] && $allowed && [ ${#packages[@]} -gt 0 ]; then
    echo "installing ${packages[*]} with $manager"
    case $manager in
        apt-get)
            install=(env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends)
            $become apt-get -qq update || true
            ;;
        dnf) install=(dnf -q install -y) ;;
        brew) install=(brew install --quiet) ;;
    esac
    $become "${install[@]}" "${packages[@]}" >/dev/null && exit 0
    echo "the installation failed." >&2
fi

echo "The build may need tools that are not installed: ${missing[*]}." >&2
if [ -n "$manager" ] && [ ${#packages[@]} -gt 0 ]; then
    echo "Install them with: ${become:+sudo }$manager install ${packages[*]}" >&2
else
    echo "Install them with the system's package manager." >&2
fi
# The build continues: it fails by itself if a required tool is missing.
