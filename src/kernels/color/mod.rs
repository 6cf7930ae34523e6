//! Colors: brightness, contrast, hue and saturation, which are linear in a pixel's channels; color
//! space conversion; histogram equalisation; JPEG artifacts.

mod clahe;
mod distort;
mod equalize;
mod lab;
mod linear;
mod mix;
mod spaces;

use super::{Entry, Family, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::value::{DType, Desc, Sample};

use mix::Mix;

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Color::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<BrightnessContrast>("brightness_contrast"),
    Entry::new::<clahe::Clahe>("clahe"),
    Entry::new::<spaces::ColorSpaceConversion>("color_space_conversion"),
    Entry::new::<ColorTwist>("color_twist"),
    Entry::new::<equalize::Equalize>("equalize"),
    Entry::new::<distort::JpegCompressionDistortion>("jpeg_compression_distortion"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Color {
            TooManyPixels { pixels: usize },
            SpaceChannels { space: String, channels: usize, given: usize },
            NotAnImage,
            LargeJpeg { largest: usize, height: usize, width: usize },
        }
    }
}

/// The value of full brightness: the largest number of an integer type, one for floats.
fn full(dtype: DType) -> f64 {
    match dtype {
        DType::I8 => f64::from(i8::MAX),
        DType::I16 => f64::from(i16::MAX),
        DType::I32 => f64::from(i32::MAX),
        DType::I64 => i64::MAX as f64,
        DType::U8 => f64::from(u8::MAX),
        DType::U16 => f64::from(u16::MAX),
        DType::U32 => f64::from(u32::MAX),
        DType::U64 => u64::MAX as f64,
        _ => 1.0,
    }
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// The description of the result, with the shape of the input; checks that both types are numeric.
fn recolored(input: &Desc, dtype: DType) -> Result<Desc> {
    if input.dtype == DType::Bool || input.dtype.storage() != input.dtype {
        return Err(unfit(0, Input::NotNumbers { dtype: input.dtype.name() }));
    }
    if dtype == DType::Bool || dtype.storage() != dtype {
        return Err(argument("dtype", Argument::NotNumbers { dtype: dtype.name() }));
    }
    Ok(Desc { dtype, ..input.clone() })
}

pub struct BrightnessContrast;

args! {
    pub struct BrightnessContrastArgs {
        brightness: f64,
        brightness_shift: f64,
        contrast: f64,
        contrast_center: Option<f64>,
        dtype: DType,
    }
}

impl Kernel for BrightnessContrast {
    type Args = BrightnessContrastArgs;
    type Plan = BrightnessContrastArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(
        args: BrightnessContrastArgs,
        inputs: &[&Desc],
    ) -> Result<(BrightnessContrastArgs, Outputs)> {
        let desc = recolored(inputs[0], args.dtype)?;
        Ok((args, one(desc)))
    }

    fn run(
        args: &BrightnessContrastArgs,
        inputs: &[Sample],
        outputs: &mut [Output<'_>],
    ) -> Result<()> {
        let out = &mut outputs[0];
        let dtype = inputs[0].desc.dtype;
        // Half of the input's range, as in DALI: 128, 16384, 0.5.
        let half = if is_float(dtype) { 0.5 } else { (full(dtype) * 0.5).ceil() };
        let center = args.contrast_center.unwrap_or(half);
        let gain = args.brightness * args.contrast;
        let bias = args.brightness_shift * full(args.dtype)
            + args.brightness * (center - args.contrast * center);
        linear::scale(&inputs[0], out, gain, bias);
        Ok(())
    }
}

pub struct ColorTwist;

args! {
    pub struct ColorTwistArgs {
        brightness: f64,
        contrast: f64,
        dtype: DType,
        hue: f64,
        saturation: f64,
        value: f64,
    }
}

impl Kernel for ColorTwist {
    type Args = ColorTwistArgs;
    type Plan = ColorTwistArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: ColorTwistArgs, inputs: &[&Desc]) -> Result<(ColorTwistArgs, Outputs)> {
        let desc = recolored(inputs[0], args.dtype)?;
        let desc = match desc.shape.last() {
            Some(1 | 3) => Ok(desc),
            channels => {
                let given = channels.copied().unwrap_or(0);
                Err(unfit(0, Input::Channels { wanted: "3 or 1", given }))
            }
        }?;
        Ok((args, one(desc)))
    }

    fn run(args: &ColorTwistArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let center = if is_float(inputs[0].desc.dtype) { 0.5 } else { 128.0 };
        let gain = args.brightness * args.contrast * args.value;
        let bias = args.brightness * (center - args.contrast * center);
        if inputs[0].desc.shape.last() == Some(&1) {
            // Gray has no hue to rotate.
            linear::scale(&inputs[0], out, gain, bias);
        } else {
            let matrix = twist(args.hue, args.saturation).map(|row| row.map(|x| gain * x));
            linear::mix(&inputs[0], out, &Mix { matrix, offset: [bias; 3] });
        }
        Ok(())
    }
}

type Matrix = [[f64; 3]; 3];

/// RGB to YIQ (luma and two color differences), with as many digits as DALI uses.
const TO_YIQ: Matrix = [[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]];

/// Rotates hues by `hue` degrees and scales the saturation, keeping the luma.
fn twist(hue: f64, saturation: f64) -> Matrix {
    let (sine, cosine) = hue.to_radians().sin_cos();
    let (sine, cosine) = (saturation * sine, saturation * cosine);
    let turn = [[1.0, 0.0, 0.0], [0.0, cosine, sine], [0.0, -sine, cosine]];
    product(&inverse(&TO_YIQ), &product(&turn, &TO_YIQ))
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let cell = |i: usize, j: usize| (0..3).map(|k| a[i][k] * b[k][j]).sum();
    std::array::from_fn(|i| std::array::from_fn(|j| cell(i, j)))
}

fn inverse(m: &Matrix) -> Matrix {
    // Cofactors; cyclic indices give the right signs.
    let minor = |i: usize, j: usize| {
        let [(a, b), (c, d)] = [i, j].map(|k| ((k + 1) % 3, (k + 2) % 3));
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * minor(0, j)).sum();
    std::array::from_fn(|i| std::array::from_fn(|j| minor(j, i) / determinant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_turns_change_nothing() {
        for hue in [0.0, 360.0, -720.0] {
            for (i, row) in twist(hue, 1.0).iter().enumerate() {
                for (j, &x) in row.iter().enumerate() {
                    assert!((x - f64::from(u8::from(i == j))).abs() < 1e-12, "{hue} {i} {j}: {x}");
                }
            }
        }
    }

    #[test]
    fn a_quarter_turn_matches_dali() {
        let row = twist(90.0, 1.0)[0];
        for (ours, seen) in row.iter().zip([0.1307, 0.2567, 0.6107]) {
            assert!((ours - seen).abs() < 1e-4, "{row:?}");
        }
    }
}
