//! The sound beside the frames of a video: samples by their place in time.
//!
//! Places are counted in samples from the time 0 of the file on. Many containers have ticks that are
//! longer than a sample, so the times of packets alone don't tell the places. They do if all packets
//! have equally many samples, as with most codecs; otherwise sound is decoded from its start on.

use std::sync::Arc;

use super::ffmpeg::{
    Bytes, Choice, Decoder, Demuxer, Frame, Library, NO_PTS, OpenFault, Packet, Read, Received,
};
use super::session::unopened;
use super::{Result, VideoFault, broken, large, patience};
use crate::codecs::bounds;
use crate::value::{Cause, filled};

/// Packets in front of the first one that is wanted that are decoded as well: codecs refer to
/// earlier packets, MP3 to up to nine of them.
const PREROLL: usize = 16;
/// Frames that are decoded to find out the number of samples that packets have.
const TRIED: usize = 8;
const MOST_RATE: u32 = 1 << 20;

/// Times of packets, and what the sound consists of.
pub struct SoundIndex {
    pub rate: u32,
    pub channels: usize,
    /// Samples per tick.
    tick: f64,
    /// The time of each packet, in the order of the file.
    packets: Vec<i64>,
    layout: Places,
}

/// How the place of a packet is known.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Places {
    /// All packets have so many samples, the first one starting at a place.
    Equal { first: i64, each: i64 },
    /// By its time: ticks are not longer than a sample.
    Timed,
    /// Only by decoding what is before it.
    Unknown,
}

/// Times of packets, in ticks of so many samples.
struct Times {
    tick: f64,
    packets: Vec<i64>,
}

/// A frame of the start of the sound.
struct Decoded {
    /// The number of its packet.
    packet: usize,
    pts: i64,
    /// Samples per channel.
    count: usize,
}

impl Places {
    /// `None` if packets don't have equally many samples.
    fn equal(tick: f64, packets: &[i64], decoded: &[Decoded]) -> Option<Places> {
        let each = decoded.iter().map(|frame| frame.count).max().filter(|&count| count > 0)?;
        let each = i64::try_from(each).ok()?;
        // Where the first packet starts, as each packet has it. Times are rounded to ticks, so
        // that the true place is not further than half a tick from all of them.
        let starts = || {
            let numbered = (0_i64..).zip(packets);
            numbered.map(|(number, &time)| time as f64 * tick - number as f64 * each as f64)
        };
        let (low, high) = (starts().fold(f64::MIN, f64::max), starts().fold(f64::MAX, f64::min));
        let first = match decoded.first() {
            // Samples that are dropped are at the start.
            Some(Decoded { packet, pts, count }) if *pts != NO_PTS => {
                let dropped = each - *count as i64 + *packet as i64 * each;
                *pts as f64 * tick - dropped as f64
            }
            _ => starts().next()?,
        };
        let first = match (low - tick / 2.0, high + tick / 2.0) {
            (low, high) if low <= first && first <= high => first,
            (low, high) if low <= high => f64::midpoint(low, high),
            _ => starts().next()?,
        };
        // Some writers round twice, or down.
        let slack = 2.0 * tick + 1.0;
        let fits = low - first <= slack && first - high <= slack;
        fits.then_some(Places::Equal { first: first.round() as i64, each })
    }
}

impl SoundIndex {
    fn new(rate: u32, channels: usize, packets: Times, decoded: &[Decoded]) -> SoundIndex {
        let Times { tick, packets } = packets;
        let is_ordered = packets.windows(2).all(|pair| pair[0] < pair[1]);
        let equal = Places::equal(tick, &packets, decoded);
        let layout = match (is_ordered, equal) {
            (true, Some(equal)) => equal,
            (true, None) if tick <= 1.0 + 1e-9 => Places::Timed,
            _ => Places::Unknown,
        };
        SoundIndex { rate, channels, tick, packets, layout }
    }

