//! Median filter.

mod histograms;
mod keys;
mod lanes;
mod networks;

use self::histograms::histograms;
use self::keys::Keyed;
use self::networks::in_rows;
use super::planes::{Planes, width_and_height};
use super::problem::Filters;
use crate::kernels::contract::problems::{Input, argument, unfit};
use crate::kernels::warp::places::with_number;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Element, Sample, with_room};

pub struct MedianBlur;

args! {
    pub struct MedianBlurArgs { window_size: Vec<i64> }
}

/// The largest odd size whose window area fits the 16-bit counters.
const LARGEST: i64 = 255;

/// Width and height of the window, both odd.
pub struct Window {
    width: usize,
    height: usize,
}

impl Kernel for MedianBlur {
    type Args = MedianBlurArgs;
    type Plan = Window;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: MedianBlurArgs, inputs: &[&Desc]) -> Result<(Window, Outputs)> {
        let input = inputs[0];
        let size = width_and_height("window_size", &args.window_size)?;
        if let Some(&given) =
            size.iter().find(|&&size| size % 2 == 0 || !(1..=LARGEST).contains(&size))
        {
            let problem = Filters::NotOdd { least: 1, largest: LARGEST, given };
            return Err(argument("window_size", problem));
        }
        let [width, height] = size.map(|size| size as usize);
        with_number!(
            input.dtype,
            |_T| Ok((Window { width, height }, one(input.clone()))),
            Err(unfit(0, Input::NotNumbers { dtype: input.dtype.name() }))
        )
    }

    fn run(window: &Window, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (image, out) = (&inputs[0], &mut outputs[0]);
        let planes = Planes::of(&image.desc);
        if planes.size() == 0 {
            return Ok(());
        }
        if (window.width, window.height) == (1, 1) {
            out.bytes().copy_from_slice(image.elements_as_bytes());
            return Ok(());
        }
        let has_network = matches!((window.width, window.height), (3, 3) | (5, 5) | (7, 7));
        if image.desc.dtype == DType::U8 && !has_network {
            let images = image.elements::<u8>().chunks_exact(planes.size());
            for (src, dst) in images.zip(out.elements::<u8>().chunks_exact_mut(planes.size())) {
                histograms(window, &planes, src, dst)?;
            }
            return Ok(());
        }
        with_number!(
            image.desc.dtype,
            |T| {
                let images = image.elements::<T>().chunks_exact(planes.size());
                out.write_in_order(|mut rows| {
                    for src in images {
                        match (window.width, window.height) {
                            (3, 3) => in_rows::<T, 3>(&planes, src, &mut rows)?,
                            (5, 5) => in_rows::<T, 5>(&planes, src, &mut rows)?,
                            (7, 7) => in_rows::<T, 7>(&planes, src, &mut rows)?,
                            _ => {
                                rows.next(src.len(), |dst| one_by_one(window, &planes, src, dst))?
                            }
                        }
                    }
                    Ok(())
                })
            },
            Ok(())
        )
    }
}

/// Index of a pixel, with edge pixels replicated.
fn clamped(at: usize, before: usize, extent: usize) -> usize {
    at.saturating_sub(before).min(extent - 1)
}

/// Fallback for any window: gathers the neighborhood of each pixel.
fn one_by_one<T: Element + Keyed>(
    window: &Window,
    planes: &Planes,
    src: &[T],
    dst: &mut [T],
) -> Result<()> {
    let c = planes.channels;
    let mut all = with_room(window.width * window.height)?;
    for (at, out) in dst.iter_mut().enumerate() {
        let (channel, x, y) = (at % c, at / c % planes.width, at / planes.row());
        all.clear();
        for dy in 0..window.height {
            let y = clamped(y + dy, window.height / 2, planes.height);
            for dx in 0..window.width {
                let x = clamped(x + dx, window.width / 2, planes.width);
                all.push(src[(y * planes.width + x) * c + channel].key());
            }
        }
        let half = all.len() / 2;
        *out = T::of_key(*all.select_nth_unstable(half).1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::OutputBuffer;

    fn noise(count: usize) -> Vec<u8> {
        (0..count as u64).map(|i| (i.wrapping_mul(6_364_136_223_846_793_005) >> 40) as u8).collect()
    }

    /// Uses a sorting network if there is one for this size.
    fn by_rows<T: Element + Keyed>(size: usize, planes: &Planes, src: &[T]) -> Vec<T> {
        let mut made = OutputBuffer::new(Desc::new(T::DTYPE, &[src.len()])).unwrap();
        made.output()
            .write_in_order(|mut rows| match size {
                3 => in_rows::<T, 3>(planes, src, &mut rows),
                5 => in_rows::<T, 5>(planes, src, &mut rows),
                _ => in_rows::<T, 7>(planes, src, &mut rows),
            })
            .unwrap();
        made.elements::<T>().to_vec()
    }

    #[test]
    fn all_algorithms_agree() {
        for (height, width, channels) in [(1, 1, 1), (4, 3, 3), (9, 40, 1), (30, 300, 2)] {
            let planes = Planes { height, width, channels };
            let src = noise(planes.size());
            let floats: Vec<f32> = src.iter().map(|&x| f32::from(x) / 7.0 - 20.0).collect();
            for size in [(3, 3), (5, 5), (7, 7), (1, 9), (15, 3)] {
                let what = format!("{height}x{width}x{channels}, {size:?}");
                let window = Window { width: size.0, height: size.1 };
                let mut expected = vec![0; src.len()];
                one_by_one(&window, &planes, &src, &mut expected).unwrap();
                let mut made = vec![0; src.len()];
                histograms(&window, &planes, &src, &mut made).unwrap();
                assert_eq!(made, expected, "{what}");
                if size.0 == size.1 {
                    assert_eq!(by_rows(size.0, &planes, &src), expected, "{what}");
                    let expected: Vec<f32> =
                        expected.iter().map(|&x| f32::from(x) / 7.0 - 20.0).collect();
                    assert_eq!(by_rows(size.0, &planes, &floats), expected, "{what}");
                }
            }
        }
    }

    #[test]
    fn every_element_type_is_supported() {
        let planes = Planes { height: 12, width: 37, channels: 1 };
        let src = noise(planes.size());
        macro_rules! check {
            ($($type:ty: $of:expr;)*) => {
                $(for size in [3, 5, 7] {
                    let src: Vec<$type> = src.iter().map($of).collect();
                    let window = Window { width: size, height: size };
                    let mut expected = src.clone();
                    one_by_one(&window, &planes, &src, &mut expected).unwrap();
                    assert_eq!(by_rows(size, &planes, &src), expected, "{size}");
                })*
            };
        }
        check! {
            i8: |&x| x as i8;
            u16: |&x| u16::from(x) * 257;
            i16: |&x| (u16::from(x) * 257) as i16;
            u32: |&x| u32::from(x) << 24;
            i32: |&x| (u32::from(x) << 24) as i32;
            u64: |&x| u64::from(x) << 56;
            i64: |&x| (u64::from(x) << 56) as i64;
            f64: |&x| f64::from(x) - 128.0;
            half::f16: |&x| half::f16::from_f32(f32::from(x) - 128.0);
            half::bf16: |&x| half::bf16::from_f32(f32::from(x) - 128.0);
        }
    }
}
