//! Masks along the time or the frequencies of spectrograms (SpecAugment).

use smallvec::SmallVec;

use super::problem::AudioEffects;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::generic::cast::{Convert, Number};
use crate::kernels::numeric::philox::{Stream, below};
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample, with_element};

/// Along the axis with this letter.
pub struct Mask<const AXIS: u8>;

type Ints = SmallVec<[i64; 6]>;

args! {
    pub struct MaskArgs {
        fill_mean: bool,
        fill_value: f64,
        max_fraction: f64,
        max_width: Option<i64>,
        num_masks: i64,
        start: Option<Ints>,
        width: Option<Ints>,
        rng: Stream,
    }
}

/// More than anybody needs, so that a wrong number is found out soon.
const MOST_MASKS: usize = 1000;

/// Where each mask begins and ends.
type Spans = SmallVec<[(usize, usize); 4]>;

pub struct Plan {
    spans: Spans,
    /// The mean if None.
    fill: Option<f64>,
}

impl<const AXIS: u8> Kernel for Mask<AXIS> {
    type Args = MaskArgs;
    type Plan = Plan;
    const TRAITS: Traits =
        Traits { shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: MaskArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let spans = spans(&args, inputs[0].shape[axis::<AXIS>(inputs[0])])?;
        let fill = (!args.fill_mean).then_some(args.fill_value);
        Ok((Plan { spans, fill }, one(inputs[0].clone())))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        out.store(|bytes, stores| stores.copy(bytes, input.elements_as_bytes()));
        let axis = axis::<AXIS>(&input.desc);
        let (extent, inner) =
            (input.desc.shape[axis], input.desc.shape[axis + 1..].iter().product::<usize>());
        if plan.spans.is_empty() || input.desc.elements() == 0 {
            return Ok(());
        }
        with_element!(input.desc.dtype, |T| {
            let fill: T = plan.fill.unwrap_or_else(|| mean(input.elements::<T>())).convert();
            for slab in out.elements::<T>().chunks_exact_mut(extent * inner) {
                for &(start, end) in &plan.spans {
                    slab[start * inner..end * inner].fill(fill);
                }
            }
        });
        Ok(())
    }
}

/// The definition's layouts all have it.
fn axis<const AXIS: u8>(desc: &Desc) -> usize {
    desc.layout.find(AXIS).unwrap_or(0)
}

fn mean<T: Number + Convert<f64>>(values: &[T]) -> f64 {
    let sum: f64 = values.iter().map(|&x| Convert::<f64>::convert(x)).sum();
    sum / values.len() as f64
}

/// The masks of an axis of this extent.
fn spans(args: &MaskArgs, extent: usize) -> Result<Spans> {
    let fraction = args.max_fraction;
    if !(0.0..=1.0).contains(&fraction) {
        let problem = Argument::Between { low: 0.0, high: 1.0, given: fraction };
        return Err(argument("max_fraction", problem));
    }
    let most = (fraction * extent as f64) as usize;
    // The definition sees to it that there are widths, given or drawn.
    let widths = args.width.as_deref().unwrap_or_default();
    let count = match (&args.start, widths) {
        (Some(starts), _) => starts.len() as i64,
        (None, [] | [_]) => args.num_masks,
        (None, widths) => widths.len() as i64,
    };
    let within = usize::try_from(count).ok().filter(|&count| count <= MOST_MASKS);
    let Some(count) = within else {
        let name = if args.start.is_some() { "start" } else { "num_masks" };
        return Err(argument(name, AudioEffects::MaskCount { most: MOST_MASKS, given: count }));
    };
    if let Some(starts) = &args.start
        && widths.len() != 1
        && widths.len() != starts.len()
    {
        let problem = AudioEffects::MaskStarts { starts: starts.len(), widths: widths.len() };
        return Err(argument("start", problem));
    }
    let number = |name: &'static str, given: i64| {
        usize::try_from(given)
            .map_err(|_| argument(name, Argument::Negative { given: given as f64 }))
    };
    let highest = args.max_width.map(|width| number("max_width", width)).transpose()?;
    (0..count)
        .map(|index| {
            let [a, b, c, d] = args.rng.block(index as u64);
            let width = match highest {
                Some(highest) => below(a, b, highest.min(most) as u64 + 1) as usize,
                None => {
                    let given = widths.get(if widths.len() == 1 { 0 } else { index });
                    number("width", given.copied().unwrap_or(0))?
                }
            };
            let start = match &args.start {
                Some(starts) => number("start", starts[index])?.min(extent),
                None => below(c, d, extent.saturating_sub(width) as u64 + 1) as usize,
            };
            Ok((start, start.saturating_add(width).min(extent)))
        })
        .collect()
}
