//! JPEG, with libjpeg-turbo: accurate DCT and smooth chroma upsampling, as in Pillow.

pub mod encode;
mod reduced;

use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use turbojpeg_sys as tj;

use super::image::{Window, max_pixels};
use super::{Format, ImageFault, bounds, exif};
use crate::value::{Cause, Damage, problems, zeroed};

/// Limit on the scans of a progressive image; ordinary ones have about ten. Each scan may touch the
/// whole image, so a file of a few kilobytes could take minutes.
const MOST_SCANS: c_int = 100;
/// Generous limit on the pixels per byte; flat images have fewer than 400.
const MOST_PIXELS_PER_BYTE: usize = 2048;
/// Limit on the scratch memory that a thread keeps.
const KEPT_SCRATCH: usize = 1 << 24;
/// Scales are counted in eighths: the transform has 8 x 8 coefficients.
pub const EIGHTHS: usize = 8;
/// Up to this many pixels, the row where truncated data ends is searched for.
const SEARCHED_PIXELS: usize = 1 << 22;

/// An extent at so many eighths, as libjpeg rounds it.
pub fn scaled(extent: usize, eighths: usize) -> usize {
    (extent * eighths).div_ceil(EIGHTHS)
}

#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub height: usize,
    pub width: usize,
    pub orientation: u8,
    pub stored: Stored,
    /// Columns that are decoded together; `None` if windows can't be decoded separately.
    columns: Option<usize>,
    progressive: bool,
    /// There are several scans, so all coefficients are kept until the last one.
    several_scans: bool,
    pub lossless: bool,
    /// Whether colors are stored as luma and chroma, or the image is gray.
    mixed: bool,
    /// Offset of the image data.
    data: usize,
}

impl Header {
    /// Bytes of coefficients that are kept during decoding.
    pub fn coefficients(&self) -> usize {
        let channels = match self.stored {
            Stored::Gray => 1,
            Stored::Color => 3,
            Stored::Cmyk { .. } => 4,
        };
        let blocks = self.height.next_multiple_of(32) * self.width.next_multiple_of(32);
        if self.several_scans { 2 * channels * blocks } else { 0 }
    }
}

/// The bytes of a JPEG whose header has been read.
pub struct Jpeg<'a> {
    bytes: &'a [u8],
    pub header: Header,
    decompressor: Decompressor,
    /// Eighths of its size that it is decoded at.
    scale: usize,
}

/// The stored color space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    Gray,
    Color,
    /// Amounts of ink; Adobe's programs store them inverted.
    Cmyk {
        inverted: bool,
    },
}

/// What to decode to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Gray,
    Rgb,
    Bgr,
    Cmyk,
}

impl Target {
    pub fn channels(self) -> usize {
        match self {
            Target::Gray => 1,
            Target::Rgb | Target::Bgr => 3,
            Target::Cmyk => 4,
        }
    }

    fn code(self) -> c_int {
        (match self {
            Target::Gray => tj::TJPF_TJPF_GRAY,
            Target::Rgb => tj::TJPF_TJPF_RGB,
            Target::Bgr => tj::TJPF_TJPF_BGR,
            Target::Cmyk => tj::TJPF_TJPF_CMYK,
        }) as c_int
    }
}

problems! {
    /// What is wrong with a JPEG.
    pub enum JpegFault {
        EndsInHeader { bytes: usize },
        EndsInData { bytes: usize },
        EndsAtRow { bytes: usize, row: usize, height: usize },
        TooShort { bytes: usize, height: usize, width: usize },
        NoData,
        NoImage,
        Segment { length: usize },
        Precision { bits: i32 },
        Header { text: String },
        Data { text: String },
    }
}

fn undecodable(kind: Damage, fault: JpegFault) -> Cause {
    let problem = ImageFault::This { format: "JPEG", problem: fault.into() }.into();
    Cause::Undecodable { kind, problem }
}

fn damaged(fault: JpegFault) -> Cause {
    undecodable(Damage::Broken, fault)
}

fn truncated(fault: JpegFault) -> Cause {
    undecodable(Damage::Truncated, fault)
}

/// The segments before the image data, as far as libjpeg doesn't report them.
struct Markers {
    orientation: u8,
    adobe: bool,
    arithmetic: bool,
    /// Number of components of the image, and of the first scan.
    components: [u8; 2],
    /// Offset of the image data.
    data: usize,
}

