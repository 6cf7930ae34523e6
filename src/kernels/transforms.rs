//! Affine transforms as matrices, to be combined.

use std::marker::PhantomData;

use self::problem::Transforms;
use super::coordinates::Numbers;
use super::{Entry, Family, Frames, FromArgs, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::Number;
use crate::value::Problem;
use crate::value::{DType, Desc, Sample};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Transforms::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Combine>("transforms.combine"),
    Entry::new::<Composed<Crop>>("transforms.crop"),
    Entry::new::<Composed<Rotation>>("transforms.rotation"),
    Entry::new::<Composed<Scale>>("transforms.scale"),
    Entry::new::<Composed<Shear>>("transforms.shear"),
    Entry::new::<Composed<Translation>>("transforms.translation"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Transforms {
            Dimensions { given: usize, most: usize },
            NotATransform { most: usize, index: usize, shape: Vec<usize> },
            DifferentShapes { first: Vec<usize>, other: Vec<usize> },
            OtherDimensions { input: usize, arguments: usize },
            NoShear,
            ShearNumbers { shape: Vec<usize> },
        }
    }
}

fn refuse<T>(name: &'static str, problem: impl Into<Problem>) -> Result<T> {
    Err(argument(name, problem))
}

/// The most axes that a transform can have.
const AXES: usize = 6;

/// An affine transform of up to [`AXES`] axes: a row for each, with the offset at its end.
#[derive(Clone)]
pub struct Affine {
    axes: usize,
    rows: [[f32; AXES + 1]; AXES],
}

impl Affine {
    fn identity(axes: usize, name: &'static str) -> Result<Affine> {
        if !(1..=AXES).contains(&axes) {
            return refuse(name, Transforms::Dimensions { given: axes, most: AXES });
        }
        let mut rows = [[0.0; AXES + 1]; AXES];
        for (axis, row) in rows.iter_mut().enumerate().take(axes) {
            row[axis] = 1.0;
        }
        Ok(Affine { axes, rows })
    }

    /// Reads a matrix that is an input.
    fn read(sample: &Sample, index: usize) -> Result<Affine> {
        let axes = axes_of(&sample.desc, index)?;
        let mut values = [0.0; AXES * (AXES + 1)];
        let values = &mut values[..axes * (axes + 1)];
        f32::convert_row(sample, 0, values);
        let mut made = Affine { axes, rows: [[0.0; AXES + 1]; AXES] };
        for (row, values) in made.rows.iter_mut().zip(values.chunks_exact(axes + 1)) {
            row[..axes].copy_from_slice(&values[..axes]);
            row[AXES] = values[axes];
        }
        Ok(made)
    }

    fn desc(&self) -> Desc {
        Desc::new(DType::F32, &[self.axes, self.axes + 1])
    }

    fn write(&self, out: &mut Output<'_>) {
        let axes = self.axes;
        for (row, out) in self.rows.iter().zip(out.elements::<f32>().chunks_exact_mut(axes + 1)) {
            out[..axes].copy_from_slice(&row[..axes]);
            out[axes] = row[AXES];
        }
    }

    /// This transform, then `next`.
    fn then(&self, next: &Affine) -> Affine {
        let mut made = Affine { axes: self.axes, rows: [[0.0; AXES + 1]; AXES] };
        for (row, next) in made.rows.iter_mut().zip(&next.rows).take(self.axes) {
            for (middle, &factor) in self.rows.iter().zip(next).take(self.axes) {
                for (value, &own) in row.iter_mut().zip(middle) {
                    *value += factor * own;
                }
            }
            row[AXES] += next[AXES];
        }
        made
    }

    /// Sets the offset so that a point stays in place.
    fn keep(&mut self, center: &[f32]) {
        for (axis, row) in self.rows.iter_mut().enumerate().take(self.axes) {
            let moved: f32 = row.iter().zip(center).map(|(&m, &c)| m * c).sum();
            row[AXES] = center[axis] - moved;
        }
    }
}

/// The number of axes of an input's matrix.
fn axes_of(desc: &Desc, index: usize) -> Result<usize> {
    match desc.shape[..] {
        [axes, columns] if (1..=AXES).contains(&axes) && columns == axes + 1 => Ok(axes),
        _ => {
            let shape = desc.shape.to_vec();
            Err(unfit(index, Transforms::NotATransform { most: AXES, index, shape }))
        }
    }
}

pub struct Combine;

args! {
    pub struct CombineArgs { reverse_order: bool }
}

impl Kernel for Combine {
    type Args = CombineArgs;
    type Plan = bool;
    const TRAITS: Traits =
        Traits { shaped_by_args: false, frames: Frames::Made, ..Traits::DEFAULT };

    fn plan(args: CombineArgs, inputs: &[&Desc]) -> Result<(bool, Outputs)> {
        let axes = axes_of(inputs[0], 0)?;
        for (index, desc) in inputs.iter().enumerate() {
            if axes_of(desc, index)? != axes {
                let (first, other) = (inputs[0].shape.to_vec(), desc.shape.to_vec());
                return Err(unfit(index, Transforms::DifferentShapes { first, other }));
            }
        }
        Ok((args.reverse_order, one(Desc::new(DType::F32, &inputs[0].shape))))
    }

