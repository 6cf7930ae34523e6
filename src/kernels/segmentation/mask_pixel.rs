//! Random pixels of masks.

use super::problem::Segmentation;
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::numeric::philox::{Stream, below};
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Bool, DType, Desc, Element, Sample, with_room};

pub struct RandomMaskPixel;

args! {
    pub struct RandomMaskPixelArgs {
        foreground: bool,
        threshold: Option<f64>,
        value: Option<i64>,
        rng: Stream,
    }
}

impl Kernel for RandomMaskPixel {
    type Args = RandomMaskPixelArgs;
    type Plan = RandomMaskPixelArgs;
    const TRAITS: Traits =
        Traits { shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: RandomMaskPixelArgs, inputs: &[&Desc]) -> Result<(RandomMaskPixelArgs, Outputs)> {
        if args.threshold.is_some() && args.value.is_some() {
            return Err(argument("threshold", Argument::Together { other: "value" }));
        }
        let desc = inputs[0];
        if desc.shape.is_empty() || desc.elements() == 0 {
            return Err(unfit(0, Segmentation::NoPixels { shape: desc.shape.to_vec() }));
        }
        Ok((args, one(Desc::new(DType::I64, &[desc.ndim()]))))
    }

    fn run(
        args: &RandomMaskPixelArgs,
        inputs: &[Sample],
        outputs: &mut [Output<'_>],
    ) -> Result<()> {
        let mask = &inputs[0];
        let place = match args.foreground {
            true => foreground(args, mask)?,
            false => None,
        };
        let mut place = place.unwrap_or_else(|| args.draw(mask.desc.elements()));
        let coordinates = outputs[0].elements::<i64>().iter_mut().zip(&mask.desc.shape);
        for (coordinate, &extent) in coordinates.rev() {
            *coordinate = (place % extent) as i64;
            place /= extent;
        }
        Ok(())
    }
}

impl RandomMaskPixelArgs {
    fn draw(&self, bound: usize) -> usize {
        let [a, b, ..] = self.rng.source(0).next();
        below(a, b, bound as u64) as usize
    }
}

/// Chooses a random foreground pixel; `None` if there is none.
fn foreground(args: &RandomMaskPixelArgs, mask: &Sample) -> Result<Option<usize>> {
    match mask.desc.dtype {
        DType::Bool => of_type::<Bool>(args, mask),
        DType::I8 => of_type::<i8>(args, mask),
        DType::I16 => of_type::<i16>(args, mask),
        DType::I32 => of_type::<i32>(args, mask),
        DType::I64 => of_type::<i64>(args, mask),
        DType::U8 => of_type::<u8>(args, mask),
        DType::U16 => of_type::<u16>(args, mask),
        DType::U32 => of_type::<u32>(args, mask),
        DType::U64 => of_type::<u64>(args, mask),
        DType::F32 => of_type::<f32>(args, mask),
        other => {
            let dtype = other.name();
            Err(unfit(0, Input::Type { wanted: "integers or float32", dtype }))
        }
    }
}

fn of_type<T: Pixel>(args: &RandomMaskPixelArgs, mask: &Sample) -> Result<Option<usize>> {
    let pixels = mask.elements::<T>();
    match args.value {
        Some(value) => match T::of(value) {
            Some(value) => pick(args, pixels, |pixel| pixel.equals(value)),
            None => Ok(None),
        },
        None => match T::limit(args.threshold.unwrap_or(0.0) as f32) {
            Some(limit) => pick(args, pixels, |pixel| pixel.is_beyond(limit)),
            None => Ok(None),
        },
    }
}

/// Pixels counted at a time.
const BLOCK: usize = 4096;

fn pick<T: Element>(
    args: &RandomMaskPixelArgs,
    pixels: &[T],
    is_foreground: impl Fn(T) -> bool + Copy,
) -> Result<Option<usize>> {
    let mut counts = with_room(pixels.len().div_ceil(BLOCK))?;
    vectorized!({
        for block in pixels.chunks(BLOCK) {
            // u16 is enough for a block and packs more lanes into a vector.
            counts.push(block.iter().map(|&pixel| u16::from(is_foreground(pixel))).sum::<u16>());
        }
    });
    let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
    if total == 0 {
        return Ok(None);
    }
    let mut rank = args.draw(total);
    for (index, (block, &count)) in pixels.chunks(BLOCK).zip(&counts).enumerate() {
        let count = usize::from(count);
        if rank >= count {
            rank -= count;
            continue;
        }
        let mut chosen = block.iter().enumerate().filter(|(_, pixel)| is_foreground(**pixel));
        return Ok(chosen.nth(rank).map(|(place, _)| index * BLOCK + place));
    }
    Ok(None)
}

/// Element type of a mask.
trait Pixel: Element {
    /// Converts from an integer, if it can be represented.
    fn of(value: i64) -> Option<Self>;
    fn equals(self, other: Self) -> bool;
    /// Limit for `is_beyond`, which selects elements above a threshold. DALI compares in single
    /// precision. `None` if no element is above.
    fn limit(threshold: f32) -> Option<Self>;
    fn is_beyond(self, limit: Self) -> bool;
}

macro_rules! integer_pixels {
    ($($type:ty)*) => {
        $(impl Pixel for $type {
            fn of(value: i64) -> Option<$type> {
                <$type>::try_from(value).ok()
            }

            #[inline(always)]
            fn equals(self, other: $type) -> bool {
                self == other
            }

            /// The smallest integer above the threshold.
            fn limit(threshold: f32) -> Option<$type> {
                let (mut low, mut high) = (i128::from(<$type>::MIN), i128::from(<$type>::MAX));
                let is_above = |number: i128| number as $type as f32 > threshold;
                is_above(high).then_some(())?;
                while low < high {
                    let middle = (low + high).div_euclid(2);
                    (low, high) = if is_above(middle) { (low, middle) } else { (middle + 1, high) };
                }
                Some(high as $type)
            }

            #[inline(always)]
            fn is_beyond(self, limit: $type) -> bool {
                self >= limit
            }
        })*
    };
}
integer_pixels!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Pixel for f32 {
    fn of(value: i64) -> Option<f32> {
        Some(value as f32)
    }

    #[inline(always)]
    fn equals(self, other: f32) -> bool {
        self == other
    }

    fn limit(threshold: f32) -> Option<f32> {
        Some(threshold)
    }

    #[inline(always)]
    fn is_beyond(self, limit: f32) -> bool {
        self > limit
    }
}

impl Pixel for Bool {
    fn of(value: i64) -> Option<Bool> {
        matches!(value, 0 | 1).then(|| Bool::from(value == 1))
    }

