//! Room for results that is full of something first: what shows through was not written.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use smallvec::SmallVec;

use _core::kernels::{Allocate, Result, Space};
use _core::readers::{Part, Source};
use _core::value::{Buffer, DType, Desc, Sample};

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

type Samples = SmallVec<[Sample; 1]>;

/// Runs `work` on room that is poisoned in two ways. Where both succeed, all bytes must agree.
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

/// Reads up to `samples` samples of a source, each on poisoned room.
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

/// Bytes, as an input.
pub fn sample(bytes: &[u8]) -> Result<Sample> {
    let mut space = poisoned(Desc::new(DType::U8, &[bytes.len()]), 0)?;
    space.bytes().copy_from_slice(bytes);
    space.into_sample()
}

fn poisoned(desc: Desc, poison: u8) -> Result<Space> {
    // Nobody has as much as this.
    let length = if desc.bytes() > MOST { usize::MAX / 2 } else { desc.bytes() };
    let mut space = Space::new(desc, Buffer::new(length)?);
    space.bytes().fill(poison);
    Ok(space)
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
