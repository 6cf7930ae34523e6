//! Kernels that change the arrangement or the description of elements, not their values.

pub(super) mod join;

use std::marker::PhantomData;

use smallvec::{SmallVec, smallvec};

use self::problem::Shapes;
use super::{
    Allocate, DirectKernel, Entry, Family, FromArgs, Result, Samples, Traits, UniformBatch, args,
};
use crate::kernels::contract::problems::{Argument, argument};
use crate::value::{DType, Desc, Sample, Shape, Strides, copy_strided, extent};

pub const FAMILY: Family =
    Family { kernels: &[TABLE, join::TABLE], problems: &[problem::Shapes::KINDS] };

const TABLE: &[Entry] = &[
    Entry::direct::<Viewed<Reshape>>("reshape"),
    Entry::direct::<Viewed<Reinterpret>>("reinterpret"),
    Entry::direct::<Viewed<Squeeze>>("squeeze"),
    Entry::direct::<Viewed<ExpandDims>>("expand_dims"),
    Entry::direct::<Transpose>("transpose"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Shapes {
            SourceAxis { axis: i64, ndim: usize },
            Factors { given: usize, ndim: usize },
            Extent { extent: f64 },
            ScalarSize,
            RowSize { size: usize, bytes: usize },
            Misfit { wanted: Vec<i64>, shape: Vec<usize> },
            MisfitBytes { wanted: Vec<i64>, shape: Vec<usize>, bytes: usize, dtype: &'static str },
            TwoOpen,
            OpenAndEmpty,
            Squeezed { axes: Vec<i64>, shape: Vec<usize> },
            Inserted { axis: i64 },
            Permutation { perm: Vec<i64>, ndim: usize },
            Different { rule: &'static str, first: String, other: String },
        }
    }
}

/// A kernel whose result is a view of its input with another description.
trait View: Send + Sync + 'static {
    type Args: FromArgs;
    /// The result's type and shape, which take as many bytes as the input's.
    fn describe(args: &Self::Args, input: &Desc) -> Result<Desc>;
}

struct Viewed<K>(PhantomData<K>);

impl<K: View> DirectKernel for Viewed<K> {
    type Args = K::Args;
    const TRAITS: Traits = Traits { view: true, ..Traits::DEFAULT };

    fn run(args: &K::Args, inputs: &[Sample], _: &Allocate<'_>) -> Result<Samples> {
        let desc = K::describe(args, &inputs[0].desc)?;
        Ok(smallvec![inputs[0].reshaped(desc)?])
    }
}

struct Reshape;

args! {
    /// `rank` is the number of extents that the definition expects of every sample.
    struct ReshapeArgs {
        shape: Option<Vec<i64>>,
        rel_shape: Option<Vec<f64>>,
        src_dims: Option<Vec<i64>>,
        rank: i64,
    }
}

impl View for Reshape {
    type Args = ReshapeArgs;

    fn describe(args: &ReshapeArgs, input: &Desc) -> Result<Desc> {
        Ok(Desc { shape: args.shape(input, input.dtype)?, ..input.clone() })
    }
}

struct Reinterpret;

args! {
    struct ReinterpretArgs {
        dtype: Option<DType>,
        shape: Option<Vec<i64>>,
        rel_shape: Option<Vec<f64>>,
        src_dims: Option<Vec<i64>>,
        rank: i64,
    }
}

impl View for Reinterpret {
    type Args = ReinterpretArgs;

    fn describe(args: &ReinterpretArgs, input: &Desc) -> Result<Desc> {
        let dtype = args.dtype.unwrap_or(input.dtype);
        let ReinterpretArgs { shape, rel_shape, src_dims, rank, .. } = args;
        let wanted = ReshapeArgs {
            shape: shape.clone(),
            rel_shape: rel_shape.clone(),
            src_dims: src_dims.clone(),
            rank: *rank,
        };
        Ok(Desc { dtype, shape: wanted.shape(input, dtype)?, ..input.clone() })
    }
}

impl ReshapeArgs {
    /// The shape of the input's bytes as elements of `dtype`.
    fn shape(&self, input: &Desc, dtype: DType) -> Result<Shape> {
        if let Some(shape) = &self.shape {
            self.count("shape", shape.len())?;
            return fit("shape", shape, input, dtype);
        }
        let taken = match &self.src_dims {
            Some(axes) => take(axes, &input.shape)?,
            None => input.shape.clone(),
        };
        if let Some(factors) = &self.rel_shape {
            self.count("rel_shape", factors.len())?;
            return fit(
                "rel_shape",
                &scale(factors, &taken, self.src_dims.is_some())?,
                input,
                dtype,
            );
        }
        let name = if self.src_dims.is_some() { "src_dims" } else { "dtype" };
        self.count(name, taken.len())?;
        let wanted = resize_innermost(taken, input.dtype, dtype)?;
        let wanted: SmallVec<[i64; 6]> = wanted.iter().map(|&d| d as i64).collect();
        fit(name, &wanted, input, dtype)
    }

    fn count(&self, name: &'static str, found: usize) -> Result<()> {
        if i64::try_from(found) == Ok(self.rank) {
            return Ok(());
        }
        Err(argument(name, Argument::Entries { given: found, first: self.rank }))
    }
}

/// The extents of the given axes; -1 is a new axis of extent 1.
fn take(axes: &[i64], shape: &[usize]) -> Result<Shape> {
    let extent = |&axis: &i64| match usize::try_from(axis) {
        Ok(axis) if axis < shape.len() => Ok(shape[axis]),
        Err(_) if axis == -1 => Ok(1),
        _ => Err(argument("src_dims", Shapes::SourceAxis { axis, ndim: shape.len() })),
    };
    axes.iter().map(extent).collect()
}

/// Multiples of the input's extents, rounded; a negative one is to be inferred.
fn scale(factors: &[f64], extents: &[usize], exactly: bool) -> Result<SmallVec<[i64; 6]>> {
    if factors.len() > extents.len() || (exactly && factors.len() < extents.len()) {
        let (given, ndim) = (factors.len(), extents.len());
        return Err(argument("rel_shape", Shapes::Factors { given, ndim }));
    }
    let scaled = |(&factor, &extent): (&f64, &usize)| {
        // Single precision, as in DALI.
        let product = (f64::from(factor as f32) * extent as f64).round();
        match factor {
            _ if factor < 0.0 && factor.is_finite() => Ok(-1),
            _ if (0.0..1e15).contains(&product) => Ok(product as i64),
            _ => Err(argument("rel_shape", Shapes::Extent { extent: product })),
        }
    };
    factors.iter().zip(extents).map(scaled).collect()
}

/// The shape after a change of type, which resizes the innermost axis.
fn resize_innermost(mut shape: Shape, from: DType, to: DType) -> Result<Shape> {
    if from.size() == to.size() {
        return Ok(shape);
    }
    let Some(innermost) = shape.last_mut() else {
        return Err(argument("dtype", Shapes::ScalarSize));
    };
    let bytes = innermost.saturating_mul(from.size());
    if !bytes.is_multiple_of(to.size()) {
        return Err(argument("dtype", Shapes::RowSize { size: to.size(), bytes }));
    }
    *innermost = bytes / to.size();
    Ok(shape)
}

/// The requested shape, if its size matches that of the input. One extent may be negative: it is
/// inferred.
fn fit(name: &'static str, wanted: &[i64], input: &Desc, dtype: DType) -> Result<Shape> {
    let mismatch = || {
        let (wanted, shape) = (wanted.to_vec(), input.shape.to_vec());
        match dtype == input.dtype {
            true => argument(name, Shapes::Misfit { wanted, shape }),
            false => {
                let (bytes, dtype) = (input.bytes(), dtype.name());
                argument(name, Shapes::MisfitBytes { wanted, shape, bytes, dtype })
            }
        }
    };
    let volume = |shape: &[usize]| extent(shape).and_then(|n| n.checked_mul(dtype.size()));
    let mut unknown = None;
    let mut shape = Shape::new();
    for (axis, &d) in wanted.iter().enumerate() {
        if d < 0 && unknown.replace(axis).is_some() {
            return Err(argument(name, Shapes::TwoOpen));
        }
        shape.push(if d < 0 { 1 } else { usize::try_from(d).map_err(|_| mismatch())? });
    }
    if let Some(axis) = unknown {
        let rest = volume(&shape).ok_or_else(mismatch)?;
        if rest == 0 {
            return Err(argument(name, Shapes::OpenAndEmpty));
        }
        shape[axis] = input.bytes() / rest;
    }
    if volume(&shape) != Some(input.bytes()) {
        return Err(mismatch());
    }
    Ok(shape)
}

struct Squeeze;

args! {
    /// Axes, counted from the front.
    struct SqueezeArgs { axes: Vec<i64> }
}

impl View for Squeeze {
    type Args = SqueezeArgs;

    fn describe(args: &SqueezeArgs, input: &Desc) -> Result<Desc> {
        let is_squeezed = |axis: usize| args.axes.contains(&(axis as i64));
        let kept = input.shape.iter().enumerate().filter(|&(axis, _)| !is_squeezed(axis));
        let shape: Shape = kept.map(|(_, &d)| d).collect();
        if extent(&shape) != Some(input.elements()) {
            let (axes, shape) = (args.axes.clone(), input.shape.to_vec());
            return Err(argument("axes", Shapes::Squeezed { axes, shape }));
        }
        Ok(Desc { shape, ..input.clone() })
    }
}

struct ExpandDims;

args! {
    /// Axes of the result, in ascending order.
    struct ExpandDimsArgs { axes: Vec<i64> }
}

impl View for ExpandDims {
    type Args = ExpandDimsArgs;

    fn describe(args: &ExpandDimsArgs, input: &Desc) -> Result<Desc> {
        let mut shape = input.shape.clone();
        for &axis in &args.axes {
            match usize::try_from(axis) {
                Ok(axis) if axis <= shape.len() => shape.insert(axis, 1),
                _ => return Err(argument("axes", Shapes::Inserted { axis })),
            }
        }
        Ok(Desc { shape, ..input.clone() })
    }
}

/// The axes in another order.
struct Transpose;

args! {
    struct TransposeArgs { perm: Vec<i64> }
}

impl DirectKernel for Transpose {
    type Args = TransposeArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, stacks: true, ..Traits::DEFAULT };

    fn run(args: &TransposeArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let perm = permutation(&args.perm, inputs[0].desc.ndim())?;
        Ok(smallvec![transpose(&perm, &inputs[0], allocate)?])
    }

    /// The axis of the stack stays first.
    fn run_stacked(args: &TransposeArgs, batch: &UniformBatch<'_>) -> Option<Sample> {
        let perm = permutation(&args.perm, batch.data()[0].desc.ndim()).ok()?;
        let perm: Permutation =
            std::iter::once(0).chain(perm.into_iter().map(|axis| axis + 1)).collect();
        batch.run_stacked(|inputs, allocate| Ok(smallvec![transpose(&perm, &inputs[0], allocate)?]))
    }
}

