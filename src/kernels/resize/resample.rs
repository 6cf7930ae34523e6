//! Resampling along several axes, in as few passes as possible.

use std::cell::RefCell;

use smallvec::SmallVec;

use super::extent::Map;
use super::filter::{Filters, taps};
use super::stage::{Real, Scratch, Source, Stage};
use super::{bytes, nearest, stage};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::{Output, Result};
use crate::value::{DType, Element, Sample, with_element, with_room};

/// Pixels with more elements are treated as rows, rather than as columns of a transposed band.
const WIDEST_PIXEL: usize = 16;

/// Whether resizing vertically first would be far more work than the sizes of input and output
/// justify: many rows, of far more columns than the result has.
fn is_detour(vertical: &Map, horizontal: &Map) -> bool {
    const MUCH: f64 = 64.0;
    let [rows, columns] = [vertical, horizontal].map(|map| map.output as f64);
    let [height, width] = [vertical, horizontal].map(|map| map.input as f64);
    rows * width > MUCH * (height * width + rows * columns)
}

/// Resamples along every axis whose map is not the identity.
pub fn resample(
    input: &Sample,
    out: &mut Output<'_>,
    maps: &[Map],
    filters: &Filters,
) -> Result<()> {
    if out.desc.elements() == 0 {
        return Ok(());
    }
    let resized = |map: &Map| match map.is_identity() {
        true => Ok(None),
        false => taps(map, filters).map(Some),
    };
    let mut axes: SmallVec<[_; 6]> = maps.iter().map(resized).collect::<Result<_>>()?;
    let last = axes.iter().rposition(Option::is_some);
    let same_type = input.desc.dtype == out.desc.dtype;
    if same_type && axes.iter().flatten().all(|taps| taps.picks) {
        let kept = last.map_or(0, |last| last + 1);
        let pixel = input.desc.shape[kept..].iter().product::<usize>() * input.desc.dtype.size();
        let axes: SmallVec<[nearest::Axis; 6]> = maps
            .iter()
            .zip(axes)
            .take(kept)
            .map(|(map, taps)| nearest::Axis { input: map.input, taps })
            .collect();
        nearest::pick(&axes, pixel, input.elements_as_bytes(), out.bytes());
        return Ok(());
    }
    // From the outermost axis to the innermost; the last two in one stage if they are adjacent.
    let mut shape = input.desc.shape.clone();
    let mut stages: SmallVec<[Stage; 3]> = SmallVec::new();
    let last = last.unwrap_or(0);
    let channels: usize = shape.get(last + 1..).unwrap_or_default().iter().product();
    let as_columns = channels <= WIDEST_PIXEL && !shape.is_empty();
    for axis in 0..axes.len() {
        let pair = as_columns && axis + 1 == last;
        if axis > last || (axes[axis].is_none() && !pair && axis != last) {
            continue;
        }
        let planes: usize = shape[..axis].iter().product();
        let within = shape[axis + 1..].iter().product();
        let height = shape[axis];
        let stage = if pair {
            let (vertical, horizontal) = (axes[axis].take(), axes[last].take());
            let width = shape[last];
            shape[last] = maps[last].output;
            if is_detour(&maps[axis], &maps[last]) {
                let (height, planes) = (planes * height, 1);
                stages.push(Stage { planes, height, width, channels, vertical: None, horizontal });
                let (height, width) = (shape[axis], shape[last] * channels);
                let planes: usize = shape[..axis].iter().product();
                Stage { planes, height, width, channels: 1, vertical, horizontal: None }
            } else {
                Stage { planes, height, width, channels, vertical, horizontal }
            }
        } else if as_columns && axis == last {
            // All axes before this one are rows.
            let (height, planes) = (planes, 1);
            let horizontal = axes[axis].take();
            Stage { planes, height, width: shape[axis], channels, vertical: None, horizontal }
        } else {
            let vertical = axes[axis].take();
            Stage { planes, height, width: within, channels: 1, vertical, horizontal: None }
        };
        stages.push(stage);
        shape[axis] = maps[axis].output;
        if pair {
            break;
        }
    }
    let isa = Isa::best();
    if let ([stage], DType::U8, true) = (&stages[..], input.desc.dtype, same_type)
        && bytes::takes(stage)?
    {
        thread_local! {
            static SCRATCH: RefCell<bytes::Scratch> = RefCell::default();
        }
        return SCRATCH.with_borrow_mut(|scratch| {
            bytes::run(isa, stage, input.elements(), out.elements(), scratch)
        });
    }
    thread_local! {
        static SINGLE: RefCell<Scratch<f32>> = RefCell::default();
        static DOUBLE: RefCell<Scratch<f64>> = RefCell::default();
    }
    // Elements of 32 bits and more need more precision than a float's 24 bits.
    let wide = |dtype: DType| dtype.size() > 2 && dtype != DType::F32;
    if wide(input.desc.dtype.storage()) || wide(out.desc.dtype.storage()) {
        DOUBLE.with_borrow_mut(|scratch| run_stages(isa, &stages, input, out, scratch))
    } else {
        SINGLE.with_borrow_mut(|scratch| run_stages(isa, &stages, input, out, scratch))
    }
}

