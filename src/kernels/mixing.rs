//! Mixup and cutmix: mix the samples of a batch and their labels.
//!
//! A sample's partner is the previous one in the batch. The definitions pass it as an argument, so
//! that these are per-sample kernels like any other.

use smallvec::smallvec;

use super::random::beta::BetaShape;
use super::{Arg, Entry, Family, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::{Isa, vectorized};
use crate::kernels::numeric::philox::{Stream, below};
use crate::value::{DType, Desc, Problem, Sample, extent, with_element};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Mixing::KINDS] };

const TABLE: &[Entry] = &[Entry::new::<Mixup>("mixup"), Entry::new::<Cutmix>("cutmix")];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of mixup and cutmix.
        pub enum Mixing {
            Shapes { shape: Vec<usize>, partner: Vec<usize> },
            NoClasses,
            OtherClasses { given: usize, classes: i64 },
            PartnerClasses { given: usize, partner: usize },
            Label { given: i64, classes: usize },
            Alpha { given: f64 },
        }
    }
}

use self::problem::Mixing;

/// An argument that is a whole sample.
pub struct Partner(Sample);

impl FromArg for Partner {
    fn from_constant(_: &Arg) -> std::result::Result<Partner, Problem> {
        Err(Argument::Missing { wanted: "numbers" }.into())
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Partner, Problem> {
        Ok(Partner(sample.clone()))
    }
}

args! {
    pub struct MixArgs {
        alpha: f64,
        label_smoothing: f64,
        num_classes: Option<i64>,
        per_sample: bool,
        partner: Option<Partner>,
        partner_label: Option<Partner>,
        rng: Stream,
    }
}

/// How a sample is mixed.
pub struct Mixture {
    /// `None` for a batch of one sample.
    partner: Option<Sample>,
    partner_label: Option<Sample>,
    /// Weight of the sample itself.
    share: f64,
    /// Stream for the remaining random numbers.
    rng: Stream,
    labels: Labels,
}

/// Kind of labels.
#[derive(Clone, Copy)]
enum Labels {
    /// Class indices; `on` and `off` are the one-hot values after smoothing.
    Numbers { on: f64, off: f64 },
    /// One value per class.
    Soft,
}

const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

/// Sub-stream for the position of the window, separate from that of the weights.
const PLACE: u32 = 1;

fn plan(args: MixArgs, inputs: &[&Desc]) -> Result<(Mixture, Outputs)> {
    let (image, label) = (inputs[0], inputs[1]);
    // Weights are computed in f32, so `alpha` must be representable.
    let short = args.alpha as f32;
    if !(short > 0.0 && short.is_finite()) {
        return Err(argument("alpha", Mixing::Alpha { given: args.alpha }));
    }
    let smoothing = args.label_smoothing;
    if !(0.0..=1.0).contains(&smoothing) {
        let problem = Argument::Between { low: 0.0, high: 1.0, given: smoothing };
        return Err(argument("label_smoothing", problem));
    }
    if let Some(Partner(partner)) = &args.partner
        && (&partner.desc.shape, partner.desc.dtype) != (&image.shape, image.dtype)
    {
        let (shape, partner) = (image.shape.to_vec(), partner.desc.shape.to_vec());
        return Err(unfit(0, Mixing::Shapes { shape, partner }));
    }
    let (classes, labels) = classes(args.num_classes, label, smoothing)?;
    if let Some(Partner(partner)) = &args.partner_label
        && partner.desc.elements() != label.elements()
    {
        let (given, partner) = (label.elements(), partner.desc.elements());
        return Err(unfit(1, Mixing::PartnerClasses { given, partner }));
    }
    let rng = match args.per_sample {
        true => args.rng,
        false => args.rng.of_batch().ok_or_else(|| argument("rng", Argument::BySample))?,
    };
    let mut share = [0.0];
    BetaShape::new(args.alpha, args.alpha).fill(Isa::best(), &rng, 0, &mut share);
    let mixture = Mixture {
        partner: args.partner.map(|Partner(sample)| sample),
        partner_label: args.partner_label.map(|Partner(sample)| sample),
        share: share[0],
        rng: rng.apart(PLACE),
        labels,
    };
    let soft = Desc::new(DType::F32, &[classes]);
    Ok((mixture, smallvec![image.clone(), soft]))
}

/// The number of classes, and the kind of labels.
fn classes(given: Option<i64>, label: &Desc, smoothing: f64) -> Result<(usize, Labels)> {
    let values = label.elements();
    if let Some(classes) = given {
        let count = usize::try_from(classes).unwrap_or(0);
        if count == 0 {
            return Err(argument("num_classes", Argument::NotPositive { given: classes as f64 }));
        }
        if extent(&[count]).is_none() {
            return Err(argument("num_classes", Argument::TooLarge));
        }
        if values == 1 {
            let off = smoothing / count as f64;
            return Ok((count, Labels::Numbers { on: 1.0 - smoothing + off, off }));
        }
        if values != count {
            return Err(unfit(1, Mixing::OtherClasses { given: values, classes }));
        }
    } else if values == 1 {
        return Err(argument("num_classes", Mixing::NoClasses));
    }
    Ok((values, Labels::Soft))
}

impl Mixture {
    /// Writes the mixed label, with weight `share` for the sample's own.
    fn mix_labels(&self, share: f64, label: &Sample, out: &mut Output<'_>) -> Result<()> {
        let out = out.elements::<f32>();
        out.fill(0.0);
        let own = (label, if self.partner_label.is_some() { share } else { 1.0 });
        let other = self.partner_label.as_ref().map(|partner| (partner, 1.0 - share));
        for (label, share) in [own].into_iter().chain(other) {
            let values = Vec::<f64>::from_sample(label).map_err(|problem| unfit(1, problem))?;
            match self.labels {
                Labels::Soft => {
                    for (out, value) in out.iter_mut().zip(values) {
                        *out += (share * value) as f32;
                    }
                }
                Labels::Numbers { on, off } => {
                    let given = Convert::<i64>::convert(values[0]);
                    let classes = out.len();
                    let class = usize::try_from(given).ok().filter(|&class| class < classes);
                    let Some(class) = class else {
                        return Err(unfit(1, Mixing::Label { given, classes }));
                    };
                    out.iter_mut().for_each(|out| *out += (share * off) as f32);
                    out[class] += (share * (on - off)) as f32;
                }
            }
        }
        Ok(())
    }
}

pub struct Mixup;

impl Kernel for Mixup {
    type Args = MixArgs;
    type Plan = Mixture;
    const TRAITS: Traits = TRAITS;