/// Walks the segments up to the image data. `Err` if the file ends before it.
fn markers(bytes: &[u8]) -> Result<Markers, Cause> {
    let mut found =
        Markers { orientation: 1, adobe: false, arithmetic: false, components: [0; 2], data: 0 };
    let ends = || truncated(JpegFault::EndsInHeader { bytes: bytes.len() });
    let mut at = 2;
    loop {
        // Garbage between segments is skipped; libjpeg only warns, too.
        while *bytes.get(at).ok_or_else(ends)? != 0xff {
            at += 1;
        }
        while *bytes.get(at).ok_or_else(ends)? == 0xff {
            at += 1;
        }
        let marker = bytes[at];
        at += 1;
        if marker == 0 || marker == 1 || (0xd0..=0xd8).contains(&marker) {
            continue;
        }
        if marker == 0xd9 {
            return Err(damaged(JpegFault::NoData));
        }
        let length = bytes.get(at..at + 2).ok_or_else(ends)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        if length < 2 {
            return Err(damaged(JpegFault::Segment { length }));
        }
        let segment = bytes.get(at + 2..at + length).ok_or_else(ends)?;
        at += length;
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            found.components[0] = segment.get(5).copied().unwrap_or(0);
        }
        match marker {
            0xc9..=0xcb | 0xcd..=0xcf => found.arithmetic = true,
            0xe1 if found.orientation == 1 => {
                if let Some(tiff) = segment.strip_prefix(b"Exif\0\0") {
                    found.orientation = exif::orientation(tiff);
                }
            }
            0xee => found.adobe |= segment.len() >= 12 && segment.starts_with(b"Adobe"),
            0xda => {
                found.components[1] = segment.first().copied().unwrap_or(0);
                found.data = at;
                return Ok(found);
            }
            _ => {}
        }
    }
}

/// A decompressor for a single image: it keeps tables even after failures, which could affect the
/// next image. Creating one takes about a microsecond.
struct Decompressor {
    handle: NonNull<std::ffi::c_void>,
}

/// Calls `work` with the thread's scratch memory, of at least `length` bytes.
fn with_scratch<R>(length: usize, work: impl FnOnce(&mut [u8]) -> R) -> Result<R, Cause> {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.len() < length {
            let more = length - scratch.len();
            scratch.try_reserve(more).map_err(|_| Cause::Memory { bytes: length })?;
            scratch.resize(length, 0);
        }
        let result = work(&mut scratch[..length]);
        if scratch.capacity() > KEPT_SCRATCH {
            *scratch = Vec::new();
        }
        Ok(result)
    })
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the handle is from `tj3Init`, and not used elsewhere.
        unsafe { tj::tj3Destroy(self.handle.as_ptr()) }
    }
}

/// An error or a warning of libjpeg-turbo.
enum Complaint {
    /// The call finished, but something may be wrong.
    Warning(String),
    /// The call failed. Rows not written by then are unchanged.
    Fatal(String),
    /// The call failed for lack of memory.
    Memory,
    /// The call would need more memory than the limit.
    Limit,
}

/// How warnings begin. After a warning, the handle reports every error as a warning as well, so
/// only the text of the last message tells whether a call finished.
const WARNINGS: [&str; 6] = [
    "Corrupt JPEG data: ",
    "Inconsistent progression sequence ",
    "Invalid SOS parameters for sequential JPEG",
    "Premature end of JPEG file",
    "Unknown Adobe color transform code ",
    "Warning: unknown JFIF revision number ",
];

impl Complaint {
    fn new(text: String) -> Complaint {
        let no_memory = ["Insufficient memory", "Memory allocation failure"];
        if WARNINGS.iter().any(|start| text.starts_with(start)) {
            Complaint::Warning(text)
        } else if no_memory.iter().any(|what| text.contains(what)) {
            Complaint::Memory
        } else if text.contains("Memory limit exceeded") {
            Complaint::Limit
        } else {
            Complaint::Fatal(text)
        }
    }
}

