//! Colors from the single values of a sensor behind a Bayer filter: debayer.

use super::warp::places::Border;
use super::{Arg, Entry, Family, FromArg, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::numeric::isa::Isa;
use crate::value::{Cause, DType, Desc, Element, Layout, Problem, Sample, extent, filled, zeroed};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: problem::Debayer::KINDS };

const TABLE: &[Entry] = &[Entry::new::<Debayer>("debayer")];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// What is wrong with a call of this family.
        pub enum Debayer {
            Position { given: Vec<i64> },
            Bytes { dtype: &'static str },
        }
    }
}

/// How colors are found that a pixel has no value of.
#[derive(Clone, Copy, PartialEq)]
pub enum Algorithm {
    Bilinear,
    EdgeAware,
    Gradients,
    Gray,
}

impl FromArg for Algorithm {
    fn from_constant(arg: &Arg) -> std::result::Result<Algorithm, Problem> {
        Ok(match String::from_constant(arg)?.as_str() {
            "bilinear_ocv" => Algorithm::Bilinear,
            "edgeaware_ocv" | "default_npp" => Algorithm::EdgeAware,
            "vng_ocv" => Algorithm::Gradients,
            "gray_ocv" => Algorithm::Gray,
            _ => {
                let choices = "\"bilinear_ocv\", \"edgeaware_ocv\", \"vng_ocv\", \"gray_ocv\", \
                               \"default_npp\"";
                return Err(Argument::OneOf { choices, given: arg.shown() }.into());
            }
        })
    }

    fn from_sample(_: &Sample) -> std::result::Result<Algorithm, Problem> {
        Err(Argument::SameForAll.into())
    }
}

pub struct Debayer;

args! {
    pub struct DebayerArgs { algorithm: Algorithm, blue_position: Vec<i64> }
}

/// How to do it, and where blue is among the rows and columns, by whether their number is even.
pub struct Mosaic {
    algorithm: Algorithm,
    blue: [usize; 2],
}

impl Kernel for Debayer {
    type Args = DebayerArgs;
    type Plan = Mosaic;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: DebayerArgs, inputs: &[&Desc]) -> Result<(Mosaic, Outputs)> {
        let input = inputs[0];
        let &[y @ (0 | 1), x @ (0 | 1)] = &args.blue_position[..] else {
            let problem = problem::Debayer::Position { given: args.blue_position };
            return Err(argument("blue_position", problem));
        };
        let DebayerArgs { algorithm, .. } = args;
        match input.dtype {
            DType::U8 => {}
            DType::U16 if algorithm != Algorithm::Gradients => {}
            DType::U16 => {
                let problem = problem::Debayer::Bytes { dtype: input.dtype.name() };
                return Err(argument("algorithm", problem));
            }
            other => {
                let dtype = other.name();
                return Err(unfit(0, Input::Type { wanted: "uint8 or uint16", dtype }));
            }
        }
        let mut desc = input.clone();
        if desc.layout.letters().last() == Some(&b'C') {
            match desc.shape.pop() {
                Some(1) => {}
                given => {
                    let given = given.unwrap_or(0);
                    return Err(unfit(0, Input::Channels { wanted: "1", given }));
                }
            }
        }
        desc.shape.push(if algorithm == Algorithm::Gray { 1 } else { 3 });
        desc.layout =
            Layout::new(if desc.shape.len() == 4 { "FHWC" } else { "HWC" }).unwrap_or_default();
        if extent(&desc.shape).is_none() {
            return Err(Cause::Memory { bytes: usize::MAX });
        }
        // The position is that in the tile whose first pixel is in the second row and column.
        let blue = [1 - y as usize, 1 - x as usize];
        Ok((Mosaic { algorithm, blue }, one(desc)))
    }

    fn run(plan: &Mosaic, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        match inputs[0].desc.dtype {
            DType::U8 => frames::<u8>(plan, &inputs[0], out),
            _ => frames::<u16>(plan, &inputs[0], out),
        }
    }
}

