//! What FFmpeg reads from: a file or memory, through functions of ours. It never gets a name to
//! open by itself.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::library::END;
use crate::value::{Cause, Sample, io_fault};

/// `AVERROR_EXIT`, for reading after the deadline.
const EXIT: c_int = -0x5449_5845;
const SEEK_SIZE: c_int = 0x10000;
const SEEK_FORCE: c_int = 0x20000;

/// The bytes of a video.
#[derive(Clone)]
pub enum Bytes {
    File(Arc<File>, u64),
    /// Contiguous bytes.
    Memory(Sample),
}

impl Bytes {
    pub fn size(&self) -> u64 {
        match self {
            Bytes::File(_, length) => *length,
            Bytes::Memory(sample) => sample.desc.bytes() as u64,
        }
    }

    fn read(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Bytes::File(file, _) => loop {
                match file.read_at(to, at) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => return read,
                }
            },
            Bytes::Memory(sample) => {
                let bytes = sample.elements_as_bytes();
                let rest = &bytes[usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len())..];
                let count = rest.len().min(to.len());
                to[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }
}

/// A position in the bytes, and what went wrong while they were read.
pub struct Input {
    bytes: Bytes,
    at: u64,
    pub error: Option<io::Error>,
    deadline: Instant,
    pub is_late: bool,
}

impl Input {
    pub fn new(bytes: Bytes, patience: Duration) -> Input {
        Input { bytes, at: 0, error: None, deadline: later(patience), is_late: false }
    }

    /// Moves the deadline to `patience` from now.
    pub fn extend(&mut self, patience: Duration) {
        self.deadline = later(patience);
    }

    /// The cause of an error of FFmpeg, if reading failed rather than the file being invalid.
    pub fn fault(&mut self) -> Option<Cause> {
        self.error.take().map(|error| io_fault(&error))
    }

    /// `AVIOContext.read_packet`.
    ///
    /// # Safety
    /// `opaque` must be an `Input` that nobody else uses, and `to` must have `size` bytes.
    pub unsafe extern "C" fn read(opaque: *mut c_void, to: *mut u8, size: c_int) -> c_int {
        // SAFETY: guaranteed by the caller.
        let input = unsafe { &mut *opaque.cast::<Input>() };
        if size <= 0 {
            return 0;
        }
        if Instant::now() > input.deadline {
            input.is_late = true;
            return EXIT;
        }
        // SAFETY: guaranteed by the caller; FFmpeg's buffers are written by nobody else. They may
        // be uninitialized, which matters to nobody: they are only written to.
        let to = unsafe { std::slice::from_raw_parts_mut(to, size as usize) };
        match input.bytes.read(input.at, to) {
            Ok(0) => END,
            Ok(count) => {
                input.at += count as u64;
                count as c_int
            }
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(libc::EIO);
                input.error.get_or_insert(error);
                -code.max(1)
            }
        }
    }

    /// `AVIOContext.seek`.
    ///
    /// # Safety
    /// `opaque` must be an `Input` that nobody else uses.
    pub unsafe extern "C" fn seek(opaque: *mut c_void, offset: i64, whence: c_int) -> i64 {
        // SAFETY: guaranteed by the caller.
        let input = unsafe { &mut *opaque.cast::<Input>() };
        let length = input.bytes.size() as i64;
        let from = match whence & !SEEK_FORCE {
            SEEK_SIZE => return length,
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => input.at as i64,
            libc::SEEK_END => length,
            _ => return -i64::from(libc::EINVAL),
        };
        match from.checked_add(offset) {
            Some(at) if at >= 0 => {
                input.at = at as u64;
                at
            }
            _ => -i64::from(libc::EINVAL),
        }
    }
}

fn later(patience: Duration) -> Instant {
    let now = Instant::now();
    // A patience beyond the clock's range is as good as a day.
    now.checked_add(patience).unwrap_or(now + Duration::from_secs(86400))
}
