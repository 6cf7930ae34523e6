//! Demosaicing of Bayer images: debayer.

use super::warp::places::Border;
use super::{Arg, Entry, Family, FromArg, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::numeric::interleave::{interleave, interleave_bytes};
use crate::kernels::numeric::isa::{Isa, vectorized};
use crate::value::{Cause, DType, Desc, Element, Layout, Problem, Sample, extent, filled, zeroed};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Debayer::KINDS] };

const TABLE: &[Entry] = &[Entry::new::<Debayer>("debayer")];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of `debayer`.
        pub enum Debayer {
            Position { given: Vec<i64> },
            Bytes { dtype: &'static str },
        }
    }
}

/// How missing colors are interpolated.
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

/// Algorithm, and the parity of the rows and columns with blue pixels.
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
        // `blue_position` refers to the 2x2 tile that starts at row 1, column 1.
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
            // As in OpenCV, and therefore in DALI: smaller images fall back to bilinear.
            Algorithm::Gradients if height.min(width) < 8 => raw.colors(false, dst)?,
            Algorithm::Gradients => raw.by_gradients(dst)?,
        }
    }
    Ok(())
}

/// Sensor value.
trait Raw: Element {
    /// Wide enough for the sum of four values.
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

    /// SIMD version of [`interpolate`]; returns the number of pixels processed.
    fn interpolate(
        _edge_aware: bool,
        _rows: [&[Self]; 3],
        _site: &[u8],
        _own: &mut [Self],
        _green: &mut [Self],
        _other: &mut [Self],
    ) -> usize {
        0
    }

    fn interleave(planes: [&[Self]; 3], out: &mut [Self]) {
        interleave(planes, out);
    }

    /// SIMD version of [`brightness`]; returns the number of pixels processed.
    fn brightness(
        _rows: [&[Self]; 3],
        _site: &[u8],
        _weights: [u32; 2],
        _out: &mut [Self],
    ) -> usize {
        0
    }
}

macro_rules! raw {
    ($($type:ty: $sum:ty, {$($more:item)*};)*) => {
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
            $($more)*
        })*
    };
}
raw! {
    u8: u16, {
        #[cfg(target_arch = "x86_64")]
        fn interpolate(
            edge_aware: bool,
            rows: [&[u8]; 3],
            site: &[u8],
            own: &mut [u8],
            green: &mut [u8],
            other: &mut [u8],
        ) -> usize {
            match (Isa::best(), edge_aware) {
                // SAFETY: `Isa::Avx2` only exists where AVX2 was detected.
                (Isa::Avx2, true) => unsafe {
                    avx2::interpolate::<true>(rows, site, own, green, other)
                },
                // SAFETY: as above.
                (Isa::Avx2, false) => unsafe {
                    avx2::interpolate::<false>(rows, site, own, green, other)
                },
                _ => 0,
            }
        }

        fn interleave(planes: [&[u8]; 3], out: &mut [u8]) {
            interleave_bytes(Isa::best(), planes, out);
        }

        #[cfg(target_arch = "x86_64")]
        fn brightness(
            rows: [&[u8]; 3],
            site: &[u8],
            weights: [u32; 2],
            out: &mut [u8],
        ) -> usize {
            match Isa::best() {
                // SAFETY: `Isa::Avx2` only exists where AVX2 was detected.
                Isa::Avx2 => unsafe { avx2::brightness(rows, site, weights, out) },
                _ => 0,
            }
        }
    };
    u16: u32, {};
}

struct RawImage<'a, T> {
    src: &'a [T],
    height: usize,
    width: usize,
    blue: [usize; 2],
}

/// Color pattern of a row.
#[derive(Clone, Copy)]
struct Row {
    /// Whether the row has blue pixels rather than red ones.
    is_blue: bool,
    /// The first column that is not green.
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