    /// The place of the first sample of a packet, if it is known.
    fn place(&self, packet: usize) -> Option<i64> {
        match self.layout {
            Places::Equal { first, each } => {
                i64::try_from(packet).ok()?.checked_mul(each)?.checked_add(first)
            }
            Places::Timed => Some(place(*self.packets.get(packet)?, self.tick)),
            Places::Unknown => None,
        }
    }

    /// The packet to start with for the samples from a place on.
    fn start(&self, at: i64) -> usize {
        let (mut low, mut high) = (0, self.packets.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.place(middle) {
                Some(place) if place <= at => low = middle + 1,
                _ => high = middle,
            }
        }
        low.saturating_sub(1 + PREROLL)
    }

    pub fn bytes(&self) -> usize {
        8 * self.packets.len() + 128
    }
}

/// The place of a time, in samples.
fn place(time: i64, tick: f64) -> i64 {
    (time as f64 * tick).round() as i64
}

/// Sound whose packets are known.
pub struct Sound {
    pub index: Arc<SoundIndex>,
    library: &'static Library,
    bytes: Bytes,
    demuxer: Demuxer,
    decoder: Decoder,
    frame: Frame,
    /// Whether nothing was read yet.
    is_new: bool,
}

impl Sound {
    /// Opens the main sound of a file; `None` if it has none.
    pub fn open(bytes: Bytes, known: Option<Arc<SoundIndex>>) -> Result<Option<Sound>> {
        let Some(library) = Library::get() else {
            return Err(broken(VideoFault::NoLibrary));
        };
        let opened = Demuxer::open(library, bytes.clone(), Choice::Sound, patience());
        let demuxer = match opened {
            Ok(demuxer) => demuxer,
            Err(OpenFault::NoStream { .. }) => return Ok(None),
            Err(fault) => return Err(unopened(fault)),
        };
        let Some(decoder) = Decoder::open(&demuxer)? else {
            return Err(broken(VideoFault::SoundCodec { name: demuxer.stream().codec }));
        };
        let frame = Frame::new(library)?;
        let (over, under) = demuxer.time_base();
        let tick = if over > 0 && under > 0 { f64::from(over) / f64::from(under) } else { 1.0 };
        let is_known = known.is_some();
        let empty = || {
            let times = Times { tick, packets: Vec::new() };
            Arc::new(SoundIndex::new(1, 1, times, &[]))
        };
        let index = known.unwrap_or_else(empty);
        let is_new = true;
        let mut sound = Sound { index, library, bytes, demuxer, decoder, frame, is_new };
        if !is_known {
            sound.index = Arc::new(sound.scan(tick)?);
            sound.is_new = false;
        }
        Ok(Some(sound))
    }

    /// Reads all packets, and decodes a few.
    fn scan(&mut self, tick: f64) -> Result<SoundIndex> {
        let most = usize::try_from(self.bytes.size()).unwrap_or(usize::MAX).min(1 << 31);
        let (mut packets, mut decoded) = (Vec::new(), Vec::new());
        let mut found = None;
        while let Read::Packet(packet) = self.demuxer.read().map_err(unopened)? {
            if packets.len() >= most || packets.try_reserve(1).is_err() {
                return Err(Cause::Memory { bytes: packets.len() * size_of::<i64>() });
            }
            packets.push(packet.pts);
            if decoded.len() >= TRIED {
                continue;
            }
            // What can't be decoded is an error when it is wanted.
            if self.decoder.send(Some(&self.demuxer)).is_err() {
                continue;
            }
            while let Received::Frame = self.decoder.receive(&mut self.frame) {
                if let Some(samples) = self.frame.samples() {
                    found.get_or_insert((samples.rate, samples.channels()));
                    let (packet, pts) = (packets.len() - 1, self.frame.pts());
                    decoded.push(Decoded { packet, pts, count: samples.count });
                }
            }
        }
        // Codecs that give all of a short sound only at its end.
        if found.is_none() && self.decoder.send(None).is_ok() {
            while let Received::Frame = self.decoder.receive(&mut self.frame) {
                if let Some(samples) = self.frame.samples() {
                    found.get_or_insert((samples.rate, samples.channels()));
                }
            }
        }
        let fits = |(rate, _): &(u32, usize)| (1..=MOST_RATE).contains(rate);
        let Some((rate, channels)) = found.filter(fits) else {
            return Err(broken(VideoFault::NoSamples));
        };
        let times = Times { tick: tick * f64::from(rate), packets };
        Ok(SoundIndex::new(rate, channels, times, &decoded))
    }

