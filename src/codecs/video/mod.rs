//! Video: which frames a file has, and their pixels. FFmpeg, loaded at run time, reads containers
//! and decodes; finding frames (`index`, `session`), colors and sizes (`pixels`) are ours.

mod cache;
pub mod clip;
mod color;
pub mod ffmpeg;
mod fields;
mod index;
mod pixels;
mod session;
mod sound;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::cache::{Cache, Identity, Known};
pub use self::color::Matrix;
use self::ffmpeg::Bytes;
pub use self::ffmpeg::Choice;
pub use self::index::Index;
pub use self::pixels::{Request, Resized};
use self::session::Session;
pub use self::sound::Sound;
use super::bounds;
use super::image::max_pixels;
use crate::kernels::OutputBuffer;
use crate::readers::{FileStream, Opened};
use crate::value::{Cause, DType, Damage, Desc, Problem, Sample, io_fault, problems};

pub type Result<T> = std::result::Result<T, Cause>;

/// The largest extent of a frame.
pub const LARGEST: usize = 16384;

problems! {
    /// What is wrong with a video; the sentence completes "this video ...".
    pub enum VideoFault {
        NoLibrary,
        Empty,
        UnknownFormat { text: String },
        NoStream,
        NoSuchStream { number: usize, videos: usize },
        NoFrames,
        Codec { name: String },
        PixelFormat { name: String },
        Size { height: usize, width: usize, longest: usize, limit: usize },
        Bytes { frames: usize, height: usize, width: usize, bytes: usize, limit: usize },
        Changed {
            frame: usize,
            seconds: f64,
            height: usize,
            width: usize,
            first_height: usize,
            first_width: usize,
        },
        Damaged { frame: usize, seconds: f64, text: String },
        EndsEarly { frame: usize, seconds: f64, frames: usize },
        Missing { frame: usize, seconds: f64 },
        Late { seconds: f64 },
        SoundCodec { name: String },
        NoSamples,
        Sound { seconds: f64, text: String },
        SoundFormat { seconds: f64 },
        SoundChanged { seconds: f64 },
        SoundBytes { seconds: f64, bytes: usize, limit: usize },
    }
}

fn broken(fault: VideoFault) -> Cause {
    Cause::Undecodable { kind: Damage::Broken, problem: fault.into() }
}

fn large(fault: VideoFault) -> Cause {
    Cause::Undecodable { kind: Damage::Large, problem: fault.into() }
}

fn late() -> Cause {
    broken(VideoFault::Late { seconds: patience().as_secs_f64() })
}

/// How long to wait for the next packet of a file; PENSTOCK_VIDEO_TIMEOUT, in seconds, changes it.
fn patience() -> Duration {
    static GIVEN: OnceLock<Duration> = OnceLock::new();
    *GIVEN.get_or_init(|| {
        let given = std::env::var("PENSTOCK_VIDEO_TIMEOUT").ok();
        let seconds = given.and_then(|text| text.trim().parse::<f64>().ok());
        let seconds = seconds.filter(|seconds| *seconds > 0.0).unwrap_or(60.0);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    })
}

fn in_memory(bytes: &[u8]) -> Result<Sample> {
    let mut buffer = OutputBuffer::new(Desc::new(DType::U8, &[bytes.len()]))?;
    buffer.bytes().copy_from_slice(bytes);
    buffer.into_sample()
}

/// A video whose frames are known.
pub struct Video {
    index: Arc<Index>,
    bytes: Bytes,
    choice: Choice,
    identity: Identity,
    /// What is in memory is not kept open.
    is_file: bool,
}

impl Video {
    /// Opens a file, or finds what is known of it. Fails if it isn't a video.
    pub fn open(path: &Path, choice: Choice) -> Result<Video> {
        let file = match Opened::open_whole(path)?.into_stream()? {
            FileStream::File(file) => file,
            // Of a file that is named by a URL.
            FileStream::Memory(bytes) => {
                return Video::of_bytes(in_memory(bytes.get_ref())?, choice);
            }
        };
        let found = file.metadata().map_err(|error| io_fault(&error))?;
        let bytes = Bytes::File(Arc::new(file), found.len());
        Video::of(bytes, choice, Identity::of_file(&found), true)
    }

