//! `where`: for each element, or for the whole sample, one of two operands.

use smallvec::smallvec;

use super::lane::Lane;
use super::{broadcast_all, wrapped};
use crate::kernels::generic::cast::{Number, cast};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Allocate, DirectKernel, Output, Result, Samples, Traits, args};
use crate::value::{Bool, DType, Desc, Element, Sample, with_element};

pub struct Where;

args! {
    /// The type of the result, which both operands are converted to.
    pub struct WhereArgs { dtype: DType }
}

impl DirectKernel for Where {
    type Args = WhereArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn run(args: &WhereArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let (mask, a, b) = (inputs[0].compact()?, inputs[1].compact()?, inputs[2].compact()?);
        let (a, b) = (wrapped(&a, args.dtype), wrapped(&b, args.dtype));
        let described = |shape| Desc { dtype: args.dtype, shape, layout: inputs[1].desc.layout };
        if mask.desc.ndim() == 0 && a.desc.ndim() == b.desc.ndim() {
            // A whole sample, whatever the shape of the other one is.
            let picked = if is_true(&mask) { &a } else { &b };
            let mut made = allocate(0, described(picked.desc.shape.clone()))?;
            cast(picked, &mut made.output())?;
            return Ok(smallvec![made.into_sample()?]);
        }
        let shape = broadcast_all(&[&mask.desc, &a.desc, &b.desc])?;
        let mut made = allocate(0, described(shape))?;
        let out = &mut made.output();
        with_element!(args.dtype, |T| select::<T>(&mask, &a, &b, out))?;
        Ok(smallvec![made.into_sample()?])
    }
}

/// Whether the only element of a mask is not zero.
fn is_true(mask: &Sample) -> bool {
    let mut element = [Bool::from(false)];
    Bool::convert_row(mask, 0, &mut element);
    element[0].get()
}

fn select<T: Number>(mask: &Sample, a: &Sample, b: &Sample, out: &mut Output<'_>) -> Result<()> {
    let shape = out.desc.shape.clone();
    let mut mask = Lane::<Bool>::new(mask, &shape)?;
    let (mut a, mut b) = (Lane::<T>::new(a, &shape)?, Lane::<T>::new(b, &shape)?);
    out.write(|start, piece| {
        let count = piece.len();
        select_row(mask.chunk(start, count), a.chunk(start, count), b.chunk(start, count), piece);
        Ok(())
    })
}

/// Writes all of `out`. The other rows have its length, or a single element.
fn select_row<T: Element>(mask: &[Bool], a: &[T], b: &[T], out: &mut [T]) {
    match (mask, a, b) {
        (&[mask], a, b) => match if mask.get() { a } else { b } {
            &[one] => out.fill(one),
            row => out.copy_from_slice(row),
        },
        (mask, &[a], &[b]) => vectorized!({
            for (o, m) in out.iter_mut().zip(mask) {
                *o = if m.get() { a } else { b };
            }
        }),
        (mask, a, &[b]) => vectorized!({
            for ((o, m), &a) in out.iter_mut().zip(mask).zip(a) {
                *o = if m.get() { a } else { b };
            }
        }),
        (mask, &[a], b) => vectorized!({
            for ((o, m), &b) in out.iter_mut().zip(mask).zip(b) {
                *o = if m.get() { a } else { b };
            }
        }),
        (mask, a, b) => vectorized!({
            for (((o, m), &a), &b) in out.iter_mut().zip(mask).zip(a).zip(b) {
                *o = if m.get() { a } else { b };
            }
        }),
    }
}
