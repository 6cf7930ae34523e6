//! Codecs: from packets to frames.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};

use super::abi;
use super::demuxer::Demuxer;
use super::library::{AGAIN, END, Library, NO_PTS, read};
use super::pixel_format::PixelFormat;
use crate::codecs::image::max_pixels;
use crate::value::Cause;

/// `AVDISCARD_DEFAULT` and `AVDISCARD_NONREF`.
const DECODE_ALL: i64 = 0;
const SKIP_UNREFERENCED: i64 = 8;
/// `AV_FRAME_FLAG_CORRUPT`.
const CORRUPT: c_int = 1;

/// A decoder of one stream. It has no threads of its own, so that it survives a fork, and the
/// choice of what to skip applies to the very next packet.
pub struct Decoder {
    library: &'static Library,
    context: *mut c_void,
    skips: bool,
}

// SAFETY: FFmpeg's contexts belong to whoever calls their functions, on any thread, one at a time;
// a decoder is not `Sync`.
unsafe impl Send for Decoder {}

/// The result of asking for a frame.
pub enum Received {
    Frame,
    /// There is none before the next packet.
    Hungry,
    End,
    Broken(String),
}

impl Decoder {
    /// A decoder for the stream of a container; `None` if there is none for its codec.
    pub fn open(demuxer: &Demuxer) -> Result<Option<Decoder>, Cause> {
        let library = demuxer.library();
        let parameters = demuxer.parameters();
        let memory = || Cause::Memory { bytes: 1 << 10 };
        // SAFETY: parameters exist while the demuxer does; the context is checked, and freed by
        // `drop`.
        unsafe {
            let id = read::<u32>(parameters, abi::CODECPAR_CODEC_ID);
            let codec = (library.avcodec_find_decoder)(id);
            if codec.is_null() {
                return Ok(None);
            }
            let context = (library.avcodec_alloc_context3)(codec);
            if context.is_null() {
                return Err(memory());
            }
            let decoder = Decoder { library, context, skips: false };
            if (library.avcodec_parameters_to_context)(context, parameters) < 0 {
                return Err(memory());
            }
            let limit = i64::try_from(max_pixels()).unwrap_or(i64::MAX);
            (library.av_opt_set_int)(context, c"max_pixels".as_ptr(), limit, 0);
            let mut options = null_mut();
            let mut set = |name: &CStr, value: &CStr| {
                (library.av_dict_set)(&mut options, name.as_ptr(), value.as_ptr(), 0)
            };
            set(c"threads", c"1");
            // For the times of sound whose first samples are dropped, as the file says.
            let (over, under) = demuxer.time_base();
            if let Ok(tick) = CString::new(format!("{over}/{under}")) {
                set(c"pkt_timebase", &tick);
            }
            let opened = (library.avcodec_open2)(context, codec, &mut options);
            (library.av_dict_free)(&mut options);
            match opened {
                code if code == -libc::ENOMEM => Err(memory()),
                code => Ok((code >= 0).then_some(decoder)),
            }
        }
    }

    /// Whether pictures that no other picture refers to are skipped, from the next packet on.
    pub fn set_skipping(&mut self, skips: bool) {
        if self.skips != skips {
            let value = if skips { SKIP_UNREFERENCED } else { DECODE_ALL };
            // SAFETY: the context is open.
            unsafe {
                (self.library.av_opt_set_int)(self.context, c"skip_frame".as_ptr(), value, 0)
            };
            self.skips = skips;
        }
    }

    /// Passes the current packet of a demuxer on, or says that there are no more.
    pub fn send(&mut self, packet: Option<&Demuxer>) -> Result<(), String> {
        let packet = packet.map_or(null(), Demuxer::packet);
        // SAFETY: the context is open; the packet, if any, exists and is not changed.
        match unsafe { (self.library.avcodec_send_packet)(self.context, packet) } {
            code if code < 0 && code != END => Err(self.library.error_text(code)),
            _ => Ok(()),
        }
    }

    /// Asks for the next frame, which replaces the one before.
    pub fn receive(&mut self, frame: &mut Frame) -> Received {
        // SAFETY: the context is open, and the frame ours; FFmpeg releases what it held before.
        match unsafe { (self.library.avcodec_receive_frame)(self.context, frame.frame) } {
            0.. => Received::Frame,
            AGAIN => Received::Hungry,
            END => Received::End,
            code => Received::Broken(self.library.error_text(code)),
        }
    }