    /// Opens the bytes of a file, which nobody may modify.
    pub fn of_bytes(bytes: Sample, choice: Choice) -> Result<Video> {
        let identity = Identity::of_bytes(bytes.elements_as_bytes());
        Video::of(Bytes::Memory(bytes), choice, identity, false)
    }

    fn of(bytes: Bytes, choice: Choice, identity: Identity, is_file: bool) -> Result<Video> {
        let identity = identity.of_stream(choice);
        let index = match Cache::current().index(&identity) {
            Some(Known::Frames(index)) => index,
            _ => {
                let mut session = Session::open(bytes.clone(), choice)?;
                let index = Arc::new(session.index()?);
                Cache::current().keep_index(identity, Known::Frames(index.clone()));
                if is_file {
                    Cache::current().keep(identity, session, &index);
                }
                index
            }
        };
        Ok(Video { index, bytes, choice, identity, is_file })
    }

    /// Counts the frames by decoding all of the file, for one whose packets mislead. `false` if
    /// that was done before.
    pub fn recount(&mut self) -> Result<bool> {
        if self.index.counted {
            return Ok(false);
        }
        let mut session = Session::open(self.bytes.clone(), self.choice)?;
        self.index = Arc::new(session.count_frames(&self.index)?);
        Cache::current().keep_index(self.identity, Known::Frames(self.index.clone()));
        Ok(true)
    }

    /// The sound of the same file; `None` if it has none.
    pub fn sound(&self) -> Result<Option<Sound>> {
        let identity = self.identity.of_stream(Choice::Sound);
        let known = match Cache::current().index(&identity) {
            Some(Known::Sound(index)) => Some(index),
            _ => None,
        };
        let is_new = known.is_none();
        let sound = Sound::open(self.bytes.clone(), known)?;
        if let (Some(sound), true) = (&sound, is_new) {
            Cache::current().keep_index(identity, Known::Sound(sound.index.clone()));
        }
        Ok(sound)
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.index.frames.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Decodes frames to an array of shape (frames, height, width, channels). A
    /// number per output frame; `None` is filled with `request.fill`. Numbers must be below
    /// [`Video::len`], in any order. Only frames that are asked for are converted, each once.
    pub fn decode(
        &self,
        request: &Request,
        frames: &[Option<usize>],
        allocate: &mut dyn FnMut(Desc) -> Result<OutputBuffer>,
    ) -> Result<OutputBuffer> {
        let mut wanted: Vec<usize> = frames.iter().flatten().copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let orientation = self.index.stream.orientation;
        let mut out: Option<Sink> = None;
        if !wanted.is_empty() {
            let take = || Cache::current().take(&self.identity, wanted[0]);
            let mut session = match self.is_file.then(take).flatten() {
                Some(session) => session,
                None => Session::open(self.bytes.clone(), self.choice)?,
            };
            session.decode(&self.index, &wanted, &mut |frame, decoded| {
                let size = decoded.size();
                let sink = match &mut out {
                    Some(sink) => sink,
                    None => out.insert(Sink::new(request, frames, size, orientation, allocate)?),
                };
                sink.put(self, request, frames, frame, decoded)
            })?;
            if self.is_file {
                Cache::current().keep(self.identity, session, &self.index);
            }
        }
        let out = match out {
            Some(sink) => sink,
            None => {
                let size = (self.index.stream.height, self.index.stream.width);
                Sink::new(request, frames, size, orientation, allocate)?
            }
        };
        out.finish(request, frames)
    }

    /// As [`Video::decode`], with other elements.
    pub fn decode_as(
        &self,
        elements: Elements,
        request: &Request,
        frames: &[Option<usize>],
        allocate: &mut dyn FnMut(Desc) -> Result<OutputBuffer>,
    ) -> Result<OutputBuffer> {
        let Elements::F32(scale) = elements else {
            return self.decode(request, frames, allocate);
        };
        let mut bytes = self.decode(request, frames, &mut OutputBuffer::new)?;
        let desc = Desc { dtype: DType::F32, ..bytes.desc().clone() };
        let limit = bounds::max_bytes();
        if desc.bytes() > limit {
            let [frames, height, width] = [desc.shape[0], desc.shape[1], desc.shape[2]];
            let bytes = desc.bytes();
            return Err(large(VideoFault::Bytes { frames, height, width, bytes, limit }));
        }
        let mut out = allocate(desc)?;
        let pixels = out.elements::<f32>().iter_mut().zip(bytes.bytes());
        pixels.for_each(|(to, from)| *to = f32::from(*from) / scale);
        Ok(out)
    }
}

/// The elements of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Elements {
    /// Bytes.
    U8,
    /// Bytes as `f32`, divided by this number.
    F32(f32),
}

