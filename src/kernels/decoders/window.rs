//! Which part of an image to decode.

use smallvec::SmallVec;

use crate::codecs::{Output, Request, Window};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::crop::Rounding;
use crate::kernels::crop::random_window::RandomWindow;
use crate::kernels::decoders::problem::Decoders;
use crate::kernels::numeric::philox::Stream;
use crate::kernels::regions::SliceArgs;
use crate::kernels::{Arg, ArgReader, FromArg, FromArgs, Result, args};
use crate::value::{DType, Desc, Layout, Problem, Sample};

type Floats = SmallVec<[f64; 6]>;

/// The arguments of a decoder: the requested format, and the part of the image.
pub trait WindowArgs: FromArgs + 'static {
    fn request(&self) -> Request;
    /// The part to decode of an image of this size. It is inside the image.
    fn window(&self, inputs: &[Sample], height: usize, width: usize) -> Result<Window>;
}

/// Height and width that an image may be scaled down to.
#[derive(Clone, Copy)]
pub struct MinSize([usize; 2]);

impl MinSize {
    fn new(given: &[i64]) -> std::result::Result<MinSize, Problem> {
        match *given {
            [both] if both > 0 => Ok(MinSize([both as usize; 2])),
            [height, width] if height > 0 && width > 0 => {
                Ok(MinSize([height as usize, width as usize]))
            }
            _ => Err(Decoders::MinSize { given: given.to_vec() }.into()),
        }
    }
}

impl FromArg for MinSize {
    fn from_constant(arg: &Arg) -> std::result::Result<MinSize, Problem> {
        MinSize::new(&SmallVec::<[i64; 6]>::from_constant(arg)?)
    }

    fn from_sample(sample: &Sample) -> std::result::Result<MinSize, Problem> {
        MinSize::new(&SmallVec::<[i64; 6]>::from_sample(sample)?)
    }
}

macro_rules! request {
    ($args:expr) => {
        Request {
            output: $args.output_type,
            dtype: $args.dtype,
            upright: $args.adjust_orientation,
            fast_dct: $args.use_fast_idct,
            min_size: $args.min_size.map(|MinSize(size)| size),
        }
    };
}

args! {
    pub struct WholeArgs {
        adjust_orientation: bool,
        dtype: DType,
        output_type: Output,
        use_fast_idct: bool,
        min_size: Option<MinSize>,
    }
}

impl WindowArgs for WholeArgs {
    fn request(&self) -> Request {
        request!(self)
    }

    fn window(&self, _: &[Sample], height: usize, width: usize) -> Result<Window> {
        Ok(Window { y: 0, x: 0, height, width })
    }
}

args! {
    pub struct CropArgs {
        adjust_orientation: bool,
        dtype: DType,
        output_type: Output,
        use_fast_idct: bool,
        min_size: Option<MinSize>,
        crop: Option<Floats>,
        crop_h: f64,
        crop_w: f64,
        crop_pos_x: f64,
        crop_pos_y: f64,
        rounding: Rounding,
    }
}

impl CropArgs {
    /// The requested size; 0 is the whole extent.
    fn size(&self) -> Result<[f64; 2]> {
        // 0 means not given.
        let given = |size: f64| Some(size).filter(|&size| size != 0.0);
        match (&self.crop, given(self.crop_h), given(self.crop_w)) {
            (None, None, None) => Ok([0.0, 0.0]),
            (None, Some(height), Some(width)) => Ok([height, width]),
            (None, Some(_), None) => {
                Err(argument("crop_h", Argument::NeedsOther { other: "crop_w" }))
            }
            (None, None, Some(_)) => {
                Err(argument("crop_w", Argument::NeedsOther { other: "crop_h" }))
            }
            (Some(_), Some(_), _) => Err(argument("crop", Argument::Together { other: "crop_h" })),
            (Some(_), _, Some(_)) => Err(argument("crop", Argument::Together { other: "crop_w" })),
            (Some(crop), None, None) => match crop[..] {
                [height, width] | [_, height, width] => Ok([height, width]),
                _ => Err(argument("crop", Decoders::Extents { given: crop.to_vec() })),
            },
        }
    }

