//! Containers: the packets of a stream.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::time::Duration;

use super::abi;
use super::input::{Bytes, Input};
use super::library::{END, Library, NO_PTS, read, write};
use crate::value::{Cause, is_available};

/// Containers that are opened. Others, such as playlists that name further files, are not.
const CONTAINERS: &CStr = c"mov,matroska,avi,ivf,mpegts,mpeg,flv,ogg,mjpeg,mjpeg_2000,h264,hevc,\
vvc,m4v,h263,vc1,mpegvideo,av1,obu,gif,apng,asf,mxf,nut,dv,rm,yuv4mpegpipe,swf,live_flv";

/// Bytes that FFmpeg reads at a time.
const BLOCK: usize = 1 << 15;
/// `AVMEDIA_TYPE_VIDEO` and `AVMEDIA_TYPE_AUDIO`.
const VIDEO: c_int = 0;
const AUDIO: c_int = 1;
/// `AVDISCARD_ALL`.
const DISCARD_ALL: c_int = 48;
/// `AVSEEK_FLAG_BACKWARD`.
const BACKWARD: c_int = 1;
/// `AV_PKT_DATA_DISPLAYMATRIX`.
const DISPLAY_MATRIX: c_int = 5;

/// The stream of a file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The video that FFmpeg takes for the main one.
    Video,
    /// A video by its number among those of the file.
    Numbered(usize),
    /// The sound that FFmpeg takes for the main one.
    Sound,
}

/// What the file says about its video.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Names of the container, such as "mov,mp4,m4a,3gp,3g2,mj2".
    pub container: String,
    pub codec: String,
    /// As claimed; frames may differ.
    pub height: usize,
    pub width: usize,
    /// Seconds per tick, as a fraction.
    pub time_base: (i32, i32),
    /// Frames per second, as a fraction; 0 if unknown.
    pub frame_rate: (i32, i32),
    /// As in EXIF: what has to be done for the picture to be upright.
    pub orientation: u8,
}

/// A packet's place in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    pub pts: i64,
    pub dts: i64,
    pub duration: i64,
    pub size: usize,
    pub key: bool,
    /// Whether it is decoded, but not shown, since the file says so.
    pub discard: bool,
    /// Whether it is incomplete.
    pub corrupt: bool,
}

/// The result of reading a packet.
pub enum Read {
    Packet(Packet),
    End,
    /// The rest can't be read.
    Broken(String),
}

/// An open container, and its current packet.
pub struct Demuxer {
    library: &'static Library,
    context: *mut c_void,
    io: *mut c_void,
    input: *mut Input,
    packet: *mut c_void,
    choice: Choice,
    /// The `AVStream` that was chosen, and its number.
    stream: *mut c_void,
    number: c_int,
    patience: Duration,
}

// SAFETY: FFmpeg's contexts belong to whoever calls their functions, on any thread, one at a time;
// a demuxer is not `Sync`.
unsafe impl Send for Demuxer {}

/// Why a container can't be opened.
pub enum OpenFault {
    Cause(Cause),
    Format(String),
    /// The stream doesn't exist; so many videos do.
    NoStream {
        videos: usize,
    },
    Late,
}

impl Demuxer {
    /// Opens a container. Reading fails once no packet came for as long as `patience`.
    pub fn open(
        library: &'static Library,
        bytes: Bytes,
        choice: Choice,
        patience: Duration,
    ) -> Result<Demuxer, OpenFault> {
        let input = Box::into_raw(Box::new(Input::new(bytes, patience)));
        // What exists is freed when `demuxer` is dropped, whatever fails.
        let mut demuxer = Demuxer {
            library,
            context: null_mut(),
            io: null_mut(),
            input,
            packet: null_mut(),
            choice,
            stream: null_mut(),
            number: 0,
            patience,
        };
        demuxer.open_context()?;
        demuxer.find_stream()?;
        Ok(demuxer)
    }