fn frames<T: Raw>(plan: &Mosaic, image: &Sample, out: &mut Output<'_>) -> Result<()> {
    let side = |letter| image.desc.layout.find(letter).map_or(1, |axis| image.desc.shape[axis]);
    let (height, width) = (side(b'H'), side(b'W'));
    if height * width == 0 {
        return Ok(());
    }
    let channels = out.desc.shape.last().copied().unwrap_or(3);
    let src = image.elements::<T>().chunks_exact(height * width);
    for (src, dst) in src.zip(out.elements::<T>().chunks_exact_mut(height * width * channels)) {
        let raw = RawImage { src, height, width, blue: plan.blue };
        match plan.algorithm {
            Algorithm::Gray => raw.gray(dst)?,
            Algorithm::Bilinear => raw.colors(false, dst)?,
            Algorithm::EdgeAware => raw.colors(true, dst)?,
            // As in OpenCV, and so in DALI, there is no room for gradients in less.
            Algorithm::Gradients if height.min(width) < 8 => raw.colors(false, dst)?,
            Algorithm::Gradients => raw.by_gradients(dst)?,
        }
    }
    Ok(())
}

/// A value of a sensor.
trait Raw: Element {
    /// Sums of four of them fit.
    type Sum: Copy
        + PartialOrd
        + From<u8>
        + std::ops::Add<Output = Self::Sum>
        + std::ops::Sub<Output = Self::Sum>
        + std::ops::Shr<u32, Output = Self::Sum>;
    fn wide(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
    fn word(self) -> u32;
    fn of_word(word: u32) -> Self;
}

macro_rules! raw {
    ($($type:ty: $sum:ty;)*) => {
        $(impl Raw for $type {
            type Sum = $sum;
            #[inline(always)]
            fn wide(self) -> $sum {
                self.into()
            }
            #[inline(always)]
            fn narrow(sum: $sum) -> $type {
                sum as $type
            }
            #[inline(always)]
            fn word(self) -> u32 {
                self.into()
            }
            #[inline(always)]
            fn of_word(word: u32) -> $type {
                word as $type
            }
        })*
    };
}
raw!(u8: u16; u16: u32;);

struct RawImage<'a, T> {
    src: &'a [T],
    height: usize,
    width: usize,
    blue: [usize; 2],
}

/// What is where in a row.
#[derive(Clone, Copy)]
struct Row {
    /// Whether it has blue values, and not red ones.
    is_blue: bool,
    /// The first column of those that are not green.
    first: usize,
}

impl<T: Raw> RawImage<'_, T> {
    fn row(&self, y: usize) -> &[T] {
        &self.src[y * self.width..][..self.width]
    }

    fn kind(&self, y: usize) -> Row {
        let is_blue = y % 2 == self.blue[0];
        Row { is_blue, first: if is_blue { self.blue[1] } else { 1 - self.blue[1] } }
    }

    /// Whether each of `n` columns is not green, from column `from` on, in rows of both kinds.
    fn sites(&self, from: usize, n: usize) -> Result<[Vec<u8>; 2]> {
        let made = |first: usize| -> Result<Vec<u8>> {
            let mut made = zeroed::<u8>(n)?;
            let sites = made.iter_mut().enumerate();
            sites.for_each(|(i, site)| *site = u8::from((from + i) % 2 == first));
            Ok(made)
        };
        Ok([made(0)?, made(1)?])
    }

    /// Pixels at the edge are those next to them; images without others are black.
    fn colors(&self, edge_aware: bool, dst: &mut [T]) -> Result<()> {
        let (height, width) = (self.height, self.width);
        if height.min(width) < 3 {
            dst.fill(T::of_word(0));
            return Ok(());
        }
        let n = width - 2;
        let sites = self.sites(1, n)?;
        let mut made = zeroed::<T>(3 * n)?;
        for y in 1..height - 1 {
            let kind = self.kind(y);
            let rows = [self.row(y - 1), self.row(y), self.row(y + 1)];
            let (own, rest) = made.split_at_mut(n);
            let (green, other) = rest.split_at_mut(n);
            let site = &sites[kind.first];
            // As functions with arguments of their own, so that the compiler knows that the rows
            // don't overlap.
            Isa::run_on_best(|| match edge_aware {
                true => interpolate::<T, true>(rows, site, own, green, other),
                false => interpolate::<T, false>(rows, site, own, green, other),
            });
            let (red, blue) = if kind.is_blue { (other, own) } else { (own, other) };
            let row = &mut dst[3 * y * width..][..3 * width];
            Isa::run_on_best(|| interleave(red, green, blue, &mut row[3..3 * (width - 1)]));
            repeat_ends(row, 3);
        }
        repeat_rows(dst, 3 * width);
        Ok(())
    }

    fn gray(&self, dst: &mut [T]) -> Result<()> {
        let (height, width) = (self.height, self.width);
        if height.min(width) < 3 {
            dst.fill(T::of_word(0));
            return Ok(());
        }
        let sites = self.sites(1, width - 2)?;
        for y in 1..height - 1 {
            let kind = self.kind(y);
            let rows = [self.row(y - 1), self.row(y), self.row(y + 1)];
            let row = &mut dst[y * width..][..width];
            let (own, other) = if kind.is_blue { (BLUE, RED) } else { (RED, BLUE) };
            brightness(rows, &sites[kind.first], own, other, &mut row[1..width - 1]);
            repeat_ends(row, 1);
        }
        repeat_rows(dst, width);
        Ok(())
    }
}