    /// Masks of the red or blue sites among `n` columns from `from` on, for both row parities.
    fn sites(&self, from: usize, n: usize) -> Result<[Vec<u8>; 2]> {
        let made = |first: usize| -> Result<Vec<u8>> {
            let mut made = zeroed::<u8>(n)?;
            let sites = made.iter_mut().enumerate();
            sites.for_each(|(i, site)| *site = u8::from((from + i) % 2 == first));
            Ok(made)
        };
        Ok([made(0)?, made(1)?])
    }

    /// Edge pixels are copied from their inner neighbors; images without inner pixels are black.
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
            // Separate functions with slice arguments, so that the compiler knows that the rows
            // don't alias.
            let done = T::interpolate(edge_aware, rows, site, own, green, other);
            let rest = rows.map(|row| &row[done..]);
            let site = &site[done..];
            let (own_rest, green_rest) = (&mut own[done..], &mut green[done..]);
            let other_rest = &mut other[done..];
            vectorized!(match edge_aware {
                true => interpolate::<T, true>(rest, site, own_rest, green_rest, other_rest),
                false => interpolate::<T, false>(rest, site, own_rest, green_rest, other_rest),
            });
            let (red, blue) = if kind.is_blue { (other, own) } else { (own, other) };
            let row = &mut dst[3 * y * width..][..3 * width];
            let inner = &mut row[3..3 * (width - 1)];
            T::interleave([red, green, blue], inner);
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
            let weights = if kind.is_blue { [BLUE, RED] } else { [RED, BLUE] };
            let (site, inner) = (&sites[kind.first], &mut row[1..width - 1]);
            let done = T::brightness(rows, site, weights, inner);
            brightness(rows.map(|row| &row[done..]), &site[done..], weights, &mut inner[done..]);
            repeat_ends(row, 1);
        }
        repeat_rows(dst, width);
        Ok(())
    }
}

/// Luma weights (ITU-R BT.601), scaled by 2^14.
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

/// Interpolates the inner pixels of a row: the color of the row's own sites, green, and the third
/// color.
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

