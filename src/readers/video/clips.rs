//! Which frames the clips of videos have. Arithmetic on frame numbers; no file is read here.

use std::ops::Range;

use crate::codecs::video::clip::Padding;

/// Where the clips of a range are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Places {
    /// One after the other, with this many frames from start to start.
    Steps { step: u64, room: Room, tails: Tails },
    /// One, whose frames are spread over the whole range.
    Spread,
    /// So many, evenly distributed.
    Even { count: u64 },
    /// At every frame; an epoch takes a few of them at random.
    Every,
}

/// The frames that must be left in the range for a complete clip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Room {
    /// `length * stride`, as `experimental.readers.Video` of DALI has it.
    Strides,
    /// Up to the last frame of the clip, as `readers.Video` of DALI has it.
    Frames,
}

/// Which incomplete clips there are at the end of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tails {
    None,
    /// The first one.
    One,
    /// All that start inside of the range.
    All,
}

/// How clips are cut out of ranges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// Frames per clip, at least 1.
    pub length: u64,
    /// From one frame of a clip to the next, at least 1.
    pub stride: u64,
    pub places: Places,
    /// What stands for frames beyond the end of the range.
    pub pad: Padding,
}

impl Cut {
    /// The number of frames from the first of a clip to the last, both included.
    fn extent(&self) -> u64 {
        (self.length - 1).saturating_mul(self.stride).saturating_add(1)
    }

    /// The frames that a range must have for a complete clip.
    pub fn least(&self) -> u64 {
        match self.places {
            Places::Spread => 1,
            Places::Steps { room: Room::Strides, .. } => self.length.saturating_mul(self.stride),
            _ => self.extent(),
        }
    }

    /// The number of clips in a range of so many frames.
    pub fn count(&self, frames: u64) -> u64 {
        let complete = |step: u64| match frames.checked_sub(self.least()) {
            Some(rest) => rest / step + 1,
            None => 0,
        };
        // A short range is one clip if it can be padded.
        let some = u64::from(frames > 0 && (self.pad != Padding::None || frames >= self.least()));
        match self.places {
            Places::Spread => u64::from(frames > 0),
            Places::Even { count } => count * some,
            Places::Every => complete(1).max(some),
            Places::Steps { step, tails, .. } => {
                let whole = complete(step);
                match tails {
                    Tails::None => whole,
                    Tails::One => whole + u64::from(whole.saturating_mul(step) < frames),
                    Tails::All => frames.div_ceil(step),
                }
            }
        }
    }

    /// The frames of a clip of a range; `None` for those that are filled.
    pub fn frames(&self, range: Range<u64>, number: u64) -> impl Iterator<Item = Option<u64>> {
        let count = range.end - range.start;
        let room = count.saturating_sub(self.extent());
        let start = match self.places {
            Places::Steps { step, .. } => number.saturating_mul(step),
            Places::Every => number,
            Places::Even { count: 1 } => room / 2,
            Places::Even { count } => spread(number, room, count - 1),
            Places::Spread => 0,
        };
        let Cut { length, stride, places, pad } = *self;
        (0..length).map(move |index| {
            let at = match places {
                Places::Spread => spread(index, count.saturating_sub(1), length - 1),
                _ => start.saturating_add(index.saturating_mul(stride)),
            };
            let (at, count) = (i64::try_from(at).unwrap_or(i64::MAX), count as usize);
            let found = pad.pick(at, count).ok().flatten();
            found.map(|place| range.start + place as u64)
        })
    }
}

/// Place `index` of `0..=parts` in `0..=length`, rounded half up.
fn spread(index: u64, length: u64, parts: u64) -> u64 {
    let (index, length, parts) = (u128::from(index), u128::from(length), u128::from(parts));
    (2 * index * length + parts).checked_div(2 * parts).unwrap_or(0) as u64
}

/// A range of frames of a file, and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub file: u32,
    pub label: i32,
    pub frames: Range<u64>,
}

