//! Formats that are decoded packet by packet: by symphonia, Opus by libopus, FLAC in other formats
//! than its own by our decoder.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use symphonia::core::audio::sample::Sample;
use symphonia::core::audio::{Audio as _, AudioBuffer, GenericAudioBufferRef};
use symphonia::core::codecs::audio::well_known::{
    CODEC_ID_AAC, CODEC_ID_AC3, CODEC_ID_AC4, CODEC_ID_ADPCM_IMA_QT, CODEC_ID_ALAC, CODEC_ID_DCA,
    CODEC_ID_EAC3, CODEC_ID_FLAC, CODEC_ID_MONKEYS_AUDIO, CODEC_ID_MP1, CODEC_ID_MP3,
    CODEC_ID_MUSEPACK, CODEC_ID_OPUS, CODEC_ID_SPEEX, CODEC_ID_TRUEHD, CODEC_ID_TTA,
    CODEC_ID_VORBIS, CODEC_ID_WAVPACK, CODEC_ID_WMA,
};
use symphonia::core::codecs::audio::{
    AudioCodecId, AudioCodecParameters, AudioDecoder, AudioDecoderOptions,
};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, SeekMode, SeekTo, Track, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;
use symphonia::core::units::{Duration, Timestamp};

use super::caf::Alac;
use super::edits::Edits;
use super::flac;
use super::opus::{self, Opus};
use super::stream::Part;
use super::{
    AudioFault, Format, Limit, Pcm, Result, Span, Stream, broken, edits, matroska, mpeg, ogg,
    read_at, truncated, unread, unsupported,
};
use crate::kernels::numeric::isa::vectorized;
use crate::value::{Cause, Damage};

pub struct Packets<'a> {
    format: Format,
    source: Source<'a>,
    decoder: Decoder,
    track: u32,
    pub rate: u32,
    pub channels: usize,
    /// Which of the frames that are decoded are meant to be heard.
    heard: Heard,
    seek: Option<Preroll>,
    /// How many entries of a table are looked at for each packet.
    search: u64,
    pub limit: Limit,
    bytes: u64,
}

/// Where packets come from.
enum Source<'a> {
    Symphonia(Box<dyn FormatReader + 'a>),
    Caf(Box<dyn Stream + 'a>, Box<Alac>),
}

/// The part of the decoded frames that is not there for the encoder's sake.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// Frames in front of it.
    delay: u64,
    /// The frame after its last one, if the header has it.
    end: Option<u64>,
    /// Whether frames after `end` are dropped.
    cut: bool,
    /// How many frames may be missing at the end of an intact file.
    slack: u64,
    /// Frames at the end of the last packet that are dropped.
    padding: u64,
}

/// Frames to decode in front of a packet for its samples to be exact.
#[derive(Clone, Copy, Debug)]
struct Preroll(u64);

enum Decoder {
    Symphonia(Box<dyn AudioDecoder>),
    Flac(flac::Decoder),
    Opus(Opus),
}

