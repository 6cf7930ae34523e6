//! Lists of videos: on each line a file name, a label, and where the part to read starts and ends.

use std::ops::Range;

use super::super::files::Files;
use crate::value::{Problem, problems};

problems! {
    /// What is wrong with a list of videos.
    #[derive(PartialEq)]
    pub enum ClipListFault {
        Line { line: usize, text: String, problem: Problem },
        NoLabel,
        NotANumber,
        LargeLabel,
        NegativeLabel,
        Bound { text: String },
        BeyondEnd { end: i64, frames: usize },
        Empty,
    }
}

/// Where a part starts and ends, as a line says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    pub start: Option<f64>,
    pub end: Option<f64>,
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Counted from 1.
    pub number: usize,
    pub bounds: Bounds,
}

/// Adds the files of a list, and returns what else its lines say. Empty lines and words after the
/// fourth are ignored.
pub fn parse(text: &[u8], files: &mut Files) -> Result<Vec<Line>, ClipListFault> {
    let mut lines = vec![];
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(name) = words.next() else { continue };
        let fail = |fault: ClipListFault| at_line(number + 1, line, fault);
        let word = words.next().ok_or_else(|| fail(ClipListFault::NoLabel))?;
        files.push(name, label(word).map_err(fail)?);
        let mut bound = || words.next().map(bound).transpose();
        let bounds = bound().and_then(|start| Ok(Bounds { start, end: bound()? }));
        lines.push(Line { number: number + 1, bounds: bounds.map_err(fail)? });
    }
    Ok(lines)
}

/// A fault of a line.
pub fn at_line(line: usize, text: &[u8], fault: ClipListFault) -> ClipListFault {
    let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
    ClipListFault::Line { line, text, problem: fault.into() }
}

fn label(word: &[u8]) -> Result<i32, ClipListFault> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ClipListFault::NotANumber);
    }
    if digits.len() < word.len() && digits.iter().any(|&digit| digit != b'0') {
        return Err(ClipListFault::NegativeLabel);
    }
    let text = std::str::from_utf8(digits).ok();
    text.and_then(|text| text.parse().ok()).ok_or(ClipListFault::LargeLabel)
}

fn bound(word: &[u8]) -> Result<f64, ClipListFault> {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
    number
        .filter(|number| number.is_finite())
        .ok_or_else(|| ClipListFault::Bound { text: String::from_utf8_lossy(word).into_owned() })
}

/// What bounds mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meaning {
    pub unit: Unit,
    /// Whether a start between two frames is the later one.
    pub start_up: bool,
    pub end_up: bool,
    /// Whether an end beyond the last frame stands for the end of the video, or is an error.
    pub clamped: bool,
    /// Whether an end of 0 stands for the end of the video.
    pub zero_is_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    Frames,
    /// From the first frame on.
    Seconds,
    /// Of the time stamps in the file.
    Stamps,
}

/// When the frames of a video are shown, in seconds from the first on.
pub trait Times {
    fn count(&self) -> u64;
    fn time(&self, frame: u64) -> f64;
    /// The time stamp of the first frame.
    fn first(&self) -> f64;
    /// When the last frame ends.
    fn end(&self) -> f64;
}

/// Times that are no further apart are equal: a list has decimals, and a file has ticks.
const EXACT: f64 = 1e-6;

