//! FLAC, and Ogg Vorbis: formats that are decoded packet by packet.

use std::io::{Read, Result as IoResult, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use symphonia::core::audio::{Audio as _, AudioBuffer, GenericAudioBufferRef};
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, SeekMode, SeekTo, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::units::Timestamp;

use crate::codecs::audio::{AudioFault, Limit, Pcm, Result, Span, Stream, broken, unread};
use crate::value::Cause;

pub struct Packets<'a> {
    reader: Box<dyn FormatReader + 'a>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    pub rate: u32,
    pub channels: usize,
    /// From the header.
    pub frames: Option<u64>,
    /// Whether packets are independent, so that decoding can start at any of them.
    alone: bool,
    pub limit: Limit,
    bytes: u64,
}

struct Media<'a> {
    stream: Box<dyn Stream + 'a>,
    bytes: u64,
}

impl Read for Media<'_> {
    fn read(&mut self, room: &mut [u8]) -> IoResult<usize> {
        self.stream.read(room)
    }
}

impl Seek for Media<'_> {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        self.stream.seek(to)
    }
}

impl MediaSource for Media<'_> {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.bytes)
    }
}

/// From this distance on, seeking is faster than decoding up to the position.
const FAR: u64 = 1 << 16;

impl<'a> Packets<'a> {
    pub fn open(stream: Box<dyn Stream + 'a>) -> Result<Packets<'a>> {
        caught(|| Packets::open_any(stream))
    }

    fn open_any(mut stream: Box<dyn Stream + 'a>) -> Result<Packets<'a>> {
        let mut magic = [0; 4];
        let begins = stream.read_exact(&mut magic).and_then(|()| stream.seek(SeekFrom::End(0)));
        let bytes = begins.map_err(|error| unread(&error))?;
        stream.seek(SeekFrom::Start(0)).map_err(|error| unread(&error))?;
        let media = MediaSourceStream::new(Box::new(Media { stream, bytes }), Default::default());
        let reader = symphonia::default::get_probe()
            .probe(&Hint::new(), media, FormatOptions::default(), MetadataOptions::default())
            .map_err(undecoded)?;
        let Some(track) = reader.default_track(TrackType::Audio) else {
            return Err(broken(AudioFault::NoSound));
        };
        let known = track.codec_params.as_ref().and_then(|params| params.audio());
        let Some(params) = known else {
            return Err(broken(AudioFault::UnknownCoding));
        };
        let decoder = symphonia::default::get_codecs()
            .make_audio_decoder(params, &AudioDecoderOptions::default())
            .map_err(undecoded)?;
        let rate = params.sample_rate.unwrap_or(0);
        let channels = params.channels.as_ref().map_or(0, |channels| channels.count());
        if rate == 0 || channels == 0 {
            return Err(broken(AudioFault::Claims { channels, rate }));
        }
        let (track, frames) = (track.id, track.num_frames);
        let alone = &magic == b"fLaC";
        let limit = Limit::new(bytes);
        Ok(Packets { reader, decoder, track, rate, channels, frames, alone, limit, bytes })
    }

    pub fn read<T: Pcm>(self, span: Span) -> Result<Vec<T>> {
        caught(|| self.read_any(span))
    }

    fn read_any<T: Pcm>(mut self, span: Span) -> Result<Vec<T>> {
        let mut samples: Vec<T> = Vec::new();
        let mut position = 0;
        // Decoding up to the span takes no memory, only time, so it has a limit of its own.
        let way = Limit(self.limit.0.max(Limit::of_file(self.bytes)));
        let mut decoded_samples = 0_usize;
        if self.alone && span.start > FAR && self.frames.is_some_and(|end| span.start < end) {
            position = self.seek(span.start)?;
        }
        while position < span.end() {
            let packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(error) => return Err(undecoded(error)),
            };
            if packet.track_id != self.track {
                continue;
            }
            let decoded = self.decoder.decode(&packet).map_err(undecoded)?;
            let frames = decoded.frames();
            if frames == 0 {
                continue;
            }
            let found = (decoded.spec().rate(), decoded.spec().channels().count());
            if found != (self.rate, self.channels) {
                return Err(broken(AudioFault::Changes));
            }
            let within = |at: u64| at.saturating_sub(position).min(frames as u64) as usize;
            let (first, last) = (within(span.start), within(span.end()));
            decoded_samples = decoded_samples.saturating_add(frames * self.channels);
            way.check(decoded_samples)?;
            let more = (last - first) * self.channels;
            self.limit.check(samples.len() + more)?;
            let bytes = (samples.len() + more).saturating_mul(size_of::<T>());
            samples.try_reserve(more).map_err(|_| Cause::Memory { bytes })?;
            append(&mut samples, &decoded, first, last);
            position += frames as u64;
        }
        match self.frames {
            Some(frames) if position < frames.min(span.end()) => {
                Err(broken(AudioFault::FramesMissing { frames, found: position }))
            }
            _ => Ok(samples),
        }
    }

    /// Seeks to a packet at or before a frame, and returns the packet's first frame.
    fn seek(&mut self, start: u64) -> Result<u64> {
        let ts = Timestamp::new(i64::try_from(start).unwrap_or(i64::MAX));
        let to = SeekTo::Timestamp { ts, track_id: self.track };
        let found = self.reader.seek(SeekMode::Accurate, to).map_err(undecoded)?;
        self.decoder.reset();
        u64::try_from(found.actual_ts.get()).map_err(|_| broken(AudioFault::Index))
    }
}

/// Appends some frames of a packet.
fn append<T: Pcm>(
    samples: &mut Vec<T>,
    decoded: &GenericAudioBufferRef<'_>,
    first: usize,
    last: usize,
) {
    type Ref<'a> = GenericAudioBufferRef<'a>;
    let row = samples;
    match decoded {
        Ref::U8(buf) => add(row, buf, first, last, |s| T::from_full((i32::from(s) - 128) << 24)),
        Ref::U16(buf) => add(row, buf, first, last, |s| T::from_full((i32::from(s) - 32768) << 16)),
        Ref::U24(buf) => {
            add(row, buf, first, last, |s| T::from_full(((s.inner() << 8) ^ 1 << 31) as i32));
        }
        Ref::U32(buf) => add(row, buf, first, last, |s| T::from_full((s ^ 1 << 31) as i32)),
        Ref::S8(buf) => add(row, buf, first, last, |s| T::from_full(i32::from(s) << 24)),
        Ref::S16(buf) => add(row, buf, first, last, |s| T::from_full(i32::from(s) << 16)),
        Ref::S24(buf) => add(row, buf, first, last, |s| T::from_full(s.inner() << 8)),
        Ref::S32(buf) => add(row, buf, first, last, T::from_full),
        Ref::F32(buf) => add(row, buf, first, last, T::from_unit),
        Ref::F64(buf) => add(row, buf, first, last, |s| T::from_unit(s as f32)),
    }
}

fn add<T: Pcm, S: symphonia::core::audio::sample::Sample>(
    row: &mut Vec<T>,
    buffer: &AudioBuffer<S>,
    first: usize,
    last: usize,
    convert: impl Fn(S) -> T,
) {
    let channels = buffer.spec().channels().count();
    let start = row.len();
    let Some(plane) = buffer.plane(0).and_then(|plane| plane.get(first..last)) else { return };
    if plane.is_empty() {
        return;
    }
    if channels == 1 {
        row.extend(plane.iter().map(|&sample| convert(sample)));
        return;
    }
    row.resize(start + plane.len() * channels, T::from_full(0));
    for channel in 0..channels {
        let Some(plane) = buffer.plane(channel).and_then(|plane| plane.get(first..last)) else {
            continue;
        };
        let places = row[start + channel..].iter_mut().step_by(channels);
        for (place, &sample) in places.zip(plane) {
            *place = convert(sample);
        }
    }
}

fn undecoded(error: Error) -> Cause {
    match error {
        Error::IoError(error) => unread(&error),
        Error::DecodeError(what) => broken(AudioFault::Damaged { text: what.to_string() }),
        other => broken(AudioFault::Undecodable { text: other.to_string() }),
    }
}

/// Runs the decoder, which panics on some damaged files.
fn caught<R>(run: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(broken(AudioFault::Unexpected)))
}