    fn along(
        &self,
        size: f64,
        place: f64,
        extent: usize,
        name: &'static str,
    ) -> Result<(usize, usize)> {
        // Truncated to whole pixels; zero and NaN select the whole extent.
        let length = if size >= 1.0 { size as usize } else { extent };
        if length > extent {
            return Err(unfit(0, Decoders::LargeWindow { length, extent }));
        }
        if !(0.0..=1.0).contains(&place) {
            return Err(argument(name, Argument::Between { low: 0.0, high: 1.0, given: place }));
        }
        // In single precision, like DALI.
        let start = place as f32 * (extent - length) as f32;
        let start = match self.rounding {
            Rounding::Round => start.round(),
            Rounding::Truncate => start.floor(),
        };
        Ok(((start as usize).min(extent - length), length))
    }
}

impl WindowArgs for CropArgs {
    fn request(&self) -> Request {
        request!(self)
    }

    fn window(&self, _: &[Sample], height: usize, width: usize) -> Result<Window> {
        let size = self.size()?;
        let (y, height) = self.along(size[0], self.crop_pos_y, height, "crop_pos_y")?;
        let (x, width) = self.along(size[1], self.crop_pos_x, width, "crop_pos_x")?;
        Ok(Window { y, x, height, width })
    }
}

/// The arguments of `slice`, followed by those of decoders.
pub struct WindowedSliceArgs {
    slice: SliceArgs,
    request: Request,
}

impl FromArgs for WindowedSliceArgs {
    const NAMES: &'static [&'static str] = &{
        let mut names = [""; SliceArgs::NAMES.len() + WholeArgs::NAMES.len()];
        let mut at = 0;
        while at < names.len() {
            let own = SliceArgs::NAMES.len();
            names[at] = if at < own { SliceArgs::NAMES[at] } else { WholeArgs::NAMES[at - own] };
            at += 1;
        }
        names
    };

    fn from_args(reader: &ArgReader<'_>) -> Result<Self> {
        let slice = SliceArgs::from_args(reader)?.inside();
        let request = WholeArgs::from_args(&reader.skip(SliceArgs::NAMES.len()))?.request();
        Ok(WindowedSliceArgs { slice, request })
    }
}

impl WindowArgs for WindowedSliceArgs {
    fn request(&self) -> Request {
        self.request
    }

    fn window(&self, inputs: &[Sample], height: usize, width: usize) -> Result<Window> {
        let layout = Layout::new("HW").unwrap_or_default();
        let image = Desc { layout, ..Desc::new(DType::U8, &[height, width]) };
        let (region, _) = self.slice.region(&image, inputs)?;
        let [height, width] = [region.shape[0], region.shape[1]];
        if height == 0 || width == 0 {
            return Err(unfit(0, Decoders::EmptyWindow { height, width }));
        }
        // Regions outside the image have been rejected, see `inside`.
        let [y, x] = [region.start[0], region.start[1]].map(|start| start.max(0) as usize);
        Ok(Window { y, x, height, width })
    }
}

args! {
    pub struct RandomArgs {
        adjust_orientation: bool,
        dtype: DType,
        output_type: Output,
        use_fast_idct: bool,
        min_size: Option<MinSize>,
        num_attempts: i64,
        random_area: Floats,
        random_aspect_ratio: Floats,
        rng: Stream,
    }
}

impl WindowArgs for RandomArgs {
    fn request(&self) -> Request {
        request!(self)
    }

    fn window(&self, _: &[Sample], height: usize, width: usize) -> Result<Window> {
        let (area, ratio) = (&self.random_area, &self.random_aspect_ratio);
        let window = RandomWindow::new(area, ratio, self.num_attempts)?;
        Ok(window.draw(&self.rng, height, width))
    }
}
