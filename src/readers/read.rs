//! Reading files. Everything that readers open is opened here.

use std::ffi::OsStr;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use smallvec::smallvec;

use super::remote::{Object, bytes_of, is_url, read_whole};
use crate::engine::stand_in;
use crate::kernels::{Allocate, DirectKernel, Entry, Result, Samples, Traits};
use crate::value::{Cause, DType, Desc, Problem, Sample, io_fault, problems, zeroed};

problems! {
    /// Why a file can't be read.
    pub enum ReadFault {
        NotAName { ndim: usize, dtype: &'static str },
        Named { path: String, problem: Problem },
        Shrunk { size: u64, end: u64 },
        UnknownSize { limit: usize },
        Folder,
        Pipe,
        Socket,
        Device,
        NotRegular,
        Memory { bytes: usize },
        Internal { text: String },
    }
}

impl ReadFault {
    /// The problem of a file other than the current one.
    pub fn named(path: &Path, problem: Problem) -> Problem {
        ReadFault::Named { path: path.display().to_string(), problem }.into()
    }

    /// What is wrong with a file that can't be opened, and whether the system is the cause.
    pub fn of(cause: Cause) -> (Problem, bool) {
        match cause {
            Cause::File { problem } => (problem, false),
            Cause::System { problem } => (problem, true),
            Cause::Memory { bytes } => (ReadFault::Memory { bytes }.into(), true),
            other => (ReadFault::Internal { text: format!("{other:?}") }.into(), false),
        }
    }
}

pub const TABLE: &[Entry] = &[Entry::direct::<ReadFile>("read_file")];

/// Reads the file whose name is the input, as bytes.
struct ReadFile;

impl DirectKernel for ReadFile {
    type Args = ();
    const TRAITS: Traits = Traits { cheap: false, reads_files: true, ..Traits::DEFAULT };

    fn run((): &(), inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let name = inputs[0].compact()?;
        if !matches!(name.desc.dtype, DType::U8 | DType::I8) || name.desc.ndim() != 1 {
            let (dtype, ndim) = (name.desc.dtype.name(), name.desc.ndim());
            let problem = ReadFault::NotAName { ndim, dtype }.into();
            return Err(Cause::Input { index: 0, problem });
        }
        let name = name.reinterpret(DType::U8);
        let path = Path::new(OsStr::from_bytes(name.elements::<u8>()));
        let named = |cause| {
            let named = |problem| ReadFault::named(path, problem);
            match cause {
                Cause::File { problem } => Cause::File { problem: named(problem) },
                Cause::System { problem } => Cause::System { problem: named(problem) },
                other => other,
            }
        };
        // Another worker takes the place of one that waits for a server.
        let _waiting = is_url(path).then(stand_in);
        Ok(smallvec![read_file(path, allocate).map_err(named)?])
    }
}

/// The contents of a file.
pub fn read_file(path: &Path, allocate: &Allocate<'_>) -> Result<Sample> {
    read_version(path, 0, allocate)
}

/// The contents of a file. Of one that is named by a URL, the version distinguishes it from others
/// in a cache.
pub fn read_version(path: &Path, version: u64, allocate: &Allocate<'_>) -> Result<Sample> {
    let room = |bytes: usize| allocate(0, Desc::new(DType::U8, &[bytes]));
    if is_url(path) {
        let contents = read_whole(path, version)?;
        let mut buffer = room(contents.size())?;
        contents.take(buffer.bytes());
        return buffer.into_sample();
    }
    let opened = Opened::open(path)?;
    if opened.size == 0 {
        let bytes = opened.bytes()?;
        let mut buffer = room(bytes.len())?;
        buffer.bytes().copy_from_slice(&bytes);
        return buffer.into_sample();
    }
    let mut buffer = room(opened.length()?)?;
    opened.read(0, buffer.bytes())?;
    buffer.into_sample()
}

/// Limit for files of unknown size, as in /proc, which may never end.
const UNSIZED: usize = 16 << 20;

/// A regular file, and its size when it was opened. Other kinds are refused: a pipe can block its
/// reader, and a device may never end.
pub struct Opened {
    place: Place,
    pub size: u64,
}

enum Place {
    File(File),
    /// Named by a URL, and read in blocks.
    Object(Object),
    /// Named by a URL, and small enough to be read at once.
    Memory(Vec<u8>),
}

impl Opened {
    pub fn open(path: &Path) -> Result<Opened> {
        if is_url(path) {
            let object = Object::open(path)?;
            return Ok(Opened { size: object.size(), place: Place::Object(object) });
        }
        // Non-blocking: opening a pipe without a writer would block forever.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|error| unopened(path, &error))?;
        let known = file.metadata().map_err(|error| io_fault(&error))?;
        match known.is_file() {
            true => Ok(Opened { place: Place::File(file), size: known.len() }),
            false => Err(not_regular(known.file_type())),
        }
    }

    /// Opens a file that will be read as a whole: one that is named by a URL is so at once.
    pub fn open_whole(path: &Path) -> Result<Opened> {
        if !is_url(path) {
            return Opened::open(path);
        }
        Ok(Opened::of_bytes(bytes_of(path)?))
    }

    /// A file that is in memory.
    pub fn of_bytes(bytes: Vec<u8>) -> Opened {
        Opened { size: bytes.len() as u64, place: Place::Memory(bytes) }
    }

    /// Its size, for contents that must fit into memory.
    pub fn length(&self) -> Result<usize> {
        usize::try_from(self.size).map_err(|_| Cause::Memory { bytes: usize::MAX })
    }

    /// Fills `out` with the bytes from `offset` on.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        match self.read_up_to(offset, out)? == out.len() {
            true => Ok(()),
            false => Err(Cause::File {
                problem: ReadFault::Shrunk {
                    size: self.size,
                    end: offset.saturating_add(out.len() as u64),
                }
                .into(),
            }),
        }
    }

    /// Reads into `out` up to the end of the file, and returns the number of bytes.
    pub fn read_up_to(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let file = match &self.place {
            Place::File(file) => file,
            Place::Object(object) => return object.read_up_to(offset, out),
            Place::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let length = out.len().min(bytes.len() - start);
                out[..length].copy_from_slice(&bytes[start..start + length]);
                return Ok(length);
            }
        };
        let mut got = 0;
        while got < out.len() {
            match file.read_at(&mut out[got..], offset.saturating_add(got as u64)) {
                Ok(0) => break,
                Ok(bytes) => got += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(io_fault(&error)),
            }
        }
        Ok(got)
    }

    /// The whole contents.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        if self.size > 0 {
            let mut bytes = zeroed(self.length()?)?;
            self.read(0, &mut bytes)?;
            return Ok(bytes);
        }
        // Grows as needed: most files without a size are empty.
        let mut bytes = Vec::new();
        loop {
            let (start, piece) = (bytes.len(), bytes.len().clamp(4 << 10, 1 << 20));
            bytes.resize(start + piece, 0);
            let got = self.read_up_to(start as u64, &mut bytes[start..])?;
            bytes.truncate(start + got);
            if got < piece {
                return Ok(bytes);
            }
            if bytes.len() > UNSIZED {
                let problem = ReadFault::UnknownSize { limit: UNSIZED }.into();
                return Err(Cause::File { problem });
            }
        }
    }

    /// The file as a stream, from its beginning on. One that is named by a URL is read at once.
    pub fn into_stream(self) -> Result<FileStream> {
        Ok(match self.place {
            Place::File(file) => FileStream::File(file),
            Place::Memory(bytes) => FileStream::Memory(Cursor::new(bytes)),
            Place::Object(_) => FileStream::Memory(Cursor::new(self.bytes()?)),
        })
    }
}

