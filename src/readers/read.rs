//! Reading whole files into memory that the engine gave.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use smallvec::{SmallVec, smallvec};

use crate::kernels::{Allocate, ArgReader, Entry, Result, SampleKernel, Work};
use crate::value::{Cause, DType, Desc, Sample};

pub const TABLE: &[Entry] =
    &[Entry { name: "read_file", args: &[], make: || Work::Sample(&ReadFile) }];

/// The bytes of the file whose name the input holds, as bytes.
struct ReadFile;

impl SampleKernel for ReadFile {
    fn run(
        &self,
        _: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let name = inputs[0].compact()?;
        if !matches!(name.desc.dtype, DType::U8 | DType::I8) || name.desc.ndim() != 1 {
            let (dtype, ndim) = (name.desc.dtype.name(), name.desc.ndim());
            let problem = format!(
                "a file name must be a row of bytes (uint8), got {ndim} dimensions of {dtype}"
            );
            return Err(Cause::Input { index: 0, problem });
        }
        let name = name.reinterpret(DType::U8);
        let path = Path::new(OsStr::from_bytes(name.elements::<u8>()));
        let named = |cause| match cause {
            Cause::File { problem } => {
                Cause::File { problem: format!("{}: {problem}", path.display()) }
            }
            other => other,
        };
        Ok(smallvec![read_file(path, allocate).map_err(named)?])
    }

    fn is_cheap(&self) -> bool {
        false
    }
}

/// The bytes of a file.
pub fn read_file(path: &Path, allocate: &Allocate<'_>) -> Result<Sample> {
    let mut file = open(path)?;
    let known = file.metadata().map_err(|error| fault(&error))?;
    if !known.is_file() {
        let what = if known.is_dir() { "it is a folder" } else { "it is no regular file" };
        return Err(Cause::File { problem: what.into() });
    }
    let room = |bytes: u64| {
        let bytes = usize::try_from(bytes).map_err(|_| Cause::Memory { bytes: usize::MAX })?;
        allocate(0, Desc::new(DType::U8, &[bytes]))
    };
    if known.len() == 0 {
        // Files of the system, as in /proc, don't tell their size.
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| fault(&error))?;
        let mut space = room(bytes.len() as u64)?;
        space.bytes().copy_from_slice(&bytes);
        return space.into_sample();
    }
    let mut space = room(known.len())?;
    let mut rest = space.bytes();
    while !rest.is_empty() {
        match file.read(rest) {
            Ok(0) => {
                let got = known.len() as usize - rest.len();
                let problem = format!(
                    "it has shrunk while it was read: it had {} bytes, of which {got} are left",
                    known.len()
                );
                return Err(Cause::File { problem });
            }
            Ok(bytes) => rest = &mut rest[bytes..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(fault(&error)),
        }
    }
    space.into_sample()
}

/// Opens without waiting: a pipe without a writer would hold a thread for ever.
pub(super) fn open(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    opened.map_err(|error| fault(&error))
}

pub(super) fn fault(error: &std::io::Error) -> Cause {
    let problem = match error.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::PermissionDenied => "the permission to read it is missing".into(),
        _ => error.to_string(),
    };
    Cause::File { problem }
}
