//! Sequences with per-frame arguments: the kernel runs once per frame, with the frame's arguments.
//! A frame axis is the first axis of a layout that starts with "F".

use smallvec::{SmallVec, smallvec};

use crate::kernels::contract::kernel::{Kernel, Outputs, descs};
use crate::kernels::contract::output::Output;
use crate::kernels::{Arg, ArgReader, FromArgs, Result};
use crate::value::{Cause, Desc, Layout, Sample, extent, with_room};

/// How a kernel treats a frame axis of arguments and inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// If the first input is a sequence, arguments may have a value for each of its frames.
    Arguments,
    /// As `Arguments`, and the other inputs may be sequences too.
    Inputs,
    /// Anything with a frame axis has a value per frame, and an input that is not a sequence
    /// becomes one. The definition says `makes_frames`.
    Made,
    /// It is an axis like any other, and arguments can't be per frame. For kernels with arguments
    /// that count the axes of the whole sample, and for random ones, since all frames would draw
    /// the same numbers.
    Whole,
}

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems with frames.
        pub enum Frames {
            /// An argument has values for a different number of frames than there are.
            Count { given: usize, frames: usize },
            /// An input has a different number of frames.
            InputCount { index: usize, given: usize, frames: usize },
            /// Arguments have values per frame, but there are no frames.
            Empty,
            /// The arguments give frames different shapes.
            Shapes { first: Vec<usize>, frame: usize, shape: Vec<usize> },
        }
    }
}

/// How many frames a sample has, if it is a sequence.
pub fn count(desc: &Desc) -> Option<usize> {
    (desc.layout.letters().first() == Some(&b'F')).then(|| desc.shape.first().copied())?
}

/// A call that runs frame by frame.
pub struct Sequence<'a> {
    args: ArgReader<'a>,
    inputs: &'a [Sample],
    frames: usize,
    /// How many of the inputs may be sequences.
    pub divided: usize,
}

impl<'a> Sequence<'a> {
    /// `None` if the kernel processes all frames at once. `names` are the arguments' names.
    pub fn of(
        meaning: Frames,
        names: &[&'static str],
        args: &ArgReader<'a>,
        inputs: &'a [Sample],
    ) -> Result<Option<Sequence<'a>>> {
        let first = inputs.first().and_then(|input| count(&input.desc));
        let divided = match meaning {
            Frames::Whole => return Ok(None),
            Frames::Arguments | Frames::Inputs if first.is_none() => return Ok(None),
            Frames::Arguments => 1,
            Frames::Inputs | Frames::Made => inputs.len(),
        };
        let of_args = || args.frames();
        let of_inputs = || inputs[..divided].iter().map(|input| count(&input.desc)).enumerate();
        let differ = of_args().next().is_some()
            || of_inputs().any(|(at, frames)| {
                frames.is_some() && (at > 0 || matches!(meaning, Frames::Made))
            });
        if !differ {
            return Ok(None);
        }
        let all = || of_args().map(|(_, n)| n).chain(of_inputs().filter_map(|(_, n)| n));
        let frames = first.unwrap_or_else(|| all().max().unwrap_or(0));
        // If only the first input is divided, the kernel can handle an empty sequence.
        let alone = of_args().next().is_none() && of_inputs().skip(1).all(|(_, n)| n.is_none());
        if frames == 0 && alone {
            return Ok(None);
        }
        let fits = |n: usize| n == 1 || n == frames;
        if let Some((position, given)) = of_args().find(|(_, n)| !fits(*n)) {
            let name = names.get(position).copied().unwrap_or_default();
            let problem = problem::Frames::Count { given, frames }.into();
            return Err(Cause::Argument { name, problem });
        }
        for (index, n) in of_inputs() {
            if let Some(given) = n.filter(|n| !fits(*n)) {
                let problem = problem::Frames::InputCount { index, given, frames }.into();
                return Err(Cause::Input { index, problem });
            }
        }
        Ok(Some(Sequence { args: args.clone(), inputs, frames, divided }))
    }

