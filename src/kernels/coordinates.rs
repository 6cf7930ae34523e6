//! Points: `coord_transform` and `coord_flip`.

use smallvec::SmallVec;

use self::problem::Coordinates;
use super::{
    Arg, Entry, Family, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one,
};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::{Convert, Number};
use crate::value::Problem;
use crate::value::{DType, Desc, Sample, Shape, extent, with_element};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Coordinates::KINDS] };

const TABLE: &[Entry] =
    &[Entry::new::<CoordTransform>("coord_transform"), Entry::new::<CoordFlip>("coord_flip")];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Coordinates {
            NotAList { shape: Vec<usize> },
            Empty,
            NotAMatrix { columns: usize, shape: Vec<usize> },
            Wide { most: usize, given: usize },
            Scalar,
            ShortLayout { letters: String, width: usize },
            LayoutLetter { given: String },
        }
    }
}

fn refuse<T>(name: &'static str, problem: impl Into<Problem>) -> Result<T> {
    Err(argument(name, problem))
}

/// Numbers and their shape: a single number has no dimensions, a list has one.
pub struct Numbers {
    pub values: SmallVec<[f64; 6]>,
    pub shape: Shape,
}

impl FromArg for Numbers {
    fn from_constant(arg: &Arg) -> std::result::Result<Numbers, Problem> {
        let values = SmallVec::from_constant(arg)?;
        let list = matches!(arg, Arg::Ints(_) | Arg::Floats(_));
        let shape = if list { SmallVec::from_slice(&[values.len()]) } else { Shape::new() };
        Ok(Numbers { values, shape })
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Numbers, Problem> {
        let values = SmallVec::from_sample(sample)?;
        Ok(Numbers { values, shape: sample.desc.shape.clone() })
    }
}

impl Numbers {
    /// The numbers of a list, or one number.
    pub fn list(&self, name: &'static str) -> Result<SmallVec<[f32; 6]>> {
        if self.shape.len() > 1 {
            return refuse(name, Coordinates::NotAList { shape: self.shape.to_vec() });
        }
        if self.values.is_empty() {
            return refuse(name, Coordinates::Empty);
        }
        Ok(self.values.iter().map(|&value| value as f32).collect())
    }

    /// A number for each of `count` axes, from a list of as many or of one for all.
    pub fn spread(&self, count: usize, name: &'static str) -> Result<SmallVec<[f32; 6]>> {
        let list = self.list(name)?;
        match list.len() {
            n if n == count => Ok(list),
            1 => Ok(SmallVec::from_elem(list[0], count)),
            given => refuse(name, Argument::Count { wanted: count, given }),
        }
    }
}

struct CoordTransform;

args! {
    #[allow(non_snake_case)]
    struct CoordTransformArgs {
        M: Option<Numbers>,
        MT: Option<Numbers>,
        T: Option<Numbers>,
        dtype: DType,
    }
}

/// `y = M x + T` for points of `columns` coordinates, which become `rows`.
struct Map<F> {
    rows: usize,
    columns: usize,
    m: SmallVec<[F; 12]>,
    t: SmallVec<[F; 4]>,
}

impl CoordTransformArgs {
    fn map<F: Real>(&self, columns: usize, float: fn(f64) -> F) -> Result<Map<F>> {
        let (rows, m, t) = match (&self.MT, &self.M, &self.T) {
            (Some(_), Some(_), _) => return refuse("MT", Argument::Together { other: "M" }),
            (Some(_), _, Some(_)) => return refuse("MT", Argument::Together { other: "T" }),
            (Some(both), ..) => {
                let (rows, values) = matrix(both, columns, columns + 1, "MT")?;
                let (mut m, mut t) = (SmallVec::new(), SmallVec::new());
                for row in values.chunks_exact(columns + 1) {
                    m.extend_from_slice(&row[..columns]);
                    t.push(row[columns]);
                }
                (rows, m, t)
            }
            (None, m, t) => {
                let (rows, m) = match m {
                    Some(m) => matrix(m, columns, columns, "M")?,
                    None => (columns, diagonal(1.0, columns, columns)),
                };
                let t = match t {
                    Some(t) if t.shape.len() > 1 => {
                        return refuse("T", Coordinates::NotAList { shape: t.shape.to_vec() });
                    }
                    Some(t) if t.values.len() == rows => SmallVec::from_slice(&t.values),
                    Some(t) if t.values.len() == 1 => SmallVec::from_elem(t.values[0], rows),
                    Some(t) => {
                        let given = t.values.len();
                        return refuse("T", Argument::Count { wanted: rows, given });
                    }
                    None => SmallVec::from_elem(0.0, rows),
                };
                (rows, m, t)
            }
        };
        let (m, t): (SmallVec<[f64; 12]>, SmallVec<[f64; 4]>) = (m, t);
        let (m, t) = (m.into_iter().map(float).collect(), t.into_iter().map(float).collect());
        Ok(Map { rows, columns, m, t })
    }
}

/// A matrix with `width` columns: its number of rows, and its elements. A single number is a
/// diagonal matrix.
fn matrix(
    given: &Numbers,
    square: usize,
    width: usize,
    name: &'static str,
) -> Result<(usize, SmallVec<[f64; 12]>)> {
    let count = given.values.len();
    let fits = match given.shape[..] {
        [] => return Ok((square, diagonal(given.values[0], square, width))),
        [n] => n > 0 && width > 0 && n.is_multiple_of(width),
        [rows, columns] => rows > 0 && columns == width,
        _ => false,
    };
    if !fits {
        let shape = given.shape.to_vec();
        return refuse(name, Coordinates::NotAMatrix { columns: width, shape });
    }
    Ok((count.checked_div(width).unwrap_or(0), SmallVec::from_slice(&given.values)))
}

fn diagonal(value: f64, rows: usize, width: usize) -> SmallVec<[f64; 12]> {
    let mut values = SmallVec::from_elem(0.0, rows * width);
    for row in 0..rows {
        values[row * width + row] = value;
    }
    values
}

/// The most coordinates that a point may have, to keep matrices to a sensible size.
const WIDEST: usize = 1 << 12;

/// The map, in the precision that it is computed in.
enum AnyMap {
    Wide(Map<f64>),
    Single(Map<f32>),
}

impl Kernel for CoordTransform {
    type Args = CoordTransformArgs;
    type Plan = AnyMap;
    const TRAITS: Traits = Traits { stacks: true, frames: Frames::Made, ..Traits::DEFAULT };

