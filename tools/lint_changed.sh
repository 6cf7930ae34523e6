#!/usr/bin/env bash
# Lints what differs from HEAD: ruff on the Python files, mypy where the package changed, rustfmt
# and clippy where Rust did.
#
#   PY=.venv/bin/python CLIPPY="cargo clippy" tools/lint_changed.sh
set -euo pipefail

changed=()
while IFS= read -r -d '' file; do
    [ -f "$file" ] && changed+=("$file")
done < <(git diff --name-only --diff-filter=d -z HEAD; git ls-files --others --exclude-standard -z)

python=()
package=false
rust=false
for file in ${changed[@]+"${changed[@]}"}; do
    case $file in
        *.py | *.pyi) python+=("$file") ;;
    esac
    case $file in
        python/*) package=true ;;
        src/* | Cargo.toml | Cargo.lock) rust=true ;;
    esac
done

if [ ${#python[@]} -gt 0 ]; then
    # `--force-exclude`: generated files are left out here as well.
    "$PY" -m ruff check --force-exclude "${python[@]}"
    "$PY" -m ruff format --check --force-exclude "${python[@]}"
fi
if $package; then "$PY" -m mypy; fi
if $rust; then
    cargo fmt --check
    eval "$CLIPPY --all-targets -- --deny warnings"
fi
