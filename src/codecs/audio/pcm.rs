//! Element types of decoded audio, and how samples are stored in files.

use crate::kernels::numeric::isa::vectorized;

/// An element type for samples, which are scaled to its range.
pub trait Pcm: Copy + Send + 'static {
    const SILENCE: Self;
    /// From an integer that uses all 32 bits.
    fn from_full(full: i32) -> Self;
    /// From a number in -1..1.
    fn from_unit(unit: f32) -> Self;
}

impl Pcm for f32 {
    const SILENCE: f32 = 0.0;

    #[inline(always)]
    fn from_full(full: i32) -> f32 {
        full as f32 * (1.0 / 2_147_483_648.0)
    }

    #[inline(always)]
    fn from_unit(unit: f32) -> f32 {
        unit
    }
}

impl Pcm for i16 {
    const SILENCE: i16 = 0;

    #[inline(always)]
    fn from_full(full: i32) -> i16 {
        (full >> 16) as i16
    }

    #[inline(always)]
    fn from_unit(unit: f32) -> i16 {
        // The cast saturates.
        (unit * 32767.0).round() as i16
    }
}

impl Pcm for i32 {
    const SILENCE: i32 = 0;

    #[inline(always)]
    fn from_full(full: i32) -> i32 {
        full
    }

    #[inline(always)]
    fn from_unit(unit: f32) -> i32 {
        (unit * 2_147_483_647.0).round() as i32
    }
}

/// How a sample is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Unsigned8,
    Signed8,
    Signed16(Order),
    Signed24(Order),
    Signed32(Order),
    Float32(Order),
    Float64(Order),
    ALaw,
    MuLaw,
}

/// The order of a number's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

impl Coding {
    /// The size of a sample in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Coding::Unsigned8 | Coding::Signed8 | Coding::ALaw | Coding::MuLaw => 1,
            Coding::Signed16(_) => 2,
            Coding::Signed24(_) => 3,
            Coding::Signed32(_) | Coding::Float32(_) => 4,
            Coding::Float64(_) => 8,
        }
    }

    /// Integers of this many bits, in as few bytes as they need.
    pub fn signed(bits: u16, order: Order) -> Option<Coding> {
        match bits {
            1..=8 => Some(Coding::Signed8),
            9..=16 => Some(Coding::Signed16(order)),
            17..=24 => Some(Coding::Signed24(order)),
            25..=32 => Some(Coding::Signed32(order)),
            _ => None,
        }
    }

    pub fn float(bits: u16, order: Order) -> Option<Coding> {
        match bits {
            32 => Some(Coding::Float32(order)),
            64 => Some(Coding::Float64(order)),
            _ => None,
        }
    }

    /// Converts stored bytes to samples, as many as there are of both.
    pub fn convert<T: Pcm>(self, bytes: &[u8], samples: &mut [T]) {
        vectorized!(convert(self, bytes, samples));
    }
}

#[inline(always)]
fn convert<T: Pcm>(coding: Coding, bytes: &[u8], samples: &mut [T]) {
    use Order::{Big, Little};
    let short = |number: i16| T::from_full(i32::from(number) << 16);
    let to = samples;
    match coding {
        Coding::Unsigned8 => each(bytes, to, |[b]| T::from_full((i32::from(b) - 128) << 24)),
        Coding::Signed8 => each(bytes, to, |[b]| T::from_full(i32::from(b) << 24)),
        Coding::Signed16(Little) => each(bytes, to, |b| short(i16::from_le_bytes(b))),
        Coding::Signed16(Big) => each(bytes, to, |b| short(i16::from_be_bytes(b))),
        Coding::Signed24(Little) => {
            each(bytes, to, |[a, b, c]| T::from_full(i32::from_le_bytes([0, a, b, c])));
        }
        Coding::Signed24(Big) => {
            each(bytes, to, |[a, b, c]| T::from_full(i32::from_be_bytes([a, b, c, 0])));
        }
        Coding::Signed32(Little) => each(bytes, to, |b| T::from_full(i32::from_le_bytes(b))),
        Coding::Signed32(Big) => each(bytes, to, |b| T::from_full(i32::from_be_bytes(b))),
        Coding::Float32(Little) => each(bytes, to, |b| T::from_unit(f32::from_le_bytes(b))),
        Coding::Float32(Big) => each(bytes, to, |b| T::from_unit(f32::from_be_bytes(b))),
        Coding::Float64(Little) => each(bytes, to, |b| T::from_unit(f64::from_le_bytes(b) as f32)),
        Coding::Float64(Big) => each(bytes, to, |b| T::from_unit(f64::from_be_bytes(b) as f32)),
        Coding::ALaw => each(bytes, to, |[b]| short(A_LAW[usize::from(b)])),
        Coding::MuLaw => each(bytes, to, |[b]| short(MU_LAW[usize::from(b)])),
    }
}