/// Shares of the colors in brightness (ITU-R BT.601), of 2^14.
const RED: u32 = 4899;
const GREEN: u32 = 9617;
const BLUE: u32 = 1868;

fn repeat_ends<T: Copy>(row: &mut [T], pixel: usize) {
    let end = row.len() - pixel;
    row.copy_within(pixel..2 * pixel, 0);
    row.copy_within(end - pixel..end, end);
}

fn repeat_rows<T: Copy>(all: &mut [T], row: usize) {
    let end = all.len() - row;
    all.copy_within(row..2 * row, 0);
    all.copy_within(end - row..end, end);
}

/// The colors of the inner pixels of a row: that of the row's own sites, green, and the third.
#[inline(always)]
fn interpolate<T: Raw, const EDGE_AWARE: bool>(
    [above, row, below]: [&[T]; 3],
    site: &[u8],
    own: &mut [T],
    green: &mut [T],
    other: &mut [T],
) {
    let n = own.len();
    let (up_left, up, up_right) = (&above[..n], &above[1..n + 1], &above[2..n + 2]);
    let (left, here, right) = (&row[..n], &row[1..n + 1], &row[2..n + 2]);
    let (down_left, down, down_right) = (&below[..n], &below[1..n + 1], &below[2..n + 2]);
    let (site, green, other) = (&site[..n], &mut green[..n], &mut other[..n]);
    let (one, two) = (T::Sum::from(1), T::Sum::from(2));
    for i in 0..n {
        let (l, r, u, d) = (left[i].wide(), right[i].wide(), up[i].wide(), down[i].wide());
        let corners =
            up_left[i].wide() + up_right[i].wide() + down_left[i].wide() + down_right[i].wide();
        let (across, along) = ((l + r + one) >> 1, (u + d + one) >> 1);
        let far = |a: T::Sum, b: T::Sum| if a > b { a - b } else { b - a };
        let around = if EDGE_AWARE {
            if far(l, r) > far(u, d) { along } else { across }
        } else {
            (l + r + u + d + two) >> 2
        };
        let is_site = site[i] != 0;
        let s = here[i].wide();
        own[i] = T::narrow(if is_site { s } else { across });
        green[i] = T::narrow(if is_site { around } else { s });
        other[i] = T::narrow(if is_site { (corners + two) >> 2 } else { along });
    }
}

#[inline(always)]
fn interleave<T: Copy>(red: &[T], green: &[T], blue: &[T], out: &mut [T]) {
    let pixels = out.as_chunks_mut::<3>().0.iter_mut();
    for (((out, &r), &g), &b) in pixels.zip(red).zip(green).zip(blue) {
        *out = [r, g, b];
    }
}

