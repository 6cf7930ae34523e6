//! `decoders.video`: frames of a video, by number or by time.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::{problem, protected};
use crate::codecs::Output;
use crate::codecs::video::clip::Padding;
use crate::codecs::video::{
    Choice, Elements, Index, Matrix, Request, Resized, Video, is_miscounted,
};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::resize::{Sizes, filters};
use crate::kernels::{Allocate, DirectKernel, Result, Samples, Traits, args};
use crate::value::{DType, Desc, Sample, with_room};

pub struct Decode;

args! {
    pub struct DecodeArgs {
        adjust_orientation: bool,
        antialias: bool,
        color_space: String,
        dtype: DType,
        duration: Option<f64>,
        end_frame: Option<i64>,
        end_time: Option<f64>,
        fill_value: SmallVec<[i64; 6]>,
        fps: Option<f64>,
        frames: Option<Vec<i64>>,
        interp_type: Option<i64>,
        mode: String,
        output_type: Output,
        pad_mode: String,
        sequence_length: Option<i64>,
        size: Option<SmallVec<[f64; 6]>>,
        start_frame: Option<i64>,
        start_time: Option<f64>,
        stream: Option<i64>,
        stride: Option<i64>,
        times: Option<Vec<f64>>,
    }
}

/// Times are often multiples of a frame's duration, which may be off by rounding: by less than this
/// part of a tick.
const SLACK: f64 = 1e-3;
/// More frames than this are never asked for on purpose.
const MOST_FRAMES: i64 = 1 << 24;

impl DirectKernel for Decode {
    type Args = DecodeArgs;
    const TRAITS: Traits = Traits { cheap: false, ..Traits::DEFAULT };

    fn run(args: &DecodeArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let desc = &inputs[0].desc;
        if desc.ndim() != 1 || desc.dtype.size() != 1 || desc.dtype == DType::Bool {
            let (shape, dtype) = (desc.shape.to_vec(), desc.dtype.name());
            return Err(unfit(0, problem::Videos::NotBytes { shape, dtype }));
        }
        let request = args.request()?;
        let choice = match args.stream {
            None => Choice::Video,
            Some(given) => Choice::Numbered(
                usize::try_from(given)
                    .map_err(|_| argument("stream", Argument::Negative { given: given as f64 }))?,
            ),
        };
        // As images: a white pixel is 1.
        let elements = match args.dtype {
            DType::F32 => Elements::F32(255.0),
            _ => Elements::U8,
        };
        let mut video = Video::of_bytes(protected(&inputs[0])?, choice)?;
        loop {
            let frames = args.select(video.index())?;
            match video.decode_as(elements, &request, &frames, &mut |desc| allocate(0, desc)) {
                Err(cause) if is_miscounted(&cause) => {
                    if !video.recount()? {
                        return Err(cause);
                    }
                }
                made => return Ok(smallvec![made?.into_sample()?]),
            }
        }
    }
}

impl DecodeArgs {
    fn request(&self) -> Result<Request> {
        let channels = if self.output_type == Output::Gray { 1 } else { 3 };
        let byte = |value: i64| {
            let (low, high, given) = (0.0, 255.0, value as f64);
            u8::try_from(value)
                .map_err(|_| argument("fill_value", Argument::Between { low, high, given }))
        };
        let fill = match self.fill_value[..] {
            [all] => [byte(all)?; 3],
            [a, b, c] if channels == 3 => [byte(a)?, byte(b)?, byte(c)?],
            _ => {
                let given = self.fill_value.len();
                return Err(argument("fill_value", Argument::Count { wanted: channels, given }));
            }
        };
        let matrix = match self.color_space.as_str() {
            "auto" => None,
            "bt601" => Some(Matrix::BT601),
            "bt709" => Some(Matrix::BT709),
            "bt2020" => Some(Matrix::BT2020),
            other => {
                let (choices, given) = ("auto, bt601, bt709, bt2020", format!("{other:?}"));
                return Err(argument("color_space", Argument::OneOf { choices, given }));
            }
        };
        let resized = match &self.size {
            None => None,
            Some(size) => {
                let (size, mode) = (size.clone(), self.mode.clone());
                let maps = move |height: usize, width: usize| {
                    let sizes = Sizes {
                        size: Some(&size),
                        xyz: [None; 3],
                        shorter: None,
                        longer: None,
                        mode: &mode,
                        max_size: None,
                        roi: [None; 2],
                        roi_relative: false,
                        subpixel: true,
                    };
                    let desc = Desc::new(DType::U8, &[height, width]);
                    let (_, maps) = sizes.maps(&desc, &[0, 1])?;
                    Ok([maps[0], maps[1]])
                };
                let filters = filters(self.interp_type, None, None, self.antialias)?;
                Some(Resized { maps: Arc::new(maps), filters })
            }
        };
        let (output, upright) = (self.output_type, self.adjust_orientation);
        Ok(Request { output, upright, resized, matrix, fill })
    }

