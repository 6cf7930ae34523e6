//! Separable filters along the spatial axes of a sample of any layout.

use smallvec::SmallVec;

use super::rows::{Stack, Window, convolve};
use crate::kernels::Result;
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::filters::problem::Filters;
use crate::kernels::numeric::floats;
use crate::kernels::numeric::isa::Isa;
use crate::value::{DType, Desc, Sample, zeroed};

pub type Axes = SmallVec<[usize; 6]>;

/// The axes that are neither frames nor channels; all axes if there is no layout.
pub fn spatial(desc: &Desc) -> Result<Axes> {
    let letters = desc.layout.letters();
    let axes: Axes =
        (0..desc.ndim()).filter(|&axis| !matches!(letters.get(axis), Some(b'F' | b'C'))).collect();
    if axes.is_empty() {
        return Err(unfit(0, Filters::NoSpatialAxis));
    }
    Ok(axes)
}

/// The description of the result; checks that both types are numeric.
pub fn filtered(input: &Desc, dtype: DType) -> Result<Desc> {
    if input.dtype == DType::Bool || input.dtype.storage() != input.dtype {
        return Err(unfit(0, Input::NotNumbers { dtype: input.dtype.name() }));
    }
    if dtype == DType::Bool || dtype.storage() != dtype {
        return Err(argument("dtype", Argument::NotNumbers { dtype: dtype.name() }));
    }
    Ok(Desc { dtype, ..input.clone() })
}

/// An argument with one number per axis, or one for all.
pub fn per_axis<T: Copy>(name: &'static str, given: &[T], axes: usize) -> Result<Vec<T>> {
    match given {
        &[one] => Ok(vec![one; axes]),
        all if all.len() == axes => Ok(all.to_vec()),
        other => Err(argument(name, Argument::Count { wanted: axes, given: other.len() })),
    }
}

/// Pixels with at least this many elements are treated as rows, so that the padding of rows stays
/// small.
const WIDE_PIXEL: usize = 64;

/// Filters along each axis with its window. `write` gets the results row by row, with the index of
/// their first element.
pub fn convolve_axes(
    isa: Isa,
    input: &Sample,
    axes: &[usize],
    windows: &[Window],
    mut write: impl FnMut(usize, &[f32]),
) -> Result<()> {
    let shape = &input.desc.shape;
    if shape.contains(&0) {
        return Ok(());
    }
    let product = |extents: &[usize]| extents.iter().product::<usize>();
    let column = |axis: usize| Stack {
        outer: product(&shape[..axis]),
        rows: shape[axis],
        columns: 1,
        pixel: product(&shape[axis + 1..]),
    };
    let last = axes.len() - 1;
    let pixel = product(&shape[axes[last] + 1..]);
    // The last two axes are filtered together if possible: the last along rows, the other along
    // columns.
    let (final_axes, stack) = if pixel >= WIDE_PIXEL {
        (1, column(axes[last]))
    } else if last > 0 && axes[last - 1] + 1 == axes[last] {
        let mut stack = column(axes[last - 1]);
        (stack.columns, stack.pixel) = (shape[axes[last]], pixel);
        (2, stack)
    } else {
        let outer = product(&shape[..axes[last]]);
        (1, Stack { outer: 1, rows: outer, columns: shape[axes[last]], pixel })
    };
    let identity = [1.0];
    let along_columns = pixel >= WIDE_PIXEL;
    let (vertical, horizontal): (&[f32], &[f32]) = match (final_axes, along_columns) {
        (2, _) => (&windows[last - 1], &windows[last]),
        (_, true) => (&windows[last], &identity),
        (_, false) => (&identity, &windows[last]),
    };
    // The axes before those, one after another.
    let mut between: Option<Vec<f32>> = None;
    for (&axis, window) in axes.iter().zip(windows).take(axes.len() - final_axes) {
        let mut made = zeroed::<f32>(input.desc.elements())?;
        convolve(
            isa,
            &column(axis),
            window,
            &identity,
            |start, row| read(isa, input, between.as_deref(), start, row),
            |start, row| made[start..start + row.len()].copy_from_slice(row),
        )?;
        between = Some(made);
    }
    convolve(
        isa,
        &stack,
        vertical,
        horizontal,
        |start, row| read(isa, input, between.as_deref(), start, row),
        &mut write,
    )
}

/// A row of the intermediate result, or of the input if there is none.
fn read(isa: Isa, input: &Sample, between: Option<&[f32]>, start: usize, row: &mut [f32]) {
    match between {
        Some(made) => row.copy_from_slice(&made[start..start + row.len()]),
        None => floats::read(isa, input, start, row),
    }
}