fn transpose(perm: &[usize], sample: &Sample, allocate: &Allocate<'_>) -> Result<Sample> {
    let shape: Shape = perm.iter().map(|&axis| sample.desc.shape[axis]).collect();
    let desc = Desc { shape, ..sample.desc.clone() };
    if sample.is_contiguous() && keeps_order(perm, &sample.desc.shape) {
        return sample.reshaped(desc);
    }
    let strides = sample.strides();
    let strides: Strides = perm.iter().map(|&axis| strides[axis]).collect();
    let mut made = allocate(0, desc)?;
    let mut out = made.output();
    let (shape, size) = (&out.desc.shape, out.desc.dtype.size());
    // SAFETY: these are the sample's own elements in another order.
    out.store(|bytes, stores| unsafe {
        copy_strided(sample.as_ptr(), &strides, shape, size, bytes, stores);
    });
    made.into_sample()
}

type Permutation = SmallVec<[usize; 6]>;

fn permutation(perm: &[i64], ndim: usize) -> Result<Permutation> {
    let axes: Permutation =
        perm.iter().map(|&axis| usize::try_from(axis).unwrap_or(usize::MAX)).collect();
    let complete = axes.len() == ndim && (0..ndim).all(|axis| axes.contains(&axis));
    if !complete {
        return Err(argument("perm", Shapes::Permutation { perm: perm.to_vec(), ndim }));
    }
    Ok(axes)
}

