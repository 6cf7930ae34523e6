//! Pre-emphasis: a first-order high-pass filter.

use super::{Axis, floats};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Element, Sample, with_element};

pub struct PreemphasisFilter;

args! {
    pub struct PreemphasisArgs { border: String, dtype: DType, preemph_coeff: f64 }
}

pub struct Plan {
    border: Border,
    coefficient: f32,
    axis: Axis,
}

/// What is before the first sample.
#[derive(Clone, Copy, PartialEq)]
enum Border {
    Zero,
    Clamp,
    Reflect,
}

impl Kernel for PreemphasisFilter {
    type Args = PreemphasisArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: PreemphasisArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let border = match &*args.border {
            "zero" => Border::Zero,
            "clamp" => Border::Clamp,
            "reflect" => Border::Reflect,
            _ => {
                let choices = "\"zero\", \"clamp\" and \"reflect\"";
                return Err(argument("border", Argument::OneOf { choices, given: args.border }));
            }
        };
        let input = inputs[0];
        // Without a named time axis all elements are one signal, as in DALI.
        let axis = match input.layout.find(b't') {
            Some(axis) => Axis::of(&input.shape, axis),
            None => Axis { outer: 1, len: input.elements(), inner: 1 },
        };
        let coefficient = args.preemph_coeff as f32;
        let desc = Desc { dtype: args.dtype, ..input.clone() };
        Ok((Plan { border, coefficient, axis }, one(desc)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        if input.desc.dtype == DType::F64 {
            let data = input.elements::<f64>();
            let coefficient = f64::from(plan.coefficient);
            return with_element!(out.desc.dtype, |T| {
                let one = move |x: f64, before: f64| -> T { (x - coefficient * before).convert() };
                filter(data, plan, one, out)
            });
        }
        let data = floats(input)?;
        let coefficient = plan.coefficient;
        with_element!(out.desc.dtype, |T| {
            let one = move |x: f32, before: f32| -> T { (x - coefficient * before).convert() };
            filter(&data, plan, one, out)
        })
    }
}

/// Writes what `one` makes of each element and the one before it.
fn filter<F: Element + Default, T: Element>(
    data: &[F],
    plan: &Plan,
    one: impl Fn(F, F) -> T + Copy,
    out: &mut Output<'_>,
) -> Result<()> {
    let Axis { len, inner, .. } = plan.axis;
    out.write(|start, piece: &mut [T]| {
        let end = start + piece.len();
        // The very first elements have none before them.
        let skipped = inner.saturating_sub(start).min(piece.len());
        let now = &data[start + skipped..end];
        let before = if now.is_empty() { now } else { &data[start + skipped - inner..] };
        let rest = &mut piece[skipped..];
        vectorized!(copying one; {
            for ((d, &x), &before) in rest.iter_mut().zip(now).zip(before) {
                *d = one(x, before);
            }
        });
        let block = len * inner;
        for first in (start / block * block..end).step_by(block) {
            for at in first.max(start)..end.min(first + inner) {
                let x = data[at];
                let before = match plan.border {
                    Border::Zero => F::default(),
                    Border::Reflect if len > 1 => data[at + inner],
                    Border::Clamp | Border::Reflect => x,
                };
                piece[at - start] = one(x, before);
            }
        }
        Ok(())
    })
}