    /// Forgets everything, for packets from elsewhere.
    pub fn flush(&mut self) {
        // SAFETY: the context is open.
        unsafe { (self.library.avcodec_flush_buffers)(self.context) };
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: allocated in `open`, and freed once.
        unsafe { (self.library.avcodec_free_context)(&mut self.context) };
    }
}

/// A decoded picture.
pub struct Frame {
    library: &'static Library,
    frame: *mut c_void,
}

// SAFETY: frames own what they refer to.
unsafe impl Send for Frame {}

impl Frame {
    pub fn new(library: &'static Library) -> Result<Frame, Cause> {
        // SAFETY: the result is checked, and freed by `drop`.
        let frame = unsafe { (library.av_frame_alloc)() };
        if frame.is_null() {
            Err(Cause::Memory { bytes: 1 << 9 })
        } else {
            Ok(Frame { library, frame })
        }
    }

    fn number(&self, offset: usize) -> c_int {
        // SAFETY: the frame exists, and nobody writes to it while it is borrowed.
        unsafe { read(self.frame, offset) }
    }

    fn time(&self, offset: usize) -> i64 {
        // SAFETY: as above.
        unsafe { read(self.frame, offset) }
    }

    /// When it is shown, in ticks; guessed if the file doesn't say.
    pub fn pts(&self) -> i64 {
        match self.time(abi::FRAME_PTS) {
            NO_PTS => self.time(self.library.abi.frame_best_effort_timestamp),
            pts => pts,
        }
    }

    pub fn size(&self) -> (usize, usize) {
        let extent = |offset| usize::try_from(self.number(offset)).unwrap_or(0);
        (extent(abi::FRAME_HEIGHT), extent(abi::FRAME_WIDTH))
    }

    /// Whether parts of it could not be decoded.
    pub fn is_corrupt(&self) -> bool {
        self.number(self.library.abi.frame_flags) & CORRUPT != 0
    }

    /// `AVColorRange`: 1 is limited, 2 is full, 0 is unknown.
    pub fn color_range(&self) -> i32 {
        self.number(self.library.abi.frame_color_range)
    }

    /// `AVColorSpace`.
    pub fn color_space(&self) -> i32 {
        self.number(self.library.abi.frame_colorspace)
    }

    /// The samples of a frame of sound; `None` if their format is not supported.
    pub fn samples(&self) -> Option<Samples<'_>> {
        if !self.library.has_channel_layouts {
            return None;
        }
        let (kind, planar) = SampleKind::parse(self.number(abi::FRAME_FORMAT))?;
        let rate = u32::try_from(self.number(self.library.abi.frame_sample_rate)).ok()?;
        let channels = self.number(self.library.abi.frame_ch_layout + size_of::<c_int>());
        let channels = usize::try_from(channels).ok().filter(|count| (1..=64).contains(count))?;
        let count = usize::try_from(self.number(abi::FRAME_NB_SAMPLES)).ok()?;
        // SAFETY: frames of sound have a pointer for each plane, here or in an array of their own.
        let planes = unsafe { read::<*const *const u8>(self.frame, abi::FRAME_EXTENDED_DATA) };
        if planes.is_null() {
            return None;
        }
        let places = (0..channels).map(|channel| {
            // SAFETY: as above. Planes hold all samples of a channel, or, interleaved, of all.
            unsafe {
                match planar {
                    true => planes.add(channel).read(),
                    false => (*planes).wrapping_add(channel * kind.bytes()),
                }
            }
        });
        let places: Vec<*const u8> = places.collect();
        if count > 0 && places.iter().any(|place| place.is_null()) {
            return None;
        }
        let step = kind.bytes() * if planar { 1 } else { channels };
        Some(Samples { kind, rate, count, places, step, frame: PhantomData })
    }

    /// The pixels, or the name of their format if it is not supported.
    pub fn picture(&self) -> Result<Picture<'_>, String> {
        let format = self.number(abi::FRAME_FORMAT);
        // SAFETY: names are constants; numbers without a format give null.
        let name = unsafe {
            let name: *const c_char = (self.library.av_get_pix_fmt_name)(format);
            match name.is_null() {
                true => return Err(format!("number {format}")),
                false => CStr::from_ptr(name).to_string_lossy(),
            }
        };
        let Some(format) = PixelFormat::parse(&name) else { return Err(name.into_owned()) };
        let (height, width) = self.size();
        let mut planes = [Plane { start: null(), stride: 0, rows: 0, bytes: 0 }; 3];
        for (at, plane) in planes.iter_mut().enumerate().take(format.planes()) {
            // SAFETY: a frame has at least four planes, some of which may be null.
            let start = unsafe { read::<*const u8>(self.frame, abi::FRAME_DATA + 8 * at) };
            let stride = self.number(abi::FRAME_LINESIZE + 4 * at) as isize;
            let (rows, bytes) = format.plane(at, height, width);
            if start.is_null() || bytes > stride.unsigned_abs() {
                return Err(name.into_owned());
            }
            *plane = Plane { start, stride, rows, bytes };
        }
        Ok(Picture { format, height, width, planes, frame: PhantomData })
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and freed once.
        unsafe { (self.library.av_frame_free)(&mut self.frame) };
    }
}