/// The clips of all ranges, by number.
#[derive(Debug)]
pub struct Clips {
    pub cut: Cut,
    spans: Vec<Span>,
    /// The number of clips in this range and those before it.
    ends: Vec<usize>,
}

impl Clips {
    pub fn new(cut: Cut) -> Clips {
        Clips { cut, spans: vec![], ends: vec![] }
    }

    /// Adds a range. `None` if there would be more clips than can be counted.
    pub fn push(&mut self, span: Span) -> Option<()> {
        let count = self.cut.count(span.frames.end - span.frames.start);
        self.push_clips(span, usize::try_from(count).ok()?)
    }

    /// Adds a range that is one clip, whatever its length: one that can't be read.
    pub fn push_one(&mut self, span: Span) -> Option<()> {
        self.push_clips(span, 1)
    }

    fn push_clips(&mut self, span: Span, count: usize) -> Option<()> {
        let end = self.len().checked_add(count).filter(|&end| end <= isize::MAX as usize)?;
        self.spans.push(span);
        self.ends.push(end);
        Some(())
    }

    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Where the clips of each range end.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The number of a clip's range, and the clip's number in there.
    pub fn find(&self, number: usize) -> (usize, u64) {
        let span = self.ends.partition_point(|&end| end <= number);
        let start = if span == 0 { 0 } else { self.ends[span - 1] };
        (span, (number - start) as u64)
    }

