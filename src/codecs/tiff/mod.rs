//! TIFF: the first image of a file, in strips or tiles, interleaved or in planes.
//!
//! Uses crates for decompression only: the TIFF crates support neither palettes nor group 3 fax.

mod compression;
mod directory;
mod jpeg;

use half::f16;

use self::compression::Compression;
use super::{Color, Data, Format, Header, ImageFault, Pixels, Problem, bounds, broken};
use crate::value::{Cause, DType, Element, append, collected, problems, with_room, zeroed};

problems! {
    pub enum TiffFault {
        Magic,
        Tags,
        NoTag { name: &'static str },
        NoList { name: &'static str },
        Samples { samples: usize },
        DifferentBits { bits: Vec<usize> },
        SampleFormat { format: usize, bits: usize },
        Method { method: usize },
        Compression { name: &'static str },
        Colors { code: usize, samples: usize, bits: usize },
        Palette { numbers: usize },
        SharedParts { read: usize, length: usize },
        Parts { found: usize, count: usize },
        Tiles { width: usize, height: usize },
        Fax,
        Jpeg,
        Row { row: usize, height: usize },
        Predictor { predictor: usize, bits: usize },
    }
}

const MAX_SAMPLES: usize = 64;

/// The photometric interpretation of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    WhiteIsZero,
    BlackIsZero,
    Rgb,
    Palette,
    Cmyk,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
}

struct Image<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    height: usize,
    width: usize,
    /// Samples per pixel.
    samples: usize,
    /// Bits per sample.
    bits: usize,
    kind: Kind,
    meaning: Meaning,
    compression: Compression,
    /// Bits of a byte are in reverse order.
    reversed: bool,
    /// JPEG tables shared by all strips or tiles.
    tables: &'a [u8],
    /// Colors are stored as luma and chroma; decoding JPEG converts them to RGB.
    mixed: bool,
    /// 1: none, 2: differences, 3: differences of the bytes of floats.
    predictor: usize,
    planar: bool,
    orientation: u8,
    /// Size of strips or tiles; tiles have it even at the edges.
    part_height: usize,
    part_width: usize,
    tiled: bool,
    offsets: Vec<usize>,
    sizes: Vec<usize>,
    /// The palette: all reds, then all greens and blues.
    colors: Vec<u16>,
}

pub fn header(bytes: &[u8]) -> Result<Header, Problem> {
    let image = Image::open(bytes)?;
    Ok(Header {
        format: Format::Tiff,
        height: image.height,
        width: image.width,
        channels: match image.meaning {
            Meaning::Palette => 3,
            _ => image.samples,
        },
        dtype: match (image.meaning, image.kind, image.bits) {
            (Meaning::Palette, ..) | (_, Kind::Unsigned, 16) => DType::U16,
            (_, Kind::Unsigned, _) => DType::U8,
            (_, Kind::Signed, _) => DType::I16,
            (_, Kind::Float, _) => DType::F32,
        },
        orientation: image.orientation,
        scratch: image.scratch(),
        smallest: image.packed(image.height, image.width) / image.compression.most(),
    })
}

pub fn decode(bytes: &[u8]) -> Result<Pixels, Problem> {
    let image = Image::open(bytes)?;
    let data = match (image.kind, image.bits) {
        (Kind::Unsigned, 16) => image.colored_pairs(image.read::<u16>()?)?,
        (Kind::Unsigned, _) => image.colored_bytes(image.read::<u8>()?)?,
        (Kind::Signed, _) => Data::I16(image.read::<i16>()?),
        (Kind::Float, _) => Data::F32(image.read::<f32>()?),
    };
    let color = match (image.meaning, image.samples) {
        (Meaning::Palette, _) | (Meaning::Rgb, 3) => Color::Rgb,
        (Meaning::Cmyk, _) | (Meaning::Rgb, 4) => Color::Rgba,
        (_, 1) => Color::Gray,
        (_, 2) => Color::GrayAlpha,
        (_, samples) => Color::Other(samples),
    };
    Ok(Pixels { height: image.height, width: image.width, color, data })
}

impl<'a> Image<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, Problem> {
        use directory::*;
        let tags = Directory::read(bytes)?;
        let need = |tag: u16, name: &'static str| {
            tags.one(tag).ok_or_else(|| broken(TiffFault::NoTag { name }))
        };
        let (height, width) = (need(HEIGHT, "height")?, need(WIDTH, "width")?);
        let samples = tags.one(SAMPLES).unwrap_or(1);
        if !(1..=MAX_SAMPLES).contains(&samples) {
            return Err(broken(TiffFault::Samples { samples }));
        }
        let bits = tags.numbers(BITS)?.unwrap_or_else(|| vec![1]);
        if bits.iter().any(|&other| other != bits[0]) {
            let first = &bits[..bits.len().min(MAX_SAMPLES)];
            return Err(broken(TiffFault::DifferentBits { bits: first.to_vec() }));
        }
        let bits = bits.first().copied().unwrap_or(1);
        let kind = match (tags.one(SAMPLE_FORMAT).unwrap_or(1), bits) {
            (1 | 4, 1 | 2 | 4 | 8 | 16) => Kind::Unsigned,
            (2, 16) => Kind::Signed,
            (3, 16 | 32 | 64) => Kind::Float,
            (format, bits) => {
                return Err(broken(TiffFault::SampleFormat { format, bits }));
            }
        };
        let default = if samples < 3 { 1 } else { 2 };
        let fax_options = tags.one(FAX_OPTIONS).unwrap_or(0);
        let compression = Compression::new(tags.one(COMPRESSION).unwrap_or(1), fax_options);
        let compression = compression.map_err(broken)?;
        let jpeg = compression == Compression::Jpeg && bits == 8 && matches!(samples, 1 | 3);
        let meaning = match (tags.one(PHOTOMETRIC).unwrap_or(default), samples) {
            (0, 1) => Meaning::WhiteIsZero,
            (0 | 1 | 4, _) => Meaning::BlackIsZero,
            (2, 3..) => Meaning::Rgb,
            (6, 3) if jpeg => Meaning::Rgb,
            (3, 1) if kind == Kind::Unsigned => Meaning::Palette,
            (5, 4) if bits == 8 => Meaning::Cmyk,
            (code, samples) => {
                return Err(broken(TiffFault::Colors { code, samples, bits }));
            }
        };
        let tiled = tags.one(TILE_WIDTH).is_some();
        let (part_height, part_width, offsets, sizes) = if tiled {
            let (height, width) =
                (need(TILE_HEIGHT, "tile height")?, need(TILE_WIDTH, "tile width")?);
            (height, width, TILE_OFFSETS, TILE_SIZES)
        } else {
            let rows = tags.one(ROWS_PER_STRIP).unwrap_or(height).min(height);
            (rows, width, STRIP_OFFSETS, STRIP_SIZES)
        };
        let list = |tag: u16, name: &'static str| {
            let missing = || broken(TiffFault::NoList { name });
            tags.numbers(tag)?.ok_or_else(missing)
        };
        let offsets = list(offsets, "offsets")?;
        let sizes = match list(sizes, "sizes") {
            Err(Problem::Broken(_)) if offsets.len() == 1 => vec![bytes.len()],
            sizes => sizes?,
        };
        let colors: Vec<u16> = match meaning {
            Meaning::Palette => {
                collected(list(COLORS, "colors")?.iter().map(|&color| color as u16))?
            }
            _ => Vec::new(),
        };
        if meaning == Meaning::Palette && colors.len() < 3 << bits {
            return Err(broken(TiffFault::Palette { numbers: colors.len() }));
        }
        let orientation = tags.one(ORIENTATION).unwrap_or(1);
        Ok(Image {
            bytes,
            big_endian: tags.big_endian,
            height,
            width,
            samples,
            bits,
            kind,
            meaning,
            compression,
            reversed: tags.one(FILL_ORDER) == Some(2) && !jpeg,
            tables: tags.raw(JPEG_TABLES),
            mixed: tags.one(PHOTOMETRIC) == Some(6),
            predictor: tags.one(PREDICTOR).unwrap_or(1),
            planar: tags.one(PLANAR) == Some(2) && samples > 1,
            orientation: if (1..=8).contains(&orientation) { orientation as u8 } else { 1 },
            part_height,
            part_width,
            tiled,
            offsets,
            sizes,
            colors,
        })
    }

    /// Size of this many pixels before compression, in bytes.
    fn packed(&self, height: usize, width: usize) -> usize {
        let row = width.saturating_mul(self.samples).saturating_mul(self.bits).div_ceil(8);
        row.saturating_mul(height)
    }

    /// Scratch memory in bytes: all samples, a strip or tile, and colors from a palette.
    fn scratch(&self) -> usize {
        let area = self.height.saturating_mul(self.width);
        let size = match (self.kind, self.bits) {
            (Kind::Unsigned, ..=8) => 1,
            (Kind::Float, _) => 4,
            _ => 2,
        };
        let samples = area.saturating_mul(self.samples).saturating_mul(size);
        let colors = if self.meaning == Meaning::Palette { area.saturating_mul(6) } else { 0 };
        let part = self.packed(self.part_height, self.part_width);
        // A progressive JPEG needs two bytes per sample.
        let copies = if self.compression == Compression::Jpeg { 4 } else { 2 };
        samples.saturating_add(colors).saturating_add(part.saturating_mul(copies))
    }

    /// Refuses strips or tiles that overlap in the file so much that reading them would take far
    /// longer than the size of the file or the image justifies.
    fn bounded(&self, count: usize) -> Result<(), Problem> {
        let length = self.bytes.len();
        let parts = self.offsets.iter().zip(&self.sizes).take(count);
        let read = parts
            .map(|(&start, &size)| size.min(length.saturating_sub(start)))
            .fold(0, usize::saturating_add);
        let most = self.packed(self.height, self.width).saturating_mul(2);
        if read > length.saturating_mul(16).saturating_add(most) {
            return Err(broken(TiffFault::SharedParts { read, length }));
        }
        Ok(())
    }

    /// All samples as stored, interleaved.
    fn read<T: Sample>(&self) -> Result<Vec<T>, Problem> {
        let &Image { height, width, samples, part_height, part_width, .. } = self;
        let area = bounds::area(height, width)?;
        bounds::area(part_height, part_width)?;
        let (planes, part_samples) = if self.planar { (samples, 1) } else { (1, samples) };
        let across = width.div_ceil(part_width);
        let parts = across * height.div_ceil(part_height);
        let count = parts * planes;
        if self.offsets.len() < count || self.sizes.len() < count {
            let found = self.offsets.len().min(self.sizes.len());
            return Err(broken(TiffFault::Parts { found, count }));
        }
        // Tiles may be larger than the image, but not so large that decoding takes forever.
        if parts.saturating_mul(part_height * part_width) > area.saturating_mul(4).max(1 << 24) {
            return Err(broken(TiffFault::Tiles { width: part_width, height: part_height }));
        }
        let fax = matches!(self.compression, Compression::Group3 | Compression::Group4);
        if fax && (self.bits != 1 || samples != 1) {
            return Err(broken(TiffFault::Fax));
        }

        self.bounded(count)?;

        let row = (part_width * part_samples * self.bits).div_ceil(8);
        let mut out = zeroed::<T>(area * samples)?;
        let mut expanded = zeroed::<u8>(row * part_height)?;
        let mut line = zeroed::<T>(part_width * part_samples)?;
        let mut joined = zeroed::<u8>(if self.predictor == 3 { row } else { 0 })?;
        let mut turned = Vec::new();
        for index in 0..count {
            let (plane, part) = (index / parts, index % parts);
            let (top, left) = (part / across * part_height, part % across * part_width);
            let rows = part_height.min(height - top);
            let columns = part_width.min(width - left);
            let cut = |row: usize| broken(ImageFault::EndsAtRow { row: top + row, height });

            let start = self.offsets[index];
            let end = start.saturating_add(self.sizes[index]).min(self.bytes.len());
            let mut bytes = self.bytes.get(start..end).ok_or_else(|| cut(0))?;
            if self.reversed {
                turned.clear();
                append(&mut turned, bytes)?;
                turned.iter_mut().for_each(|byte: &mut u8| *byte = byte.reverse_bits());
                bytes = &turned;
            }
            let part_rows = if self.tiled { part_height } else { rows };
            let wanted = &mut expanded[..row * part_rows];
            let damaged = || broken(TiffFault::Row { row: top, height });
            let filled = if self.compression == Compression::Jpeg {
                let size = [part_rows, part_width, part_samples];
                jpeg::expand(self.tables, bytes, size, part_height, self.mixed, wanted).map_err(
                    |cause| match cause {
                        Cause::Undecodable { .. } => damaged(),
                        cause => cause.into(),
                    },
                )?;
                row * rows
            } else {
                self.compression.expand(bytes, wanted, part_width).map_err(|()| damaged())?
            };
            if filled < row * rows {
                return Err(cut(filled / row));
            }

            for (y, stored) in expanded.chunks_exact_mut(row).take(rows).enumerate() {
                self.samples_of(stored, &mut line, &mut joined, part_samples)?;
                let from = ((top + y) * width + left) * samples;
                let target = &mut out[from..from + columns * samples];
                if self.planar {
                    for (pixel, &sample) in target.chunks_exact_mut(samples).zip(&line) {
                        pixel[plane] = sample;
                    }
                } else {
                    target.copy_from_slice(&line[..columns * samples]);
                }
            }
        }
        Ok(out)
    }

    /// The samples of a row of a strip or tile, with the predictor undone.
    fn samples_of<T: Sample>(
        &self,
        stored: &mut [u8],
        line: &mut [T],
        joined: &mut [u8],
        step: usize,
    ) -> Result<(), Problem> {
        match self.predictor {
            1 => T::unpack(stored, self.bits, self.big_endian, line),
            2 if self.bits >= 8 && self.kind != Kind::Float => {
                T::unpack(stored, self.bits, self.big_endian, line);
                for n in step..line.len() {
                    line[n] = line[n].plus(line[n - step]);
                }
            }
            3 if self.kind == Kind::Float => {
                for n in step..stored.len() {
                    stored[n] = stored[n].wrapping_add(stored[n - step]);
                }
                // High bytes come first, then the lower ones, in either byte order.
                let size = self.bits / 8;
                let count = stored.len() / size;
                for (n, byte) in joined.iter_mut().enumerate() {
                    *byte = stored[n % size * count + n / size];
                }
                T::unpack(joined, self.bits, true, line);
            }
            predictor => {
                return Err(broken(TiffFault::Predictor { predictor, bits: self.bits }));
            }
        }
        Ok(())
    }

    fn colored_bytes(&self, mut data: Vec<u8>) -> Result<Data, Cause> {
        let most = ((1u16 << self.bits) - 1) as u8;
        match self.meaning {
            Meaning::Palette => return self.look_up(data.into_iter().map(usize::from)),
            // As in DALI: RGB and an opaque alpha.
            Meaning::Cmyk => {
                for pixel in data.as_chunks_mut::<4>().0 {
                    let light = 255 - u16::from(pixel[3]);
                    let mix = |ink: u8| ((255 - u16::from(ink)) * light / 255) as u8;
                    *pixel = [mix(pixel[0]), mix(pixel[1]), mix(pixel[2]), 255];
                }
            }
            Meaning::WhiteIsZero => data.iter_mut().for_each(|sample| *sample = most - *sample),
            Meaning::BlackIsZero | Meaning::Rgb => {}
        }
        if most < 255 {
            data.iter_mut().for_each(|sample| *sample *= 255 / most);
        }
        Ok(Data::U8(data))
    }

    fn colored_pairs(&self, mut data: Vec<u16>) -> Result<Data, Cause> {
        match self.meaning {
            Meaning::Palette => return self.look_up(data.into_iter().map(usize::from)),
            Meaning::WhiteIsZero => data.iter_mut().for_each(|sample| *sample = !*sample),
            _ => {}
        }
        Ok(Data::U16(data))
    }

    /// Palettes have 16-bit colors, whatever the size of the indices.
    fn look_up(&self, indices: impl ExactSizeIterator<Item = usize>) -> Result<Data, Cause> {
        let size = self.colors.len() / 3;
        let mut rgb = with_room(3 * indices.len())?;
        for index in indices {
            rgb.extend([0, 1, 2].map(|channel| self.colors[channel * size + index]));
        }
        Ok(Data::U16(rgb))
    }
}

