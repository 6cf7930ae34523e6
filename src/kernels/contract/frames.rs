//! Sequences whose arguments differ from frame to frame: the kernel runs on each frame with its
//! own. A frame axis is one with the letter "F" at the front of a layout.

use smallvec::{SmallVec, smallvec};

use crate::kernels::contract::kernel::{Allocate, descs};
use crate::kernels::{Arg, ArgReader, FromArgs, Result, Space};
use crate::value::{Cause, Desc, Layout, Sample, extent, with_room};

/// What a frame axis of arguments and inputs means to a kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// Where the first input is a sequence, arguments may have a value for each of its frames.
    Arguments,
    /// So may the other inputs.
    Inputs,
    /// Whatever has one has a value for each frame, and what is no sequence becomes one by it.
    /// The definition says `makes_frames`.
    Made,
    /// Nothing: it is an axis like any other.
    Whole,
}

/// How many frames a sample has, if it is a sequence.
pub fn count(desc: &Desc) -> Option<usize> {
    (desc.layout.letters().first() == Some(&b'F')).then(|| desc.shape.first().copied())?
}

/// A call that is to be run frame by frame.
pub struct Sequence<'a> {
    args: ArgReader<'a>,
    inputs: &'a [Sample],
    frames: usize,
    /// How many of the inputs may be sequences.
    divided: usize,
}

impl<'a> Sequence<'a> {
    /// `None` when the kernel can do with all frames at once. `names` are those of the arguments.
    pub fn of(
        means: Frames,
        names: &[&'static str],
        args: &ArgReader<'a>,
        inputs: &'a [Sample],
    ) -> Result<Option<Sequence<'a>>> {
        let first = inputs.first().and_then(|input| count(&input.desc));
        let divided = match means {
            Frames::Whole => return Ok(None),
            Frames::Arguments | Frames::Inputs if first.is_none() => return Ok(None),
            Frames::Arguments => 1,
            Frames::Inputs | Frames::Made => inputs.len(),
        };
        let framed = || args.framed();
        let of_inputs = || inputs[..divided].iter().map(|input| count(&input.desc)).enumerate();
        let asked = framed().next().is_some()
            || of_inputs()
                .any(|(at, frames)| frames.is_some() && (at > 0 || matches!(means, Frames::Made)));
        // Frames that drew from the same place would be alike, and axes are counted in the whole.
        if !asked || args.draws() || names.contains(&"axes") {
            return Ok(None);
        }
        let others = || framed().map(|(_, n)| n).chain(of_inputs().filter_map(|(_, n)| n));
        let frames = first.unwrap_or_else(|| others().max().unwrap_or(0));
        // Nothing but the first input is divided: the kernel can do with no frames at all.
        let alone = framed().next().is_none() && of_inputs().skip(1).all(|(_, n)| n.is_none());
        if frames == 0 && alone {
            return Ok(None);
        }
        let fits = |n: usize| n == 1 || n == frames;
        let problem =
            |n: usize| format!("has values for {n} frames, but there are {frames} frames");
        if let Some((position, n)) = framed().find(|(_, n)| !fits(*n)) {
            let name = names.get(position).copied().unwrap_or_default();
            return Err(Cause::Argument { name, problem: problem(n).into() });
        }
        for (index, n) in of_inputs() {
            if let Some(n) = n.filter(|n| !fits(*n)) {
                return Err(Cause::Input {
                    index,
                    problem: format!("input {index} {}", problem(n)).into(),
                });
            }
        }
        Ok(Some(Sequence { args: args.clone(), inputs, frames, divided }))
    }

    /// This frame of each input.
    fn inputs_of(&self, frame: usize) -> Result<SmallVec<[Sample; 2]>> {
        let one = |(index, input): (usize, &Sample)| match count(&input.desc) {
            Some(frames) if index < self.divided => {
                let mut row = input.row(if frames == 1 { 0 } else { frame })?;
                row.desc.layout = inner(input.desc.layout);
                Ok(row)
            }
            _ => Ok(input.clone()),
        };
        self.inputs.iter().enumerate().map(one).collect()
    }