    fn restart(&mut self) -> Result<()> {
        if self.is_new {
            return Ok(());
        }
        let opened = Demuxer::open(self.library, self.bytes.clone(), Choice::Sound, patience());
        self.demuxer = opened.map_err(unopened)?;
        self.decoder.flush();
        Ok(())
    }

    /// Moves to a packet or one before it, and reads it; returns its number.
    fn seek(&mut self, number: usize) -> Result<Option<(usize, Packet)>> {
        let time = self.index.packets[number];
        if !self.demuxer.seek(time) {
            return Ok(None);
        }
        let Read::Packet(packet) = self.demuxer.read().map_err(unopened)? else {
            return Ok(None);
        };
        let found = self.index.packets.binary_search(&packet.pts).ok();
        Ok(found.filter(|&found| found <= number).map(|found| (found, packet)))
    }

    /// The samples from a place on, with the channels interleaved. Where the file has none, they
    /// are silent.
    pub fn read(&mut self, start: i64, count: usize) -> Result<Vec<f32>> {
        let SoundIndex { rate, channels, .. } = *self.index;
        let total = count.saturating_mul(channels);
        let (bytes, limit) = (total.saturating_mul(size_of::<f32>()), bounds::max_bytes());
        if bytes > limit {
            let seconds = count as f64 / f64::from(rate);
            return Err(large(VideoFault::SoundBytes { seconds, bytes, limit }));
        }
        let mut out = filled(0.0, total)?;
        let end = start.saturating_add(count as i64);
        let first = self.index.start(start);
        let mut pending = None;
        if first > 0 {
            self.is_new = false;
            pending = self.seek(first)?;
            self.decoder.flush();
        }
        let mut number = match pending {
            Some((found, _)) => found,
            None => {
                self.restart()?;
                0
            }
        };
        self.is_new = false;
        let mut pending = pending.map(|(_, packet)| packet);
        // Where the last frame ended.
        let mut cursor: Option<i64> = None;
        loop {
            let packet = match pending.take() {
                Some(packet) => Some(packet),
                None => match self.demuxer.read().map_err(unopened)? {
                    Read::Packet(packet) => Some(packet),
                    // What can't be read any more is as good as the end, as for frames.
                    Read::End | Read::Broken(_) => None,
                },
            };
            let sent = self.decoder.send(packet.map(|_| &self.demuxer));
            let at = self.index.place(number).or(cursor).unwrap_or(start);
            if let Err(text) = sent
                && at >= start
                && at < end
            {
                return Err(self.damaged(at, text));
            }
            loop {
                match self.decoder.receive(&mut self.frame) {
                    Received::Frame => {}
                    Received::Hungry | Received::End => break,
                    Received::Broken(text) if at >= start && at < end => {
                        return Err(self.damaged(at, text));
                    }
                    Received::Broken(_) => break,
                }
                let Some(samples) = self.frame.samples() else {
                    let seconds = self.seconds(at);
                    return Err(broken(VideoFault::SoundFormat { seconds }));
                };
                if samples.rate != rate || samples.channels() != channels {
                    let seconds = self.seconds(at);
                    return Err(broken(VideoFault::SoundChanged { seconds }));
                }
                let pts = self.frame.pts();
                let at = self.place(number, packet, pts, samples.count, cursor);
                cursor = Some(at.saturating_add(samples.count as i64));
                let (from, to) = (at.max(start), at.saturating_add(samples.count as i64).min(end));
                if from < to {
                    let place = (from - start) as usize * channels;
                    let length = (to - from) as usize * channels;
                    samples.write((from - at) as usize, &mut out[place..place + length]);
                }
            }
            number += 1;
            if packet.is_none() || cursor.is_some_and(|cursor| cursor >= end) {
                return Ok(out);
            }
        }
    }