/// The first frame that is not shown before a time.
pub fn frame_from(times: &dyn Times, time: f64) -> u64 {
    let (mut low, mut high) = (0, times.count());
    while low < high {
        let middle = low + (high - low) / 2;
        match times.time(middle) < time - EXACT {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// The frame that is shown at a time; the first one for earlier times, and the last for later ones.
pub fn frame_at(times: &dyn Times, time: f64) -> u64 {
    let from = frame_from(times, time);
    let exact = from < times.count() && times.time(from) <= time + EXACT;
    if exact { from } else { from.saturating_sub(1) }
}

impl Meaning {
    /// The frames between bounds. Empty if the end is not after the start.
    pub fn range(&self, bounds: Bounds, times: &dyn Times) -> Result<Range<u64>, ClipListFault> {
        let count = times.count();
        let start = match bounds.start {
            None => 0,
            Some(start) => self.place(start, self.start_up, times).clamp(0.0, count as f64) as u64,
        };
        let end = match bounds.end {
            None => count,
            Some(0.0) if self.zero_is_end => count,
            Some(end) => {
                let place = self.place(end, self.end_up, times).max(0.0);
                if place > count as f64 && !self.clamped {
                    let frames = usize::try_from(count).unwrap_or(usize::MAX);
                    return Err(ClipListFault::BeyondEnd { end: place as i64, frames });
                }
                place.min(count as f64) as u64
            }
        };
        Ok(start..end.max(start))
    }

    /// The frame at a bound. Negative bounds count from the end.
    fn place(&self, bound: f64, up: bool, times: &dyn Times) -> f64 {
        let seconds = match self.unit {
            Unit::Frames => {
                let place = if bound < 0.0 { bound + times.count() as f64 } else { bound };
                return if up { place.ceil() } else { place.floor() };
            }
            Unit::Stamps => bound - times.first(),
            Unit::Seconds if bound < 0.0 => bound + times.end(),
            Unit::Seconds => bound,
        };
        if seconds >= times.end() - EXACT {
            return times.count() as f64;
        }
        let frame = if up { frame_from(times, seconds) } else { frame_at(times, seconds) };
        frame as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Source;
    use super::*;

    /// Frames with a tick of a millisecond, the first at a time stamp of two seconds.
    struct Ticks(Vec<i64>);

    impl Times for Ticks {
        fn count(&self) -> u64 {
            self.0.len() as u64
        }
        fn time(&self, frame: u64) -> f64 {
            self.0[frame as usize] as f64 / 1000.0
        }
        fn first(&self) -> f64 {
            2.0
        }
        fn end(&self) -> f64 {
            self.0.last().map_or(0.0, |last| (last + 40) as f64 / 1000.0)
        }
    }

    fn meaning(unit: Unit, start_up: bool, end_up: bool) -> Meaning {
        Meaning { unit, start_up, end_up, clamped: true, zero_is_end: false }
    }

    fn range(meaning: Meaning, start: f64, end: impl Into<Option<f64>>) -> Range<u64> {
        let times = Ticks((0..25).map(|n| n * 40).collect());
        meaning.range(Bounds { start: Some(start), end: end.into() }, &times).unwrap()
    }

    #[test]
    fn lines_have_names_labels_and_bounds() {
        let mut files = Files::default();
        let text = b"a.mp4 3\n\n  b.mp4\t0 1.5 \r\n# 7 -2 2e1 more words\n";
        let lines = parse(text, &mut files).unwrap();
        assert_eq!((0..3).map(|n| files.label(n)).collect::<Vec<_>>(), [3, 0, 7]);
        assert_eq!(&*files.name(2), "#");
        let bounds = |start, end| Bounds { start, end };
        let expected = [
            (1, bounds(None, None)),
            (3, bounds(Some(1.5), None)),
            (4, bounds(Some(-2.0), Some(20.0))),
        ];
        let found: Vec<_> = lines.iter().map(|line| (line.number, line.bounds)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn bad_lines_are_named() {
        for text in ["a", "a x", "a -1", "a 1.5", "a 99999999999", "a 1 x", "a 1 1 nan", "a 1 inf"]
        {
            let error = parse(format!("ok 1\n{text}\n").as_bytes(), &mut Files::default());
            let Err(ClipListFault::Line { line, text: shown, .. }) = error else {
                panic!("{text}: {error:?}")
            };
            assert_eq!((line, shown.as_str()), (2, text));
        }
    }

    #[test]
    fn bounds_between_frames_are_rounded() {
        let of = |start_up, end_up| range(meaning(Unit::Frames, start_up, end_up), 10.4, 20.6);
        assert_eq!([of(false, true), of(true, false)], [10..21, 11..20]);
        assert_eq!([of(true, true), of(false, false)], [11..21, 10..20]);
        let of = |start_up, end_up| range(meaning(Unit::Seconds, start_up, end_up), 0.41, 0.83);
        assert_eq!([of(false, true), of(true, false)], [10..21, 11..20]);
        for up in [false, true] {
            assert_eq!(range(meaning(Unit::Seconds, up, up), 0.4, 0.8), 10..20);
            assert_eq!(range(meaning(Unit::Stamps, up, up), 2.4, 2.8), 10..20);
        }
    }

    #[test]
    fn bounds_count_from_the_end_or_stand_for_it() {
        let frames = meaning(Unit::Frames, false, true);
        assert_eq!(range(frames, 0.0, -1.0), 0..24);
        assert_eq!(range(frames, -5.0, None), 20..25);
        assert_eq!(range(frames, 5.0, 1000.0), 5..25);
        assert!(range(frames, 0.0, 0.0).is_empty() && range(frames, 90.0, 95.0).is_empty());
        assert!(range(frames, 9.0, 5.0).is_empty());
        assert_eq!(range(Meaning { zero_is_end: true, ..frames }, 3.0, 0.0), 3..25);
        for up in [false, true] {
            let seconds = meaning(Unit::Seconds, up, up);
            assert_eq!(range(seconds, 0.8, 1.0), 20..25);
            assert_eq!(range(seconds, 0.8, 99.0), 20..25);
            assert_eq!(range(seconds, -0.2, None), 20..25);
        }
        let strict = Meaning { clamped: false, ..frames };
        let bounds = Bounds { start: None, end: Some(26.0) };
        let times = Ticks((0..25).map(|n| n * 40).collect());
        let error = strict.range(bounds, &times);
        assert_eq!(error, Err(ClipListFault::BeyondEnd { end: 26, frames: 25 }));
    }

    #[test]
    fn the_frame_at_a_time_is_the_one_that_is_shown() {
        let times = Ticks(vec![0, 33, 67, 200, 300]);
        let at: Vec<u64> =
            [-1.0, 0.0, 0.0329, 0.033, 0.199, 0.2, 9.0].map(|time| frame_at(&times, time)).to_vec();
        assert_eq!(at, [0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(frame_at(&Ticks(vec![]), 1.0), 0);
    }
}