    /// The plan for each frame, and the description of each output for the whole sequence.
    pub fn plan<K: Kernel>(&self) -> Result<(Vec<K::Plan>, Outputs)> {
        if self.frames == 0 {
            return Err(Cause::Value { problem: problem::Frames::Empty.into() });
        }
        let mut made: SmallVec<[Vec<Desc>; 2]> = smallvec![];
        let mut plans = with_room(self.frames)?;
        for frame in 0..self.frames {
            let args = K::Args::from_args(&self.args.of_frame(frame))?;
            let inputs = frame_of(self.inputs, self.divided, frame)?;
            let (plan, outputs) = K::plan(args, &descs(&inputs))?;
            for (output, desc) in outputs.into_iter().enumerate() {
                if made.len() <= output {
                    made.push(with_room(self.frames)?);
                }
                made[output].push(desc);
            }
            plans.push(plan);
        }
        let inputs = frame_of(self.inputs, self.divided, 0)?;
        let inputs = descs(&inputs);
        let all = |frames: Vec<Desc>| {
            let mut desc = K::fit(&plans, &inputs, &frames)?;
            desc.shape.insert(0, self.frames);
            desc.layout = sequence_layout(desc.layout);
            match extent(&desc.shape) {
                Some(_) => Ok(desc),
                None => Err(Cause::Memory { bytes: usize::MAX }),
            }
        };
        let outputs = made.into_iter().map(all).collect::<Result<_>>()?;
        Ok((plans, outputs))
    }

    /// Writes all frames. `divided` is that of the sequence which made the plans.
    pub fn run<K: Kernel>(
        plans: &[K::Plan],
        inputs: &[Sample],
        divided: usize,
        outputs: &mut [Output<'_>],
    ) -> Result<()> {
        let of_frame = |output: &Output<'_>| {
            let layout = frame_layout(output.desc.layout);
            Desc { layout, ..Desc::new(output.desc.dtype, &output.desc.shape[1..]) }
        };
        let descs: SmallVec<[Desc; 2]> = outputs.iter().map(of_frame).collect();
        for (frame, plan) in plans.iter().enumerate() {
            let inputs = frame_of(inputs, divided, frame)?;
            let parts = outputs.iter_mut().zip(&descs);
            let mut parts: SmallVec<[Output<'_>; 2]> =
                parts.map(|(output, desc)| output.part(frame, desc)).collect();
            K::run(plan, &inputs, &mut parts)?;
        }
        Ok(())
    }
}

/// Frame `frame` of those among the first `divided` inputs that are sequences; other inputs
/// unchanged.
fn frame_of(inputs: &[Sample], divided: usize, frame: usize) -> Result<SmallVec<[Sample; 2]>> {
    let one = |(index, input): (usize, &Sample)| match count(&input.desc) {
        Some(frames) if index < divided => {
            let mut row = input.row(if frames == 1 { 0 } else { frame })?;
            row.desc.layout = frame_layout(input.desc.layout);
            Ok(row)
        }
        _ => Ok(input.clone()),
    };
    inputs.iter().enumerate().map(one).collect()
}

/// The layout of a frame.
fn frame_layout(layout: Layout) -> Layout {
    Layout::new(layout.as_str().strip_prefix('F').unwrap_or_default()).unwrap_or_default()
}

/// The layout of a sequence of such frames.
fn sequence_layout(layout: Layout) -> Layout {
    if layout.is_empty() { layout } else { layout.with_first(b'F').unwrap_or_default() }
}

/// The description of all frames, which must be the same.
pub fn uniform(frames: &[Desc]) -> Result<Desc> {
    let first = &frames[0];
    match frames.iter().position(|frame| frame != first) {
        None => Ok(first.clone()),
        Some(frame) => {
            let (first, shape) = (first.shape.to_vec(), frames[frame].shape.to_vec());
            let problem = problem::Frames::Shapes { first, frame, shape };
            Err(Cause::Value { problem: problem.into() })
        }
    }
}

/// A description that is large enough for all frames.
pub fn largest(frames: &[Desc]) -> Desc {
    let mut all = frames[0].clone();
    for frame in frames {
        for (side, &other) in all.shape.iter_mut().zip(&frame.shape) {
            *side = (*side).max(other);
        }
    }
    all
}

impl ArgReader<'_> {
    /// Positions of the arguments that have a frame axis, and their numbers of frames.
    fn frames(&self) -> impl Iterator<Item = (usize, usize)> {
        let frames = |arg: &Arg| match arg {
            Arg::Input(index) => count(&self.inputs.get(*index)?.desc),
            _ => None,
        };
        (self.args.iter().enumerate()).filter_map(move |(at, arg)| Some((at, frames(arg)?)))
    }
}