/// Luma of the inner pixels of a row, given the weights of the color of the row's own sites and of
/// the third color.
fn brightness<T: Raw>(
    [above, row, below]: [&[T]; 3],
    site: &[u8],
    [own, other]: [u32; 2],
    out: &mut [T],
) {
    let n = out.len();
    let (up_left, up, up_right) = (&above[..n], &above[1..n + 1], &above[2..n + 2]);
    let (left, here, right) = (&row[..n], &row[1..n + 1], &row[2..n + 2]);
    let (down_left, down, down_right) = (&below[..n], &below[1..n + 1], &below[2..n + 2]);
    let site = &site[..n];
    vectorized!(copying own, other; {
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
/// gradients", 1999, as implemented in OpenCV: the mean over the directions with small gradients.
mod gradients {
    use super::*;

    /// Pixels needed beyond the edges.
    pub const REACH: usize = 2;

    /// Gradients around each pixel of a row, and half the sum of its four neighbors. Includes one
    /// pixel before the first and one after the last.
    pub struct Changes {
        n: usize,
        all: Vec<i16>,
    }

    impl Changes {
        pub fn new(width: usize) -> Result<Changes> {
            let n = width + 2;
            Ok(Changes { n, all: zeroed(7 * n)? })
        }

        pub fn part(&self, kind: usize, from: usize, n: usize) -> &[i16] {
            &self.all[kind * self.n + from..][..n]
        }

        /// Computed from three rows, padded with `REACH` pixels at both ends.
        pub fn fill(&mut self, [above, row, below]: [&[i16]; 3]) {
            #[cfg(target_arch = "x86_64")]
            if Isa::best() == Isa::Avx2 && self.n >= avx2::LANES {
                // SAFETY: `Isa::Avx2` only exists where AVX2 was detected.
                unsafe { avx2::changes(self.n, &mut self.all, [above, row, below]) };
                return;
            }
            fill(self.n, &mut self.all, above, row, below);
        }
    }

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

    /// Inputs for one row.
    pub struct Row<'a> {
        /// Gradients of the row above, this row and the row below.
        pub changes: [&'a Changes; 3],
        /// Five rows of pixel values.
        pub values: [&'a [i16]; 5],
        pub site: &'a [u8],
        /// 1/14 for each pixel, as rounded by OpenCV.
        pub seventh: &'a [f32],
    }

    /// 1/14, with OpenCV's rounding: fewer digits in its scalar code, which handles the pixels
    /// outside of groups of eight. The groups start at the first pixel that is not green.
    pub fn sevenths(width: usize, first: usize) -> Result<Vec<f32>> {
        let grouped = (width + 4).saturating_sub(first + 4) / 8 * 8;
        let mut made = filled(0.071_428_6, width)?;
        if let Some(groups) = made.get_mut(first..first + grouped) {
            groups.fill(0.5 / 7.0);
        }
        Ok(made)
    }

    /// Interpolates a row: the color of its own sites, green, and the third color.
    pub fn mix(row: &Row<'_>, own: &mut [u8], green: &mut [u8], other: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if Isa::best() == Isa::Avx2 && own.len() >= avx2::LANES {
            // SAFETY: `Isa::Avx2` only exists where AVX2 was detected.
            unsafe { avx2::mix(row, own, green, other) };
            return;
        }
        mix_one_by_one(row, own, green, other);
    }

    pub fn mix_one_by_one(row: &Row<'_>, own: &mut [u8], green: &mut [u8], other: &mut [u8]) {
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
            // SAFETY: all slices were cut above to `n` elements, `n + 2` for gradients and `n + 4`
            // for values.
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
                // For each direction with a small gradient, add twice the values of the pixel's own
                // color, of the adjacent color and of the third color.
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
                    // The value is between 0 and 255, so the cast is defined.
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

/// AVX2 versions.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::GREEN;
    use super::gradients::{REACH, Row};

    /// Bytes per vector.
    const BYTES: usize = 32;
    /// 16-bit lanes per vector.
    pub const LANES: usize = 16;

    #[target_feature(enable = "avx2")]
    pub fn interpolate<const EDGE_AWARE: bool>(
        [above, row, below]: [&[u8]; 3],
        site: &[u8],
        own: &mut [u8],
        green: &mut [u8],
        other: &mut [u8],
    ) -> usize {
        let n = own.len().min(green.len()).min(other.len()).min(site.len());
        let n = n.min(above.len().min(row.len()).min(below.len()).saturating_sub(2));
        let zero = _mm256_setzero_si256();
        let two = _mm256_set1_epi16(2);
        // Rounded mean of four bytes.
        let mean = |a, b, c, d| {
            let sum = |a: __m256i, b: __m256i, c: __m256i, d: __m256i| {
                let sum = _mm256_add_epi16(_mm256_add_epi16(a, b), _mm256_add_epi16(c, d));
                _mm256_srli_epi16(_mm256_add_epi16(sum, two), 2)
            };
            let low = |x| _mm256_unpacklo_epi8(x, zero);
            let high = |x| _mm256_unpackhi_epi8(x, zero);
            _mm256_packus_epi16(
                sum(low(a), low(b), low(c), low(d)),
                sum(high(a), high(b), high(c), high(d)),
            )
        };
        let far = |a, b| _mm256_or_si256(_mm256_subs_epu8(a, b), _mm256_subs_epu8(b, a));
        if n < BYTES {
            return 0;
        }
        for i in starts::<BYTES>(n) {
            // SAFETY: there are at least 32 bytes from `i` on, and two more in the rows.
            unsafe {
                let load =
                    |from: &[u8], k: usize| _mm256_loadu_si256(from.as_ptr().add(i + k).cast());
                let (l, s, r) = (load(row, 0), load(row, 1), load(row, 2));
                let (u, d) = (load(above, 1), load(below, 1));
                let (across, along) = (_mm256_avg_epu8(l, r), _mm256_avg_epu8(u, d));
                let around = if EDGE_AWARE {
                    let (wide, tall) = (far(l, r), far(u, d));
                    // Where the horizontal gradient is not larger.
                    let flat = _mm256_cmpeq_epi8(_mm256_max_epu8(wide, tall), tall);
                    _mm256_blendv_epi8(along, across, flat)
                } else {
                    mean(l, r, u, d)
                };
                let corners = mean(load(above, 0), load(above, 2), load(below, 0), load(below, 2));
                let is_site = _mm256_cmpgt_epi8(load(site, 0), zero);
                let store =
                    |to: &mut [u8], x| _mm256_storeu_si256(to.as_mut_ptr().add(i).cast(), x);
                store(own, _mm256_blendv_epi8(across, s, is_site));
                store(green, _mm256_blendv_epi8(s, around, is_site));
                store(other, _mm256_blendv_epi8(along, corners, is_site));
            }
        }
        n
    }

    #[target_feature(enable = "avx2")]
    pub fn brightness(
        [above, row, below]: [&[u8]; 3],
        site: &[u8],
        weights: [u32; 2],
        out: &mut [u8],
    ) -> usize {
        let n = out.len().min(site.len());
        let n = n.min(above.len().min(row.len()).min(below.len()).saturating_sub(2));
        let weight = |weight: u32| _mm256_set1_epi16(weight as i16);
        let (own, other, green) = (weight(weights[0]), weight(weights[1]), weight(GREEN));
        let zero = _mm256_setzero_si256();
        if n < LANES {
            return 0;
        }
        for i in starts::<LANES>(n) {
            // SAFETY: there are at least 16 bytes from `i` on, and two more in the rows.
            unsafe {
                let load = |from: &[u8], k: usize| {
                    _mm256_cvtepu8_epi16(_mm_loadu_si128(from.as_ptr().add(i + k).cast()))
                };
                let is_site = _mm256_cmpgt_epi16(load(site, 0), zero);
                let pick = |a, b| _mm256_blendv_epi8(b, a, is_site);
                let beside = _mm256_add_epi16(load(row, 0), load(row, 2));
                let over = _mm256_add_epi16(load(above, 1), load(below, 1));
                let corners = _mm256_add_epi16(
                    _mm256_add_epi16(load(above, 0), load(above, 2)),
                    _mm256_add_epi16(load(below, 0), load(below, 2)),
                );
                // Sums of four values each, and their weights.
                let a = (pick(corners, _mm256_slli_epi16::<1>(beside)), pick(other, own));
                let around = _mm256_add_epi16(beside, over);
                let b = (pick(around, _mm256_slli_epi16::<1>(over)), pick(green, other));
                let c = (_mm256_slli_epi16::<2>(load(row, 1)), pick(own, green));
                let rounded = |ab, ab_weights, c, c_weights| {
                    let sum = _mm256_add_epi32(
                        _mm256_madd_epi16(ab, ab_weights),
                        _mm256_madd_epi16(c, c_weights),
                    );
                    _mm256_srli_epi32::<16>(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 15)))
                };
                let low = rounded(
                    _mm256_unpacklo_epi16(a.0, b.0),
                    _mm256_unpacklo_epi16(a.1, b.1),
                    _mm256_unpacklo_epi16(c.0, zero),
                    _mm256_unpacklo_epi16(c.1, zero),
                );
                let high = rounded(
                    _mm256_unpackhi_epi16(a.0, b.0),
                    _mm256_unpackhi_epi16(a.1, b.1),
                    _mm256_unpackhi_epi16(c.0, zero),
                    _mm256_unpackhi_epi16(c.1, zero),
                );
                let words = _mm256_packus_epi32(low, high);
                let bytes = _mm_packus_epi16(
                    _mm256_castsi256_si128(words),
                    _mm256_extracti128_si256::<1>(words),
                );
                _mm_storeu_si128(out.as_mut_ptr().add(i).cast(), bytes);
            }
        }
        n
    }

    /// Start indices of vectors that cover `n` elements; the last one may overlap the one before.
    fn starts<const LANES: usize>(n: usize) -> impl Iterator<Item = usize> {
        (0..n.div_ceil(LANES)).map(move |k| (k * LANES).min(n - LANES))
    }

    /// `n` must be at least `LANES`.
    #[target_feature(enable = "avx2")]
    pub fn changes(n: usize, all: &mut [i16], [above, row, below]: [&[i16]; 3]) {
        assert!(n >= LANES && all.len() >= 7 * n);
        assert!([above, row, below].iter().all(|row| row.len() >= n + 2));
        let far = |a, b| _mm256_abs_epi16(_mm256_sub_epi16(a, b));
        let twice = |x| _mm256_add_epi16(x, x);
        for i in starts::<LANES>(n) {
            // SAFETY: the lengths are asserted above.
            unsafe {
                let load =
                    |from: &[i16], k: usize| _mm256_loadu_si256(from.as_ptr().add(i + k).cast());
                let (a, b, c) = (load(above, 0), load(above, 1), load(above, 2));
                let (d, e) = (load(row, 0), load(row, 2));
                let (f, g, h) = (load(below, 0), load(below, 1), load(below, 2));
                let sum3 = |x, y, z| _mm256_add_epi16(_mm256_add_epi16(x, y), z);
                let (rising, falling) = (twice(far(c, f)), twice(far(a, h)));
                let made = [
                    sum3(far(a, f), far(c, h), twice(far(b, g))),
                    sum3(far(a, c), far(f, h), twice(far(d, e))),
                    rising,
                    falling,
                    sum3(rising, far(b, d), far(g, e)),
                    sum3(falling, far(b, e), far(g, d)),
                    _mm256_srai_epi16(_mm256_add_epi16(sum3(b, d, e), g), 1),
                ];
                for (kind, made) in made.into_iter().enumerate() {
                    _mm256_storeu_si256(all.as_mut_ptr().add(kind * n + i).cast(), made);
                }
            }
        }
    }

    #[target_feature(enable = "avx2")]
    pub fn mix(row: &Row<'_>, own: &mut [u8], green: &mut [u8], other: &mut [u8]) {
        let n = own.len();
        let (site, seventh) = (&row.site[..n], &row.seventh[..n]);
        let (green, other) = (&mut green[..n], &mut other[..n]);
        let v = row.values.map(|values| &values[..n + 2 * REACH]);
        let part = |r: usize, kind: usize| row.changes[r].part(kind, 0, n + 2);
        let three = |kind: usize| [part(0, kind), part(1, kind), part(2, kind)];
        let (down, across) = (three(0), part(1, 1));
        let (rising, falling) = (three(2), three(3));
        let (rise, fall, sum) = (three(4), three(5), three(6));
        let add = |a, b| _mm256_add_epi16(a, b);
        let twice = |x| _mm256_add_epi16(x, x);
        for i in starts::<LANES>(n) {
            // SAFETY: all slices were cut above to `n` elements, `n + 2` for gradients and `n + 4`
            // for values; each vector starts at least `LANES` elements before `n`.
            unsafe {
                let at = |from: &[i16], k: usize| -> __m256i {
                    _mm256_loadu_si256(from.as_ptr().add(i + k).cast())
                };
                let sites = _mm256_cvtepu8_epi16(_mm_loadu_si128(site.as_ptr().add(i).cast()));
                let is_site = _mm256_cmpgt_epi16(sites, _mm256_setzero_si256());
                let choose = |a, b| _mm256_blendv_epi8(b, a, is_site);
                let s = at(v[2], 2);
                let four = |r: &[&[i16]; 3], y: usize, x: usize| {
                    add(
                        add(at(r[y], x), at(r[y], x + 1)),
                        add(at(r[y + 1], x), at(r[y + 1], x + 1)),
                    )
                };
                let changes = [
                    add(at(down[0], 1), at(down[1], 1)),
                    add(at(down[1], 1), at(down[2], 1)),
                    add(at(across, 0), at(across, 1)),
                    add(at(across, 1), at(across, 2)),
                    choose(add(at(rise[0], 2), at(rise[1], 1)), four(&rising, 0, 1)),
                    choose(add(at(rise[1], 1), at(rise[2], 0)), four(&rising, 1, 0)),
                    choose(add(at(fall[0], 0), at(fall[1], 1)), four(&falling, 0, 0)),
                    choose(add(at(fall[1], 1), at(fall[2], 2)), four(&falling, 1, 1)),
                ];
                let (mut least, mut most) = (changes[0], changes[0]);
                for change in changes {
                    least = _mm256_min_epi16(least, change);
                    most = _mm256_max_epi16(most, change);
                }
                let half = _mm256_max_epi16(_mm256_srai_epi16(most, 1), _mm256_set1_epi16(1));
                let limit = add(least, half);
                let x = |r: usize, k: usize| at(v[r], k);
                let beside_of = |r: usize, k: usize| twice(x(r, k));
                let terms = [
                    (
                        add(x(0, 2), s),
                        choose(beside_of(1, 2), add(x(0, 1), x(0, 3))),
                        choose(add(x(1, 1), x(1, 3)), beside_of(1, 2)),
                    ),
                    (
                        add(x(4, 2), s),
                        choose(beside_of(3, 2), add(x(4, 1), x(4, 3))),
                        choose(add(x(3, 1), x(3, 3)), beside_of(3, 2)),
                    ),
                    (
                        add(x(2, 0), s),
                        beside_of(2, 1),
                        choose(add(x(1, 1), x(3, 1)), add(x(1, 0), x(3, 0))),
                    ),
                    (
                        add(x(2, 4), s),
                        beside_of(2, 3),
                        choose(add(x(1, 3), x(3, 3)), add(x(1, 4), x(3, 4))),
                    ),
                    (
                        choose(add(x(0, 4), s), beside_of(1, 3)),
                        choose(at(sum[0], 2), add(x(0, 3), x(2, 3))),
                        choose(beside_of(1, 3), add(x(1, 2), x(1, 4))),
                    ),
                    (
                        choose(add(x(4, 0), s), beside_of(3, 1)),
                        choose(at(sum[2], 0), add(x(4, 1), x(2, 1))),
                        choose(beside_of(3, 1), add(x(3, 2), x(3, 0))),
                    ),
                    (
                        choose(add(x(0, 0), s), beside_of(1, 1)),
                        choose(at(sum[0], 0), add(x(0, 1), x(2, 1))),
                        choose(beside_of(1, 1), add(x(1, 0), x(1, 2))),
                    ),
                    (
                        choose(add(x(4, 4), s), beside_of(3, 3)),
                        choose(at(sum[2], 2), add(x(4, 3), x(2, 3))),
                        choose(beside_of(3, 3), add(x(3, 4), x(3, 2))),
                    ),
                ];
                let zero = _mm256_setzero_si256();
                let (mut same, mut beside, mut third, mut count) = (zero, zero, zero, zero);
                for (change, (a, b, c)) in changes.into_iter().zip(terms) {
                    let taken = _mm256_cmpgt_epi16(limit, change);
                    same = add(same, _mm256_and_si256(a, taken));
                    beside = add(beside, _mm256_and_si256(b, taken));
                    third = add(third, _mm256_and_si256(c, taken));
                    count = _mm256_sub_epi16(count, taken);
                }
                // Sign-extends to 32 bits: the lower and upper four lanes of each half.
                let low = |x| _mm256_srai_epi32(_mm256_unpacklo_epi16(x, x), 16);
                let high = |x| _mm256_srai_epi32(_mm256_unpackhi_epi16(x, x), 16);
                let (first, second) = (
                    _mm256_loadu_ps(seventh.as_ptr().add(i)),
                    _mm256_loadu_ps(seventh.as_ptr().add(i + 8)),
                );
                let scale = |count, seventh| {
                    let is_seven = _mm256_cmpeq_epi32(count, _mm256_set1_epi32(7));
                    let scale = _mm256_div_ps(_mm256_set1_ps(0.5), _mm256_cvtepi32_ps(count));
                    _mm256_blendv_ps(scale, seventh, _mm256_castsi256_ps(is_seven))
                };
                let scales = [
                    scale(low(count), _mm256_permute2f128_ps(first, second, 0x20)),
                    scale(high(count), _mm256_permute2f128_ps(first, second, 0x31)),
                ];
                let mixed = |sum| {
                    let more = _mm256_sub_epi16(sum, same);
                    let times =
                        |x, scale| _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(x), scale));
                    let more = _mm256_packs_epi32(
                        times(low(more), scales[0]),
                        times(high(more), scales[1]),
                    );
                    let mixed = add(s, more);
                    _mm256_max_epi16(_mm256_min_epi16(mixed, _mm256_set1_epi16(255)), zero)
                };
                let (beside, third) = (mixed(beside), mixed(third));
                let store = |to: &mut [u8], x| {
                    let bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(x, x), 0b1000);
                    _mm_storeu_si128(to.as_mut_ptr().add(i).cast(), _mm256_castsi256_si128(bytes));
                };
                store(own, choose(s, beside));
                store(green, choose(beside, s));
                store(other, third);
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
        // Ring buffers: five rows of values and three rows of gradients. Row `y` of the image is
        // row `y + 2` of the values, stored at `(y + 2) % 5`.
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
            gradients::mix(&row, own, green, other);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn noise<T: Raw>(count: usize) -> Vec<T> {
        let word = |i: u64| (i.wrapping_mul(6_364_136_223_846_793_005) >> 40) as u32 & 255;
        (0..count as u64).map(|i| T::of_word(word(i))).collect()
    }

    #[test]
    fn simd_matches_scalar() {
        for (height, width) in [(3, 3), (9, 34), (12, 101)] {
            for blue in [[0, 0], [0, 1], [1, 0], [1, 1]] {
                let (bytes, words) = (noise::<u8>(height * width), noise::<u16>(height * width));
                let small = RawImage { src: &bytes, height, width, blue };
                let wide = RawImage { src: &words, height, width, blue };
                for edge_aware in [false, true] {
                    let mut made = vec![0; 3 * bytes.len()];
                    let mut expected = vec![0; made.len()];
                    small.colors(edge_aware, &mut made).unwrap();
                    wide.colors(edge_aware, &mut expected).unwrap();
                    assert!(made.iter().zip(&expected).all(|(&a, &b)| u16::from(a) == b));
                }
                let (mut made, mut expected) = (vec![0; bytes.len()], vec![0; bytes.len()]);
                small.gray(&mut made).unwrap();
                wide.gray(&mut expected).unwrap();
                assert!(made.iter().zip(&expected).all(|(&a, &b)| u16::from(a) == b));
            }
        }
    }

    #[test]
    fn simd_gradients_match_scalar() {
        let width = 37;
        let padded = width + 2 * gradients::REACH;
        let values: Vec<i16> = noise::<u8>(5 * padded).into_iter().map(i16::from).collect();
        let rows: [&[i16]; 5] = std::array::from_fn(|k| &values[k * padded..][..padded]);
        let changes: [gradients::Changes; 3] = std::array::from_fn(|k| {
            let mut changes = gradients::Changes::new(width).unwrap();
            changes.fill([rows[k], rows[k + 1], rows[k + 2]]);
            changes
        });
        for first in [0, 1] {
            let site: Vec<u8> = (0..width).map(|x| u8::from(x % 2 == first)).collect();
            let row = gradients::Row {
                changes: [&changes[0], &changes[1], &changes[2]],
                values: rows,
                site: &site,
                seventh: &gradients::sevenths(width, first).unwrap(),
            };
            let run = |mix: fn(&gradients::Row<'_>, &mut [u8], &mut [u8], &mut [u8])| {
                let [mut own, mut green, mut other] = [(); 3].map(|()| vec![0; width]);
                mix(&row, &mut own, &mut green, &mut other);
                [own, green, other]
            };
            assert_eq!(run(gradients::mix), run(gradients::mix_one_by_one));
        }
    }
}
