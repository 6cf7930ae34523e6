//! Output buffers filled with a known value: bytes that still have it were not written.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use smallvec::SmallVec;

use _core::kernels::{Allocate, OutputBuffer, Result};
use _core::readers::{Part, Source};
use _core::value::{Buffer, DType, Desc, Sample};

const POISONS: [u8; 2] = [0x5a, 0xa5];
/// Allocations of larger results fail, as on a machine with little memory.
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

type Samples = SmallVec<[Sample; 1]>;

/// Runs `work` on buffers filled with two values. If both succeed, all bytes must agree.
pub fn compare(mut work: impl FnMut(&Allocate<'_>) -> Option<Samples>) -> Option<Samples> {
    let mut run = |poison: u8| work(&|_, desc| poisoned(desc, poison));
    let [first, second] = POISONS.map(&mut run);
    let (first, second) = (first?, second?);
    for (output, (a, b)) in first.iter().zip(&second).enumerate() {
        let (Ok(a), Ok(b)) = (a.compact(), b.compact()) else { continue };
        let alike = a.desc == b.desc && a.elements_as_bytes() == b.elements_as_bytes();
        assert!(alike, "not all bytes of output {output}, {:?}, were written", a.desc);
    }
    Some(first)
}

/// Reads up to `samples` samples of a source, each into a filled buffer.
pub fn read(source: &dyn Source, samples: usize) {
    for number in 0..source.len().min(samples) {
        let _ = source.name(number);
        for (part, outputs) in source.outputs().into_iter().enumerate() {
            match outputs {
                Part::Fetched(_) => {
                    compare(|allocate| source.fetch(number, part, allocate).ok());
                }
                Part::Ready(_) => {
                    let _ = source.ready(&[number], part);
                }
            }
        }
    }
}

/// Bytes as an input.
pub fn sample(bytes: &[u8]) -> Result<Sample> {
    let mut space = poisoned(Desc::new(DType::U8, &[bytes.len()]), 0)?;
    space.bytes().copy_from_slice(bytes);
    space.into_sample()
}

fn poisoned(desc: Desc, poison: u8) -> Result<OutputBuffer> {
    // More than any machine has.
    let length = if desc.bytes() > MOST { usize::MAX / 2 } else { desc.bytes() };
    let mut made = OutputBuffer::of(desc, Buffer::new(length)?);
    made.bytes().fill(poison);
    Ok(made)
}

/// A folder for the files of readers, in memory if possible.
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