    fn plan(args: CoordTransformArgs, inputs: &[&Desc]) -> Result<(AnyMap, Outputs)> {
        let columns = width_of(inputs[0])?;
        let (rows, map) = if is_wide(inputs[0].dtype) || is_wide(args.dtype) {
            let map = args.map(columns, |x| x)?;
            (map.rows, AnyMap::Wide(map))
        } else {
            let map = args.map(columns, |x| x as f32)?;
            (map.rows, AnyMap::Single(map))
        };
        let mut shape = inputs[0].shape.clone();
        let last = shape.len() - 1;
        shape[last] = rows;
        if extent(&shape).is_none() {
            return refuse("M", Argument::TooLarge);
        }
        Ok((map, one(Desc { dtype: args.dtype, shape, layout: inputs[0].layout })))
    }

    fn run(map: &AnyMap, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        with_element!(out.desc.dtype, |T| match map {
            AnyMap::Wide(map) => transform::<f64, T>(map, &inputs[0], out.elements()),
            AnyMap::Single(map) => transform::<f32, T>(map, &inputs[0], out.elements()),
        });
        Ok(())
    }
}

/// How many coordinates each point has.
fn width_of(desc: &Desc) -> Result<usize> {
    match desc.shape.last() {
        Some(&width) if width <= WIDEST => Ok(width),
        Some(&given) => Err(unfit(0, Coordinates::Wide { most: WIDEST, given })),
        None => Err(unfit(0, Coordinates::Scalar)),
    }
}

/// Types for which single precision, which DALI computes in, is not enough.
fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::I64 | DType::U64 | DType::F64)
}

/// A type that coordinates are computed in.
trait Real:
    Number + std::ops::Mul<Output = Self> + std::ops::Add<Output = Self> + std::ops::AddAssign
{
}
impl Real for f32 {}
impl Real for f64 {}

/// Points converted at a time.
const POINTS: usize = 256;

fn transform<F: Real + Convert<T>, T: Number>(map: &Map<F>, points: &Sample, out: &mut [T]) {
    let &Map { rows, columns, .. } = map;
    if out.is_empty() {
        return;
    }
    let apply: fn(&Map<F>, &[F], &mut [F]) = match (rows, columns) {
        (1, 1) => apply_fixed::<F, 1, 1>,
        (2, 2) => apply_fixed::<F, 2, 2>,
        (3, 3) => apply_fixed::<F, 3, 3>,
        (4, 4) => apply_fixed::<F, 4, 4>,
        (1, 3) => apply_fixed::<F, 1, 3>,
        (2, 3) => apply_fixed::<F, 2, 3>,
        (3, 2) => apply_fixed::<F, 3, 2>,
        _ => apply_any,
    };
    let mut from = Reader::new(points, POINTS * columns);
    let mut to = vec![F::default(); (POINTS * rows).min(out.len())];
    for (chunk, out) in out.chunks_mut(POINTS * rows).enumerate() {
        let count = out.len() / rows * columns;
        let to = &mut to[..out.len()];
        apply(map, from.read(chunk * POINTS * columns, count), to);
        for (out, &to) in out.iter_mut().zip(&*to) {
            *out = to.convert();
        }
    }
}

/// Reads the numbers of a contiguous sample in the type to compute in, converting chunk by chunk if
/// necessary.
struct Reader<'a, F> {
    sample: &'a Sample,
    converted: Vec<F>,
}