    fn open_context(&mut self) -> Result<(), OpenFault> {
        let library = self.library;
        let memory = || OpenFault::Cause(Cause::Memory { bytes: BLOCK });
        // SAFETY: everything is allocated here, checked, and freed by `drop` or by FFmpeg;
        // `avformat_open_input` frees the context itself when it fails, and clears the pointer.
        let opened = unsafe {
            self.packet = (library.av_packet_alloc)();
            let block = (library.av_malloc)(BLOCK);
            if self.packet.is_null() || block.is_null() {
                (library.av_free)(block);
                return Err(memory());
            }
            let (read, seek) = (Input::read as _, Input::seek as _);
            let (size, opaque) = (BLOCK as c_int, self.input.cast());
            self.io = (library.avio_alloc_context)(
                block.cast(),
                size,
                0,
                opaque,
                Some(read),
                None,
                Some(seek),
            );
            if self.io.is_null() {
                (library.av_free)(block);
                return Err(memory());
            }
            self.context = (library.avformat_alloc_context)();
            if self.context.is_null() {
                return Err(memory());
            }
            write(self.context, abi::FORMAT_PB, self.io);
            let mut options = null_mut();
            let mut set = |name: &CStr, value: &CStr| {
                (library.av_dict_set)(&mut options, name.as_ptr(), value.as_ptr(), 0)
            };
            set(c"format_whitelist", CONTAINERS);
            // Times of frames that AVI and MPEG leave out are worked out.
            set(c"fflags", c"+genpts");
            // No file may name another one to open.
            set(c"protocol_whitelist", c"none");
            let opened = (library.avformat_open_input)(
                &mut self.context,
                c"".as_ptr(),
                std::ptr::null(),
                &mut options,
            );
            (library.av_dict_free)(&mut options);
            opened
        };
        self.check(opened)?;
        Ok(())
    }

    fn find_stream(&mut self) -> Result<(), OpenFault> {
        let library = self.library;
        // SAFETY: the context is open; FFmpeg keeps as many streams as it says.
        unsafe {
            if !self.is_described() {
                let found = (library.avformat_find_stream_info)(self.context, null_mut());
                self.check(found)?;
            }
            let best = |kind| {
                let best = &library.av_find_best_stream;
                usize::try_from(best(self.context, kind, -1, -1, null_mut(), 0)).ok()
            };
            let streams = self.streams();
            let videos: Vec<usize> =
                (0..streams.len()).filter(|&at| self.kind(streams[at]) == VIDEO).collect();
            let number = match self.choice {
                Choice::Video => best(VIDEO),
                Choice::Numbered(number) => videos.get(number).copied(),
                Choice::Sound => best(AUDIO),
            };
            let missing = OpenFault::NoStream { videos: videos.len() };
            let Some(number) = number.filter(|&number| number < streams.len()) else {
                return Err(missing);
            };
            for (at, &stream) in streams.iter().enumerate() {
                if at == number {
                    self.stream = stream;
                } else {
                    write(stream, library.abi.stream_discard, DISCARD_ALL);
                }
            }
            self.number = number as c_int;
        }
        Ok(())
    }

    /// The media type of a stream.
    fn kind(&self, stream: *mut c_void) -> c_int {
        // SAFETY: streams have parameters as long as the context is open.
        unsafe {
            let parameters = read::<*mut c_void>(stream, self.library.abi.stream_codecpar);
            read::<c_int>(parameters, abi::CODECPAR_CODEC_TYPE)
        }
    }

    fn check(&mut self, code: c_int) -> Result<(), OpenFault> {
        if code >= 0 {
            return Ok(());
        }
        // SAFETY: FFmpeg isn't running, so nobody else uses the input.
        let input = unsafe { &mut *self.input };
        if input.is_late {
            return Err(OpenFault::Late);
        }
        match (input.fault(), code) {
            (Some(cause), _) => Err(OpenFault::Cause(cause)),
            (None, code) if is_scarce(code) => {
                Err(OpenFault::Cause(Cause::Memory { bytes: BLOCK }))
            }
            (None, code) => Err(OpenFault::Format(self.library.error_text(code))),
        }
    }

    fn streams(&self) -> Vec<*mut c_void> {
        // SAFETY: the context is open, and has an array of that many streams.
        unsafe {
            let count = read::<c_uint>(self.context, abi::FORMAT_NB_STREAMS) as usize;
            let streams = read::<*const *mut c_void>(self.context, abi::FORMAT_STREAMS);
            if streams.is_null() || count == 0 {
                return Vec::new();
            }
            std::slice::from_raw_parts(streams, count).to_vec()
        }
    }

    /// Whether the header says all that decoding needs, so that FFmpeg need not decode the start of
    /// the file to find out, which takes milliseconds.
    fn is_described(&self) -> bool {
        let container = self.container();
        let complete = ["mov", "matroska", "ivf"].iter().any(|name| container.starts_with(name));
        let abi = &self.library.abi;
        let described = |stream: &*mut c_void| {
            // For sound, these containers say it all.
            if self.choice == Choice::Sound || self.kind(*stream) != VIDEO {
                return true;
            }
            // SAFETY: streams have parameters as long as the context is open.
            unsafe {
                let parameters = read::<*mut c_void>(*stream, abi.stream_codecpar);
                let codec = self.codec_name(parameters);
                let extradata = read::<*mut u8>(parameters, abi::CODECPAR_EXTRADATA);
                let bare = ["vp8", "vp9", "mjpeg", "av1", "prores"].contains(&codec.as_str());
                read::<c_int>(parameters, abi.codecpar_width) > 0
                    && read::<c_int>(parameters, abi.codecpar_height) > 0
                    && read::<c_uint>(parameters, abi::CODECPAR_CODEC_ID) != 0
                    && (bare || !extradata.is_null())
            }
        };
        let streams = self.streams();
        complete && !streams.is_empty() && streams.iter().all(described)
    }