    fn run(reverse_order: &bool, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let mut all = inputs.iter().enumerate().map(|(index, input)| Affine::read(input, index));
        let mut made = all.next().unwrap_or_else(|| Affine::identity(1, "input_0"))?;
        for next in all {
            let next = next?;
            made = if *reverse_order { next.then(&made) } else { made.then(&next) };
        }
        made.write(out);
        Ok(())
    }
}

/// A transform described by arguments.
pub trait Describe: Send + Sync + 'static {
    type Args: FromArgs + Ordered;
    /// `axes` is the number of axes of the transform to combine it with, if there is one.
    fn describe(args: &Self::Args, axes: Option<usize>) -> Result<Affine>;
}

pub trait Ordered {
    /// Whether the new transform is applied before the input's.
    fn is_first(&self) -> bool;
}

macro_rules! ordered {
    ($($args:ty),*) => {
        $(
            impl Ordered for $args {
                fn is_first(&self) -> bool {
                    self.reverse_order
                }
            }
        )*
    };
}
ordered!(CropArgs, RotationArgs, ScaleArgs, ShearArgs, TranslationArgs);

/// The described transform, combined with the input if there is one.
pub struct Composed<T>(PhantomData<T>);

/// A transform, and whether it is applied before the input's.
pub struct Composition {
    made: Affine,
    first: bool,
}

impl<T: Describe> Kernel for Composed<T> {
    type Args = T::Args;
    type Plan = Composition;
    const TRAITS: Traits = Traits { frames: Frames::Made, ..Traits::DEFAULT };

    fn plan(args: T::Args, inputs: &[&Desc]) -> Result<(Composition, Outputs)> {
        let axes = inputs.first().map(|desc| axes_of(desc, 0)).transpose()?;
        let made = T::describe(&args, axes)?;
        if axes.is_some_and(|axes| axes != made.axes) {
            let problem =
                Transforms::OtherDimensions { input: axes.unwrap_or(0), arguments: made.axes };
            return Err(unfit(0, problem));
        }
        let outputs = one(made.desc());
        Ok((Composition { made, first: args.is_first() }, outputs))
    }

    fn run(plan: &Composition, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let Composition { made, first } = plan;
        match inputs.first().map(|input| Affine::read(input, 0)).transpose()? {
            Some(given) if *first => made.then(&given).write(out),
            Some(given) => given.then(made).write(out),
            None => made.write(out),
        }
        Ok(())
    }
}

pub struct Translation;

args! {
    pub struct TranslationArgs { offset: Numbers, reverse_order: bool }
}

impl Describe for Translation {
    type Args = TranslationArgs;

    fn describe(args: &TranslationArgs, _: Option<usize>) -> Result<Affine> {
        let offset = args.offset.list("offset")?;
        let mut made = Affine::identity(offset.len(), "offset")?;
        for (row, offset) in made.rows.iter_mut().zip(offset) {
            row[AXES] = offset;
        }
        Ok(made)
    }
}

pub struct Scale;

args! {
    pub struct ScaleArgs {
        center: Option<Numbers>,
        ndim: Option<i64>,
        reverse_order: bool,
        scale: Numbers,
    }
}

impl Describe for Scale {
    type Args = ScaleArgs;

    fn describe(args: &ScaleArgs, axes: Option<usize>) -> Result<Affine> {
        let scale = args.scale.list("scale")?;
        let (count, name) = match (scale.len(), axes, args.ndim) {
            (1, Some(axes), _) => (axes, "scale"),
            (1, None, Some(ndim)) if ndim > 0 => (ndim as usize, "ndim"),
            (count, ..) => (count, "scale"),
        };
        let mut made = Affine::identity(count, name)?;
        for (axis, scale) in args.scale.spread(count, "scale")?.into_iter().enumerate() {
            made.rows[axis][axis] = scale;
        }
        if let Some(center) = &args.center {
            made.keep(&center.spread(count, "center")?);
        }
        Ok(made)
    }
}

pub struct Rotation;

args! {
    pub struct RotationArgs {
        angle: f64,
        axis: Option<Numbers>,
        center: Option<Numbers>,
        reverse_order: bool,
    }
}

/// Single precision from here on, as in DALI: a quarter turn is not quite exact.
fn radians(degrees: f64) -> f32 {
    degrees as f32 * (std::f32::consts::PI / 180.0)
}

impl Describe for Rotation {
    type Args = RotationArgs;

