//! Builds the coverage counters of the C codecs (`coverage.c`), and sets the link option for them.

fn main() {
    println!("cargo::rerun-if-changed=coverage.c");
    cc::Build::new().file("coverage.c").flag("-fno-sanitize=all").compile("coverage");
    println!("cargo::rustc-link-arg=-Wl,--wrap=__sanitizer_cov_trace_pc");
}