    /// The place of the first sample of a frame.
    fn place(
        &self,
        number: usize,
        packet: Option<Packet>,
        pts: i64,
        count: usize,
        cursor: Option<i64>,
    ) -> i64 {
        let index = &self.index;
        if let (Places::Equal { each, .. }, Some(packet), Some(place)) =
            (index.layout, packet, index.place(number))
        {
            // Of the first packets, samples at the start are dropped; of the last one, at the end.
            let dropped = (each - count as i64).max(0);
            let is_late = pts != NO_PTS && pts > packet.pts;
            return if is_late { place.saturating_add(dropped) } else { place };
        }
        let timed = (pts != NO_PTS).then(|| place(pts, index.tick));
        match (timed, cursor) {
            // A rounding error, not a gap.
            (Some(timed), Some(cursor))
                if timed.abs_diff(cursor) as f64 <= 2.0 * index.tick + 2.0 =>
            {
                cursor
            }
            (Some(timed), _) => timed,
            (None, cursor) => cursor.unwrap_or(0),
        }
    }

    fn damaged(&self, at: i64, text: String) -> Cause {
        broken(VideoFault::Sound { seconds: self.seconds(at), text })
    }

    fn seconds(&self, at: i64) -> f64 {
        at as f64 / f64::from(self.index.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(tick: f64, packets: &[i64], counts: &[usize]) -> SoundIndex {
        let decoded: Vec<Decoded> = counts
            .iter()
            .enumerate()
            .map(|(packet, &count)| Decoded { packet, pts: packets[packet], count })
            .collect();
        SoundIndex::new(16000, 1, Times { tick, packets: packets.to_vec() }, &decoded)
    }

    #[test]
    fn packets_of_equal_length_are_placed_exactly_whatever_the_ticks() {
        // Milliseconds at 16 kHz, packets of 1000 samples, 62.5 ms.
        let made = index(16.0, &[0, 63, 125, 188, 250], &[1000, 1000]);
        assert_eq!(made.layout, Places::Equal { first: 0, each: 1000 });
        assert_eq!(made.place(3), Some(3000));
        assert_eq!(index(16.0, &[0, 63, 125, 300], &[1000]).layout, Places::Unknown);
        assert_eq!(index(1.0, &[5, 1005, 1505], &[1000, 500]).layout, Places::Timed);
        assert_eq!(index(1.0, &[5, 1005, 1505], &[1000, 500]).place(2), Some(1505));
        assert_eq!(index(1.0, &[5, 5], &[1000]).layout, Places::Unknown);
    }

    #[test]
    fn the_first_place_is_found_between_ticks() {
        // Opus in WebM: 312 samples at 48 kHz are dropped, 6.5 ms.
        let packets = vec![-7, 14, 34, 54];
        let decoded =
            [Decoded { packet: 0, pts: 0, count: 648 }, Decoded { packet: 1, pts: 14, count: 960 }];
        let made = SoundIndex::new(48000, 2, Times { tick: 48.0, packets }, &decoded);
        assert_eq!(made.layout, Places::Equal { first: -312, each: 960 });
        // AAC in MKV: all of the first packet is dropped. 1024 samples at 44.1 kHz.
        let packets: Vec<i64> =
            (0..80_i64).map(|n| (n as f64 * 1024.0 / 44.1).round() as i64).collect();
        let decoded = [Decoded { packet: 1, pts: 23, count: 1024 }];
        let made = SoundIndex::new(44100, 2, Times { tick: 44.1, packets }, &decoded);
        assert_eq!(made.layout, Places::Equal { first: 0, each: 1024 });
    }

    #[test]
    fn decoding_starts_some_packets_before() {
        let packets: Vec<i64> = (0..100).map(|n| n * 1000).collect();
        let made = index(1.0, &packets, &[1000]);
        assert_eq!(made.start(50_999), 50 - PREROLL);
        assert_eq!(made.start(-5), 0);
        assert_eq!(made.start(1_000_000), 99 - PREROLL);
        assert_eq!(index(16.0, &[0, 1, 100], &[1000]).start(9000), 0);
    }
}