    #[inline(always)]
    fn equals(self, other: Bool) -> bool {
        self.get() == other.get()
    }

    fn limit(threshold: f32) -> Option<Bool> {
        (1.0 > threshold).then(|| Bool::from(0.0 <= threshold))
    }

    #[inline(always)]
    fn is_beyond(self, limit: Bool) -> bool {
        self.get() >= limit.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_match_comparison_in_single_precision() {
        for threshold in [-1e30, -129.0, -128.0, -1.5, -0.5, 0.0, 0.5, 126.9, 127.0, f32::NAN, 1e30]
        {
            for number in i8::MIN..=i8::MAX {
                let found = i8::limit(threshold).is_some_and(|limit| number.is_beyond(limit));
                assert_eq!(found, f32::from(number) > threshold, "{number} {threshold}");
            }
        }
        assert_eq!(i32::limit(16_777_216.0), Some(16_777_218));
        assert_eq!(u64::limit(-1.0), Some(0));
        assert_eq!(i64::limit(1e30), None);
        for (threshold, expected) in [(-0.5, [true, true]), (0.0, [false, true]), (1.0, [false; 2])]
        {
            let above = |number: bool| {
                Bool::limit(threshold).is_some_and(|limit| Bool::from(number).is_beyond(limit))
            };
            assert_eq!([above(false), above(true)], expected, "{threshold}");
        }
    }
}