trait Sample: Element {
    /// Unpacks samples of `bits` bits.
    fn unpack(bytes: &[u8], bits: usize, big_endian: bool, out: &mut [Self]);
    /// Wrapping addition.
    fn plus(self, other: Self) -> Self;
}

impl Sample for u8 {
    fn unpack(bytes: &[u8], bits: usize, _: bool, out: &mut [u8]) {
        if bits == 8 {
            return out.copy_from_slice(&bytes[..out.len()]);
        }
        let (each, mask) = (8 / bits, (1u16 << bits) as u8 - 1);
        for (samples, byte) in out.chunks_mut(each).zip(bytes) {
            for (n, sample) in samples.iter_mut().enumerate() {
                *sample = byte >> (8 - bits * (n + 1)) & mask;
            }
        }
    }
    fn plus(self, other: u8) -> u8 {
        self.wrapping_add(other)
    }
}

impl Sample for u16 {
    fn unpack(bytes: &[u8], _: usize, big_endian: bool, out: &mut [u16]) {
        let from = if big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
        for (sample, &pair) in out.iter_mut().zip(bytes.as_chunks().0) {
            *sample = from(pair);
        }
    }
    fn plus(self, other: u16) -> u16 {
        self.wrapping_add(other)
    }
}

impl Sample for i16 {
    fn unpack(bytes: &[u8], _: usize, big_endian: bool, out: &mut [i16]) {
        let from = if big_endian { i16::from_be_bytes } else { i16::from_le_bytes };
        for (sample, &pair) in out.iter_mut().zip(bytes.as_chunks().0) {
            *sample = from(pair);
        }
    }
    fn plus(self, other: i16) -> i16 {
        self.wrapping_add(other)
    }
}

impl Sample for f32 {
    fn unpack(bytes: &[u8], bits: usize, big_endian: bool, out: &mut [f32]) {
        match bits {
            16 => {
                let from = if big_endian { f16::from_be_bytes } else { f16::from_le_bytes };
                for (sample, &pair) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *sample = from(pair).to_f32();
                }
            }
            32 => {
                let from = if big_endian { f32::from_be_bytes } else { f32::from_le_bytes };
                for (sample, &four) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *sample = from(four);
                }
            }
            _ => {
                let from = if big_endian { f64::from_be_bytes } else { f64::from_le_bytes };
                for (sample, &eight) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *sample = from(eight) as f32;
                }
            }
        }
    }
    fn plus(self, other: f32) -> f32 {
        self + other
    }
}
