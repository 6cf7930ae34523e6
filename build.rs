//! Makes the version of Python known to conditional compilation, and says if JPEGs will decode slowly.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
    if !jpeg_has_simd() {
        println!(
            "cargo:warning=JPEGs will decode about 1.8 times slower: libjpeg-turbo was built without \
             its SIMD code, since the assembler nasm is missing; install nasm (apt-get, dnf or brew \
             install nasm) and build again."
        );
    }
}

/// Whether libjpeg-turbo was built with SIMD code, as its configuration says; true if that is unknown.
fn jpeg_has_simd() -> bool {
    let folders = env::var("DEP_TURBOJPEG_INCLUDE").unwrap_or_default();
    folders
        .split(',')
        .filter_map(|folder| fs::read_to_string(Path::new(folder).join("jconfig.h")).ok())
        .all(|config| config.contains("#define WITH_SIMD"))
}
