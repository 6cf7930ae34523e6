//! JPEG encoding with libjpeg-turbo: baseline, with 4:2:0 chroma subsampling.

use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use turbojpeg_sys as tj;

use crate::value::Cause;

/// The largest extent that libjpeg accepts.
pub const LARGEST: usize = 65_500;

struct Compressor(NonNull<std::ffi::c_void>);

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor>> = const { RefCell::new(None) };
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the handle is from `tj3Init`, and not used elsewhere.
        unsafe { tj::tj3Destroy(self.0.as_ptr()) }
    }
}

impl Compressor {
    fn new() -> Result<Compressor, Cause> {
        // SAFETY: no preconditions.
        let handle = unsafe { tj::tj3Init(tj::TJINIT_TJINIT_COMPRESS as c_int) };
        let made = Compressor(NonNull::new(handle).ok_or(Cause::Memory { bytes: 1 << 16 })?);
        // Don't reallocate: output goes to our buffer, or the call fails.
        made.set(tj::TJPARAM_TJPARAM_NOREALLOC, 1)?;
        made.set(tj::TJPARAM_TJPARAM_SUBSAMP, tj::TJSAMP_TJSAMP_420 as c_int)?;
        Ok(made)
    }

    fn set(&self, parameter: tj::TJPARAM, value: c_int) -> Result<(), Cause> {
        // SAFETY: the handle is valid.
        self.check(unsafe { tj::tj3Set(self.0.as_ptr(), parameter as c_int, value) })
    }

    fn check(&self, code: c_int) -> Result<(), Cause> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the handle is valid, and owns the NUL-terminated text.
        let text = unsafe { CStr::from_ptr(tj::tj3GetErrorStr(self.0.as_ptr())) };
        let text = text.to_string_lossy();
        if ["Insufficient memory", "Memory allocation failure"]
            .iter()
            .any(|what| text.contains(what))
        {
            return Err(Cause::Memory { bytes: 1 << 16 });
        }
        Err(Cause::Internal(format!("libjpeg-turbo: {text}")))
    }
}

/// Encodes RGB pixels to `file`, reusing its memory. The quality is 1 to 100; both extents are
/// between 1 and [`LARGEST`].
pub fn encode(
    rgb: &[u8],
    [height, width]: [usize; 2],
    quality: u8,
    file: &mut Vec<u8>,
) -> Result<(), Cause> {
    assert!((1..=LARGEST).contains(&height) && (1..=LARGEST).contains(&width));
    assert_eq!(rgb.len(), 3 * height * width);
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::new()?),
        };
        compressor.set(tj::TJPARAM_TJPARAM_QUALITY, c_int::from(quality))?;
        let (w, h) = (width as c_int, height as c_int);
        // SAFETY: no preconditions.
        let most = unsafe { tj::tj3JPEGBufSize(w, h, tj::TJSAMP_TJSAMP_420 as c_int) } as usize;
        file.clear();
        file.try_reserve_exact(most).map_err(|_| Cause::Memory { bytes: most })?;
        file.resize(most, 0);
        let (mut start, mut size) = (file.as_mut_ptr(), most as tj::size_t);
        // SAFETY: the handle is valid, the number of pixels matches the extents, and the file has
        // room for the largest JPEG of this size, so libjpeg doesn't reallocate it.
        let code = unsafe {
            tj::tj3Compress8(
                compressor.0.as_ptr(),
                rgb.as_ptr(),
                w,
                0,
                h,
                tj::TJPF_TJPF_RGB as c_int,
                &raw mut start,
                &raw mut size,
            )
        };
        compressor.check(code)?;
        file.truncate(size as usize);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::jpeg::Jpeg;

    #[test]
    fn what_is_written_can_be_read() {
        let mut file = Vec::new();
        for (height, width) in [(1, 1), (3, 70), (64, 48), (17, 1)] {
            let rgb: Vec<u8> = (0..3 * height * width).map(|i| (i * i % 251) as u8).collect();
            for quality in [1, 50, 100] {
                encode(&rgb, [height, width], quality, &mut file).unwrap();
                let header = Jpeg::open(&file).unwrap().header;
                assert_eq!((header.height, header.width), (height, width));
            }
        }
    }
}