    /// The frames of the result; `None` is one to fill.
    fn select(&self, index: &Index) -> Result<Vec<Option<usize>>> {
        let Some(padding) = Padding::parse(&self.pad_mode) else {
            let (choices, given) = (Padding::NAMES, format!("{:?}", self.pad_mode));
            return Err(argument("pad_mode", Argument::OneOf { choices, given }));
        };
        let count = index.frames.len();
        let outside = |name, given: i64| argument(name, problem::Videos::Outside { given, count });
        if let Some(frames) = &self.frames {
            let pick =
                |&frame: &i64| padding.pick(frame, count).map_err(|_| outside("frames", frame));
            return frames.iter().map(pick).collect();
        }
        if let Some(times) = &self.times {
            let pick = |&time: &f64| {
                let frame = number_at("times", index, time)?;
                let gone = problem::Videos::NoTime { given: time, duration: index.duration() };
                padding.pick(frame, count).map_err(|_| argument("times", gone))
            };
            return times.iter().map(pick).collect();
        }
        let numbers = match self.fps {
            Some(fps) => self.resampled(index, fps)?,
            None => self.range(index)?,
        };
        let mut made = with_room(numbers.len())?;
        for number in numbers {
            match padding.pick(number, count) {
                Ok(frame) => made.push(frame),
                // Without padding, clips end with the video.
                Err(_) if number >= 0 => break,
                Err(_) => return Err(outside("start_frame", number)),
            }
        }
        Ok(made)
    }

    /// Where the clip starts, as a frame.
    fn start(&self, index: &Index) -> Result<i64> {
        let count = index.frames.len();
        match (self.start_time, self.start_frame) {
            (Some(time), _) => {
                let number = number_at("start_time", index, time)?;
                if number >= count as i64 {
                    let duration = index.duration();
                    let problem = problem::Videos::NoTime { given: time, duration };
                    return Err(argument("start_time", problem));
                }
                Ok(number)
            }
            (None, start) => {
                let start = start.unwrap_or(0);
                match start < count as i64 {
                    true => Ok(start),
                    false => {
                        let problem = problem::Videos::Outside { given: start, count };
                        Err(argument("start_frame", problem))
                    }
                }
            }
        }
    }

    /// The time at which the clip ends, if it is given.
    fn end_time(&self, start: f64) -> Result<Option<f64>> {
        let (name, end) = match (self.end_time, self.duration) {
            (Some(end), _) => ("end_time", end),
            (None, Some(duration)) => ("duration", start + duration),
            (None, None) => return Ok(None),
        };
        if !end.is_finite() {
            return Err(argument(name, Argument::NotFinite { given: end }));
        }
        match end > start {
            true => Ok(Some(end)),
            false => Err(argument(name, problem::Videos::EndTime { start, given: end })),
        }
    }

    fn length(&self) -> Result<Option<i64>> {
        match self.sequence_length {
            Some(given) if given < 0 => {
                Err(argument("sequence_length", Argument::Negative { given: given as f64 }))
            }
            Some(length) => checked("sequence_length", length).map(Some),
            None => Ok(None),
        }
    }

