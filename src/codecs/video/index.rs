//! Which frames a video has, when they are shown, and where decoding can start: from one pass over
//! its packets, without decoding them.

use super::ffmpeg::{NO_PTS, Packet, Stream};
use super::fields::Fields;

/// Times of packets and frames, in ticks of the stream's time base.
pub struct Index {
    pub stream: Stream,
    /// When each frame is shown, in order.
    pub frames: Vec<i64>,
    /// When the last frame ends.
    pub end: i64,
    /// Key frames by the time that they are shown.
    pub keys: Vec<Key>,
    /// Numbers of all packets by their time, for those that have one.
    order: Vec<(i64, u32)>,
    packets: Vec<Entry>,
    /// Whether frames can be told apart only by counting them from the start of the file: packets
    /// have no times, or the same ones.
    pub counted: bool,
}

/// What is known of a packet.
struct Entry {
    key: bool,
    /// It has the second field of the frame whose first one the packet before has.
    second: bool,
}

/// A key frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    pub pts: i64,
    pub dts: i64,
    /// The packet's number.
    pub number: usize,
}

/// A packet, and what its bytes say.
struct Scanned {
    packet: Packet,
    shown: bool,
    second: bool,
}

/// Packets in the order of the file.
pub struct Scan {
    codec: String,
    fields: Option<Fields>,
    packets: Vec<Scanned>,
}

impl Scan {
    /// Of a stream with a codec, and with bytes for its decoder in the header.
    pub fn new(codec: &str, extradata: &[u8]) -> Scan {
        let fields = (codec == "h264").then(|| Fields::new(extradata));
        Scan { codec: codec.into(), fields, packets: Vec::new() }
    }

    pub fn push(&mut self, packet: Packet, data: &[u8]) -> bool {
        if self.packets.try_reserve(1).is_err() {
            return false;
        }
        let second = self.fields.as_mut().is_some_and(|fields| fields.is_second(data));
        let shown = !packet.discard && !second && packet.size > 0 && is_shown(&self.codec, data);
        self.packets.push(Scanned { packet, shown, second });
        true
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether frames are shown in another order than they are stored in.
    pub fn is_reordered(&self) -> bool {
        self.packets.iter().any(|Scanned { packet, .. }| packet.pts != packet.dts)
    }

    pub fn finish(mut self, stream: Stream) -> Index {
        // A file that was cut off ends with part of a packet.
        while self.packets.last().is_some_and(|last| last.packet.corrupt) {
            self.packets.pop();
        }
        // Decoding can't start with half a frame.
        self.packets.iter_mut().for_each(|each| each.packet.key &= !each.second);
        if !self.packets.iter().any(|each| each.packet.key)
            && let Some(first) = self.packets.first_mut()
        {
            first.packet.key = true;
        }
        let first = self.packets.iter().position(|each| each.packet.key).unwrap_or(0);
        let rest = || self.packets[first..].iter();
        let shown = || rest().filter(|each| each.shown).map(|each| &each.packet);
        let mut frames: Vec<i64> = shown().map(|packet| packet.pts).collect();
        frames.sort_unstable();
        let counted = frames.contains(&NO_PTS) || frames.windows(2).any(|pair| pair[0] == pair[1]);
        let end = |packet: &Packet| packet.pts.saturating_add(packet.duration.max(0));
        let end = rest()
            .filter(|each| each.shown || (each.second && each.packet.duration > 0))
            .map(|each| end(&each.packet));
        let end = end.max().unwrap_or(0);
        // A last frame without a duration is taken to be as long as the one before.
        let end = match frames[..] {
            [.., before, last] if end <= last => last.saturating_add(last.saturating_sub(before)),
            _ => end,
        };
        let numbered = || self.packets.iter().map(|each| &each.packet).zip(0_u32..);
        let timed = numbered().filter(|(packet, _)| packet.pts != NO_PTS);
        let mut order: Vec<_> = timed.map(|(packet, number)| (packet.pts, number)).collect();
        order.sort_unstable();
        let keys = numbered().filter(|(packet, _)| packet.key && packet.pts != NO_PTS);
        let mut keys: Vec<Key> = keys
            .map(|(packet, number)| Key {
                pts: packet.pts,
                dts: packet.dts,
                number: number as usize,
            })
            .collect();
        keys.sort_by_key(|key| (key.pts, key.number));
        let entry = |each: &Scanned| Entry { key: each.packet.key, second: each.second };
        let packets = self.packets.iter().map(entry).collect();
        Index { stream, frames, end, keys, order, packets, counted }
    }
}

impl Index {
    /// An index of frames that were found by decoding.
    pub fn of_frames(stream: Stream, frames: Vec<i64>, end: i64) -> Index {
        let (keys, order, packets) = (Vec::new(), Vec::new(), Vec::new());
        Index { stream, frames, end, keys, order, packets, counted: true }
    }