    fn describe(args: &RotationArgs, _: Option<usize>) -> Result<Affine> {
        let (sin, cos) = radians(args.angle).sin_cos();
        let mut made = Affine::identity(if args.axis.is_some() { 3 } else { 2 }, "axis")?;
        match &args.axis {
            None => {
                made.rows[0][..2].copy_from_slice(&[cos, -sin]);
                made.rows[1][..2].copy_from_slice(&[sin, cos]);
            }
            Some(axis) => {
                let axis = axis.spread(3, "axis")?;
                // In double precision, since squares may overflow or vanish.
                let square = |&a: &f32| f64::from(a) * f64::from(a);
                let length = axis.iter().map(square).sum::<f64>().sqrt();
                let part = |i: usize| (f64::from(axis[i]) / length) as f32;
                let (x, y, z) = (part(0), part(1), part(2));
                let rest = 1.0 - cos;
                let turn = [
                    [x * x * rest + cos, x * y * rest - z * sin, x * z * rest + y * sin],
                    [x * y * rest + z * sin, y * y * rest + cos, y * z * rest - x * sin],
                    [x * z * rest - y * sin, y * z * rest + x * sin, z * z * rest + cos],
                ];
                for (row, turn) in made.rows.iter_mut().zip(turn) {
                    row[..3].copy_from_slice(&turn);
                }
            }
        }
        if let Some(center) = &args.center {
            made.keep(&center.spread(made.axes, "center")?);
        }
        Ok(made)
    }
}

pub struct Shear;

args! {
    pub struct ShearArgs {
        angles: Option<Numbers>,
        center: Option<Numbers>,
        reverse_order: bool,
        shear: Option<Numbers>,
    }
}

impl Describe for Shear {
    type Args = ShearArgs;

    fn describe(args: &ShearArgs, _: Option<usize>) -> Result<Affine> {
        let (given, name) = match (&args.shear, &args.angles) {
            (Some(shear), None) => (shear, "shear"),
            (None, Some(angles)) => (angles, "angles"),
            (Some(_), Some(_)) => return refuse("shear", Argument::Together { other: "angles" }),
            (None, None) => return refuse("shear", Transforms::NoShear),
        };
        let count = given.values.len();
        let axes = (2..=AXES).find(|axes| axes * (axes - 1) == count);
        let fits = |axes: usize| given.shape.len() < 2 || given.shape[..] == [axes, axes - 1];
        let Some(axes) = axes.filter(|&axes| fits(axes)) else {
            return refuse(name, Transforms::ShearNumbers { shape: given.shape.to_vec() });
        };
        let mut made = Affine::identity(axes, name)?;
        let mut numbers = given.values.iter();
        for (axis, row) in made.rows.iter_mut().enumerate().take(axes) {
            let others = row[..axes].iter_mut().enumerate().filter(|&(other, _)| other != axis);
            for ((_, value), &number) in others.zip(&mut numbers) {
                *value = if name == "angles" { radians(number).tan() } else { number as f32 };
            }
        }
        if let Some(center) = &args.center {
            made.keep(&center.spread(axes, "center")?);
        }
        Ok(made)
    }
}

pub struct Crop;

args! {
    pub struct CropArgs {
        absolute: bool,
        from_end: Numbers,
        from_start: Numbers,
        reverse_order: bool,
        to_end: Numbers,
        to_start: Numbers,
    }
}

impl Describe for Crop {
    type Args = CropArgs;

    fn describe(args: &CropArgs, _: Option<usize>) -> Result<Affine> {
        let given = [
            (&args.from_start, "from_start"),
            (&args.from_end, "from_end"),
            (&args.to_start, "to_start"),
            (&args.to_end, "to_end"),
        ];
        let (longest, name) = (given.iter())
            .max_by_key(|(numbers, _)| numbers.values.len())
            .map_or((1, "from_start"), |(numbers, name)| (numbers.values.len(), *name));
        let mut made = Affine::identity(longest, name)?;
        let [from_start, from_end, to_start, to_end] =
            given.map(|(numbers, name)| numbers.spread(longest, name));
        let (from_start, from_end, to_start, to_end) = (from_start?, from_end?, to_start?, to_end?);
        for axis in 0..longest {
            let sort = |start: f32, end: f32| {
                if args.absolute && end < start { (end, start) } else { (start, end) }
            };
            let (from, from_end) = sort(from_start[axis], from_end[axis]);
            let (to, to_end) = sort(to_start[axis], to_end[axis]);
            let scale = (to_end - to) / (from_end - from);
            made.rows[axis][axis] = scale;
            made.rows[axis][AXES] = to - from * scale;
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_apply_in_order() {
        let mut twice = Affine::identity(2, "").unwrap();
        twice.rows[0][0] = 2.0;
        let mut shift = Affine::identity(2, "").unwrap();
        shift.rows[0][AXES] = 1.0;
        assert_eq!(twice.then(&shift).rows[0][AXES], 1.0);
        assert_eq!(shift.then(&twice).rows[0][AXES], 2.0);
    }

    #[test]
    fn a_kept_point_stays() {
        let mut made = Affine::identity(2, "").unwrap();
        made.rows[0][..2].copy_from_slice(&[3.0, 1.0]);
        made.keep(&[2.0, 5.0]);
        assert_eq!(3.0 * 2.0 + 5.0 + made.rows[0][AXES], 2.0);
    }
}