#[inline(always)]
fn each<const N: usize, T>(bytes: &[u8], samples: &mut [T], sample: impl Fn([u8; N]) -> T) {
    for (to, &bytes) in samples.iter_mut().zip(bytes.as_chunks::<N>().0) {
        *to = sample(bytes);
    }
}

/// G.711, decoded.
static A_LAW: [i16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = from_a_law(byte as u8);
        byte += 1;
    }
    table
};
static MU_LAW: [i16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = from_mu_law(byte as u8);
        byte += 1;
    }
    table
};

/// A sign, an exponent and four bits.
const fn from_a_law(byte: u8) -> i16 {
    let byte = byte ^ 0x55;
    let (exponent, low) = ((byte >> 4 & 7) as i32, ((byte & 15) as i32) << 4);
    let size = match exponent {
        0 => low + 8,
        _ => (low + 0x108) << (exponent - 1),
    };
    (if byte & 0x80 != 0 { size } else { -size }) as i16
}

const fn from_mu_law(byte: u8) -> i16 {
    let byte = !byte;
    let (exponent, low) = ((byte >> 4 & 7) as i32, ((byte & 15) as i32) << 3);
    let size = ((low + 0x84) << exponent) - 0x84;
    (if byte & 0x80 != 0 { -size } else { size }) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_to_the_range_of_their_type() {
        assert_eq!(f32::from_full(0x4000_0000), 0.5);
        assert_eq!((i16::from_full(-0x8000_0000), i16::from_full(0x7fff_ffff)), (-32768, 32767));
        assert_eq!(i16::from_unit(2.0), 32767);
        assert_eq!(i16::from_unit(-16400.5 / 32767.0), -16401);
        assert_eq!(i16::from_unit(f32::NAN), 0);
        assert_eq!(i32::from_unit(1.0), i32::MAX);
    }

    #[test]
    fn both_orders_of_bytes_are_the_same_samples() {
        let bytes: Vec<u8> = (0..=255).cycle().take(24 * 7).collect();
        for (of, size) in [
            (Coding::Signed16 as fn(Order) -> Coding, 2),
            (Coding::Signed24, 3),
            (Coding::Signed32, 4),
            (Coding::Float32, 4),
            (Coding::Float64, 8),
        ] {
            let swapped: Vec<u8> =
                bytes.chunks(size).flat_map(|number| number.iter().rev().copied()).collect();
            let mut read = [[0_i32; 24]; 2];
            of(Order::Little).convert(&bytes, &mut read[0]);
            of(Order::Big).convert(&swapped, &mut read[1]);
            assert_eq!(read[0], read[1], "{size}");
        }
    }

    #[test]
    fn every_instruction_set_converts_the_same() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1003).collect();
        for coding in [
            Coding::Unsigned8,
            Coding::Signed8,
            Coding::Signed16(Order::Little),
            Coding::Signed24(Order::Little),
            Coding::Signed32(Order::Big),
            Coding::ALaw,
            Coding::MuLaw,
        ] {
            let (mut fast, mut plain) = (vec![0.0_f32; 1003], vec![0.0_f32; 1003]);
            coding.convert(&bytes, &mut fast);
            convert(coding, &bytes, &mut plain);
            assert_eq!(fast, plain, "{coding:?}");
        }
    }
}