    /// The key frame to start from for a frame at this time, which is the last one that is not
    /// shown after it. Times of decoding would be wrong here: pictures that follow a key frame in
    /// the file may be shown before it, and need the one before.
    pub fn key(&self, pts: i64) -> Key {
        let after = self.keys.partition_point(|key| key.pts <= pts);
        let none = Key { pts: NO_PTS, dts: NO_PTS, number: 0 };
        after.checked_sub(1).map_or(none, |at| self.keys[at])
    }

    /// The number of a packet that was read after a seek, if it is a key frame.
    pub fn find(&self, packet: &Packet) -> Option<usize> {
        let from = self.order.partition_point(|(pts, _)| *pts < packet.pts);
        let same = self.order[from..].iter().take_while(|(pts, _)| *pts == packet.pts);
        let mut same = same.map(|(_, number)| *number as usize);
        same.find(|&number| self.packets[number].key == packet.key)
    }

    /// Whether a packet has the second half of a frame.
    pub fn is_second(&self, number: usize) -> bool {
        self.packets.get(number).is_some_and(|entry| entry.second)
    }

    /// Times of frames in front of the first key frame: decoders drop them if they depend on what
    /// was before the start of the file.
    pub fn leading(&self) -> usize {
        let first = self.keys.iter().min_by_key(|key| key.number);
        first.map_or(0, |first| self.frames.partition_point(|pts| *pts < first.pts))
    }

    pub fn seconds_per_tick(&self) -> f64 {
        let (over, under) = self.stream.time_base;
        if over > 0 && under > 0 { f64::from(over) / f64::from(under) } else { 1.0 }
    }

    /// When a frame is shown, in seconds since the first one.
    pub fn seconds(&self, frame: usize) -> f64 {
        let first = self.frames.first().copied().unwrap_or(0);
        let pts = self.frames.get(frame).copied().unwrap_or(self.end);
        (pts as f64 - first as f64) * self.seconds_per_tick()
    }

    /// The time of the first frame, in seconds, as the file counts them.
    pub fn start(&self) -> f64 {
        self.frames.first().map_or(0.0, |&pts| pts as f64 * self.seconds_per_tick())
    }

    /// The numbers of frames that can be decoded without others.
    pub fn key_frames(&self) -> impl Iterator<Item = i64> {
        self.keys
            .iter()
            .filter_map(|key| self.frames.binary_search(&key.pts).ok())
            .map(|n| n as i64)
    }

    /// From the first frame to the end of the last one, in seconds.
    pub fn duration(&self) -> f64 {
        self.seconds(self.frames.len())
    }

    /// The frame that is shown at a time, in seconds since the first one: the last one that has
    /// begun by then. Before the first frame, it is the first.
    pub fn frame_at(&self, seconds: f64) -> usize {
        // A little more, for rounding errors in times that are multiples of a frame's duration.
        let first = self.frames.first().copied().unwrap_or(0) as f64;
        let ticks = first + seconds / self.seconds_per_tick() + 1e-3;
        self.frames.partition_point(|pts| *pts as f64 <= ticks).max(1) - 1
    }

    /// How long frames are shown, in seconds, from one on; beyond the last one, at the average rate.
    /// If the rate is constant, the result is the same wherever they are: times in files are
    /// rounded, so the differences of them are not.
    pub fn span(&self, first: usize, count: u64) -> f64 {
        let left = (self.frames.len() as u64).saturating_sub(first as u64);
        let rate = match self.stream.frame_rate {
            (over, under) if over > 0 && under > 0 => f64::from(over) / f64::from(under),
            _ => self.frame_rate(),
        };
        let even = if rate > 0.0 { count as f64 / rate } else { 0.0 };
        let end = first as u64 + count.min(left);
        let beyond = if rate > 0.0 { count.saturating_sub(left) as f64 / rate } else { 0.0 };
        let span = self.seconds(end as usize) - self.seconds(first) + beyond;
        let is_even = (span - even).abs() <= 2.0 * self.seconds_per_tick() + 1e-9;
        if is_even && rate > 0.0 { even } else { span }
    }

    /// Frames per second, on average.
    pub fn frame_rate(&self) -> f64 {
        match (self.frames.len(), self.duration()) {
            (0, _) => 0.0,
            (count, duration) if duration > 0.0 => count as f64 / duration,
            _ => match self.stream.frame_rate {
                (over, under) if over > 0 && under > 0 => f64::from(over) / f64::from(under),
                _ => 0.0,
            },
        }
    }