impl<'a, F: Real> Reader<'a, F> {
    /// `most` is the largest number of elements read at a time.
    fn new(sample: &'a Sample, most: usize) -> Reader<'a, F> {
        let own = sample.desc.dtype == F::DTYPE;
        let room = if own { 0 } else { most.min(sample.desc.elements()) };
        Reader { sample, converted: vec![F::default(); room] }
    }

    fn read(&mut self, start: usize, count: usize) -> &[F] {
        if self.sample.desc.dtype == F::DTYPE {
            return &self.sample.elements::<F>()[start..start + count];
        }
        F::convert_row(self.sample, start, &mut self.converted[..count]);
        &self.converted[..count]
    }
}

fn apply_fixed<F: Real, const ROWS: usize, const COLUMNS: usize>(
    map: &Map<F>,
    points: &[F],
    out: &mut [F],
) {
    let mut m = [[F::default(); COLUMNS]; ROWS];
    let mut t = [F::default(); ROWS];
    t.copy_from_slice(&map.t);
    for (row, values) in m.iter_mut().zip(map.m.chunks_exact(COLUMNS)) {
        row.copy_from_slice(values);
    }
    let (points, out) = (points.as_chunks::<COLUMNS>().0, out.as_chunks_mut::<ROWS>().0);
    for (point, out) in points.iter().zip(out) {
        for row in 0..ROWS {
            let mut sum = m[row][0] * point[0];
            for column in 1..COLUMNS {
                sum += m[row][column] * point[column];
            }
            out[row] = sum + t[row];
        }
    }
}

fn apply_any<F: Real>(map: &Map<F>, points: &[F], out: &mut [F]) {
    if map.columns == 0 {
        return out.chunks_exact_mut(map.rows).for_each(|out| out.copy_from_slice(&map.t));
    }
    for (point, out) in points.chunks_exact(map.columns).zip(out.chunks_exact_mut(map.rows)) {
        for ((out, row), &t) in out.iter_mut().zip(map.m.chunks_exact(map.columns)).zip(&map.t) {
            let mut sum = F::default();
            for (&m, &x) in row.iter().zip(point) {
                sum += m * x;
            }
            *out = sum + t;
        }
    }
}

pub struct CoordFlip;

args! {
    /// `layout` has a letter for each coordinate.
    pub struct CoordFlipArgs {
        center_x: f64,
        center_y: f64,
        center_z: f64,
        flip_x: bool,
        flip_y: bool,
        flip_z: bool,
        layout: String,
    }
}

/// For each coordinate, a factor and an offset.
type Columns = SmallVec<[(f64, f64); 4]>;

impl Kernel for CoordFlip {
    type Args = CoordFlipArgs;
    type Plan = Columns;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: CoordFlipArgs, inputs: &[&Desc]) -> Result<(Columns, Outputs)> {
        let columns = args.columns(width_of(inputs[0])?)?;
        Ok((columns, one(inputs[0].clone())))
    }

    fn run(columns: &Columns, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        if is_wide(out.desc.dtype) {
            with_element!(out.desc.dtype, |T| mirror::<f64, T>(
                columns,
                &inputs[0],
                out.elements()
            ));
        } else {
            let columns: SmallVec<[_; 4]> =
                columns.iter().map(|&(sign, shift)| (sign as f32, shift as f32)).collect();
            with_element!(out.desc.dtype, |T| mirror::<f32, T>(
                &columns,
                &inputs[0],
                out.elements()
            ));
        }
        Ok(())
    }
}

impl CoordFlipArgs {
    fn columns(&self, width: usize) -> Result<Columns> {
        let letters = match self.layout.as_str() {
            "" => "xyz",
            given => given,
        };
        if letters.len() < width {
            let letters = letters.to_string();
            return refuse("layout", Coordinates::ShortLayout { letters, width });
        }
        let column = |letter: u8| {
            let (flip, center) = match letter {
                b'x' => (self.flip_x, self.center_x),
                b'y' => (self.flip_y, self.center_y),
                b'z' => (self.flip_z, self.center_z),
                other => {
                    let given = (other as char).to_string();
                    return refuse("layout", Coordinates::LayoutLetter { given });
                }
            };
            // Centers are single precision in DALI.
            let center = f64::from(center as f32);
            Ok(if flip { (-1.0, 2.0 * center) } else { (1.0, 0.0) })
        };
        letters.bytes().take(width).map(column).collect()
    }
}

fn mirror<F: Real + Convert<T>, T: Number>(columns: &[(F, F)], points: &Sample, out: &mut [T]) {
    let width = columns.len();
    if out.is_empty() {
        return;
    }
    // Factors and offsets repeated along a long row, which saves an inner loop.
    let row = (POINTS * width).min(out.len());
    let (sign, shift): (Vec<F>, Vec<F>) = columns.iter().copied().cycle().take(row).unzip();
    let mut from: Reader<F> = Reader::new(points, row);
    for (chunk, out) in out.chunks_mut(row).enumerate() {
        let from = from.read(chunk * row, out.len());
        for (((out, &x), &sign), &shift) in out.iter_mut().zip(from).zip(&sign).zip(&shift) {
            *out = (x * sign + shift).convert();
        }
    }
}
