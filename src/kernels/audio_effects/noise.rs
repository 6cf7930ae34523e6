//! Noise that is added to sounds, as loud as a signal-to-noise ratio says.

use std::borrow::Cow;

use smallvec::{SmallVec, smallvec};

use super::fourier::Float;
use super::problem::AudioEffects;
use super::{MOST_DECIBELS, Sound, amplitude, extents, floats, white};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::{Convert, Number};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::numeric::philox::{Stream, below};
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample, with_element, with_room};

pub struct AddNoise;

args! {
    pub struct AddNoiseArgs { offset: Option<i64>, snr_db: f64, rng: Stream }
}

pub struct Plan {
    /// The frame of the noise that is added to the first of the sound.
    offset: usize,
    /// The amplitude of the noise, where the sound's is one.
    ratio: f64,
    rng: Stream,
}

/// What noise is drawn from, apart from the offset.
const WHITE: u32 = 1;

impl Kernel for AddNoise {
    type Args = AddNoiseArgs;
    type Plan = Plan;
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: AddNoiseArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let given = args.snr_db;
        if given.is_nan() || given < -MOST_DECIBELS {
            let problem = Argument::AtLeast { least: -MOST_DECIBELS, given };
            return Err(argument("snr_db", problem));
        }
        let offset = match (inputs.get(1), args.offset) {
            (Some(noise), given) => offset(inputs[0], noise, given, &args.rng)?,
            (None, _) => 0,
        };
        let plan = Plan { offset, ratio: amplitude(-given), rng: args.rng.apart(WHITE) };
        Ok((plan, one(inputs[0].clone())))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, noise, out) = (&inputs[0], inputs.get(1), &mut outputs[0]);
        with_element!(input.desc.dtype, |T| add_noise::<T>(plan, input, noise, out))
    }
}

/// Where to begin in the noise, which must suit the sound.
fn offset(sound: &Desc, noise: &Desc, given: Option<i64>, rng: &Stream) -> Result<usize> {
    let ((frames, channels), (length, given_channels)) = (extents(sound), extents(noise));
    if given_channels != 1 && given_channels != channels {
        let problem = AudioEffects::NoiseChannels { channels, given: given_channels };
        return Err(unfit(1, problem));
    }
    if sound.elements() == 0 {
        return Ok(0);
    }
    if length == 0 {
        return Err(unfit(1, AudioEffects::EmptyNoise));
    }
    match given {
        None => {
            let [a, b, ..] = rng.block(0);
            Ok(below(a, b, length.saturating_sub(frames) as u64 + 1) as usize)
        }
        Some(given) => usize::try_from(given)
            .ok()
            .filter(|&offset| offset < length)
            .ok_or_else(|| argument("offset", AudioEffects::Offset { frames: length, given })),
    }
}

fn add_noise<T: Sound>(
    plan: &Plan,
    input: &Sample,
    noise: Option<&Sample>,
    out: &mut Output<'_>,
) -> Result<()> {
    let (frames, channels) = extents(&input.desc);
    let sound = input.elements::<T>();
    if sound.is_empty() {
        return Ok(());
    }
    let (noise, noise_channels) = match noise {
        Some(noise) => {
            let (length, noise_channels) = extents(&noise.desc);
            let first = plan.offset * noise_channels;
            let wanted = frames * noise_channels;
            let noise = floats::<T::Float>(noise)?;
            if plan.offset + frames <= length {
                (part(noise, first, wanted), noise_channels)
            } else {
                let mut repeated = with_room(wanted)?;
                repeated.extend(noise.iter().cycle().skip(first).take(wanted).copied());
                (Cow::Owned(repeated), noise_channels)
            }
        }
        None => (Cow::Owned(white_noise(&plan.rng, sound.len())?), channels),
    };
    let (signal, noise_energies) = (energies(sound, channels), energies(&noise, noise_channels));
    let scales: SmallVec<[T::Float; 2]> = (0..channels)
        .map(|channel| {
            let noise = noise_energies[channel % noise_channels];
            // Silent noise can't be made any louder.
            let louder = if noise == 0.0 { 0.0 } else { signal[channel].sqrt() / noise.sqrt() };
            T::Float::of(louder * plan.ratio)
        })
        .collect();
    if let [scale] = scales[..] {
        return out.write(|start, piece: &mut [T]| {
            let pairs = sound[start..].iter().zip(&noise[start..]);
            vectorized!({
                for (d, (&s, &n)) in piece.iter_mut().zip(pairs) {
                    let s: T::Float = s.convert();
                    *d = (s + scale * n).convert();
                }
            });
            Ok(())
        });
    }
    let rows = sound.chunks_exact(channels).zip(noise.chunks_exact(noise_channels));
    for (dst, (sound, noise)) in out.elements::<T>().chunks_exact_mut(channels).zip(rows) {
        for (channel, (d, &s)) in dst.iter_mut().zip(sound).enumerate() {
            let s: T::Float = s.convert();
            *d = (s + scales[channel] * noise[channel % noise_channels]).convert();
        }
    }
    Ok(())
}

fn part<F: Float>(all: Cow<'_, [F]>, first: usize, count: usize) -> Cow<'_, [F]> {
    match all {
        Cow::Borrowed(all) => Cow::Borrowed(&all[first..first + count]),
        Cow::Owned(mut all) => {
            all.truncate(first + count);
            all.drain(..first);
            Cow::Owned(all)
        }
    }
}

fn white_noise<F: Float>(rng: &Stream, count: usize) -> Result<Vec<F>> {
    const PIECE: usize = 32 * white::AT_ONCE;
    let (mut made, mut piece) = (with_room(count)?, [0.0; PIECE]);
    for start in (0..count).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(count - start)];
        white::fill(rng, start / white::AT_ONCE, piece);
        made.extend(piece.iter().map(|&x| F::of(f64::from(x))));
    }
    Ok(made)
}

/// Sums that are computed side by side.
const LANES: usize = 8;

/// The sum of squares of each channel.
fn energies<T: Number + Convert<f64>>(values: &[T], channels: usize) -> SmallVec<[f64; 2]> {
    let mut sums: SmallVec<[f64; 2]> = smallvec![0.0; channels];
    let add = |sum: &mut f64, x: T| {
        let x: f64 = x.convert();
        *sum += x * x;
    };
    if channels > 1 {
        for frame in values.chunks_exact(channels) {
            sums.iter_mut().zip(frame).for_each(|(sum, &x)| add(sum, x));
        }
        return sums;
    }
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    vectorized!({
        for chunk in chunks {
            for (sum, &x) in lanes.iter_mut().zip(chunk) {
                let x: f64 = x.convert();
                *sum += x * x;
            }
        }
    });
    rest.iter().for_each(|&x| add(&mut lanes[0], x));
    sums[0] = lanes.iter().sum();
    sums
}