    pub fn bytes(&self) -> usize {
        8 * self.frames.len() + 24 * self.keys.len() + 18 * self.packets.len() + 256
    }
}

/// Whether a packet has a frame to show. VP8 and VP9 have pictures that others refer to, and that
/// are never shown.
fn is_shown(codec: &str, data: &[u8]) -> bool {
    match (codec, data) {
        ("vp8", [tag, ..]) => tag & 0x10 != 0,
        ("vp9", [first, .., last]) => {
            // Several pictures in one packet end with one that is shown.
            let several = last & 0xe0 == 0xc0;
            // Two bits of a marker, two of the profile (and one more for the last profile), then:
            // show_existing_frame, frame_type, show_frame.
            let shift = if first & 0x30 == 0x30 { 1 } else { 0 };
            let existing = first & (0x08 >> shift) != 0;
            let shown = first & (0x02 >> shift) != 0;
            several || existing || shown
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Stream {
        Stream {
            container: "mov".into(),
            codec: "h264".into(),
            height: 2,
            width: 2,
            time_base: (1, 10),
            frame_rate: (10, 1),
            orientation: 1,
        }
    }

    fn packet(pts: i64, key: bool) -> Packet {
        Packet { pts, dts: pts, duration: 1, size: 1, key, discard: false, corrupt: false }
    }

    fn index(packets: &[Packet]) -> Index {
        let mut scan = Scan::new("h264", &[]);
        packets.iter().for_each(|&packet| assert!(scan.push(packet, &[0])));
        scan.finish(stream())
    }

    #[test]
    fn frames_are_in_the_order_of_showing_and_keys_are_chosen_by_it() {
        // The second key frame is shown after two pictures that follow it in the file.
        let made = index(&[
            packet(0, true),
            packet(2, false),
            packet(1, false),
            packet(5, true),
            packet(3, false),
            packet(4, false),
        ]);
        assert_eq!(made.frames, [0, 1, 2, 3, 4, 5]);
        assert_eq!(made.key(4).number, 0);
        assert_eq!(made.key(5).number, 3);
        assert_eq!(made.find(&packet(5, true)), Some(3));
        assert_eq!(made.find(&packet(9, true)), None);
        assert!(!made.counted && made.leading() == 0);
    }

    #[test]
    fn times_pick_the_frame_that_is_shown() {
        let made = index(&[packet(20, true), packet(23, false), packet(24, false)]);
        let frames: Vec<usize> =
            [-1.0, 0.0, 0.29, 0.3, 0.39, 0.4, 9.0].iter().map(|&t| made.frame_at(t)).collect();
        assert_eq!(frames, [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(made.duration(), 0.5);
    }

    #[test]
    fn spans_of_frames_at_a_constant_rate_are_equal() {
        // 30 frames a second, in milliseconds.
        let mut packets: Vec<Packet> =
            (0..30_i64).map(|n| packet((n * 1000 + 15) / 30, n == 0)).collect();
        packets[29].duration = 33;
        let mut made = index(&packets);
        made.stream.time_base = (1, 1000);
        made.stream.frame_rate = (30, 1);
        for first in [0, 1, 2, 20, 28] {
            assert_eq!(made.span(first, 6), 0.2);
        }
        // 30 frames a second, then 10.
        let varying: Vec<Packet> = (0..30_i64)
            .map(|n| packet(if n < 15 { n * 33 } else { 495 + (n - 15) * 100 }, n == 0))
            .collect();
        let mut made = index(&varying);
        made.stream.time_base = (1, 1000);
        made.stream.frame_rate = (30, 1);
        assert!((made.span(20, 3) - 0.3).abs() < 1e-9);
    }

    #[test]
    fn packets_without_times_are_counted_and_what_is_not_shown_is_not() {
        assert!(index(&[packet(NO_PTS, true), packet(NO_PTS, false)]).counted);
        assert!(index(&[packet(1, true), packet(1, false)]).counted);
        let hidden = Packet { discard: true, ..packet(-1, true) };
        let cut = Packet { corrupt: true, ..packet(2, false) };
        assert_eq!(index(&[hidden, packet(0, false), packet(1, false), cut]).frames, [0, 1]);
    }

    #[test]
    fn pictures_that_are_only_referred_to_are_known_by_their_first_byte() {
        assert!(is_shown("vp8", &[0x10]) && !is_shown("vp8", &[0x01]));
        assert!(is_shown("vp9", &[0x82, 0x49, 0]) && !is_shown("vp9", &[0x84, 0x00, 0]));
        assert!(is_shown("vp9", &[0x84, 0x00, 0xc9]));
        assert!(is_shown("h264", &[0]));
    }
}