    fn codec_name(&self, parameters: *const c_void) -> String {
        // SAFETY: the parameters exist while the context is open; names are constants.
        unsafe {
            let id = read::<c_uint>(parameters, abi::CODECPAR_CODEC_ID);
            text((self.library.avcodec_get_name)(id))
        }
    }

    fn container(&self) -> String {
        // SAFETY: an open context has a format, which has a name.
        unsafe {
            let format = read::<*const c_void>(self.context, abi::FORMAT_IFORMAT);
            match format.is_null() {
                true => String::new(),
                false => text(read::<*const c_char>(format, abi::IFORMAT_NAME)),
            }
        }
    }

    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    /// Seconds per tick, as a fraction.
    pub fn time_base(&self) -> (i32, i32) {
        // SAFETY: the stream exists while the context is open.
        unsafe { read::<[i32; 2]>(self.stream, self.library.abi.stream_time_base).into() }
    }

    /// What the header has for the decoder.
    pub fn extradata(&self) -> &[u8] {
        let parameters = self.parameters();
        // SAFETY: the parameters own that many bytes while the context is open, and don't change.
        unsafe {
            let data = read::<*const u8>(parameters, abi::CODECPAR_EXTRADATA);
            let size = read::<c_int>(parameters, abi::CODECPAR_EXTRADATA_SIZE);
            match data.is_null() || size <= 0 {
                true => &[],
                false => std::slice::from_raw_parts(data, size as usize),
            }
        }
    }

    /// The `AVCodecParameters` of the stream.
    pub(super) fn parameters(&self) -> *const c_void {
        // SAFETY: streams have parameters as long as the context is open.
        unsafe { read::<*const c_void>(self.stream, self.library.abi.stream_codecpar) }
    }

    pub fn stream(&self) -> Stream {
        let (abi, parameters) = (&self.library.abi, self.parameters());
        // SAFETY: the stream and its parameters exist while the context is open.
        unsafe {
            let extent = |offset| usize::try_from(read::<c_int>(parameters, offset)).unwrap_or(0);
            Stream {
                container: self.container(),
                codec: self.codec_name(parameters),
                height: extent(abi.codecpar_height),
                width: extent(abi.codecpar_width),
                time_base: self.time_base(),
                frame_rate: read::<[i32; 2]>(self.stream, abi.stream_avg_frame_rate).into(),
                orientation: self.display_matrix().map_or(1, |matrix| orientation(&matrix)),
            }
        }
    }

    /// The upper left part of the display matrix: where columns and rows point to.
    fn display_matrix(&self) -> Option<[i32; 4]> {
        let mut size = 0;
        let mut data = std::ptr::null::<u8>();
        let parameters = self.parameters();
        // SAFETY: the stream and its parameters exist while the context is open, and side data has
        // as many entries and bytes as it says.
        unsafe {
            if let Some(offset) = self.library.abi.codecpar_side_data {
                let entries = read::<*const c_void>(parameters, offset);
                let count = read::<c_int>(parameters, offset + 8).max(0) as usize;
                for entry in (0..count).map(|at| entries.cast::<u8>().add(24 * at).cast()) {
                    if read::<c_int>(entry, 16) == DISPLAY_MATRIX {
                        data = read(entry, 0);
                        size = read(entry, 8);
                    }
                }
            } else if let Some(get) = self.library.av_stream_get_side_data {
                data = get(self.stream, DISPLAY_MATRIX, &mut size);
            }
            if data.is_null() || size < 36 {
                return None;
            }
            let matrix = read::<[i32; 9]>(data.cast(), 0);
            Some([matrix[0], matrix[1], matrix[3], matrix[4]])
        }
    }

