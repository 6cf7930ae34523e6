#!/usr/bin/env bash
# Makes sure that cargo, rustfmt and clippy are installed, and new enough, or prints how to get them.
set -euo pipefail
cd "$(dirname "$0")/.."

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    echo "Rust is missing: penstock's engine is built with Rust $needed or newer. Install it from" >&2
    echo "https://rustup.rs (no root needed), and run the command again." >&2
    exit 1
fi
found=$(rustc --version | cut -d ' ' -f 2)
if [ "$(printf '%s\n' "$needed" "${found%%-*}" | sort -V | head -n 1)" != "$needed" ]; then
    echo "Rust $found is too old: penstock needs $needed or newer. Update it with 'rustup update'," >&2
    echo "or install a newer one from https://rustup.rs, and run the command again." >&2
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