/// Decoded frames of a packet.
enum Block<'a> {
    Planes(GenericAudioBufferRef<'a>),
    Flac(&'a flac::Decoder),
    Interleaved(&'a [f32], usize),
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

/// The most samples of a channel that a byte of a usual file stands for: 2 kB/s at 48 kHz.
const SAMPLES_PER_BYTE: u64 = 24;

/// Limit on the entries that are looked at in tables, against files that would take hours.
const MOST_SEARCHED: u64 = 1 << 33;

impl<'a> Packets<'a> {
    pub fn open(format: Format, stream: Box<dyn Stream + 'a>) -> Result<Packets<'a>> {
        caught(&Cell::new(0.0), || Packets::open_any(format, stream))
    }

    fn open_any(format: Format, mut stream: Box<dyn Stream + 'a>) -> Result<Packets<'a>> {
        let mut bytes = stream.seek(SeekFrom::End(0)).map_err(|error| unread(&error))?;
        if format == Format::Mpeg {
            bytes = mpeg::without_tags(&mut stream, bytes)?;
            stream = Box::new(Part::new(stream, 0, bytes));
        }
        let mut start = vec![0; bytes.min(64) as usize];
        read_at(&mut stream, 0, &mut start)?;
        if format == Format::Ogg && start.windows(8).any(|name| name == b"Speex   ") {
            return Err(unsupported("Speex"));
        }
        // The track is known later, but then symphonia has the stream.
        let edits = if format == Format::Mp4 { edits::read(&mut stream)? } else { Vec::new() };
        let ends = if format == Format::Ogg { ogg::ends(&mut stream, bytes)? } else { Vec::new() };
        let search = match format {
            Format::Mp4 => edits::longest_table(&mut stream, bytes),
            _ => 0,
        };
        let padding = match format {
            Format::Matroska => matroska::padding(&mut stream, bytes),
            _ => 0,
        };
        stream.seek(SeekFrom::Start(0)).map_err(|error| unread(&error))?;
        let media = Box::new(Media { stream, bytes });
        let media = MediaSourceStream::new(media, MediaSourceStreamOptions::default());
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
        let several = params.channels.as_ref().is_some_and(|channels| channels.count() > 2);
        if params.codec == CODEC_ID_VORBIS && several {
            // symphonia undoes the coupling of channels in the wrong order.
            return Err(unsupported("Vorbis with more than two channels"));
        }
        let (decoder, rate, channels, mut heard);
        if params.codec == CODEC_ID_OPUS {
            let head = opus::Head::read(params.extra_data.as_deref().unwrap_or_default())?;
            decoder = Decoder::Opus(Opus::new(&head)?);
            (rate, channels) = (head.rate(), head.channels);
            heard = Heard::of_opus(track, format, &head, &edits, &ends);
        } else {
            if params.codec == CODEC_ID_FLAC {
                let info = params.extra_data.as_deref().unwrap_or_default();
                let info = flac::Info::read(info)?;
                (rate, channels) = (info.rate, info.channels);
                decoder = Decoder::Flac(flac::Decoder::new(info));
            } else {
                decoder = Decoder::Symphonia(symphonia_decoder(params, format)?);
                rate = params.sample_rate.unwrap_or(0);
                channels = params.channels.as_ref().map_or(0, |channels| channels.count());
            }
            let has_length = format == Format::Mpeg && mpeg::has_length(&start);
            heard = Heard::of_track(track, rate, format, has_length, &edits, &ends);
        }
        if rate == 0 || channels == 0 {
            return Err(broken(AudioFault::Claims { channels, rate }));
        }
        // Of nanoseconds.
        heard.padding = (padding as f64 * f64::from(rate) / 1e9).round() as u64;
        let seek = match params.codec {
            CODEC_ID_MP3 if format == Format::Mpeg => Some(Preroll(mpeg::PREROLL)),
            _ => None,
        };
        let (track, limit) = (track.id, Limit::new(bytes));
        let source = Source::Symphonia(reader);
        Ok(Packets {
            format,
            source,
            decoder,
            track,
            rate,
            channels,
            heard,
            seek,
            search,
            limit,
            bytes,
        })
    }

    /// Apple Lossless in CAF.
    pub fn of_caf(stream: Box<dyn Stream + 'a>, bytes: u64, alac: Alac) -> Result<Packets<'a>> {
        let mut params = AudioCodecParameters::new();
        params.for_codec(CODEC_ID_ALAC).with_extra_data(alac.config.clone().into());
        let format = Format::Caf;
        let decoder = caught(&Cell::new(0.0), || symphonia_decoder(&params, format))?;
        let Alac { rate, channels, frames, delay, .. } = alac;
        let end = Some(frames.saturating_add(delay));
        Ok(Packets {
            format,
            source: Source::Caf(stream, Box::new(alac)),
            decoder: Decoder::Symphonia(decoder),
            track: 0,
            rate,
            channels,
            heard: Heard { delay, end, cut: true, ..Heard::default() },
            seek: None,
            search: 0,
            limit: Limit::new(bytes),
            bytes,
        })
    }

    /// From the header.
    pub fn frames(&self) -> Option<u64> {
        self.heard.end.map(|end| end.saturating_sub(self.heard.delay))
    }

    pub fn read<T: Pcm>(self, span: Span) -> Result<Vec<T>> {
        let seconds = Cell::new(0.0);
        caught(&seconds, || self.read_any(span, &seconds))
    }

    /// `seconds` is set to the time that has been decoded.
    fn read_any<T: Pcm>(mut self, span: Span, seconds: &Cell<f64>) -> Result<Vec<T>> {
        let Heard { delay, end, cut, slack, padding } = self.heard;
        let wanted = span.end().saturating_add(delay);
        let wanted = if cut { wanted.min(end.unwrap_or(u64::MAX)) } else { wanted };
        let start = span.start.saturating_add(delay).min(wanted);
        let mut samples: Vec<T> = Vec::new();
        // In one go, so that nothing is copied as the vector grows; a wrong header can't ask for
        // more than its file could hold.
        let expected = end.unwrap_or(0).min(wanted).saturating_sub(start);
        let expected = expected.min(self.bytes.saturating_mul(SAMPLES_PER_BYTE));
        let expected = usize::try_from(expected).unwrap_or(0).saturating_mul(self.channels);
        // Without room for all, the samples that there are still may fit.
        let _ = samples.try_reserve_exact(expected.min(self.limit.0));
        let mut position = 0;
        // Decoding up to the span takes no memory, only time, so it has a limit of its own.
        let way = Limit(self.limit.0.max(Limit::of_file(self.bytes)));
        let mut decoded_samples = 0_usize;
        let far = start > FAR && start < end.unwrap_or(0);
        let (mut sought, mut searched) = (false, 0_u64);
        if let Some(Preroll(preroll)) = self.seek.filter(|_| far) {
            position = self.seek(start - preroll)?;
            sought = preroll > 0;
        }
        // Which packet is the last one, shows when there is no other.
        while position < wanted.saturating_add(padding) {
            let time = position.saturating_sub(delay) as f64 / f64::from(self.rate);
            seconds.set(time);
            let Some(packet) = self.source.next(time)? else {
                let kept = position.saturating_sub(padding).min(wanted).saturating_sub(start);
                let kept = usize::try_from(kept).unwrap_or(usize::MAX);
                samples.truncate(kept.saturating_mul(self.channels));
                break;
            };
            searched = searched.saturating_add(self.search);
            if searched > MOST_SEARCHED {
                return Err(unsupported("MP4 with a table that takes too long to search"));
            }
            if packet.track_id != self.track {
                continue;
            }
            let block = match self.decoder.decode(&packet, time) {
                Ok(block) => block,
                // The first packets after a seek may need bits of packets before them.
                Err(_) if sought && position < start => {
                    position += packet.block_dur().get();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let frames = block.frames();
            if frames == 0 {
                continue;
            }
            if !block.is(self.rate, self.channels) {
                return Err(broken(AudioFault::Changes { seconds: time }));
            }
            let within = |at: u64| at.saturating_sub(position).min(frames as u64) as usize;
            let (first, last) = (within(start), within(wanted));
            decoded_samples = decoded_samples.saturating_add(frames * self.channels);
            way.check(decoded_samples)?;
            let more = (last - first) * self.channels;
            self.limit.check(samples.len() + more)?;
            let bytes = (samples.len() + more).saturating_mul(size_of::<T>());
            samples.try_reserve(more).map_err(|_| Cause::Memory { bytes })?;
            block.append(&mut samples, first, last);
            position += frames as u64;
        }
        match end {
            Some(end) if position.saturating_add(slack) < end.min(wanted) => {
                Err(self.too_short(position, end))
            }
            Some(end) if self.format == Format::Ogg && cut && wanted >= end => {
                self.check_last(seconds.get()).map(|()| samples)
            }
            _ => Ok(samples),
        }
    }

    /// `Err` if another stream follows the one that has been read to its end.
    fn check_last(&mut self, seconds: f64) -> Result<()> {
        let Source::Symphonia(reader) = &mut self.source else { return Ok(()) };
        loop {
            match reader.next_packet() {
                Ok(Some(_)) => {}
                Err(error @ Error::ResetRequired) => return Err(undecoded_at(error, seconds)),
                // Nothing is heard of what else there is.
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    }

    /// Seeks to a packet at or before a frame, and returns the packet's first frame.
    fn seek(&mut self, start: u64) -> Result<u64> {
        // The demultiplexer of MP3 counts from the end of the delay.
        let zero = if self.format == Format::Mpeg { self.heard.delay as i64 } else { 0 };
        let ts = Timestamp::new(i64::try_from(start).unwrap_or(i64::MAX) - zero);
        let to = SeekTo::Timestamp { ts, track_id: self.track };
        let Source::Symphonia(reader) = &mut self.source else { return Ok(0) };
        let found = reader.seek(SeekMode::Accurate, to).map_err(undecoded)?;
        self.decoder.reset();
        let found = found.actual_ts.get().checked_add(zero).and_then(|ts| u64::try_from(ts).ok());
        found.filter(|&found| found <= start).ok_or_else(|| broken(AudioFault::Index))
    }

    /// The fault for audio that ends after `found` frames instead of `end`.
    fn too_short(self, found: u64, end: u64) -> Cause {
        let (delay, rate) = (self.heard.delay, self.rate);
        let time = |frame: u64| frame.saturating_sub(delay) as f64 / f64::from(rate);
        if let Source::Symphonia(reader) = self.source
            && self.format == Format::Ogg
        {
            let clock = match self.decoder {
                Decoder::Opus(_) => opus::CLOCK,
                Decoder::Flac(_) | Decoder::Symphonia(_) => rate,
            };
            let intact = ogg::intact(&mut reader.into_inner());
            let intact = u128::from(intact) * u128::from(rate) / u128::from(clock);
            let seconds = time(u64::try_from(intact).unwrap_or(u64::MAX).min(found));
            return broken(AudioFault::Gap { seconds });
        }
        truncated(AudioFault::EndsBefore { seconds: time(found), length: time(end) })
    }
}

impl Heard {
    fn of_track(
        track: &Track,
        rate: u32,
        format: Format,
        has_length: bool,
        edits: &[Edits],
        ends: &[(u32, u64)],
    ) -> Heard {
        let delay = u64::from(track.delay.unwrap_or(0));
        let frames = track.num_frames;
        match format {
            Format::Mpeg if has_length => {
                let cut = track.delay.is_some();
                // Without a delay, it is unclear whether the first frame counts.
                let slack = if cut { 0 } else { 2 * mpeg::FRAMES };
                let end = frames.map(|frames| frames.saturating_add(delay));
                Heard { delay, end, cut, slack, ..Heard::default() }
            }
            Format::Ogg => Heard { end: ogg_end(track, ends), ..Heard::default() },
            Format::Mp4 => Heard::of_edits(track, rate, edits),
            // Lengths are estimates, or there are none.
            _ => Heard::default(),
        }
    }

    fn of_opus(
        track: &Track,
        format: Format,
        head: &opus::Head,
        edits: &[Edits],
        ends: &[(u32, u64)],
    ) -> Heard {
        if format == Format::Mp4 {
            return Heard::of_edits(track, head.rate(), edits);
        }
        let scaled = |frames: u64| {
            let scaled = u128::from(frames) * u128::from(head.rate()) / u128::from(opus::CLOCK);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let end = ogg_end(track, ends).map(scaled);
        Heard { delay: scaled(head.delay), end, cut: true, ..Heard::default() }
    }

    fn of_edits(track: &Track, rate: u32, edits: &[Edits]) -> Heard {
        let edits = edits.iter().find(|edits| edits.track == track.id).copied().unwrap_or_default();
        let scaled = |units: u64| match edits.scale {
            0 => units,
            scale => {
                let scaled = u128::from(units) * u128::from(rate) / u128::from(scale);
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
        };
        let all = track.duration.map(|all| all.get()).filter(|_| !edits.fragmented);
        let edited = edits.length.map(|length| edits.start.saturating_add(length));
        let end = match (all, edited) {
            // The table of packets is exact, unlike the edit list.
            (Some(all), Some(edited)) if edited.saturating_add(edits.precision) < all => {
                Some(edited)
            }
            (Some(all), _) => Some(all),
            (None, edited) => edited,
        };
        let (delay, end) = (scaled(edits.start), end.map(scaled));
        Heard { delay, end, cut: true, ..Heard::default() }
    }
}

/// The length of a track in Ogg. Its positions may start anywhere.
fn ogg_end(track: &Track, ends: &[(u32, u64)]) -> Option<u64> {
    let (_, end) = ends.iter().find(|(serial, _)| *serial == track.id)?;
    Some(end.saturating_sub(u64::try_from(track.start_ts.get()).unwrap_or(0)))
}

impl Source<'_> {
    /// The next packet; `seconds` is the time before it.
    fn next(&mut self, seconds: f64) -> Result<Option<Packet>> {
        match self {
            Source::Symphonia(reader) => {
                reader.next_packet().map_err(|error| undecoded_at(error, seconds))
            }
            Source::Caf(stream, alac) => match alac.next(stream) {
                Ok(packet) => {
                    Ok(packet.map(|packet| Packet::new(0, Timestamp::ZERO, Duration::ZERO, packet)))
                }
                Err(Cause::Undecodable { kind: Damage::Truncated, .. }) => {
                    Err(truncated(AudioFault::EndsAt { seconds }))
                }
                Err(error) => Err(error),
            },
        }
    }
}

impl Decoder {
    /// Decodes a packet; `seconds` is the time before it.
    fn decode(&mut self, packet: &Packet, seconds: f64) -> Result<Block<'_>> {
        match self {
            Decoder::Symphonia(decoder) => {
                let planes = decoder.decode(packet).map(Block::Planes);
                planes.map_err(|error| undecoded_at(error, seconds))
            }
            Decoder::Flac(decoder) => match decoder.decode(&packet.data) {
                Ok(_) => Ok(Block::Flac(decoder)),
                Err(flaw) => Err(flaw.at(seconds)),
            },
            Decoder::Opus(opus) => {
                let channels = opus.channels;
                let samples = opus.decode(&packet.data);
                let block = samples.map(|samples| Block::Interleaved(samples, channels));
                let invalid = Error::DecodeError("a packet is invalid");
                block.ok_or_else(|| undecoded_at(invalid, seconds))
            }
        }
    }

    fn reset(&mut self) {
        if let Decoder::Symphonia(decoder) = self {
            decoder.reset();
        }
    }
}

fn symphonia_decoder(
    params: &AudioCodecParameters,
    format: Format,
) -> Result<Box<dyn AudioDecoder>> {
    // Where symphonia has to estimate the length of an MP3, it would trim by the estimate.
    let options = AudioDecoderOptions::default().gapless(format != Format::Mpeg);
    symphonia::default::get_codecs().make_audio_decoder(params, &options).map_err(|error| {
        match error {
            Error::Unsupported(_) => match name(params.codec, params.extra_data.as_deref()) {
                Some(name) => unsupported(name),
                None => undecoded(error),
            },
            error => undecoded(error),
        }
    })
}

/// The name of a codec that can't be decoded.
fn name(codec: AudioCodecId, extra: Option<&[u8]>) -> Option<&'static str> {
    Some(match codec {
        CODEC_ID_AAC => match extra {
            // The type of the object, in five bits.
            Some([first, ..]) if matches!(first >> 3, 5 | 29) => "HE-AAC",
            Some([first, ..]) if first >> 3 == 31 => "xHE-AAC",
            Some([first, second, ..]) if first >> 3 == 2 && second >> 3 & 15 > 2 => {
                "AAC with more than two channels"
            }
            Some([first, ..]) if first >> 3 == 2 => "HE-AAC",
            _ => "AAC of a kind other than LC with one or two channels",
        },
        CODEC_ID_AC3 => "AC-3",
        CODEC_ID_EAC3 => "E-AC-3",
        CODEC_ID_AC4 => "AC-4",
        CODEC_ID_DCA => "DTS",
        CODEC_ID_TRUEHD => "TrueHD",
        CODEC_ID_WMA => "WMA",
        CODEC_ID_MP1 => "MPEG audio layer 1",
        CODEC_ID_SPEEX => "Speex",
        CODEC_ID_WAVPACK => "WavPack",
        CODEC_ID_MUSEPACK => "Musepack",
        CODEC_ID_TTA => "True Audio",
        CODEC_ID_MONKEYS_AUDIO => "Monkey's Audio",
        CODEC_ID_ADPCM_IMA_QT => "IMA ADPCM in QuickTime's variant",
        _ => return None,
    })
}

impl Block<'_> {
    fn frames(&self) -> usize {
        match self {
            Block::Planes(planes) => planes.frames(),
            Block::Flac(decoder) => decoder.frames(),
            Block::Interleaved(samples, channels) => samples.len() / channels,
        }
    }

    /// Whether it has this rate and number of channels.
    fn is(&self, rate: u32, channels: usize) -> bool {
        match self {
            Block::Planes(planes) => {
                (planes.spec().rate(), planes.spec().channels().count()) == (rate, channels)
            }
            Block::Flac(_) | Block::Interleaved(..) => true,
        }
    }

    /// Appends some of the frames. There is room for them.
    fn append<T: Pcm>(&self, samples: &mut Vec<T>, first: usize, last: usize) {
        type Ref<'a> = GenericAudioBufferRef<'a>;
        let row = samples;
        let planes = match self {
            Block::Planes(planes) => planes,
            Block::Flac(decoder) => {
                let start = row.len();
                row.resize(start + (last - first) * decoder.channels(), T::SILENCE);
                decoder.copy_to(first, last, &mut row[start..]);
                return;
            }
            Block::Interleaved(samples, channels) => {
                let part = samples.get(first * channels..last * channels).unwrap_or_default();
                row.extend(part.iter().map(|&sample| T::from_unit(sample)));
                return;
            }
        };
        match planes {
            Ref::U8(buf) => {
                add(row, buf, first, last, |s| T::from_full((i32::from(s) - 128) << 24))
            }
            Ref::U16(buf) => {
                add(row, buf, first, last, |s| T::from_full((i32::from(s) - 32768) << 16));
            }
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
}

/// Appends frames of planes, interleaved.
fn add<T: Pcm, S: Sample>(
    row: &mut Vec<T>,
    buffer: &AudioBuffer<S>,
    first: usize,
    last: usize,
    convert: impl Fn(S) -> T,
) {
    let channels = buffer.spec().channels().count();
    let plane = |channel| buffer.plane(channel).and_then(|plane| plane.get(first..last));
    let start = row.len();
    row.resize(start + (last - first) * channels, T::SILENCE);
    let to = &mut row[start..];
    match (plane(0), plane(1)) {
        (Some(only), None) => vectorized!(fill(to, only, &convert)),
        (Some(left), Some(right)) if channels == 2 => {
            vectorized!(fill_pairs(to, left, right, &convert));
        }
        _ => {
            for channel in 0..channels {
                let places = to.iter_mut().skip(channel).step_by(channels);
                for (place, &sample) in places.zip(plane(channel).unwrap_or_default()) {
                    *place = convert(sample);
                }
            }
        }
    }
}

#[inline(always)]
fn fill<T, S: Copy>(to: &mut [T], plane: &[S], convert: &impl Fn(S) -> T) {
    for (place, &sample) in to.iter_mut().zip(plane) {
        *place = convert(sample);
    }
}

#[inline(always)]
fn fill_pairs<T, S: Copy>(to: &mut [T], left: &[S], right: &[S], convert: &impl Fn(S) -> T) {
    let places = to.as_chunks_mut::<2>().0;
    for ((place, &left), &right) in places.iter_mut().zip(left).zip(right) {
        *place = [convert(left), convert(right)];
    }
}

fn undecoded(error: Error) -> Cause {
    match error {
        Error::IoError(error) => unread(&error),
        Error::DecodeError(what) => broken(AudioFault::Damaged { text: plain(what) }),
        Error::Unsupported(what) => broken(AudioFault::Undecodable { text: plain(what) }),
        other => broken(AudioFault::Undecodable { text: other.to_string() }),
    }
}

/// The fault for an error in the middle of the audio.
fn undecoded_at(error: Error, seconds: f64) -> Cause {
    match error {
        Error::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            truncated(AudioFault::EndsAt { seconds })
        }
        Error::DecodeError(what) | Error::Unsupported(what) => {
            broken(AudioFault::DamagedAt { seconds, text: plain(what) })
        }
        Error::ResetRequired => broken(AudioFault::Chained { seconds }),
        other => undecoded(other),
    }
}

/// What symphonia says, without the name of its part that says so.
fn plain(text: &str) -> String {
    let text = text.split_once(": ").map_or(text, |(_, text)| text);
    text.into()
}

/// Runs decoders, which panic on some damaged files; `seconds` is how far they got.
fn caught<R>(seconds: &Cell<f64>, run: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(broken(AudioFault::Unexpected { seconds: seconds.get() })))
}
