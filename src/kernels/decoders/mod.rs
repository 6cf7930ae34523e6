//! Decoding of images, windows of images, audio, video, NumPy arrays, and compressed bytes.

pub mod audio;
mod inflate;
mod numpy;
mod video;
mod window;

use std::marker::PhantomData;

use smallvec::smallvec;

use self::window::{CropArgs, RandomArgs, WholeArgs, WindowArgs, WindowedSliceArgs};
use super::{Allocate, Arg, DirectKernel, Entry, Family, FromArg, Result, Samples, Traits, args};
use crate::codecs::{Image, Output, Request};
use crate::kernels::contract::problems::{Argument, unfit};
use crate::value::Problem;
use crate::value::{DType, Desc, Sample};

pub const FAMILY: Family = Family {
    kernels: &[TABLE],
    problems: &[
        problem::Arrays::KINDS,
        problem::Decoders::KINDS,
        problem::Inflate::KINDS,
        problem::Sounds::KINDS,
        problem::Videos::KINDS,
    ],
};

const TABLE: &[Entry] = &[
    Entry::direct::<audio::Decode>("decoders.audio"),
    Entry::direct::<Decode<WholeArgs>>("decoders.image"),
    Entry::direct::<Decode<CropArgs>>("decoders.image_crop"),
    Entry::direct::<Decode<RandomArgs>>("decoders.image_random_crop"),
    Entry::direct::<Decode<WindowedSliceArgs>>("decoders.image_slice"),
    Entry::new::<inflate::InflateChunks>("decoders.inflate"),
    Entry::direct::<numpy::DecodeNumpy>("decoders.numpy"),
    Entry::direct::<video::Decode>("decoders.video"),
    Entry::direct::<Peek>("peek_image_shape"),
];

pub mod problem {
    use crate::value::{Problem, problems};

    problems! {
        /// Problems of encoded arrays.
        pub enum Arrays {
            NotBytes { dtype: &'static str },
            Unreadable { problem: Problem },
            Different {
                ndim: usize,
                dtype: &'static str,
                first_ndim: usize,
                first_dtype: &'static str,
            },
        }
    }

    problems! {
        /// Problems of compressed bytes.
        pub enum Inflate {
            NotBytes { shape: Vec<usize>, dtype: &'static str },
            Rank { given: usize, wanted: usize },
            Counts { offsets: usize, sizes: usize },
            Backwards { start: usize, end: usize },
            Outside { index: usize, start: usize, end: usize, length: usize },
            Longer { chunk: usize, wanted: usize },
            Shorter { chunk: usize, found: usize, wanted: usize },
            Ends { chunk: usize },
            Damaged { chunk: usize, text: String },
        }
    }

    problems! {
        /// What is wrong with the input of the audio decoder.
        pub enum Sounds {
            NotBytes { shape: Vec<usize>, dtype: &'static str },
        }
    }

    problems! {
        /// What is wrong with a call of the video decoder.
        pub enum Videos {
            NotBytes { shape: Vec<usize>, dtype: &'static str },
            Outside { given: i64, count: usize },
            NoTime { given: f64, duration: f64 },
            EndTime { start: f64, given: f64 },
            EndFrame { start: i64, given: i64 },
        }
    }

    problems! {
        /// Problems that kernels of this family report.
        pub enum Decoders {
            NotBytes { shape: Vec<usize>, dtype: &'static str },
            Extents { given: Vec<f64> },
            LargeWindow { length: usize, extent: usize },
            EmptyWindow { height: usize, width: usize },
            MinSize { given: Vec<i64> },
        }
    }
}

/// The color format that all decoders take as an argument.
impl FromArg for Output {
    fn from_constant(arg: &Arg) -> std::result::Result<Output, Problem> {
        match i64::from_constant(arg)? {
            0 => Ok(Output::Rgb),
            1 => Ok(Output::Bgr),
            2 => Ok(Output::Gray),
            3 => Ok(Output::YCbCr),
            4 => Ok(Output::Any),
            other => {
                let choices = "RGB, BGR, GRAY, YCbCr, ANY_DATA";
                Err(Argument::OneOf { choices, given: other.to_string() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Output, Problem> {
        Err(Argument::SameForAll.into())
    }
}

/// The bytes of an encoded image, protected from modification.
fn encoded(sample: &Sample) -> Result<Sample> {
    if sample.desc.ndim() != 1 || sample.desc.dtype.size() != 1 {
        let (shape, dtype) = (sample.desc.shape.to_vec(), sample.desc.dtype.name());
        return Err(unfit(0, problem::Decoders::NotBytes { shape, dtype }));
    }
    protected(sample)
}

/// Bytes that nobody modifies while they are decoded. Codecs read headers and data more than once
/// and rely on finding the same bytes, so bytes that somebody else may modify are copied.
pub(crate) fn protected(sample: &Sample) -> Result<Sample> {
    if sample.buffer().mutable_outside() { sample.duplicate() } else { sample.compact() }
}

struct Decode<W>(PhantomData<W>);

impl<W: WindowArgs> DirectKernel for Decode<W> {
    type Args = W;
    const TRAITS: Traits = Traits { cheap: false, ..Traits::DEFAULT };

    fn run(args: &W, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let request: Request = args.request();
        let bytes = encoded(&inputs[0])?;
        let mut image = Image::open(bytes.elements_as_bytes())?;
        let (height, width) = image.size(request.upright);
        let window = args.window(inputs, height, width)?;
        let window = image.reduce(&request, window);
        image.admit(&request, window)?;
        let shape = [window.height, window.width, image.channels(request.output)];
        let mut out = allocate(0, Desc::new(request.dtype, &shape))?;
        image.decode(&request, window, out.bytes())?;
        Ok(smallvec![out.into_sample()?])
    }
}

struct Peek;

args! {
    struct PeekArgs {
        adjust_orientation: bool,
        dtype: DType,
        image_type: Output,
    }
}

impl DirectKernel for Peek {
    type Args = PeekArgs;

    fn run(args: &PeekArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let bytes = encoded(&inputs[0])?;
        let image = Image::open(bytes.elements_as_bytes())?;
        let (height, width) = image.size(args.adjust_orientation);
        let shape = [height, width, image.channels(args.image_type)];
        let mut out = allocate(0, Desc::new(args.dtype, &[3]))?;
        match args.dtype {
            DType::I32 => fill(out.elements(), shape, |n| n as i32),
            DType::U32 => fill(out.elements(), shape, |n| n as u32),
            DType::U64 => fill(out.elements(), shape, |n| n as u64),
            DType::F32 => fill(out.elements(), shape, |n| n as f32),
            DType::F64 => fill(out.elements(), shape, |n| n as f64),
            _ => fill(out.elements(), shape, |n| n as i64),
        }
        Ok(smallvec![out.into_sample()?])
    }
}

fn fill<T>(out: &mut [T], shape: [usize; 3], convert: impl Fn(usize) -> T) {
    out.iter_mut().zip(shape).for_each(|(out, n)| *out = convert(n));
}