impl Elements {
    pub fn dtype(self) -> DType {
        match self {
            Elements::U8 => DType::U8,
            Elements::F32(_) => DType::F32,
        }
    }
}

/// The result while it is written.
struct Sink {
    out: OutputBuffer,
    /// Height and width of decoded frames.
    size: (usize, usize),
    /// Bytes of a frame of the result.
    each: usize,
}

impl Sink {
    fn new(
        request: &Request,
        frames: &[Option<usize>],
        size: (usize, usize),
        orientation: u8,
        allocate: &mut dyn FnMut(Desc) -> Result<OutputBuffer>,
    ) -> Result<Sink> {
        let (height, width) = size;
        let limit = max_pixels();
        if height > LARGEST || width > LARGEST || height * width > limit || height * width == 0 {
            return Err(large(VideoFault::Size { height, width, longest: LARGEST, limit }));
        }
        let [height, width] = request.size(size, orientation)?;
        let shape = [frames.len(), height, width, request.channels()];
        let bytes = shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(d)).unwrap_or(usize::MAX);
        let limit = bounds::max_bytes();
        if bytes > limit {
            let frames = frames.len();
            return Err(large(VideoFault::Bytes { frames, height, width, bytes, limit }));
        }
        let desc = Desc::new(DType::U8, &shape);
        let each = bytes.checked_div(frames.len()).unwrap_or(0);
        Ok(Sink { out: allocate(desc)?, size, each })
    }

    /// Converts a frame to all places where it is wanted.
    fn put(
        &mut self,
        video: &Video,
        request: &Request,
        frames: &[Option<usize>],
        frame: usize,
        decoded: &ffmpeg::Frame,
    ) -> Result<()> {
        let size = decoded.size();
        if size != self.size && request.resized.is_none() {
            let ((height, width), (first_height, first_width)) = (size, self.size);
            let seconds = video.index.seconds(frame);
            return Err(broken(VideoFault::Changed {
                frame,
                seconds,
                height,
                width,
                first_height,
                first_width,
            }));
        }
        if size.0 > LARGEST || size.1 > LARGEST {
            let ((height, width), limit) = (size, max_pixels());
            return Err(large(VideoFault::Size { height, width, longest: LARGEST, limit }));
        }
        let (each, orientation) = (self.each, video.index.stream.orientation);
        let [height, width] = request.size(self.size, orientation)?;
        let bytes = self.out.bytes();
        let mut places = frames.iter().enumerate().filter(|(_, at)| **at == Some(frame));
        let Some((first, _)) = places.next() else { return Ok(()) };
        let target = &mut bytes[first * each..][..each];
        request.convert(decoded, orientation, [height, width], target)?;
        for (place, _) in places {
            bytes.copy_within(first * each..(first + 1) * each, place * each);
        }
        Ok(())
    }

    fn finish(mut self, request: &Request, frames: &[Option<usize>]) -> Result<OutputBuffer> {
        let (each, channels) = (self.each, request.channels());
        let bytes = self.out.bytes();
        let mut filled: Option<usize> = None;
        for (place, _) in frames.iter().enumerate().filter(|(_, frame)| frame.is_none()) {
            match filled {
                Some(from) => bytes.copy_within(from * each..(from + 1) * each, place * each),
                None => {
                    let pixels = bytes[place * each..][..each].chunks_exact_mut(channels);
                    pixels.for_each(|pixel| pixel.copy_from_slice(&request.fill[..channels]));
                    filled = Some(place);
                }
            }
        }
        Ok(self.out)
    }
}

/// Whether a fault says that the packets of a file misled about its frames.
pub fn is_miscounted(cause: &Cause) -> bool {
    let missing =
        |problem: &Problem| ["VideoFault.Missing", "VideoFault.EndsEarly"].contains(&problem.kind);
    matches!(cause, Cause::Undecodable { problem, .. } if missing(problem))
}
