//! Images of each format: whole and cropped, with several kinds of output.

use _core::codecs::image::Window;
use _core::codecs::jpeg::{EIGHTHS, Jpeg, Target};
use _core::codecs::{Format, sniff};
use _core::kernels::{Arg, ArgReader, find};
use _core::value::{DType, Sample};

use crate::poison;

pub fn bmp(data: &[u8]) -> bool {
    image(data, Format::Bmp)
}

pub fn gif(data: &[u8]) -> bool {
    image(data, Format::Gif)
}

pub fn jpeg(data: &[u8]) -> bool {
    image(data, Format::Jpeg)
}

/// At a reduced scale there are two decoders for JPEG: what the first one decodes, the other must
/// decode to the same pixels.
pub fn jpeg_reduced(data: &[u8]) -> bool {
    let mut pick = Pick::new(data);
    let Ok(mut jpeg) = Jpeg::open(data) else { return false };
    if jpeg.header.height * jpeg.header.width > MOST_COMPARED {
        return false;
    }
    jpeg.set_scale(1 + pick.below(EIGHTHS - 1));
    let whole = jpeg.whole();
    let window = match pick.below(2) {
        0 => whole,
        _ => {
            let [height, width] = [whole.height, whole.width].map(|extent| 1 + pick.below(extent));
            let y = pick.below(whole.height - height + 1);
            let x = pick.below(whole.width - width + 1);
            Window { y, x, height, width }
        }
    };
    let target = [Target::Rgb, Target::Bgr, Target::Gray][pick.below(3)];
    let mut made =
        [0x5a, 0xa5].map(|poison| vec![poison; window.height * window.width * target.channels()]);
    if jpeg.decode_reduced(window, target, &mut made[0]).is_some() {
        let other = jpeg.decode_with_libjpeg(window, target, false, &mut made[1]);
        let scale = jpeg.scale();
        assert!(other.is_ok(), "{scale}/8, {target:?}, {window:?}: only one fails: {other:?}");
        assert!(made[0] == made[1], "{scale}/8, {target:?}, {window:?}: pixels differ");
    }
    true
}

pub fn jpeg2000(data: &[u8]) -> bool {
    image(data, Format::Jpeg2000)
}

pub fn png(data: &[u8]) -> bool {
    image(data, Format::Png)
}

pub fn pnm(data: &[u8]) -> bool {
    image(data, Format::Pnm)
}

pub fn tiff(data: &[u8]) -> bool {
    image(data, Format::Tiff)
}

pub fn webp(data: &[u8]) -> bool {
    image(data, Format::WebP)
}

pub fn exif(data: &[u8]) -> bool {
    let _ = _core::codecs::exif::orientation(data);
    true
}

/// Pixels of images that are decoded twice.
const MOST_COMPARED: usize = 1 << 18;

const DTYPES: [DType; 5] = [DType::U8, DType::U16, DType::I16, DType::F16, DType::F32];
/// RGB, BGR, gray, YCbCr, as stored.
const OUTPUTS: usize = 5;

fn image(data: &[u8], format: Format) -> bool {
    if sniff(data) != Some(format) {
        return false;
    }
    let Ok(encoded) = poison::sample(data) else { return true };
    let whole = |_: &str| Arg::Absent;
    let shape = decode("decoders.image", &encoded, 0, DType::U8, true, false, whole);
    // The options are derived from the bytes, so that an input is just a file.
    let mut pick = Pick::new(data);
    let (output, dtype) = (pick.below(OUTPUTS), DTYPES[pick.below(DTYPES.len())]);
    let (upright, fast) = (pick.below(2) == 0, pick.below(4) == 0);
    let [height, width] = shape.unwrap_or([8, 8]);
    let size = [1 + pick.below(height), 1 + pick.below(width)].map(|extent| extent as f64);
    let place = [pick.below(5), pick.below(5)].map(|quarter| quarter as f64 / 4.0);
    let least = [1 + pick.below(height), 1 + pick.below(width)].map(|extent| extent as i64);
    decode("decoders.image", &encoded, output, dtype, upright, fast, |name| match name {
        "min_size" => Arg::Ints(least.into()),
        _ => Arg::Absent,
    });
    decode("decoders.image_crop", &encoded, output, dtype, upright, fast, |name| match name {
        "min_size" => Arg::Absent,
        "crop" => Arg::Floats(size.into()),
        "crop_pos_y" => Arg::Float(place[0]),
        "crop_pos_x" => Arg::Float(place[1]),
        "rounding" => Arg::Text("round".into()),
        _ => Arg::Float(0.0),
    });
    true
}

/// Decodes like a call; `other` gives the arguments that not all decoders have. Returns height and
/// width.
fn decode(
    kernel: &str,
    encoded: &Sample,
    output: usize,
    dtype: DType,
    upright: bool,
    fast_dct: bool,
    other: impl Fn(&str) -> Arg,
) -> Option<[usize; 2]> {
    let entry = find(kernel).expect("a decoder");
    let argument = |name: &&str| match *name {
        "adjust_orientation" => Arg::Int(upright.into()),
        "dtype" => Arg::Int(dtype.code().into()),
        "output_type" => Arg::Int(output as i64),
        "use_fast_idct" => Arg::Int(fast_dct.into()),
        name => other(name),
    };
    let args: Vec<Arg> = entry.args.iter().map(argument).collect();
    let inputs = std::slice::from_ref(encoded);
    let work = (entry.cpu)();
    let kernel = work.sample_kernel().expect("a kernel of samples");
    let made = poison::compare(|allocate| {
        kernel.run(&ArgReader::new(&args, inputs, 0), inputs, allocate).ok()
    })?;
    Some([made[0].desc.shape[0], made[0].desc.shape[1]])
}

/// Numbers derived from bytes.
struct Pick(u64);

impl Pick {
    fn new(data: &[u8]) -> Pick {
        let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Pick(data.iter().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}
