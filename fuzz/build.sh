#!/usr/bin/env bash
# Builds the fuzzers: fuzz/build.sh [address|none] [release|quick]. Prints where the binary is.
#
# The stable compiler supports all this, but only with RUSTC_BOOTSTRAP, which enables `-Z`. Coverage
# is LLVM's for Rust and GCC's for C (`cc`, `coverage.c`). With an explicit target, build scripts are
# not instrumented. Sanitizers can't see the codecs' assembly code (SIMD).
set -euo pipefail
cd "$(dirname "$0")"

sanitizer=${1:-address} profile=${2:-release}
target=$(rustc -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Cforce-frame-pointers"
cflags="-fsanitize-coverage=trace-pc -fno-omit-frame-pointer -g1"
case $sanitizer in
    address) coverage+=" -Zsanitizer=address" cflags+=" -fsanitize=address" ;;
    none) ;;
    *) echo "fuzz/build.sh [address|none] [release|quick]" >&2; exit 2 ;;
esac

export RUSTC_BOOTSTRAP=1 PENSTOCK_FUZZ_CFLAGS=$cflags
export "CC_${target//-/_}=$PWD/cc" "CXX_${target//-/_}=c++"
RUSTFLAGS=$coverage cargo build --profile "$profile" --quiet \
    --target "$target" --target-dir "target/$sanitizer" >&2
echo "$PWD/target/$sanitizer/$target/$profile/penstock-fuzz"