/// The brightness of the inner pixels of a row.
fn brightness<T: Raw>(
    [above, row, below]: [&[T]; 3],
    site: &[u8],
    own: u32,
    other: u32,
    out: &mut [T],
) {
    let n = out.len();
    let (up_left, up, up_right) = (&above[..n], &above[1..n + 1], &above[2..n + 2]);
    let (left, here, right) = (&row[..n], &row[1..n + 1], &row[2..n + 2]);
    let (down_left, down, down_right) = (&below[..n], &below[1..n + 1], &below[2..n + 2]);
    let site = &site[..n];
    Isa::run_on_best(|| {
        for i in 0..n {
            let (beside, over) = (left[i].word() + right[i].word(), up[i].word() + down[i].word());
            let corners =
                up_left[i].word() + up_right[i].word() + down_left[i].word() + down_right[i].word();
            let s = here[i].word();
            let at_site =
                (corners * other + (beside + over) * GREEN + 4 * s * own + (1 << 15)) >> 16;
            let at_green = (beside * own + over * other + 2 * s * GREEN + (1 << 14)) >> 15;
            out[i] = T::of_word(if site[i] != 0 { at_site } else { at_green });
        }
    });
}

/// Chang, Cheung and Pang, "Color filter array recovery using a threshold-based variable number of
/// gradients", 1999, as OpenCV has it: the mean of the directions in which little changes.
mod gradients {
    use super::*;

    /// Pixels beyond the image that are looked at.
    pub const REACH: usize = 2;

    /// Changes around each pixel of a row, from one before its first to one behind its last, and
    /// the sum of half its four neighbours.
    pub struct Changes {
        n: usize,
        all: Vec<i16>,
    }

    impl Changes {
        pub fn new(width: usize) -> Result<Changes> {
            let n = width + 2;
            Ok(Changes { n, all: zeroed(7 * n)? })
        }

        fn part(&self, kind: usize, from: usize, n: usize) -> &[i16] {
            &self.all[kind * self.n + from..][..n]
        }

        /// From three rows that are `REACH` longer than the image at either end.
        pub fn fill(&mut self, [above, row, below]: [&[i16]; 3]) {
            Isa::run_on_best(|| fill(self.n, &mut self.all, above, row, below));
        }
    }

    #[inline(always)]
    fn fill(n: usize, all: &mut [i16], above: &[i16], row: &[i16], below: &[i16]) {
        let mut parts = all.chunks_exact_mut(n);
        let [
            Some(down),
            Some(across),
            Some(rising),
            Some(falling),
            Some(rise),
            Some(fall),
            Some(sum),
        ] = std::array::from_fn(|_| parts.next())
        else {
            return;
        };
        let (a, b, c) = (&above[..n], &above[1..n + 1], &above[2..n + 2]);
        let (d, e) = (&row[..n], &row[2..n + 2]);
        let (f, g, h) = (&below[..n], &below[1..n + 1], &below[2..n + 2]);
        for i in 0..n {
            let far = |x: i16, y: i16| (x - y).abs();
            down[i] = far(a[i], f[i]) + far(c[i], h[i]) + 2 * far(b[i], g[i]);
            across[i] = far(a[i], c[i]) + far(f[i], h[i]) + 2 * far(d[i], e[i]);
            rising[i] = 2 * far(c[i], f[i]);
            falling[i] = 2 * far(a[i], h[i]);
            rise[i] = rising[i] + far(b[i], d[i]) + far(g[i], e[i]);
            fall[i] = falling[i] + far(b[i], e[i]) + far(g[i], d[i]);
            sum[i] = (b[i] + d[i] + e[i] + g[i]) >> 1;
        }
    }

