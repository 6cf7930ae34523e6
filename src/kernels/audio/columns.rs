//! Linear maps along an axis: mel filters, cosine transforms.

use super::Axis;
use super::transpose::{transpose, transpose_before};
use crate::kernels::Result;
use crate::kernels::numeric::isa::vectorized;
use crate::value::zeroed;

/// A linear map of columns.
pub trait Map {
    /// The length of a column after it.
    fn outputs(&self) -> usize;

    /// Maps all columns of a matrix that has `width` of them. Called inside of `vectorized!`, so it
    /// should be inlined.
    fn apply(&self, src: &[f32], dst: &mut [f32], width: usize);
}

/// Columns that are copied to lie side by side, where they don't: few enough for the copies to stay
/// in the L1 cache. A matrix with fewer of them is not worth being mapped in place.
const FEW: usize = 16;

/// Maps all columns along an axis.
pub fn map_columns(map: &impl Map, src: &[f32], axis: Axis, dst: &mut [f32]) -> Result<()> {
    let Axis { outer, len, inner } = axis;
    if dst.is_empty() {
        return Ok(());
    }
    if inner < FEW && outer > 1 {
        return map_scattered(map, src, axis, dst);
    }
    let (before, after) = (len * inner, map.outputs() * inner);
    for (index, dst) in dst.chunks_exact_mut(after).enumerate() {
        let src = &src[index * before..][..before];
        vectorized!(map.apply(src, dst, inner));
    }
    Ok(())
}

/// Maps columns of which few lie side by side, in a copy where many do.
fn map_scattered(map: &impl Map, src: &[f32], axis: Axis, dst: &mut [f32]) -> Result<()> {
    let Axis { outer, len, inner } = axis;
    let (outputs, columns) = (map.outputs(), outer * inner);
    let mut before: Vec<f32> = zeroed(len * FEW)?;
    let mut after: Vec<f32> = zeroed(outputs * FEW)?;
    for first in (0..columns).step_by(FEW) {
        let count = FEW.min(columns - first);
        if inner == 1 {
            let rows = src.get(first * len..).unwrap_or_default();
            // With one group in between, the next ones have arrived when they are needed.
            let next = rows.as_ptr().wrapping_add(2 * FEW * len);
            transpose_before(rows, len, [count, len], &mut before, FEW, Some(next));
        } else {
            for (lane, column) in (first..first + count).enumerate() {
                let start = column / inner * len * inner + column % inner;
                for (i, b) in before.iter_mut().skip(lane).step_by(FEW).enumerate() {
                    *b = src[start + i * inner];
                }
            }
        }
        vectorized!(map.apply(&before, &mut after, FEW));
        if inner == 1 {
            transpose(&after, FEW, [outputs, count], &mut dst[first * outputs..], outputs);
            continue;
        }
        for (lane, column) in (first..first + count).enumerate() {
            let start = column / inner * outputs * inner + column % inner;
            for (i, a) in after.iter().skip(lane).step_by(FEW).enumerate() {
                dst[start + i * inner] = *a;
            }
        }
    }
    Ok(())
}