/// A type to compute in: loads elements of any type, and stores them.
trait Computed: Real + Element {
    fn load(src: &Sample, at: usize, row: &mut [Self]);
    fn store(row: &[Self], dst: &mut Output<'_>, at: usize);
}

macro_rules! computed {
    ($($real:ty)*) => {
        $(
            impl Computed for $real {
                #[inline(always)]
                fn load(src: &Sample, at: usize, row: &mut [$real]) {
                    with_element!(src.desc.dtype, |T| {
                        let src = &src.elements::<T>()[at..at + row.len()];
                        for (d, &s) in row.iter_mut().zip(src) {
                            *d = Convert::<$real>::convert(s);
                        }
                    });
                }

                #[inline(always)]
                fn store(row: &[$real], dst: &mut Output<'_>, at: usize) {
                    with_element!(dst.desc.dtype, |T| {
                        let dst = &mut dst.elements::<T>()[at..at + row.len()];
                        for (d, &s) in dst.iter_mut().zip(row) {
                            *d = Convert::<T>::convert(s);
                        }
                    });
                }
            }
        )*
    };
}
computed!(f32 f64);

fn run_stages<R: Computed>(
    isa: Isa,
    stages: &[Stage],
    input: &Sample,
    out: &mut Output<'_>,
    scratch: &mut Scratch<R>,
) -> Result<()> {
    let mut between: Option<Vec<R>> = None;
    for (index, stage) in stages.iter().enumerate() {
        let is_same = between.is_none() && input.desc.dtype == <R as Element>::DTYPE;
        let direct = if is_same { Some(input.elements::<R>()) } else { between.as_deref() };
        let load = |at: usize, row: &mut [R]| match direct {
            Some(all) => row.copy_from_slice(&all[at..at + row.len()]),
            None => load(isa, input, at, row),
        };
        let source = Source { load: &load, direct };
        if index + 1 == stages.len() {
            let mut put = |at: usize, row: &[R]| store(isa, row, out, at);
            stage::run(isa, stage, &source, &mut put, scratch)?;
        } else {
            let elements = stage.elements();
            let mut made = with_room(elements)?;
            // Rows come in order.
            let mut put = |_: usize, row: &[R]| made.extend_from_slice(row);
            stage::run(isa, stage, &source, &mut put, scratch)?;
            between = Some(made);
        }
    }
    Ok(())
}

fn load<R: Computed>(isa: Isa, src: &Sample, at: usize, row: &mut [R]) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn vectors<R: Computed>(src: &Sample, at: usize, row: &mut [R]) {
        R::load(src, at, row);
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe { vectors(src, at, row) },
        _ => R::load(src, at, row),
    }
}

fn store<R: Computed>(isa: Isa, row: &[R], dst: &mut Output<'_>, at: usize) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn vectors<R: Computed>(row: &[R], dst: &mut Output<'_>, at: usize) {
        R::store(row, dst, at);
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe { vectors(row, dst, at) },
        _ => R::store(row, dst, at),
    }
}