    /// Numbers of frames, some of which may not exist.
    fn range(&self, index: &Index) -> Result<Vec<i64>> {
        let count = index.frames.len() as i64;
        let start = self.start(index)?;
        let stride = self.stride.unwrap_or(1);
        if stride < 1 {
            let (least, given) = (1.0, stride as f64);
            return Err(argument("stride", Argument::AtLeast { least, given }));
        }
        let from = self.start_time.unwrap_or_else(|| index.seconds(start.max(0) as usize));
        let end = match (self.end_time(from)?, self.end_frame) {
            // The last frame is the one that is shown right before the end.
            (Some(end), _) => {
                let before = end - 2.0 * SLACK * index.seconds_per_tick();
                ("end_time", number_at("end_time", index, before)? + 1)
            }
            (None, Some(end)) => ("end_frame", end),
            (None, None) => ("end_frame", count),
        };
        let length = match (self.length()?, end) {
            (Some(length), _) => length,
            (None, (name, end)) if end <= start => {
                return Err(argument(name, problem::Videos::EndFrame { start, given: end }));
            }
            (None, (name, end)) => {
                let span = end.saturating_sub(start);
                checked(name, span / stride + i64::from(span % stride != 0))?
            }
        };
        numbers(length, |at| start.saturating_add(at.saturating_mul(stride)))
    }

    /// Numbers of the frames that are shown at a constant rate.
    fn resampled(&self, index: &Index, fps: f64) -> Result<Vec<i64>> {
        if !fps.is_finite() || fps <= 0.0 {
            return Err(argument("fps", Argument::NotPositive { given: fps }));
        }
        let frame = self.start(index)?;
        let start = match self.start_time {
            Some(start) => start,
            None if frame < 0 => frame as f64 / fps,
            None => index.seconds(frame as usize),
        };
        let length = match self.length()? {
            Some(length) => length,
            None => {
                let end = match (self.end_time(start)?, self.end_frame) {
                    (Some(end), _) => end,
                    (None, Some(end)) if end <= frame => {
                        let problem = problem::Videos::EndFrame { start: frame, given: end };
                        return Err(argument("end_frame", problem));
                    }
                    (None, Some(end)) => index.seconds(usize::try_from(end).unwrap_or(0)),
                    (None, None) => index.duration(),
                };
                // A rounding error must not add a frame that begins at the very end.
                checked("fps", ((end - start) * fps - 1e-6).ceil().max(1.0) as i64)?
            }
        };
        let mut made = numbers(length, |_| 0)?;
        for (number, at) in made.iter_mut().zip(0..) {
            *number = number_at("fps", index, start + f64::from(at) / fps)?;
        }
        Ok(made)
    }
}

fn numbers(length: i64, number: impl Fn(i64) -> i64) -> Result<Vec<i64>> {
    let mut made = with_room(usize::try_from(length).unwrap_or(0))?;
    made.extend((0..length).map(number));
    Ok(made)
}

fn checked(name: &'static str, length: i64) -> Result<i64> {
    match length <= MOST_FRAMES {
        true => Ok(length),
        false => {
            let (extent, longest) = (length as f64, MOST_FRAMES as f64);
            Err(argument(name, Argument::TooLong { extent, longest }))
        }
    }
}

/// The number of the frame that is shown at a time. Before the first frame and after the last one,
/// numbers go on at the average rate.
fn number_at(name: &'static str, index: &Index, time: f64) -> Result<i64> {
    if !time.is_finite() {
        return Err(argument(name, Argument::NotFinite { given: time }));
    }
    let (count, duration, rate) =
        (index.frames.len() as i64, index.duration(), index.frame_rate().max(1e-9));
    let slack = SLACK * index.seconds_per_tick();
    Ok(if time < -slack {
        ((time + slack) * rate).floor() as i64
    } else if time + slack >= duration && duration > 0.0 {
        count.saturating_add(((time - duration).max(0.0) * rate + 1e-6).floor() as i64)
    } else {
        index.frame_at(time) as i64
    })
}