    /// Reads the next packet of the stream.
    pub fn read(&mut self) -> Result<Read, OpenFault> {
        loop {
            // SAFETY: context and packet exist; a packet is released before it is used again.
            let code = unsafe {
                (self.library.av_packet_unref)(self.packet);
                (self.library.av_read_frame)(self.context, self.packet)
            };
            if code < 0 {
                // SAFETY: FFmpeg isn't running, so nobody else uses the input.
                let input = unsafe { &mut *self.input };
                if input.is_late {
                    return Err(OpenFault::Late);
                }
                if let Some(cause) = input.fault() {
                    return Err(OpenFault::Cause(cause));
                }
                if is_scarce(code) {
                    return Err(OpenFault::Cause(Cause::Memory { bytes: BLOCK }));
                }
                return Ok(match code {
                    END => Read::End,
                    code => Read::Broken(self.library.error_text(code)),
                });
            }
            // SAFETY: the packet was just read.
            if unsafe { read::<c_int>(self.packet, abi::PACKET_STREAM_INDEX) } == self.number {
                // SAFETY: as above.
                unsafe { (*self.input).extend(self.patience) };
                return Ok(Read::Packet(self.current()));
            }
        }
    }

    fn current(&self) -> Packet {
        // SAFETY: the packet exists, and FFmpeg isn't running.
        unsafe {
            let flags = read::<c_int>(self.packet, abi::PACKET_FLAGS);
            Packet {
                pts: read(self.packet, abi::PACKET_PTS),
                dts: read(self.packet, abi::PACKET_DTS),
                duration: read(self.packet, abi::PACKET_DURATION),
                size: self.data().len(),
                key: flags & 1 != 0,
                corrupt: flags & 2 != 0,
                discard: flags & 4 != 0,
            }
        }
    }

    /// The bytes of the current packet.
    pub fn data(&self) -> &[u8] {
        // SAFETY: the packet owns that many bytes until the next one is read, which takes a mutable
        // borrow.
        unsafe {
            let data = read::<*const u8>(self.packet, abi::PACKET_DATA);
            let size = read::<c_int>(self.packet, abi::PACKET_SIZE);
            match data.is_null() || size <= 0 {
                true => &[],
                false => std::slice::from_raw_parts(data, size as usize),
            }
        }
    }

    pub(super) fn packet(&self) -> *const c_void {
        self.packet
    }

    /// Moves to a key frame at or before a time; which one, the next packet tells.
    pub fn seek(&mut self, time: i64) -> bool {
        if time == NO_PTS {
            return false;
        }
        // SAFETY: the context is open, FFmpeg isn't running.
        unsafe {
            (*self.input).extend(self.patience);
            (self.library.av_seek_frame)(self.context, self.number, time, BACKWARD) >= 0
        }
    }
}

/// Whether an error is about memory, of which there is none. FFmpeg gives the same error for files
/// that claim gigabytes.
fn is_scarce(code: c_int) -> bool {
    code == -libc::ENOMEM && !is_available(64 << 20)
}

impl Drop for Demuxer {
    fn drop(&mut self) {
        let library = self.library;
        // SAFETY: each was allocated in `open`, or is null, and is freed once. The context is
        // closed before what it reads from. FFmpeg may have replaced the block.
        unsafe {
            if !self.context.is_null() {
                (library.avformat_close_input)(&mut self.context);
            }
            if !self.io.is_null() {
                (library.av_free)(read::<*mut c_void>(self.io, abi::IO_BUFFER));
                (library.avio_context_free)(&mut self.io);
            }
            if !self.packet.is_null() {
                (library.av_packet_free)(&mut self.packet);
            }
            drop(Box::from_raw(self.input));
        }
    }
}

/// The EXIF orientation of a display matrix; 1 for those that are not a multiple of 90 degrees.
fn orientation(&[a, b, c, d]: &[i32; 4]) -> u8 {
    // Only which of the numbers matter, and their signs: the rest is a scale.
    let large = |x: i32| if x.unsigned_abs() > 1 << 8 { x.signum() } else { 0 };
    match [a, b, c, d].map(large) {
        [-1, 0, 0, 1] => 2,
        [-1, 0, 0, -1] => 3,
        [1, 0, 0, -1] => 4,
        [0, 1, 1, 0] => 5,
        [0, 1, -1, 0] => 6,
        [0, -1, -1, 0] => 7,
        [0, -1, 1, 0] => 8,
        _ => 1,
    }
}

/// A text that FFmpeg owns.
///
/// # Safety
/// It must be null or terminated.
unsafe fn text(from: *const c_char) -> String {
    match from.is_null() {
        true => String::new(),
        // SAFETY: guaranteed by the caller.
        false => unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_matrices_are_orientations() {
        let one = 1 << 16;
        assert_eq!(orientation(&[one, 0, 0, one]), 1);
        assert_eq!(orientation(&[0, one, -one, 0]), 6);
        assert_eq!(orientation(&[-one, 0, 0, -one]), 3);
        assert_eq!(orientation(&[0, -one, one, 0]), 8);
        assert_eq!(orientation(&[46341, 46341, -46341, 46341]), 1);
    }
}
