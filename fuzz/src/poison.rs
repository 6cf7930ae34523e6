//! Room for results that is full of something first: what shows through was not written.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use _core::kernels::{Result, Space};
use _core::readers::Source;
use _core::value::{Buffer, Desc, Sample};

const POISONS: [u8; 2] = [0x5a, 0xa5];
/// Results that are larger can't be had, as on a machine that is short of memory.
const MOST: usize = 64 << 20;

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

pub fn note_panic(text: String) {
    if let Ok(mut last) = LAST_PANIC.lock() {
        *last = text;
    }
}

pub fn last_panic() -> String {
    LAST_PANIC.lock().map(|last| last.clone()).unwrap_or_default()
}

/// Runs `work` on room that is poisoned in two ways. Where both succeed, all bytes must agree.
pub fn compare(length: usize, mut work: impl FnMut(&mut [u8]) -> bool) {
    if length > MOST {
        return;
    }
    let mut run = |poison: u8| {
        let mut room = vec![poison; length];
        work(&mut room).then_some(room)
    };
    let [first, second] = POISONS.map(&mut run);
    if let (Some(first), Some(second)) = (first, second)
        && let Some(place) = first.iter().zip(&second).position(|(a, b)| a != b)
    {
        panic!("byte {place} of {length} was not written");
    }
}

/// Reads up to `samples` samples of a source, each twice, on poisoned room.
pub fn read(source: &dyn Source, samples: usize) {
    for number in 0..source.len().min(samples) {
        let _ = source.name(number);
        let read = |poison| source.read(number, &|_, desc| poisoned(desc, poison)).ok();
        let [first, second] = POISONS.map(read);
        let (Some(first), Some(second)) = (first, second) else { continue };
        for (output, (a, b)) in first.iter().zip(&second).enumerate() {
            check(number, output, a, b);
        }
    }
}

fn check(number: usize, output: usize, first: &Sample, second: &Sample) {
    let (Ok(first), Ok(second)) = (first.compact(), second.compact()) else { return };
    let differ = first.desc != second.desc || first.elements_as_bytes() != second.elements_as_bytes();
    assert!(!differ, "sample {number}: not all bytes of output {output} were written");
}

fn poisoned(desc: Desc, poison: u8) -> Result<Space> {
    let length = if desc.bytes() > MOST { usize::MAX / 2 } else { desc.bytes() };
    let buffer = Buffer::new(length)?;
    // SAFETY: the buffer is new, and nobody else's.
    unsafe { std::ptr::write_bytes(buffer.as_ptr(), poison, length) };
    // SAFETY: the buffer is for this space alone.
    #[allow(unused_unsafe)]
    Ok(unsafe { Space::new(desc, buffer, 0) })
}

/// A folder for the files that readers read, in memory where there is such a place.
pub fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let base = std::env::var_os("PENSTOCK_FUZZ_SCRATCH");
        let base = base.map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = base.join(format!("penstock-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for files");
        folder
    })
}

/// Writes a file for a reader.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("a file for a reader");
    path
}
