//! Any bytes as input for every parser: no escaping panic, memory error, hang, huge allocation, or
//! result with uninitialized bytes.

#![no_main]

mod images;
mod packed;
mod poison;
mod records;
mod sounds;
mod texts;

use std::sync::OnceLock;

use libfuzzer_sys::{Corpus, fuzz_target};

/// Tries one input. `false` if it is not valid for this target, and not worth keeping.
type Target = fn(&[u8]) -> bool;

const TARGETS: &[(&str, Target)] = &[
    ("bmp", images::bmp),
    ("gif", images::gif),
    ("jpeg", images::jpeg),
    ("jpeg_reduced", images::jpeg_reduced),
    ("jpeg2000", images::jpeg2000),
    ("png", images::png),
    ("pnm", images::pnm),
    ("tiff", images::tiff),
    ("webp", images::webp),
    ("exif", images::exif),
    ("wav", sounds::wav),
    ("w64", sounds::w64),
    ("aiff", sounds::aiff),
    ("au", sounds::au),
    ("sphere", sounds::sphere),
    ("caf", sounds::caf),
    ("flac", sounds::flac),
    ("ogg", sounds::ogg),
    ("mpeg", sounds::mpeg),
    ("adts", sounds::adts),
    ("mp4", sounds::mp4),
    ("matroska", sounds::matroska),
    ("inflate", packed::inflate),
    ("npy", records::npy),
    ("tar", records::tar),
    ("tfrecord", records::tfrecord),
    ("example", records::example),
    ("recordio", records::recordio),
    ("lmdb", records::lmdb),
    ("parquet", records::parquet),
    ("arrow", records::arrow),
    ("mds", records::mds),
    ("fits", records::fits),
    ("index", records::index),
    ("coco", texts::coco),
    ("coco_store", texts::coco_store),
    ("nemo", texts::nemo),
    ("list", texts::list),
    ("glob", texts::glob),
];

static TARGET: OnceLock<Target> = OnceLock::new();

/// The selected target. The engine and some codecs catch panics, so only those that escape from the
/// target count: the hook that aborts the process is removed.
fn start() {
    std::panic::set_hook(Box::new(|info| {
        if std::env::var_os("PENSTOCK_FUZZ_PANICS").is_some() {
            eprintln!("{info}");
        }
        poison::note_panic(info.to_string());
    }));
    let wanted = std::env::var("PENSTOCK_FUZZ_TARGET").unwrap_or_default();
    let Some((_, target)) = TARGETS.iter().find(|(name, _)| *name == wanted) else {
        let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("PENSTOCK_FUZZ_TARGET must be one of: {}", names.join(" "));
        std::process::exit(2);
    };
    let _ = TARGET.set(*target);
}

fuzz_target!(init: start(), |data: &[u8]| -> Corpus {
    let target = TARGET.get().expect("set at the start");
    match std::panic::catch_unwind(|| target(data)) {
        Ok(true) => Corpus::Keep,
        Ok(false) => Corpus::Reject,
        Err(_) => {
            eprintln!("panic: {}", poison::last_panic());
            std::process::abort();
        }
    }
});
