//! JPEG compression artifacts.

use crate::codecs::Window;
use crate::codecs::jpeg::encode as jpeg_encode;
use crate::codecs::jpeg::{Jpeg, Target};
use crate::kernels::color::problem::Color;
use crate::kernels::contract::problems::{Input, unfit};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample};

pub struct JpegCompressionDistortion;

args! {
    pub struct JpegCompressionDistortionArgs { quality: i64 }
}

impl Kernel for JpegCompressionDistortion {
    type Args = JpegCompressionDistortionArgs;
    type Plan = JpegCompressionDistortionArgs;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(
        args: JpegCompressionDistortionArgs,
        inputs: &[&Desc],
    ) -> Result<(JpegCompressionDistortionArgs, Outputs)> {
        let desc = inputs[0];
        let [.., height, width, channels] = desc.shape[..] else {
            return Err(unfit(0, Color::NotAnImage));
        };
        if desc.dtype != DType::U8 {
            return Err(unfit(0, Input::Type { wanted: "uint8", dtype: desc.dtype.name() }));
        }
        if channels != 3 {
            return Err(unfit(0, Input::Channels { wanted: "3", given: channels }));
        }
        let largest = jpeg_encode::LARGEST;
        if height.max(width) > largest {
            return Err(unfit(0, Color::LargeJpeg { largest, height, width }));
        }
        Ok((args, one(desc.clone())))
    }

    fn run(
        args: &JpegCompressionDistortionArgs,
        inputs: &[Sample],
        outputs: &mut [Output<'_>],
    ) -> Result<()> {
        let out = &mut outputs[0];
        let [.., height, width, channels] = inputs[0].desc.shape[..] else { return Ok(()) };
        let frame = height * width * channels;
        if frame == 0 {
            return Ok(());
        }
        let quality = args.quality.clamp(1, 100) as u8;
        let mut file = Vec::new();
        let (src, dst) = (inputs[0].elements::<u8>(), out.elements::<u8>());
        for (src, dst) in src.chunks_exact(frame).zip(dst.chunks_exact_mut(frame)) {
            jpeg_encode::encode(src, [height, width], quality, &mut file)?;
            let mut jpeg = Jpeg::open(&file)?;
            let window = Window { y: 0, x: 0, height, width };
            jpeg.decode(window, Target::Rgb, false, dst)?;
        }
        Ok(())
    }
}
