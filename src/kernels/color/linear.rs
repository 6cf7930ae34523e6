//! Linear functions of pixel values, in tiles that stay in the L1 cache.

use std::ops::{Add, Mul};

use super::mix::{self, Mix};
use crate::kernels::Output;
use crate::kernels::generic::cast::{Convert, Number};
use crate::kernels::numeric::floats;
use crate::kernels::numeric::isa::Isa;
use crate::value::{DType, Sample, with_element};

/// Elements processed at a time: a multiple of three, so that pixels stay whole.
const TILE: usize = 1536;

/// `out = gain * input + bias`.
pub fn scale(input: &Sample, out: &mut Output<'_>, gain: f64, bias: f64) {
    if is_wide(input.desc.dtype) {
        tiles::<f64>(input, out, |_, tile| scale_row(tile, gain, bias));
        return;
    }
    let (gain, bias) = (gain as f32, bias as f32);
    if (input.desc.dtype, out.desc.dtype) == (DType::U8, DType::U8) {
        floats::scale_bytes(Isa::best(), input.elements(), out.elements(), gain, bias);
    } else if (input.desc.dtype, out.desc.dtype) == (DType::F32, DType::F32) {
        scale_to(Isa::best(), input.elements(), out.elements(), gain, bias);
    } else {
        tiles::<f32>(input, out, |isa, tile| scale_floats(isa, tile, gain, bias));
    }
}

/// Applies a linear mix to the channels of each pixel.
pub fn mix(input: &Sample, out: &mut Output<'_>, mix: &Mix<f64, 3>) {
    if is_wide(input.desc.dtype) {
        tiles::<f64>(input, out, |_, tile| mix_row(tile, mix));
        return;
    }
    let mix = mix.to_floats();
    if (input.desc.dtype, out.desc.dtype) == (DType::U8, DType::U8) {
        mix::bytes(Isa::best(), input.elements(), out.elements(), &mix);
    } else {
        tiles::<f32>(input, out, |isa, tile| mix_floats(isa, tile, &mix));
    }
}

/// Whether 32-bit floats would be too coarse. DALI also uses them for 32-bit integers.
fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::U32 | DType::I64 | DType::U64 | DType::F64)
}

/// A type that is computed in.
trait Real: Number + Add<Output = Self> + Mul<Output = Self> {
    fn read(isa: Isa, input: &Sample, start: usize, tile: &mut [Self]);
    fn write(isa: Isa, tile: &[Self], start: usize, out: &mut Output<'_>);
}

impl Real for f32 {
    fn read(isa: Isa, input: &Sample, start: usize, tile: &mut [f32]) {
        floats::read(isa, input, start, tile);
    }

    fn write(isa: Isa, tile: &[f32], start: usize, out: &mut Output<'_>) {
        floats::write(isa, tile, start, out);
    }
}

impl Real for f64 {
    fn read(_: Isa, input: &Sample, start: usize, tile: &mut [f64]) {
        f64::convert_row(input, start, tile);
    }

    fn write(_: Isa, tile: &[f64], start: usize, out: &mut Output<'_>) {
        with_element!(out.desc.dtype, |T| {
            for (o, &x) in out.elements::<T>()[start..].iter_mut().zip(tile) {
                *o = x.convert();
            }
        });
    }
}

fn tiles<R: Real>(input: &Sample, out: &mut Output<'_>, work: impl Fn(Isa, &mut [R])) {
    let isa = Isa::best();
    let mut tile = [R::default(); TILE];
    let count = input.desc.elements();
    for start in (0..count).step_by(TILE) {
        let tile = &mut tile[..TILE.min(count - start)];
        R::read(isa, input, start, tile);
        work(isa, tile);
        R::write(isa, tile, start, out);
    }
}

#[inline(always)]
fn scale_row<R: Real>(tile: &mut [R], gain: R, bias: R) {
    for x in tile {
        *x = *x * gain + bias;
    }
}

#[inline(always)]
fn mix_row<R: Real>(tile: &mut [R], mix: &Mix<R, 3>) {
    let Mix { matrix: [a, b, c], offset } = *mix;
    for pixel in tile.as_chunks_mut::<3>().0 {
        let [x, y, z] = *pixel;
        let dot = |row: [R; 3], offset: R| row[0] * x + row[1] * y + row[2] * z + offset;
        *pixel = [dot(a, offset[0]), dot(b, offset[1]), dot(c, offset[2])];
    }
}

fn scale_floats(isa: Isa, tile: &mut [f32], gain: f32, bias: f32) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2")]
            unsafe fn avx2(tile: &mut [f32], gain: f32, bias: f32) {
                scale_row(tile, gain, bias);
            }
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
            unsafe { avx2(tile, gain, bias) }
        }
        _ => scale_row(tile, gain, bias),
    }
}

fn scale_to(isa: Isa, src: &[f32], dst: &mut [f32], gain: f32, bias: f32) {
    #[inline(always)]
    fn run(src: &[f32], dst: &mut [f32], gain: f32, bias: f32) {
        for (d, &s) in dst.iter_mut().zip(src) {
            *d = s * gain + bias;
        }
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2")]
            unsafe fn avx2(src: &[f32], dst: &mut [f32], gain: f32, bias: f32) {
                run(src, dst, gain, bias);
            }
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
            unsafe { avx2(src, dst, gain, bias) }
        }
        _ => run(src, dst, gain, bias),
    }
}

fn mix_floats(isa: Isa, tile: &mut [f32], mix: &Mix<f32, 3>) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2")]
            unsafe fn avx2(tile: &mut [f32], mix: &Mix<f32, 3>) {
                mix_row(tile, mix);
            }
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
            unsafe { avx2(tile, mix) }
        }
        _ => mix_row(tile, mix),
    }
}