impl Decompressor {
    fn new() -> Result<Decompressor, Cause> {
        // SAFETY: no preconditions.
        let handle = unsafe { tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS as c_int) };
        let handle = NonNull::new(handle).ok_or(Cause::Memory { bytes: 1 << 16 })?;
        let mut made = Decompressor { handle };
        // Progressive images need 2 bytes per coefficient, for up to four channels.
        let megabytes = max_pixels().saturating_mul(8) >> 20;
        made.set(tj::TJPARAM_TJPARAM_MAXMEMORY, megabytes.clamp(64, 1 << 30) as c_int);
        made.set(tj::TJPARAM_TJPARAM_SCANLIMIT, MOST_SCANS);
        Ok(made)
    }

    fn set(&mut self, parameter: tj::TJPARAM, value: c_int) {
        // SAFETY: the handle is valid.
        unsafe { tj::tj3Set(self.handle.as_ptr(), parameter as c_int, value) };
    }

    fn get(&self, parameter: tj::TJPARAM) -> c_int {
        // SAFETY: the handle is valid.
        unsafe { tj::tj3Get(self.handle.as_ptr(), parameter as c_int) }
    }

    fn check(&self, code: c_int) -> Result<(), Complaint> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the handle is valid, and owns the NUL-terminated text until the next call.
        let text = unsafe { CStr::from_ptr(tj::tj3GetErrorStr(self.handle.as_ptr())) };
        Err(Complaint::new(text.to_string_lossy().replace('\n', " ")))
    }

    fn read_header(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        // SAFETY: the handle is valid, and `bytes` is borrowed during the call.
        let code = unsafe {
            let length = bytes.len() as tj::size_t;
            tj::tj3DecompressHeader(self.handle.as_ptr(), bytes.as_ptr(), length)
        };
        match self.check(code) {
            Ok(()) | Err(Complaint::Warning(_)) => Ok(()),
            Err(Complaint::Fatal(text)) => Err(damaged(JpegFault::Header { text })),
            Err(Complaint::Memory | Complaint::Limit) => Err(Cause::Memory { bytes: bytes.len() }),
        }
    }
}