    /// The frames of a clip; `None` for those that are filled.
    pub fn frames(&self, number: usize) -> (&Span, Vec<Option<u64>>) {
        let (span, clip) = self.find(number);
        let span = &self.spans[span];
        (span, self.cut.frames(span.frames.clone(), clip).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(length: u64, stride: u64, step: u64, room: Room, tails: Tails) -> Cut {
        let pad = if tails == Tails::None { Padding::None } else { Padding::Constant };
        Cut { length, stride, places: Places::Steps { step, room, tails }, pad }
    }

    fn numbers(cut: &Cut, range: Range<u64>) -> Vec<Vec<i64>> {
        let clips = 0..cut.count(range.end - range.start);
        let number = |frame: Option<u64>| frame.map_or(-1, |frame| frame as i64);
        clips.map(|clip| cut.frames(range.clone(), clip).map(number).collect()).collect()
    }

    #[test]
    fn clips_follow_each_other() {
        let cut = steps(3, 1, 3, Room::Strides, Tails::None);
        assert_eq!(numbers(&cut, 0..8), [[0, 1, 2], [3, 4, 5]]);
        let cut = steps(3, 2, 1, Room::Strides, Tails::None);
        assert_eq!(numbers(&cut, 10..17), [[10, 12, 14], [11, 13, 15]]);
        let cut = steps(3, 2, 1, Room::Frames, Tails::None);
        assert_eq!(numbers(&cut, 10..17), [[10, 12, 14], [11, 13, 15], [12, 14, 16]]);
        assert!(numbers(&cut, 10..14).is_empty());
    }

    #[test]
    fn incomplete_clips_are_padded() {
        let cut = steps(3, 1, 2, Room::Strides, Tails::One);
        assert_eq!(numbers(&cut, 0..4), [[0, 1, 2], [2, 3, -1]]);
        let cut = steps(3, 1, 1, Room::Frames, Tails::All);
        assert_eq!(numbers(&cut, 5..8), [[5, 6, 7], [6, 7, -1], [7, -1, -1]]);
        assert_eq!(numbers(&steps(3, 1, 3, Room::Strides, Tails::One), 0..3).len(), 1);
    }

    #[test]
    fn padding_stays_inside_of_the_range() {
        let of = |pad| Cut { pad, ..steps(8, 1, 100, Room::Strides, Tails::One) };
        assert_eq!(numbers(&of(Padding::Edge), 10..13), [[10, 11, 12, 12, 12, 12, 12, 12]]);
        assert_eq!(numbers(&of(Padding::Reflect1001), 10..13), [[10, 11, 12, 12, 11, 10, 10, 11]]);
        assert_eq!(numbers(&of(Padding::Reflect101), 10..13), [[10, 11, 12, 11, 10, 11, 12, 11]]);
        for pad in [Padding::Edge, Padding::Reflect1001, Padding::Reflect101] {
            assert_eq!(numbers(&of(pad), 4..5), [[4; 8]]);
            assert!(numbers(&of(pad), 4..4).is_empty());
        }
    }

    #[test]
    fn frames_are_spread_over_the_range() {
        let cut = |length| Cut { length, stride: 7, places: Places::Spread, pad: Padding::None };
        assert_eq!(numbers(&cut(4), 0..60), [[0, 20, 39, 59]]);
        assert_eq!(numbers(&cut(1), 5..60), [[5]]);
        assert_eq!(numbers(&cut(5), 3..6), [[3, 4, 4, 5, 5]]);
        assert!(numbers(&cut(5), 3..3).is_empty());
    }

    #[test]
    fn clips_are_evenly_distributed() {
        let places = |count| Places::Even { count };
        let cut = |count| Cut { length: 4, stride: 1, places: places(count), pad: Padding::None };
        assert_eq!(numbers(&cut(1), 0..10), [[3, 4, 5, 6]]);
        let starts: Vec<i64> = numbers(&cut(3), 0..10).iter().map(|clip| clip[0]).collect();
        assert_eq!(starts, [0, 3, 6]);
        assert_eq!(numbers(&cut(2), 0..4), [[0, 1, 2, 3]; 2]);
        assert!(numbers(&cut(2), 0..3).is_empty());
        let padded = Cut { pad: Padding::Edge, ..cut(2) };
        assert_eq!(numbers(&padded, 0..3), [[0, 1, 2, 2]; 2]);
    }

    #[test]
    fn every_frame_starts_a_clip() {
        let cut = Cut { length: 2, stride: 2, places: Places::Every, pad: Padding::None };
        assert_eq!(numbers(&cut, 0..5), [[0, 2], [1, 3], [2, 4]]);
        assert!(numbers(&cut, 0..2).is_empty());
        assert_eq!(numbers(&Cut { pad: Padding::Edge, ..cut }, 0..2), [[0, 1]]);
    }

    #[test]
    fn huge_lengths_and_strides_do_not_overflow() {
        let far = u64::from(u32::MAX);
        for tails in [Tails::None, Tails::One, Tails::All] {
            for room in [Room::Strides, Room::Frames] {
                let cut = steps(3, far * far, far * far, room, tails);
                let count = cut.count(5);
                assert_eq!(count, u64::from(tails != Tails::None));
                for clip in 0..count {
                    assert_eq!(cut.frames(0..5, clip).collect::<Vec<_>>(), [Some(0), None, None]);
                }
            }
        }
    }

    #[test]
    fn clips_are_found_by_number() {
        let mut clips = Clips::new(steps(2, 1, 2, Room::Strides, Tails::None));
        for (file, frames) in [(0, 0..5), (1, 0..1), (2, 4..8)] {
            clips.push(Span { file, label: 7, frames }).unwrap();
        }
        clips.push_one(Span { file: 3, label: 0, frames: 0..0 }).unwrap();
        assert_eq!((clips.len(), clips.ends()), (5, &[2, 2, 4, 5][..]));
        let found: Vec<(u32, Vec<Option<u64>>)> =
            (0..4).map(|n| clips.frames(n)).map(|(span, frames)| (span.file, frames)).collect();
        let some = |frames: [u64; 2]| frames.map(Some).to_vec();
        assert_eq!(found[1], (0, some([2, 3])));
        assert_eq!(found[3], (2, some([6, 7])));
        assert_eq!(clips.find(4), (3, 0));
    }
}