    fn args_of<A: FromArgs>(&self, frame: usize) -> Result<A> {
        A::from_args(&self.args.of_frame(frame))
    }

    /// What each output becomes, for all frames.
    pub fn outputs<A: FromArgs>(
        &self,
        outputs: impl Fn(&A, &[&Desc]) -> Result<SmallVec<[Desc; 2]>>,
        fit: impl Fn(&[A], &[&Desc], &[Desc]) -> Result<Desc>,
    ) -> Result<SmallVec<[Desc; 2]>> {
        if self.frames == 0 {
            let problem = "there is no frame to use the arguments of frames for".into();
            return Err(Cause::Value { problem });
        }
        let mut made: SmallVec<[Vec<Desc>; 2]> = smallvec![];
        let mut args = with_room(self.frames)?;
        for frame in 0..self.frames {
            let own = self.args_of(frame)?;
            let inputs = self.inputs_of(frame)?;
            for (output, desc) in outputs(&own, &descs(&inputs))?.into_iter().enumerate() {
                if made.len() <= output {
                    made.push(with_room(self.frames)?);
                }
                made[output].push(desc);
            }
            args.push(own);
        }
        let inputs = self.inputs_of(0)?;
        let inputs = descs(&inputs);
        let all = |frames: Vec<Desc>| {
            let mut desc = fit(&args, &inputs, &frames)?;
            desc.shape.insert(0, self.frames);
            desc.layout = outer(desc.layout);
            match extent(&desc.shape) {
                Some(_) => Ok(desc),
                None => Err(Cause::Memory { bytes: usize::MAX }),
            }
        };
        made.into_iter().map(all).collect()
    }

    pub fn run<A: FromArgs>(
        &self,
        outputs: SmallVec<[Desc; 2]>,
        allocate: &Allocate<'_>,
        run: impl Fn(&A, &[Sample], &mut [Space]) -> Result<()>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let spaces = outputs.into_iter().enumerate().map(|(index, desc)| allocate(index, desc));
        let mut wholes: SmallVec<[Space; 2]> = spaces.collect::<Result<_>>()?;
        for frame in 0..self.frames {
            // SAFETY: the parts are gone before the next ones are made, and before anything is
            // done with the wholes.
            let part = |whole: &mut Space| unsafe { whole.part(frame, inner(whole.desc.layout)) };
            let mut parts: SmallVec<[Space; 2]> = wholes.iter_mut().map(part).collect();
            run(&self.args_of(frame)?, &self.inputs_of(frame)?, &mut parts)?;
        }
        wholes.into_iter().map(Space::into_sample).collect()
    }
}

/// The layout of a frame.
fn inner(layout: Layout) -> Layout {
    Layout::new(layout.as_str().strip_prefix('F').unwrap_or_default()).unwrap_or_default()
}

/// The layout of a sequence of such frames.
fn outer(layout: Layout) -> Layout {
    if layout.letters().is_empty() {
        return layout;
    }
    Layout::new(&format!("F{}", layout.as_str())).unwrap_or_default()
}

/// What all frames are, which must be the same.
pub fn alike(frames: &[Desc]) -> Result<Desc> {
    let first = &frames[0];
    match frames.iter().position(|frame| frame != first) {
        None => Ok(first.clone()),
        Some(other) => {
            let (shape, own) = (&first.shape[..], &frames[other].shape[..]);
            let problem = format!(
                "all frames of a sequence must get the same shape, but by their arguments frame 0 \
                 would get {shape:?} and frame {other} {own:?}"
            );
            Err(Cause::Value { problem: problem.into() })
        }
    }
}

/// What has room for all frames, which differ in their extents.
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
    /// Positions of the arguments that have a frame axis, and for how many frames.
    fn framed(&self) -> impl Iterator<Item = (usize, usize)> {
        let frames = |arg: &Arg| match arg {
            Arg::Input(index) => count(&self.inputs.get(*index)?.desc),
            _ => None,
        };
        (self.args.iter().enumerate()).filter_map(move |(at, arg)| Some((at, frames(arg)?)))
    }

    fn draws(&self) -> bool {
        self.args.iter().any(|arg| matches!(arg, Arg::Draw(_)))
    }
}
