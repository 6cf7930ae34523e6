#!/usr/bin/env bash
# Makes sure that cargo, rustfmt and clippy are installed, or prints how to install them.
set -euo pipefail

if ! command -v cargo >/dev/null; then
    echo "Rust is missing: penstock's engine is built with cargo. Install it from https://rustup.rs" >&2
    echo "or with the system's package manager, and run the command again." >&2
    exit 1
fi
for component in rustfmt clippy; do
    tool=cargo-${component/rustfmt/fmt}
    command -v "$tool" >/dev/null && continue
    if ! command -v rustup >/dev/null || ! rustup component add "$component"; then
        echo "$tool is missing: install the Rust component '$component'." >&2
        exit 1
    fi
done
