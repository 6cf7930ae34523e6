//! Color space conversion.

use super::mix::{self, Mix};
use crate::kernels::color::problem::Color;
use crate::kernels::contract::problems::{Argument, Input, unfit};
use crate::kernels::numeric::isa::Isa;
use crate::kernels::{Arg, FromArg, Kernel, Output, Outputs, Result, args, one};
use crate::value::Problem;
use crate::value::{DType, Desc, Sample};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColorSpace {
    Rgb,
    Bgr,
    Gray,
    YCbCr,
}

impl ColorSpace {
    fn channels(self) -> usize {
        if self == ColorSpace::Gray { 1 } else { 3 }
    }
}

/// From the values of the API's `ImageType`.
impl FromArg for ColorSpace {
    fn from_constant(arg: &Arg) -> std::result::Result<ColorSpace, Problem> {
        match i64::from_constant(arg)? {
            0 => Ok(ColorSpace::Rgb),
            1 => Ok(ColorSpace::Bgr),
            2 => Ok(ColorSpace::Gray),
            3 => Ok(ColorSpace::YCbCr),
            other => {
                let choices = "RGB, BGR, GRAY, YCbCr";
                Err(Argument::OneOf { choices, given: other.to_string() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<ColorSpace, Problem> {
        Err(Argument::SameForAll.into())
    }
}

pub struct ColorSpaceConversion;

args! {
    pub struct ColorSpaceConversionArgs { image_type: ColorSpace, output_type: ColorSpace }
}

impl Kernel for ColorSpaceConversion {
    type Args = ColorSpaceConversionArgs;
    type Plan = ColorSpaceConversionArgs;

    fn plan(
        args: ColorSpaceConversionArgs,
        inputs: &[&Desc],
    ) -> Result<(ColorSpaceConversionArgs, Outputs)> {
        let mut desc = inputs[0].clone();
        if desc.dtype != DType::U8 {
            return Err(unfit(0, Input::Type { wanted: "uint8", dtype: desc.dtype.name() }));
        }
        let channels = args.image_type.channels();
        match desc.shape.last_mut() {
            Some(found) if *found == channels => *found = args.output_type.channels(),
            found => {
                let given = found.map_or(0, |found| *found);
                let space = format!("{:?}", args.image_type);
                return Err(unfit(0, Color::SpaceChannels { space, channels, given }));
            }
        }
        Ok((args, one(desc)))
    }

    fn run(
        args: &ColorSpaceConversionArgs,
        inputs: &[Sample],
        outputs: &mut [Output<'_>],
    ) -> Result<()> {
        let sizes = [args.image_type, args.output_type].map(ColorSpace::channels);
        let pixels = inputs[0].elements::<u8>();
        outputs[0].write_pixels(pixels, sizes, |pixels, out| args.convert(pixels, out));
        Ok(())
    }
}

impl ColorSpaceConversionArgs {
    /// Converts pixels, as many as there are of both.
    fn convert(&self, src: &[u8], dst: &mut [u8]) {
        use ColorSpace::{Bgr, Gray, Rgb, YCbCr};
        let isa = Isa::best();
        match (self.image_type, self.output_type) {
            (from, to) if from == to => dst.copy_from_slice(src),
            (Rgb, Bgr) | (Bgr, Rgb) => mix::swap(isa, src, dst),
            (Gray, YCbCr) => {
                let luma: [u8; 256] = std::array::from_fn(|gray| {
                    let luma = gray as f64 * (219.0 / 255.0) + 16.0;
                    (luma + 0.5) as u8
                });
                for (d, &s) in dst.as_chunks_mut::<3>().0.iter_mut().zip(src) {
                    *d = [luma[usize::from(s)], 128, 128];
                }
            }
            (Gray, _) => mix::repeat(isa, src, dst),
            (Rgb, Gray) => mix::bytes(isa, src, dst, &LUMA.to_floats()),
            (Bgr, Gray) => mix::bytes(isa, src, dst, &reversed(LUMA).to_floats()),
            (YCbCr, Gray) => {
                let gray = Mix { matrix: [[255.0 / 219.0, 0.0, 0.0]], offset: [-FROM_16] };
                mix::bytes(isa, src, dst, &gray.to_floats());
            }
            (Rgb, _) => mix::bytes(isa, src, dst, &TO_YCBCR.to_floats()),
            (Bgr, _) => mix::bytes(isa, src, dst, &reversed(TO_YCBCR).to_floats()),
            (YCbCr, Rgb) => mix::bytes(isa, src, dst, &FROM_YCBCR.to_floats()),
            (YCbCr, _) => {
                let Mix { matrix: [r, g, b], offset: [x, y, z] } = FROM_YCBCR;
                let mix = Mix { matrix: [b, g, r], offset: [z, y, x] };
                mix::bytes(isa, src, dst, &mix.to_floats());
            }
        }
    }
}

// ITU-R BT.601. Gray is luma in full range; YCbCr has luma from 16 to 235, and color differences
// from 16 to 240, centered at 128.

const LUMA: Mix<f64, 1> = Mix { matrix: [[0.299, 0.587, 0.114]], offset: [0.0] };

const TO_YCBCR: Mix<f64, 3> = {
    const fn row(weights: [f64; 3], range: f64) -> [f64; 3] {
        let factor = range / 255.0;
        [weights[0] * factor, weights[1] * factor, weights[2] * factor]
    }
    let blue = 0.5 / (1.0 - 0.114);
    let red = 0.5 / (1.0 - 0.299);
    Mix {
        matrix: [
            row([0.299, 0.587, 0.114], 219.0),
            row([-0.299 * blue, -0.587 * blue, 0.5], 224.0),
            row([0.5, -0.587 * red, -0.114 * red], 224.0),
        ],
        offset: [16.0, 128.0, 128.0],
    }
};

const FROM_16: f64 = 16.0 * 255.0 / 219.0;

const FROM_YCBCR: Mix<f64, 3> = {
    let luma = 255.0 / 219.0;
    let red = 2.0 * (1.0 - 0.299) * 255.0 / 224.0;
    let blue = 2.0 * (1.0 - 0.114) * 255.0 / 224.0;
    let green = [-blue * 0.114 / 0.587, -red * 0.299 / 0.587];
    Mix {
        matrix: [[luma, 0.0, red], [luma, green[0], green[1]], [luma, blue, 0.0]],
        offset: [
            -FROM_16 - 128.0 * red,
            -FROM_16 - 128.0 * (green[0] + green[1]),
            -FROM_16 - 128.0 * blue,
        ],
    }
};

/// The same mix for pixels whose first and last channel are swapped.
fn reversed<const N: usize>(mix: Mix<f64, N>) -> Mix<f64, N> {
    Mix { matrix: mix.matrix.map(|[a, b, c]| [c, b, a]), offset: mix.offset }
}