#[derive(Clone, Copy)]
struct Plane {
    start: *const u8,
    /// Bytes from one row to the next; negative if the picture is stored bottom up.
    stride: isize,
    rows: usize,
    /// Bytes of a row.
    bytes: usize,
}

/// The pixels of a frame.
pub struct Picture<'a> {
    pub format: PixelFormat,
    pub height: usize,
    pub width: usize,
    planes: [Plane; 3],
    frame: PhantomData<&'a Frame>,
}

impl<'a> Picture<'a> {
    /// A row of a plane; planes and rows that don't exist panic.
    pub fn row(&self, plane: usize, row: usize) -> &'a [u8] {
        let Plane { start, stride, rows, bytes } = self.planes[plane];
        assert!(row < rows);
        // SAFETY: the decoder allocated this many rows of at least this many bytes for a frame of
        // this size and format; the frame is borrowed, so it is neither changed nor freed.
        unsafe { std::slice::from_raw_parts(start.offset(row as isize * stride), bytes) }
    }
}

/// The types of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleKind {
    U8,
    I16,
    I32,
    F32,
    F64,
}

impl SampleKind {
    /// Of an `AVSampleFormat`, and whether each channel has a plane of its own.
    fn parse(format: c_int) -> Option<(SampleKind, bool)> {
        use SampleKind::{F32, F64, I16, I32, U8};
        let kinds = [U8, I16, I32, F32, F64];
        let number = usize::try_from(format).ok()?;
        Some((*kinds.get(number % kinds.len())?, number / kinds.len() == 1))
            .filter(|_| number < 2 * kinds.len())
    }

    fn bytes(self) -> usize {
        match self {
            SampleKind::U8 => 1,
            SampleKind::I16 => 2,
            SampleKind::I32 | SampleKind::F32 => 4,
            SampleKind::F64 => 8,
        }
    }
}

/// The samples of a frame of sound.
pub struct Samples<'a> {
    kind: SampleKind,
    pub rate: u32,
    /// Samples per channel.
    pub count: usize,
    /// The first sample of each channel.
    places: Vec<*const u8>,
    /// Bytes from one sample of a channel to the next.
    step: usize,
    frame: PhantomData<&'a Frame>,
}

impl Samples<'_> {
    pub fn channels(&self) -> usize {
        self.places.len()
    }

    /// Writes samples from a number on, from -1 to 1, with the channels interleaved. Numbers that
    /// don't exist panic.
    pub fn write(&self, first: usize, out: &mut [f32]) {
        let channels = self.channels();
        assert!(first + out.len() / channels <= self.count);
        for (channel, &place) in self.places.iter().enumerate() {
            let out = out.iter_mut().skip(channel).step_by(channels);
            for (at, out) in (first..).zip(out) {
                // SAFETY: the decoder allocated `count` samples per channel, and `at` is below
                // that; the frame is borrowed, so it is neither changed nor freed.
                *out = unsafe {
                    let place = place.add(at * self.step);
                    match self.kind {
                        SampleKind::U8 => (f32::from(*place) - 128.0) / 128.0,
                        SampleKind::I16 => {
                            f32::from(place.cast::<i16>().read_unaligned()) / 32768.0
                        }
                        SampleKind::I32 => {
                            (f64::from(place.cast::<i32>().read_unaligned()) / 2147483648.0) as f32
                        }
                        SampleKind::F32 => place.cast::<f32>().read_unaligned(),
                        SampleKind::F64 => place.cast::<f64>().read_unaligned() as f32,
                    }
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sample_formats() {
        assert_eq!(SampleKind::parse(1), Some((SampleKind::I16, false)));
        assert_eq!(SampleKind::parse(8), Some((SampleKind::F32, true)));
        assert_eq!(SampleKind::parse(9), Some((SampleKind::F64, true)));
        assert_eq!(SampleKind::parse(-1), None);
        assert_eq!(SampleKind::parse(10), None);
    }
}