/// Whether only axes of extent 1 move, so that the elements stay in place.
fn keeps_order(perm: &[usize], shape: &[usize]) -> bool {
    shape.contains(&0) || perm.iter().filter(|&&axis| shape[axis] != 1).is_sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reshape(input: &[usize], wanted: &[i64]) -> Option<Vec<usize>> {
        let input = Desc::new(DType::F32, input);
        fit("shape", wanted, &input, DType::F32).ok().map(|shape| shape.to_vec())
    }

    #[test]
    fn one_extent_is_inferred() {
        assert_eq!(reshape(&[2, 3], &[-1]), Some(vec![6]));
        assert_eq!(reshape(&[2, 3], &[3, -7]), Some(vec![3, 2]));
        assert_eq!(reshape(&[0, 3], &[5, -1]), Some(vec![5, 0]));
        assert_eq!(reshape(&[0, 3], &[0, -1]), None);
        assert_eq!(reshape(&[2, 3], &[-1, -1]), None);
        assert_eq!(reshape(&[2, 3], &[4, -1]), None);
        assert_eq!(reshape(&[], &[]), Some(vec![]));
    }

    #[test]
    fn shapes_that_are_too_large_are_rejected() {
        assert_eq!(reshape(&[2, 3], &[i64::MAX, i64::MAX]), None);
        assert_eq!(reshape(&[2, 3], &[i64::MAX, i64::MAX, -1]), None);
        assert!(scale(&[1e300], &[3], false).is_err());
        assert!(scale(&[f64::NAN], &[3], false).is_err());
        assert!(scale(&[f64::NEG_INFINITY], &[3], false).is_err());
    }

    #[test]
    fn axes_of_extent_one_do_not_matter() {
        assert!(keeps_order(&[1, 0, 2], &[1, 3, 4]));
        assert!(!keeps_order(&[1, 0, 2], &[2, 3, 4]));
        assert!(keeps_order(&[1, 0], &[0, 4]));
    }
}