/// A file as a stream.
pub enum FileStream {
    File(File),
    Memory(Cursor<Vec<u8>>),
}

impl Read for FileStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            FileStream::File(file) => file.read(out),
            FileStream::Memory(bytes) => bytes.read(out),
        }
    }
}

impl Seek for FileStream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            FileStream::File(file) => file.seek(to),
            FileStream::Memory(bytes) => bytes.seek(to),
        }
    }
}

/// Why a file can't be opened. If its folder may not be searched, the system is the cause.
fn unopened(path: &Path, error: &std::io::Error) -> Cause {
    match (io_fault(error), fs::metadata(path)) {
        (Cause::System { problem }, Ok(_)) if error.raw_os_error() == Some(libc::EACCES) => {
            Cause::File { problem }
        }
        (Cause::File { .. }, Ok(known)) if !known.is_file() => not_regular(known.file_type()),
        (cause, _) => cause,
    }
}

pub(super) fn not_regular(kind: FileType) -> Cause {
    let fault = match kind {
        kind if kind.is_dir() => ReadFault::Folder,
        kind if kind.is_fifo() => ReadFault::Pipe,
        kind if kind.is_socket() => ReadFault::Socket,
        kind if kind.is_char_device() || kind.is_block_device() => ReadFault::Device,
        _ => ReadFault::NotRegular,
    };
    Cause::File { problem: fault.into() }
}