    /// What a row is made of.
    pub struct Row<'a> {
        /// The changes of the row above, of this one and of the one below.
        pub changes: [&'a Changes; 3],
        /// Five rows of values.
        pub values: [&'a [i16]; 5],
        pub site: &'a [u8],
        /// Half of the inverse of seven, for each pixel.
        pub seventh: &'a [f32],
    }

    /// Half of the inverse of seven. OpenCV has less of its digits where it takes pixels one by one:
    /// those that are left of groups of eight, which begin with the first that is not green.
    pub fn sevenths(width: usize, first: usize) -> Result<Vec<f32>> {
        let grouped = (width + 4).saturating_sub(first + 4) / 8 * 8;
        let mut made = filled(0.071_428_6, width)?;
        if let Some(groups) = made.get_mut(first..first + grouped) {
            groups.fill(0.5 / 7.0);
        }
        Ok(made)
    }

    /// The colors of a row: of its own sites, green, and the third.
    #[inline(always)]
    pub fn mix(row: &Row<'_>, own: &mut [u8], green: &mut [u8], other: &mut [u8]) {
        let n = own.len();
        let (site, seventh) = (&row.site[..n], &row.seventh[..n]);
        let (green, other) = (&mut green[..n], &mut other[..n]);
        let [v0, v1, v2, v3, v4] = row.values.map(|values| &values[..n + 2 * REACH]);
        let part = |r: usize, kind: usize| &row.changes[r].part(kind, 0, n + 2)[..n + 2];
        let down = [part(0, 0), part(1, 0), part(2, 0)];
        let across = part(1, 1);
        let three = |kind: usize| [part(0, kind), part(1, kind), part(2, kind)];
        let (rising, falling) = (three(2), three(3));
        let (rise, fall, sum) = (three(4), three(5), three(6));
        for i in 0..n {
            // SAFETY: all these are as long as was asked for above: `n`, two more for changes, and
            // four more for values.
            unsafe {
                let is_site = *site.get_unchecked(i) != 0;
                let choose = |a: i16, b: i16| if is_site { a } else { b };
                let at = |values: &[i16], k: usize| *values.get_unchecked(i + k);
                let s = at(v2, 2);
                let north = at(down[0], 1) + at(down[1], 1);
                let south = at(down[1], 1) + at(down[2], 1);
                let west = at(across, 0) + at(across, 1);
                let east = at(across, 1) + at(across, 2);
                let four = |r: &[&[i16]; 3], y: usize, x: usize| {
                    at(r[y], x) + at(r[y], x + 1) + at(r[y + 1], x) + at(r[y + 1], x + 1)
                };
                let north_east = choose(at(rise[0], 2) + at(rise[1], 1), four(&rising, 0, 1));
                let south_west = choose(at(rise[1], 1) + at(rise[2], 0), four(&rising, 1, 0));
                let north_west = choose(at(fall[0], 0) + at(fall[1], 1), four(&falling, 0, 0));
                let south_east = choose(at(fall[1], 1) + at(fall[2], 2), four(&falling, 1, 1));
                let low = |a: i16, b: i16| if a < b { a } else { b };
                let high = |a: i16, b: i16| if a > b { a } else { b };
                let least = low(
                    low(low(north, south), low(west, east)),
                    low(low(north_east, south_west), low(north_west, south_east)),
                );
                let most = high(
                    high(high(north, south), high(west, east)),
                    high(high(north_east, south_west), high(north_west, south_east)),
                );
                let limit = least + high(most >> 1, 1);
                let (mut same, mut beside, mut third, mut count) = (0_i16, 0_i16, 0_i16, 0_i16);
                // For each direction in which little changes: twice the values of the pixel's own
                // color, of the one that is beside it, and of the third.
                let mut add = |change: i16, a: i16, b: i16, c: i16| {
                    let taken = if change < limit { -1 } else { 0 };
                    same += a & taken;
                    beside += b & taken;
                    third += c & taken;
                    count -= taken;
                };
                let (n0, n1, n2, n3, n4) = (at(v0, 0), at(v0, 1), at(v0, 2), at(v0, 3), at(v0, 4));
                let (a0, a1, a2, a3, a4) = (at(v1, 0), at(v1, 1), at(v1, 2), at(v1, 3), at(v1, 4));
                let (s0, s1, s3, s4) = (at(v2, 0), at(v2, 1), at(v2, 3), at(v2, 4));
                let (b0, b1, b2, b3, b4) = (at(v3, 0), at(v3, 1), at(v3, 2), at(v3, 3), at(v3, 4));
                let (m0, m1, m2, m3, m4) = (at(v4, 0), at(v4, 1), at(v4, 2), at(v4, 3), at(v4, 4));
                add(north, n2 + s, choose(2 * a2, n1 + n3), choose(a1 + a3, 2 * a2));
                add(south, m2 + s, choose(2 * b2, m1 + m3), choose(b1 + b3, 2 * b2));
                add(west, s0 + s, 2 * s1, choose(a1 + b1, a0 + b0));
                add(east, s4 + s, 2 * s3, choose(a3 + b3, a4 + b4));
                add(
                    north_east,
                    choose(n4 + s, 2 * a3),
                    choose(at(sum[0], 2), n3 + s3),
                    choose(2 * a3, a2 + a4),
                );
                add(
                    south_west,
                    choose(m0 + s, 2 * b1),
                    choose(at(sum[2], 0), m1 + s1),
                    choose(2 * b1, b2 + b0),
                );
                add(
                    north_west,
                    choose(n0 + s, 2 * a1),
                    choose(at(sum[0], 0), n1 + s1),
                    choose(2 * a1, a0 + a2),
                );
                add(
                    south_east,
                    choose(m4 + s, 2 * b3),
                    choose(at(sum[2], 2), m3 + s3),
                    choose(2 * b3, b4 + b2),
                );
                let scale =
                    if count == 7 { *seventh.get_unchecked(i) } else { 0.5 / f32::from(count) };
                let mixed = |sum: i16| {
                    let more = (f32::from(sum - same) * scale).round_ties_even();
                    let mixed = f32::from(s) + more;
                    let mixed = if mixed > 0.0 { mixed } else { 0.0 };
                    // Within the limits of a byte.
                    (if mixed < 255.0 { mixed } else { 255.0 }).to_int_unchecked::<i32>() as u8
                };
                let (beside, third, s) = (mixed(beside), mixed(third), s as u8);
                *own.get_unchecked_mut(i) = if is_site { s } else { beside };
                *green.get_unchecked_mut(i) = if is_site { beside } else { s };
                *other.get_unchecked_mut(i) = third;
            }
        }
    }
}

impl<T: Raw> RawImage<'_, T> {
    fn by_gradients(&self, dst: &mut [T]) -> Result<()> {
        use gradients::{Changes, REACH};
        let (height, width) = (self.height, self.width);
        let sites = self.sites(0, width)?;
        let sevenths = [gradients::sevenths(width, 0)?, gradients::sevenths(width, 1)?];
        let mirrored = |at: i64, n: usize| Border::Reflect101.resolve(at, n).unwrap_or(0);
        // Five rows of values, row `y` at `y % 5`, counted from two before the first, and the
        // changes of three. Rows of one more are needed for the changes of the last of those.
        let padded = width + 2 * REACH;
        let mut values = zeroed::<i16>(5 * padded)?;
        let mut changes = [Changes::new(width)?, Changes::new(width)?, Changes::new(width)?];
        let mut bytes = zeroed::<u8>(3 * width)?;
        let (mut read, mut changed) = (0, 0);
        for y in 0..height {
            while read < y + 5 {
                let row = self.row(mirrored(read as i64 - REACH as i64, height));
                let to = &mut values[read % 5 * padded..][..padded];
                for (to, from) in to[REACH..].iter_mut().zip(row) {
                    *to = from.word() as i16;
                }
                for i in (0..REACH).chain(REACH + width..padded) {
                    to[i] = row[mirrored(i as i64 - REACH as i64, width)].word() as i16;
                }
                read += 1;
            }
            let value = |row: usize| &values[row % 5 * padded..][..padded];
            while changed < y + 3 {
                let rows = [value(changed), value(changed + 1), value(changed + 2)];
                changes[changed % 3].fill(rows);
                changed += 1;
            }
            let kind = self.kind(y);
            let (own, rest) = bytes.split_at_mut(width);
            let (green, other) = rest.split_at_mut(width);
            let row = gradients::Row {
                changes: [&changes[y % 3], &changes[(y + 1) % 3], &changes[(y + 2) % 3]],
                values: std::array::from_fn(|k| value(y + k)),
                site: &sites[kind.first],
                seventh: &sevenths[kind.first],
            };
            Isa::run_on_best(|| gradients::mix(&row, own, green, other));
            let (red, blue) = if kind.is_blue { (&*other, &*own) } else { (&*own, &*other) };
            let row = &mut dst[3 * y * width..][..3 * width];
            let pixels = row.as_chunks_mut::<3>().0.iter_mut();
            for (((out, &r), &g), &b) in pixels.zip(red).zip(&*green).zip(blue) {
                *out = [r, g, b].map(|x| T::of_word(x.into()));
            }
        }
        Ok(())
    }
}
