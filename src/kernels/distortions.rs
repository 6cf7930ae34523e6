//! Geometric distortions: sphere, water, jitter.

use super::warp::places::{Border, Picture, Places, Sampling, sample, with_number};
use super::{
    Arg, Entry, Family, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one,
};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::numeric::philox::{GROUP, Stream};
use crate::value::{DType, Desc, Problem, Sample, filled, zeroed};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[] };

const TABLE: &[Entry] =
    &[Entry::new::<Jitter>("jitter"), Entry::new::<Sphere>("sphere"), Entry::new::<Water>("water")];

/// `INTERP_NN` or `INTERP_LINEAR`.
pub struct NearestOrLinear(Sampling);

impl FromArg for NearestOrLinear {
    fn from_constant(arg: &Arg) -> std::result::Result<NearestOrLinear, Problem> {
        match arg {
            Arg::Int(0) => Ok(NearestOrLinear(Sampling::Nearest)),
            Arg::Int(1) => Ok(NearestOrLinear(Sampling::Linear)),
            other => {
                let choices = "INTERP_NN, INTERP_LINEAR";
                Err(Argument::OneOf { choices, given: other.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<NearestOrLinear, Problem> {
        Err(Argument::SameForAll.into())
    }
}

/// The output has the description of the input, which must be numeric.
fn moved(input: &Desc) -> Result<Desc> {
    with_number!(
        input.dtype,
        |_T| Ok(input.clone()),
        Err(unfit(0, Input::NotNumbers { dtype: input.dtype.name() }))
    )
}

/// Height, width and channels.
fn sides(desc: &Desc) -> [usize; 3] {
    let side = |axis: usize| desc.shape.get(axis).copied().unwrap_or(1);
    [side(0), side(1), side(2)]
}

/// Copies the image if `mask` is false, otherwise resamples it at the coordinates that `places`
/// gives.
fn displace(
    mask: bool,
    sampling: Sampling,
    fill: f64,
    inputs: &[Sample],
    out: &mut Output<'_>,
    places: &dyn Places,
) -> Result<()> {
    let image = &inputs[0];
    if !mask {
        out.bytes().copy_from_slice(image.elements_as_bytes());
        return Ok(());
    }
    let [height, width, channels] = sides(&image.desc);
    if image.desc.elements() == 0 {
        return Ok(());
    }
    with_number!(
        image.desc.dtype,
        |T| {
            // DALI truncates the fill value for integers.
            let fill = if is_float(image.desc.dtype) { fill } else { fill.trunc() };
            let fill: Vec<T> = filled(fill.convert(), channels)?;
            let picture = Picture {
                pixels: image.elements::<T>(),
                width,
                height,
                channels,
                border: Border::Constant,
                fill: &fill,
            };
            out.write_in_order(|mut out| {
                sample(&picture, sampling, [height, width], &mut out, places);
            });
        },
        ()
    );
    Ok(())
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// Converts a coordinate with pixel centers at 0.5 to what the sampler expects: centers at integers
/// for linear interpolation, the pixel index for nearest.
#[inline(always)]
fn placed(sampling: Sampling, place: f32) -> f32 {
    if sampling == Sampling::Linear { place - 0.5 } else { place.floor() }
}

pub struct Sphere;

args! {
    pub struct SphereArgs { fill_value: f64, interp_type: NearestOrLinear, mask: bool }
}

impl Kernel for Sphere {
    type Args = SphereArgs;
    type Plan = SphereArgs;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: SphereArgs, inputs: &[&Desc]) -> Result<(SphereArgs, Outputs)> {
        Ok((args, one(moved(inputs[0])?)))
    }

    fn run(args: &SphereArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let [height, width, _] = sides(&inputs[0].desc);
        let sampling = args.interp_type.0;
        let places = Bulge {
            middle: [width as f32 / 2.0, height as f32 / 2.0],
            // Integer division, as in DALI.
            radius: (width.max(height) / 2) as f32,
            sampling,
        };
        displace(args.mask, sampling, args.fill_value, inputs, &mut outputs[0], &places)
    }
}

/// Pixels are sampled closer to the center; magnification is highest there.
struct Bulge {
    middle: [f32; 2],
    radius: f32,
    sampling: Sampling,
}

impl Places for Bulge {
    fn of(&self, y: usize, first: usize, xs: &mut [f32], ys: &mut [f32]) {
        let Bulge { middle: [middle_x, middle_y], radius, sampling } = *self;
        let dy = y as u32 as f32 + 0.5 - middle_y;
        vectorized!(copying first, dy, middle_x, middle_y, radius, sampling; {
            for (i, (x, y)) in xs.iter_mut().zip(ys).enumerate() {
                let dx = (first + i) as u32 as f32 + 0.5 - middle_x;
                let part = (dx * dx + dy * dy).sqrt() / radius;
                *x = placed(sampling, middle_x + part * dx);
                *y = placed(sampling, middle_y + part * dy);
            }
        });
    }
}

pub struct Water;

args! {
    pub struct WaterArgs {
        ampl_x: f64,
        ampl_y: f64,
        fill_value: f64,
        freq_x: f64,
        freq_y: f64,
        interp_type: NearestOrLinear,
        mask: bool,
        phase_x: f64,
        phase_y: f64,
    }
}

impl Kernel for Water {
    type Args = WaterArgs;
    type Plan = WaterArgs;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: WaterArgs, inputs: &[&Desc]) -> Result<(WaterArgs, Outputs)> {
        for (name, given) in [
            ("ampl_x", args.ampl_x),
            ("ampl_y", args.ampl_y),
            ("freq_x", args.freq_x),
            ("freq_y", args.freq_y),
            ("phase_x", args.phase_x),
            ("phase_y", args.phase_y),
        ] {
            if !given.is_finite() {
                return Err(argument(name, Argument::NotFinite { given }));
            }
        }
        Ok((args, one(moved(inputs[0])?)))
    }

    fn run(args: &WaterArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let [height, width, _] = sides(&inputs[0].desc);
        let sampling = args.interp_type.0;
        // Single precision as in DALI, except for sine and cosine.
        let angle =
            |at: usize, freq: f64, phase: f64| f64::from(freq as f32 * at as f32 + phase as f32);
        let mut down = zeroed::<f32>(width)?;
        for (x, down) in down.iter_mut().enumerate() {
            *down = args.ampl_y as f32 * angle(x, args.freq_y, args.phase_y).cos() as f32;
        }
        let mut across = zeroed::<f32>(height)?;
        for (y, across) in across.iter_mut().enumerate() {
            *across = args.ampl_x as f32 * angle(y, args.freq_x, args.phase_x).sin() as f32;
        }
        let places = Waves { across: &across, down: &down, sampling };
        displace(args.mask, sampling, args.fill_value, inputs, &mut outputs[0], &places)
    }
}

/// Horizontal shift of each row, vertical shift of each column.
struct Waves<'a> {
    across: &'a [f32],
    down: &'a [f32],
    sampling: Sampling,
}

impl Places for Waves<'_> {
    fn of(&self, y: usize, first: usize, xs: &mut [f32], ys: &mut [f32]) {
        let (across, top, sampling) = (self.across[y], y as u32 as f32, self.sampling);
        let down = &self.down[first..first + xs.len()];
        vectorized!(copying first, across, top, sampling; {
            for (i, ((x, y), down)) in xs.iter_mut().zip(ys).zip(down).enumerate() {
                *x = placed(sampling, (first + i) as u32 as f32 + across);
                *y = placed(sampling, top + down);
            }
        });
    }
}

pub struct Jitter;

args! {
    pub struct JitterArgs { mask: bool, n_degree: i64, rng: Stream }
}

/// Larger than the side of any image.
const LARGEST_DEGREE: i64 = 1 << 30;

impl Kernel for Jitter {
    type Args = JitterArgs;
    type Plan = JitterArgs;
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: JitterArgs, inputs: &[&Desc]) -> Result<(JitterArgs, Outputs)> {
        if !(0..=LARGEST_DEGREE).contains(&args.n_degree) {
            let (high, given) = (LARGEST_DEGREE as f64, args.n_degree as f64);
            return Err(argument("nDegree", Argument::Between { low: 0.0, high, given }));
        }
        Ok((args, one(moved(inputs[0])?)))
    }

    fn run(args: &JitterArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (image, out) = (&inputs[0], &mut outputs[0]);
        let [height, width, channels] = sides(&image.desc);
        if !args.mask || args.n_degree < 2 || image.desc.elements() == 0 {
            out.bytes().copy_from_slice(image.elements_as_bytes());
            return Ok(());
        }
        let reach = args.n_degree / 2;
        let pixel = channels * image.desc.dtype.size();
        let src = image.elements_as_bytes();
        // One 32-bit word per offset, so results do not depend on the number of threads.
        let bound = 2 * reach as u64 + 1;
        let offset = |word: u32| ((u64::from(word) * bound) >> 32) as i64 - reach;
        let mut words = [0; GROUP];
        for (index, to) in out.bytes().chunks_exact_mut(pixel).enumerate() {
            let pair = index % (GROUP / 2);
            if pair == 0 {
                words = args.rng.group((index / (GROUP / 2)) as u64, GROUP);
            }
            let (y, x) = ((index / width) as i64, (index % width) as i64);
            let x = (x + offset(words[2 * pair])).clamp(0, width as i64 - 1) as usize;
            let y = (y + offset(words[2 * pair + 1])).clamp(0, height as i64 - 1) as usize;
            let at = (y * width + x) * pixel;
            to.copy_from_slice(&src[at..at + pixel]);
        }
        Ok(())
    }
}
