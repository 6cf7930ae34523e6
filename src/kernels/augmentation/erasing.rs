//! Random erasing: fills a random rectangle with a constant or with noise.

use smallvec::SmallVec;

use super::{Floats, chance, channels_of, check_fill, problem};
use crate::kernels::contract::problems::argument;
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::philox::{Stream, below, fraction};
use crate::kernels::numeric::portable::{exp, ln};
use crate::kernels::random::normals;
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample, with_element, with_room};

pub struct RandomErasing;

args! {
    pub struct RandomErasingArgs {
        fill_value: Floats,
        noise: bool,
        p: f64,
        ratio: Floats,
        scale: Floats,
        rng: Stream,
    }
}

/// The erased rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hole {
    y: usize,
    x: usize,
    height: usize,
    width: usize,
}

/// As in torchvision; if all attempts fail, the image is left unchanged.
const ATTEMPTS: usize = 10;

impl Kernel for RandomErasing {
    type Args = RandomErasingArgs;
    type Plan = (RandomErasingArgs, Option<Hole>);
    const TRAITS: Traits =
        Traits { shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: RandomErasingArgs, inputs: &[&Desc]) -> Result<(Self::Plan, Outputs)> {
        chance("p", args.p)?;
        check_fill(&args.fill_value, inputs[0])?;
        let scale = range("scale", &args.scale, 0.0, 1.0)?;
        let ratio = range("ratio", &args.ratio, f64::MIN_POSITIVE, f64::MAX)?;
        let extent = |letter| inputs[0].layout.find(letter).map_or(1, |axis| inputs[0].shape[axis]);
        let hole = hole(&args, scale, ratio, extent(b'H'), extent(b'W'));
        Ok(((args, hole), one(inputs[0].clone())))
    }

    fn run((args, hole): &Self::Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        out.bytes().copy_from_slice(input.elements_as_bytes());
        let Some(hole) = hole else { return Ok(()) };
        let desc = &input.desc;
        let axis = |letter| desc.layout.find(letter);
        let width = axis(b'W').map_or(1, |axis| desc.shape[axis]);
        let height = axis(b'H').map_or(1, |axis| desc.shape[axis]);
        let interleaved = desc.layout.letters().last() == Some(&b'C');
        let channels = channels_of(desc);
        let pixel = if interleaved { channels } else { 1 };
        let plane = height * width * pixel;
        let row = hole.width * pixel;
        if plane == 0 || row == 0 {
            return Ok(());
        }
        with_element!(desc.dtype, |T| {
            let fill: SmallVec<[T; 4]> = (0..channels)
                .map(|channel| args.fill_value[channel % args.fill_value.len()].convert())
                .collect();
            let mut planes = out.elements::<T>().chunks_exact_mut(plane);
            let parts = |plane: &mut [T], work: &mut dyn FnMut(&mut [T])| {
                for y in hole.y..hole.y + hole.height {
                    work(&mut plane[(y * width + hole.x) * pixel..][..row]);
                }
            };
            if args.noise {
                let count = planes.len() * hole.height * row;
                let mut noise: Vec<T> = with_room(count)?;
                normals(&args.rng.apart(NOISE), count, |_, made| {
                    noise.extend(made.iter().map(|&x| Convert::<T>::convert(x)));
                });
                let mut noise = noise.chunks_exact(row);
                planes.for_each(|plane| {
                    parts(plane, &mut |part| {
                        part.iter_mut()
                            .zip(noise.next().into_iter().flatten())
                            .for_each(|(d, &x)| *d = x);
                    });
                });
            } else {
                for number in 0..planes.len() {
                    let fill = &fill[number * pixel % channels..][..pixel];
                    let Some(plane) = planes.next() else { break };
                    parts(plane, &mut |part| {
                        part.chunks_exact_mut(pixel).for_each(|d| d.copy_from_slice(fill));
                    });
                }
            }
        });
        Ok(())
    }
}

/// Sub-stream of the noise, separate from that of the position.
const NOISE: u32 = 1;

/// Checks that a range is ordered and inside `low..=high`.
fn range(name: &'static str, given: &[f64], low: f64, high: f64) -> Result<[f64; 2]> {
    match *given {
        [a, b] if low <= a && a <= b && b <= high => Ok([a, b]),
        _ => {
            let given = given.to_vec();
            Err(argument(name, problem::Augmentation::Range { low, high, given }))
        }
    }
}

/// Draws the rectangle to erase; `None` to leave the image unchanged.
fn hole(
    args: &RandomErasingArgs,
    scale: [f64; 2],
    ratio: [f64; 2],
    height: usize,
    width: usize,
) -> Option<Hole> {
    let mut source = args.rng.source(0);
    let [a, b, ..] = source.next();
    if fraction(a, b) >= args.p {
        return None;
    }
    let between = |[low, high]: [f64; 2], part: f64| low + (high - low) * part;
    let area = height as f64 * width as f64;
    for _ in 0..ATTEMPTS {
        let ([a, b, c, d], [e, f, g, h]) = (source.next(), source.next());
        let area = area * between(scale, fraction(a, b));
        let ratio = exp(between(ratio.map(ln), fraction(c, d)));
        let tall = (area * ratio).sqrt().round_ties_even();
        let wide = (area / ratio).sqrt().round_ties_even();
        if tall < height as f64 && wide < width as f64 {
            let (tall, wide) = (tall as usize, wide as usize);
            let y = below(e, f, (height - tall) as u64 + 1) as usize;
            let x = below(g, h, (width - wide) as u64 + 1) as usize;
            return Some(Hole { y, x, height: tall, width: wide });
        }
    }
    None
}