impl<'a> Jpeg<'a> {
    /// Reads the header.
    pub fn open(bytes: &'a [u8]) -> Result<Jpeg<'a>, Cause> {
        let found = markers(bytes)?;
        let mut decompressor = Decompressor::new()?;
        decompressor.read_header(bytes)?;
        let width = decompressor.get(tj::TJPARAM_TJPARAM_JPEGWIDTH);
        let height = decompressor.get(tj::TJPARAM_TJPARAM_JPEGHEIGHT);
        let (Ok(width @ 1..), Ok(height @ 1..)) = (usize::try_from(width), usize::try_from(height))
        else {
            return Err(damaged(JpegFault::NoImage));
        };
        let precision = decompressor.get(tj::TJPARAM_TJPARAM_PRECISION);
        if precision != 8 {
            return Err(damaged(JpegFault::Precision { bits: precision }));
        }
        let colors = decompressor.get(tj::TJPARAM_TJPARAM_COLORSPACE) as u32;
        let stored = match colors {
            tj::TJCS_TJCS_GRAY => Stored::Gray,
            tj::TJCS_TJCS_CMYK | tj::TJCS_TJCS_YCCK => Stored::Cmyk { inverted: found.adobe },
            _ => Stored::Color,
        };
        let columns = match decompressor.get(tj::TJPARAM_TJPARAM_SUBSAMP) {
            tj::TJSAMP_TJSAMP_444
            | tj::TJSAMP_TJSAMP_GRAY
            | tj::TJSAMP_TJSAMP_440
            | tj::TJSAMP_TJSAMP_441 => Some(8),
            tj::TJSAMP_TJSAMP_422 | tj::TJSAMP_TJSAMP_420 => Some(16),
            tj::TJSAMP_TJSAMP_411 => Some(32),
            _ => None,
        };
        let lossless = decompressor.get(tj::TJPARAM_TJPARAM_LOSSLESS) == 1;
        let pixels = height * width;
        // A few bytes must not claim gigabytes. (Arithmetic coding has no bound of its own.)
        let least = match found.arithmetic {
            true => bounds::blank(pixels),
            false => pixels / MOST_PIXELS_PER_BYTE,
        };
        if least > bytes.len() {
            return Err(truncated(JpegFault::TooShort { bytes: bytes.len(), height, width }));
        }
        let progressive = decompressor.get(tj::TJPARAM_TJPARAM_PROGRESSIVE) == 1;
        let [components, scanned] = found.components;
        let header = Header {
            height,
            width,
            orientation: found.orientation,
            stored,
            columns: columns.filter(|_| !lossless),
            lossless,
            mixed: matches!(colors, tj::TJCS_TJCS_YCbCr | tj::TJCS_TJCS_GRAY),
            progressive,
            several_scans: progressive || scanned < components,
            data: found.data,
        };
        Ok(Jpeg { bytes, header, decompressor, scale: EIGHTHS })
    }

    /// Makes `decode` take windows of the image at so many eighths of its size, which its inverse
    /// transform computes directly. Lossless ones are always decoded in full.
    pub fn set_scale(&mut self, eighths: usize) {
        self.scale = if self.header.lossless { EIGHTHS } else { eighths.clamp(1, EIGHTHS) };
    }

    /// The scale in use, in eighths.
    pub fn scale(&self) -> usize {
        self.scale
    }

    /// The whole image, at its scale.
    pub fn whole(&self) -> Window {
        let [height, width] =
            [self.header.height, self.header.width].map(|extent| scaled(extent, self.scale));
        Window { y: 0, x: 0, height, width }
    }

    /// Columns that are decoded together, at the image's scale.
    fn columns(&self) -> Option<usize> {
        self.header.columns.map(|columns| scaled(columns, self.scale))
    }

    /// Decodes a window to `dst`, which has exactly its size.
    pub fn decode(
        &mut self,
        window: Window,
        target: Target,
        fast_dct: bool,
        dst: &mut [u8],
    ) -> Result<(), Cause> {
        let whole = self.whole();
        assert!(window.is_inside(whole.height, whole.width));
        assert_eq!(dst.len(), window.height * window.width * target.channels());
        if !has_end(&self.bytes[self.header.data..]) {
            return Err(self.missing_rows());
        }
        match self.decode_reduced(window, target, dst) {
            Some(()) => Ok(()),
            None => self.decode_with_libjpeg(window, target, fast_dct, dst),
        }
    }

    /// Decodes any kind of image at any scale.
    pub fn decode_with_libjpeg(
        &mut self,
        window: Window,
        target: Target,
        fast_dct: bool,
        dst: &mut [u8],
    ) -> Result<(), Cause> {
        self.decompressor.set(tj::TJPARAM_TJPARAM_FASTDCT, c_int::from(fast_dct));
        match self.decode_window(window, target, dst)? {
            Ok(()) => Ok(()),
            Err(Complaint::Warning(text)) if text.contains("Premature end of JPEG file") => {
                Err(self.missing_rows())
            }
            // Extra bytes between markers, or corrupt data: the image still decodes, to the same
            // pixels as with other programs.
            Err(Complaint::Warning(_)) => Ok(()),
            Err(Complaint::Fatal(text)) => Err(damaged(JpegFault::Data { text })),
            Err(Complaint::Memory) => Err(Cause::Memory { bytes: self.header.coefficients() }),
            Err(Complaint::Limit) => Err(bounds::large(
                Format::Jpeg,
                self.header.height,
                self.header.width,
                self.header.coefficients(),
            )),
        }
    }

    /// Scratch memory for decoding a window, in bytes.
    pub fn scratch(&self, window: Window, target: Target) -> usize {
        let region = self.region(window);
        let pixels = if region == window { 0 } else { region.height * region.width };
        // At a reduced scale, the data without markers, and rows of each channel.
        let reduced = match self.scale {
            EIGHTHS => 0,
            _ => self.bytes.len() + 5 * 2 * self.scale * (window.width + 4 * EIGHTHS),
        };
        self.header.coefficients() + pixels * target.channels() + reduced
    }

    /// Decodes a window at a reduced scale, if the image is of the usual kind: to the same pixels as
    /// libjpeg, but faster. Otherwise `dst` may hold anything.
    pub fn decode_reduced(&self, window: Window, target: Target, dst: &mut [u8]) -> Option<()> {
        let colors = match target {
            Target::Gray => reduced::Colors::Gray,
            Target::Rgb => reduced::Colors::Rgb,
            Target::Bgr => reduced::Colors::Bgr,
            Target::Cmyk => return None,
        };
        let usual = self.scale < EIGHTHS && self.header.mixed && !self.header.several_scans;
        usual.then(|| reduced::decode(self.bytes, self.scale, window, colors, dst))?
    }

    /// The region that has to be decoded for a window.
    fn region(&self, window: Window) -> Window {
        let whole = self.whole();
        match self.columns() {
            _ if window == whole => whole,
            Some(columns) => {
                // Upsampling reads neighboring chroma samples, so the region must include them.
                let first = (window.x / columns).saturating_sub(1) * columns;
                let end = (window.x + window.width + columns).min(whole.width);
                Window { x: first, width: end - first, ..window }
            }
            None => whole,
        }
    }

    /// Decodes the smallest region that contains the window.
    fn decode_window(
        &mut self,
        window: Window,
        target: Target,
        dst: &mut [u8],
    ) -> Result<Result<(), Complaint>, Cause> {
        if window == self.whole() {
            return Ok(self.decompress(None, target, dst));
        }
        let region = self.region(window);
        let asked = self.header.columns.map(|_| region);
        if region == window {
            return Ok(self.decompress(asked, target, dst));
        }
        let channels = target.channels();
        with_scratch(region.height * region.width * channels, |scratch| {
            let outcome = self.decompress(asked, target, scratch);
            if matches!(outcome, Ok(()) | Err(Complaint::Warning(_))) {
                let rows = scratch.chunks_exact(region.width * channels).skip(window.y - region.y);
                let first = (window.x - region.x) * channels;
                for (row, dst) in rows.zip(dst.chunks_exact_mut(window.width * channels)) {
                    dst.copy_from_slice(&row[first..first + dst.len()]);
                }
            }
            outcome
        })
    }

    /// Decodes the image, or a region whose left edge is aligned to `columns`, to contiguous rows.
    fn decompress(
        &mut self,
        region: Option<Window>,
        target: Target,
        dst: &mut [u8],
    ) -> Result<(), Complaint> {
        let (height, width) = match region {
            Some(region) => (region.height, region.width),
            None => (self.whole().height, self.whole().width),
        };
        let pitch = width * target.channels();
        assert_eq!(dst.len(), height * pitch);
        let region = region.map_or(tj::tjregion { x: 0, y: 0, w: 0, h: 0 }, |region| {
            let [x, y] = [region.x as c_int, region.y as c_int];
            tj::tjregion { x, y, w: region.width as c_int, h: region.height as c_int }
        });
        let handle = self.decompressor.handle.as_ptr();
        // libjpeg-turbo knows its factors in lowest terms.
        let common = 1 << self.scale.trailing_zeros().min(3);
        let [num, denom] = [self.scale, EIGHTHS].map(|part| (part / common) as c_int);
        let factor = tj::tjscalingfactor { num, denom };
        // SAFETY: the handle is valid. The call writes rows of `pitch` bytes: as many as the region
        // has, or the image at its scale. It parses the header again, and finds the same size as
        // before, since these bytes are borrowed and can't change.
        let code = unsafe {
            // A region is checked against the scale, so that none must be left from before.
            let none = tj::tjregion { x: 0, y: 0, w: 0, h: 0 };
            self.decompressor.check(tj::tj3SetCroppingRegion(handle, none))?;
            self.decompressor.check(tj::tj3SetScalingFactor(handle, factor))?;
            self.decompressor.check(tj::tj3SetCroppingRegion(handle, region))?;
            tj::tj3Decompress8(
                handle,
                self.bytes.as_ptr(),
                self.bytes.len() as tj::size_t,
                dst.as_mut_ptr(),
                pitch as c_int,
                target.code(),
            )
        };
        let found = [tj::TJPARAM_TJPARAM_JPEGHEIGHT, tj::TJPARAM_TJPARAM_JPEGWIDTH]
            .map(|extent| self.decompressor.get(extent) as usize);
        let outcome = self.decompressor.check(code);
        if outcome.is_ok() && found != [self.header.height, self.header.width] {
            return Err(Complaint::Fatal("the size in its header has changed".into()));
        }
        outcome
    }

    /// The fault of a truncated image. The row where it ends, if that can be found, is the last one
    /// that decodes without a warning.
    fn missing_rows(&mut self) -> Cause {
        self.scale = EIGHTHS;
        let Header { height, width, .. } = self.header;
        let searched = !self.header.progressive
            && self.header.columns.is_some()
            && !matches!(self.header.stored, Stored::Cmyk { .. })
            && height * width <= SEARCHED_PIXELS;
        let mut find = || {
            let (mut there, mut missing) = (0, height);
            let mut dst = zeroed(height * width).ok()?;
            while there + 1 < missing {
                let rows = there.midpoint(missing);
                let region = Window { y: 0, x: 0, height: rows, width };
                let outcome = self.decompress(Some(region), Target::Gray, &mut dst[..rows * width]);
                *(if outcome.is_ok() { &mut there } else { &mut missing }) = rows;
            }
            Some(there)
        };
        let rows = if searched { find() } else { None };
        let bytes = self.bytes.len();
        truncated(match rows {
            Some(row) => JpegFault::EndsAtRow { bytes, row, height },
            None => JpegFault::EndsInData { bytes },
        })
    }
}

/// Whether there is an end marker. In image data, 0xff is followed by 0.
fn has_end(data: &[u8]) -> bool {
    data.windows(2).rev().any(|pair| pair == [0xff, 0xd9])
}

/// Converts CMYK to RGB: `pixels` have four channels and get three, in place.
pub fn cmyk_to_rgb(pixels: &mut [u8], inverted: bool) {
    for index in 0..pixels.len() / 4 {
        let [c, m, y, k] = [0, 1, 2, 3].map(|channel| {
            let stored = pixels[4 * index + channel];
            u16::from(if inverted { stored } else { 255 - stored })
        });
        for (channel, light) in [c, m, y].into_iter().enumerate() {
            pixels[3 * index + channel] = (light * k / 255) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Figure;

    /// A smooth image with some noise, `height` by `width` by 3.
    fn photograph(height: usize, width: usize) -> Vec<u8> {
        let mut noise = 1_u32;
        let mut pixels = Vec::new();
        for y in 0..height {
            for x in 0..width {
                for channel in 0..3 {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let wave = (x as f32 * 0.11 * (channel + 1) as f32).sin()
                        + (y as f32 * 0.07 + channel as f32).cos();
                    pixels.push((128.0 + 50.0 * wave) as u8 ^ (noise >> 29) as u8);
                }
            }
        }
        pixels
    }

    fn encode(height: usize, width: usize, parameters: &[(tj::TJPARAM, c_int)]) -> Vec<u8> {
        let pixels = photograph(height, width);
        // SAFETY: the number of pixels matches the extents, and the result is copied before it is
        // freed.
        unsafe {
            let handle = tj::tj3Init(tj::TJINIT_TJINIT_COMPRESS as c_int);
            tj::tj3Set(handle, tj::TJPARAM_TJPARAM_QUALITY as c_int, 90);
            for &(parameter, value) in parameters {
                assert_eq!(tj::tj3Set(handle, parameter as c_int, value), 0);
            }
            let (mut made, mut length) = (std::ptr::null_mut(), 0);
            let code = tj::tj3Compress8(
                handle,
                pixels.as_ptr(),
                width as c_int,
                0,
                height as c_int,
                tj::TJPF_TJPF_RGB as c_int,
                &mut made,
                &mut length,
            );
            assert_eq!(code, 0);
            let bytes = std::slice::from_raw_parts(made, length as usize).to_vec();
            tj::tj3Free(made.cast());
            tj::tj3Destroy(handle);
            bytes
        }
    }

    fn window_of(bytes: &[u8], window: Window, target: Target) -> Vec<u8> {
        let mut dst = vec![0; window.height * window.width * target.channels()];
        Jpeg::open(bytes).unwrap().decode(window, target, false, &mut dst).unwrap();
        dst
    }

    fn kinds() -> Vec<Vec<u8>> {
        const SUBSAMP: tj::TJPARAM = tj::TJPARAM_TJPARAM_SUBSAMP;
        let subsamplings = [
            tj::TJSAMP_TJSAMP_444,
            tj::TJSAMP_TJSAMP_422,
            tj::TJSAMP_TJSAMP_420,
            tj::TJSAMP_TJSAMP_440,
            tj::TJSAMP_TJSAMP_411,
            tj::TJSAMP_TJSAMP_441,
            tj::TJSAMP_TJSAMP_GRAY,
        ];
        let others = [
            tj::TJPARAM_TJPARAM_PROGRESSIVE,
            tj::TJPARAM_TJPARAM_ARITHMETIC,
            tj::TJPARAM_TJPARAM_RESTARTROWS,
            tj::TJPARAM_TJPARAM_LOSSLESS,
        ];
        let mut made: Vec<Vec<u8>> =
            subsamplings.iter().map(|&s| encode(77, 101, &[(SUBSAMP, s)])).collect();
        let plain = tj::TJSAMP_TJSAMP_420;
        made.extend(others.map(|parameter| {
            let subsampling = match parameter {
                tj::TJPARAM_TJPARAM_LOSSLESS => tj::TJSAMP_TJSAMP_444,
                _ => plain,
            };
            encode(77, 101, &[(SUBSAMP, subsampling), (parameter, 1)])
        }));
        made
    }

    #[test]
    fn windows_are_cut_out_of_the_whole_bit_by_bit() {
        for (kind, bytes) in kinds().iter().enumerate() {
            let lossless = Jpeg::open(bytes).unwrap().header.lossless;
            for target in [Target::Rgb, Target::Gray].into_iter().take(2 - usize::from(lossless)) {
                let all = Window { y: 0, x: 0, height: 77, width: 101 };
                let channels = target.channels();
                let whole = window_of(bytes, all, target);
                let mut noise = 7_u32;
                let mut below = |bound: usize| {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (noise >> 8) as usize % bound
                };
                for _ in 0..150 {
                    let (height, width) = (1 + below(77), 1 + below(101));
                    let (y, x) = (below(78 - height), below(102 - width));
                    let window = Window { y, x, height, width };
                    let cut: Vec<u8> = (y..y + height)
                        .flat_map(|y| &whole[(y * 101 + x) * channels..][..width * channels])
                        .copied()
                        .collect();
                    assert!(
                        window_of(bytes, window, target) == cut,
                        "kind {kind}, {target:?}, {window:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn windows_at_a_scale_are_cut_out_of_the_whole_at_that_scale() {
        for (kind, bytes) in kinds().iter().enumerate() {
            for scale in 1..=EIGHTHS {
                let mut jpeg = Jpeg::open(bytes).unwrap();
                jpeg.set_scale(scale);
                let all = jpeg.whole();
                let at = |window: Window| {
                    let mut jpeg = Jpeg::open(bytes).unwrap();
                    jpeg.set_scale(scale);
                    let mut dst = vec![0; window.height * window.width * 3];
                    jpeg.decode(window, Target::Rgb, false, &mut dst).unwrap();
                    dst
                };
                let whole = at(all);
                let mut noise = 7_u32;
                let mut below = |bound: usize| {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (noise >> 8) as usize % bound
                };
                for _ in 0..40 {
                    let (height, width) = (1 + below(all.height), 1 + below(all.width));
                    let (y, x) = (below(all.height - height + 1), below(all.width - width + 1));
                    let window = Window { y, x, height, width };
                    let cut: Vec<u8> = (y..y + height)
                        .flat_map(|y| &whole[(y * all.width + x) * 3..][..width * 3])
                        .copied()
                        .collect();
                    assert!(at(window) == cut, "kind {kind}, {scale}/8, {window:?}");
                }
            }
        }
    }

    /// The pixels of both decoders, if the image is of the usual kind.
    fn by_both(bytes: &[u8], scale: usize, target: Target) -> Option<[Vec<u8>; 2]> {
        let mut jpeg = Jpeg::open(bytes).ok()?;
        jpeg.set_scale(scale);
        let window = jpeg.whole();
        let mut made = [(); 2].map(|()| vec![0; window.height * window.width * target.channels()]);
        jpeg.decode_reduced(window, target, &mut made[0])?;
        jpeg.decode_with_libjpeg(window, target, false, &mut made[1]).unwrap();
        Some(made)
    }

    #[test]
    fn the_usual_kinds_are_decoded_to_the_pixels_of_libjpeg() {
        const SUBSAMP: tj::TJPARAM = tj::TJPARAM_TJPARAM_SUBSAMP;
        const QUALITY: tj::TJPARAM = tj::TJPARAM_TJPARAM_QUALITY;
        let restarts = (tj::TJPARAM_TJPARAM_RESTARTBLOCKS, 3);
        let optimized = (tj::TJPARAM_TJPARAM_OPTIMIZE, 1);
        let subsamplings = [
            tj::TJSAMP_TJSAMP_444,
            tj::TJSAMP_TJSAMP_422,
            tj::TJSAMP_TJSAMP_420,
            tj::TJSAMP_TJSAMP_GRAY,
        ];
        for (height, width) in [(77, 101), (1, 1), (16, 16), (9, 33), (40, 3)] {
            for (subsampling, quality, other) in subsamplings.iter().flat_map(|&subsampling| {
                [(1, restarts), (60, optimized), (100, restarts)]
                    .map(|(quality, other)| (subsampling, quality, other))
            }) {
                let parameters = [(SUBSAMP, subsampling), (QUALITY, quality), other];
                let bytes = encode(height, width, &parameters);
                for (scale, target) in (1..EIGHTHS)
                    .flat_map(|s| [Target::Rgb, Target::Bgr, Target::Gray].map(|t| (s, t)))
                {
                    let [ours, theirs] = by_both(&bytes, scale, target).unwrap();
                    let kind = format!("{height}x{width}, {subsampling}, quality {quality}");
                    assert!(ours == theirs, "{kind}, {scale}/8, {target:?}");
                }
            }
        }
    }

    #[test]
    fn extreme_coefficients_are_decoded_to_the_pixels_of_libjpeg() {
        let subsampling = (tj::TJPARAM_TJPARAM_SUBSAMP, tj::TJSAMP_TJSAMP_420);
        let bytes = encode(77, 101, &[subsampling]);
        let table = bytes.windows(2).position(|pair| pair == [0xff, 0xdb]).unwrap() + 5;
        let (mut decoded, mut left) = (0, 0);
        for quantizer in [16, 40, 90, 140, 200, 255] {
            let mut bytes = bytes.clone();
            bytes[table..table + 64].fill(quantizer);
            for scale in 1..EIGHTHS {
                match by_both(&bytes, scale, Target::Rgb) {
                    Some([ours, theirs]) => {
                        decoded += 1;
                        assert!(ours == theirs, "quantizer {quantizer}, {scale}/8");
                    }
                    None => left += 1,
                }
            }
        }
        assert!(decoded > 0 && left > 0, "{decoded} decoded, {left} left to libjpeg");
    }

    #[test]
    fn complaints_are_told_apart_by_their_text() {
        let new = |text: &str| Complaint::new(text.into());
        let warning = "Corrupt JPEG data: 3 extraneous bytes before marker 0xd9";
        assert!(matches!(new(warning), Complaint::Warning(_)));
        assert!(matches!(new("Insufficient memory (case 4)"), Complaint::Memory));
        assert!(matches!(new("tj3Decompress8(): Memory allocation failure"), Complaint::Memory));
        assert!(matches!(new("Memory limit exceeded"), Complaint::Limit));
        assert!(matches!(new("Application transferred too many scanlines"), Complaint::Fatal(_)));
    }

    #[test]
    fn an_error_after_a_warning_is_an_error() {
        let subsampling = (tj::TJPARAM_TJPARAM_SUBSAMP, tj::TJSAMP_TJSAMP_444);
        let mut bytes = encode(77, 101, &[subsampling, (tj::TJPARAM_TJPARAM_PROGRESSIVE, 1)]);
        let last = bytes.windows(2).rposition(|pair| pair == [0xff, 0xda]).unwrap();
        // Causes a warning, followed by a second frame.
        bytes.splice(last + 20..last + 20, *b"garbage\xff\xc0\0\x03\0");
        let window = Window { y: 0, x: 0, height: 77, width: 101 };
        let mut dst = vec![0; 77 * 101 * 3];
        let mut jpeg = Jpeg::open(&bytes).unwrap();
        let outcome = jpeg.decode(window, Target::Rgb, false, &mut dst);
        assert!(matches!(outcome, Err(Cause::Undecodable { .. })), "{outcome:?}");
    }

    #[test]
    fn wherever_a_file_ends_it_is_truncated() {
        let bytes = encode(77, 101, &[(tj::TJPARAM_TJPARAM_SUBSAMP, tj::TJSAMP_TJSAMP_420)]);
        for end in (4..bytes.len()).step_by(37).chain([bytes.len() - 2, bytes.len() - 1]) {
            let part = &bytes[..end];
            let outcome = Jpeg::open(part).and_then(|mut jpeg| {
                let window = Window { y: 0, x: 0, height: 77, width: 101 };
                let mut dst = vec![0; 77 * 101 * 3];
                jpeg.decode(window, Target::Rgb, false, &mut dst)
            });
            let kind = match outcome {
                Err(Cause::Undecodable { kind, .. }) => Some(kind),
                _ => None,
            };
            assert_eq!(kind, Some(Damage::Truncated), "cut at {end}: {outcome:?}");
        }
    }

    #[test]
    fn the_row_is_found_where_a_file_ends() {
        let bytes = encode(77, 101, &[(tj::TJPARAM_TJPARAM_SUBSAMP, tj::TJSAMP_TJSAMP_444)]);
        let data = Jpeg::open(&bytes).unwrap().header.data;
        let middle = data + (bytes.len() - data) / 2;
        let mut dst = vec![0; 77 * 101 * 3];
        let window = Window { y: 0, x: 0, height: 77, width: 101 };
        let mut jpeg = Jpeg::open(&bytes[..middle]).unwrap();
        let outcome = jpeg.decode(window, Target::Rgb, false, &mut dst);
        let Err(Cause::Undecodable { problem, .. }) = outcome else { panic!("{outcome:?}") };
        let [_, (_, Figure::Problem(inner))] = &problem.figures[..] else { panic!("{problem}") };
        let row = inner.figures.iter().find(|(name, _)| *name == "row");
        let Some((_, Figure::Int(row))) = row else { panic!("{problem}") };
        assert!((24..=48).contains(row), "{problem}");
    }
}