    fn plan(args: MixArgs, inputs: &[&Desc]) -> Result<(Mixture, Outputs)> {
        plan(args, inputs)
    }

    fn run(plan: &Mixture, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        plan.mix_labels(plan.share, &inputs[1], &mut outputs[1])?;
        let (input, out) = (&inputs[0], &mut outputs[0]);
        let Some(partner) = &plan.partner else {
            out.bytes().copy_from_slice(input.elements_as_bytes());
            return Ok(());
        };
        with_element!(input.desc.dtype, |T| {
            let (own, other) = (input.elements::<T>(), partner.elements::<T>());
            let share = plan.share;
            // f32 is precise enough for these types.
            if size_of::<T>() <= 2 || input.desc.dtype == DType::F32 {
                let share = share as f32;
                out.write(|start, piece: &mut [T]| {
                    let pairs = own[start..].iter().zip(&other[start..]);
                    vectorized!(copying share; {
                        for (d, (&a, &b)) in piece.iter_mut().zip(pairs) {
                            let (a, b): (f32, f32) = (a.convert(), b.convert());
                            *d = (b + (a - b) * share).convert();
                        }
                    });
                    Ok(())
                })
            } else {
                out.write(|start, piece: &mut [T]| {
                    let pairs = own[start..].iter().zip(&other[start..]);
                    for (d, (&a, &b)) in piece.iter_mut().zip(pairs) {
                        let (a, b): (f64, f64) = (a.convert(), b.convert());
                        *d = (b + (a - b) * share).convert();
                    }
                    Ok(())
                })
            }
        })
    }
}

pub struct Cutmix;

impl Kernel for Cutmix {
    type Args = MixArgs;
    type Plan = Mixture;
    const TRAITS: Traits = TRAITS;

    fn plan(args: MixArgs, inputs: &[&Desc]) -> Result<(Mixture, Outputs)> {
        plan(args, inputs)
    }

    fn run(plan: &Mixture, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, desc) = (&inputs[0], &inputs[0].desc);
        let extent = |letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]);
        let (height, width) = (extent(b'H'), extent(b'W'));
        let window = Window::draw(plan.share, &plan.rng, height, width);
        plan.mix_labels(window.share_around(height, width), &inputs[1], &mut outputs[1])?;
        let out = outputs[0].bytes();
        out.copy_from_slice(input.elements_as_bytes());
        let Some(partner) = &plan.partner else { return Ok(()) };
        let interleaved = desc.layout.letters().last() == Some(&b'C');
        let pixel = desc.dtype.size() * if interleaved { extent(b'C') } else { 1 };
        let (row, plane) = (width * pixel, height * width * pixel);
        if plane == 0 {
            return Ok(());
        }
        let part = window.x * pixel..(window.x + window.width) * pixel;
        let planes =
            out.chunks_exact_mut(plane).zip(partner.elements_as_bytes().chunks_exact(plane));
        for (out, partner) in planes {
            let rows = out.chunks_exact_mut(row).zip(partner.chunks_exact(row));
            for (out, partner) in rows.skip(window.y).take(window.height) {
                out[part.clone()].copy_from_slice(&partner[part.clone()]);
            }
        }
        Ok(())
    }
}

/// A rectangle of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    y: usize,
    x: usize,
    height: usize,
    width: usize,
}

impl Window {
    /// Draws a window such that about `share` of the image is outside. The center is uniform over
    /// the image; the window is clipped to it.
    fn draw(share: f64, rng: &Stream, height: usize, width: usize) -> Window {
        let [a, b, c, d] = rng.block(0);
        let reach = 0.5 * (1.0 - share).max(0.0).sqrt();
        let span = |a: u32, b: u32, extent: usize| {
            let centre = below(a, b, extent as u64) as usize;
            let reach = (reach * extent as f64) as usize;
            let start = centre.saturating_sub(reach);
            (start, (centre + reach).min(extent) - start)
        };
        let ((x, width), (y, height)) = (span(a, b, width), span(c, d, height));
        Window { y, x, height, width }
    }

    /// Fraction of the image outside the window.
    fn share_around(&self, height: usize, width: usize) -> f64 {
        let all = height as f64 * width as f64;
        if all == 0.0 { 1.0 } else { 1.0 - self.height as f64 * self.width as f64 / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Position;

    #[test]
    fn windows_are_inside_the_image() {
        let start = Position { seed: 3, sequence: 0, offset: 0, phase: 0 };
        for (height, width) in [(1, 1), (3, 40), (224, 224), (0, 4), (4, 0)] {
            for sample in 0..100 {
                for share in [0.0, 0.3, 1.0] {
                    let window = Window::draw(share, &start.stream(sample), height, width);
                    assert!(window.y + window.height <= height && window.x + window.width <= width);
                    let around = window.share_around(height, width);
                    assert!((0.0..=1.0).contains(&around) && (share < 1.0 || around == 1.0));
                }
            }
        }
    }
}
