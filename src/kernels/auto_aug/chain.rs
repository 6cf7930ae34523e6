//! Applies a chain of operations to a uint8 image.
//!
//! Results match torchvision's functions for uint8. Point operations are look-up tables, and
//! consecutive ones are composed into one table. Other operations ping-pong between two buffers;
//! the last one writes the output.

use crate::kernels::Result;
use crate::kernels::augmentation::sampler::{Affine, Image, sample, shift_columns, shift_rows};
use crate::kernels::augmentation::sheared_by;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::numeric::portable::sin_cos_of_turn;
use crate::kernels::photometric::Stack;
use crate::kernels::photometric::bytes::{self, Formula, Histogram, Table};
use crate::kernels::warp::Interpolation;
use crate::value::{filled, zeroed};

/// The order matches `auto_aug.Operation` in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
    Invert,
}

use Operation::*;

impl Operation {
    pub const ALL: [Operation; 15] = [
        Identity,
        ShearX,
        ShearY,
        TranslateX,
        TranslateY,
        Rotate,
        Brightness,
        Color,
        Contrast,
        Sharpness,
        Posterize,
        Solarize,
        AutoContrast,
        Equalize,
        Invert,
    ];

    /// Whether this is a point operation, which maps each pixel value independently of its
    /// neighbors.
    fn is_point(self) -> bool {
        matches!(
            self,
            Brightness | Contrast | Posterize | Solarize | AutoContrast | Equalize | Invert
        )
    }
}

/// An operation with its magnitude: the factor of shears, pixels of translations, degrees of
/// rotations, the factor minus 1 of brightness, color, contrast and sharpness, the number of bits
/// that posterize keeps, and the threshold of solarize as a fraction of the range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub operation: Operation,
    pub magnitude: f64,
}

impl Step {
    /// Validates the magnitude.
    pub fn checked(self) -> Result<Step> {
        let given = self.magnitude;
        let refused = |problem: Argument| Err(argument("magnitudes", problem));
        match self.operation {
            _ if !given.is_finite() => refused(Argument::NotFinite { given }),
            Brightness | Color | Contrast | Sharpness if given < -1.0 => {
                refused(Argument::AtLeast { least: -1.0, given })
            }
            Posterize if !(0.0..=8.0).contains(&given) => {
                refused(Argument::Between { low: 0.0, high: 8.0, given })
            }
            _ => Ok(self),
        }
    }

    /// Whether this operation leaves every image unchanged.
    fn is_nothing(&self) -> bool {
        match self.operation {
            Identity => true,
            ShearX | ShearY | Rotate | Brightness | Color | Contrast | Sharpness => {
                self.magnitude == 0.0
            }
            TranslateX | TranslateY => self.magnitude.trunc() == 0.0,
            Posterize => self.magnitude >= 8.0,
            _ => false,
        }
    }

    /// The formula of a point operation that does not depend on image statistics.
    fn formula(&self) -> Option<Formula> {
        Some(match self.operation {
            Brightness => Formula::Linear { gain: (1.0 + self.magnitude) as f32, bias: 0.0 },
            Posterize => Formula::Mask(!(0xFF_u32 >> self.magnitude as u32) as u8),
            Solarize => match (255.0 * self.magnitude).ceil() {
                from if from > 255.0 => Formula::Mask(0xFF),
                from => Formula::Solarize(from.max(0.0) as u8),
            },
            Invert => Formula::Invert,
            _ => return None,
        })
    }
}

/// Executes chains of operations.
pub struct Chains<'a> {
    /// A single image, with one or three interleaved channels.
    pub stack: Stack,
    pub interpolation: Interpolation,
    /// One value per channel.
    pub fill: &'a [u8],
    scratch: [Vec<u8>; 2],
}

impl<'a> Chains<'a> {
    pub fn new(stack: Stack, interpolation: Interpolation, fill: &'a [u8]) -> Chains<'a> {
        Chains { stack, interpolation, fill, scratch: [Vec::new(), Vec::new()] }
    }

    /// Runs the steps on `src`, writing to `dst`.
    pub fn run(&mut self, steps: &[Step], src: &[u8], dst: &mut [u8]) -> Result<()> {
        let stages = stages(steps)?;
        let Some((last, before)) = stages.split_last() else {
            dst.copy_from_slice(src);
            return Ok(());
        };
        let [mut from, mut to] = std::mem::take(&mut self.scratch);
        for (number, stage) in before.iter().enumerate() {
            if to.is_empty() {
                to = zeroed(src.len())?;
            }
            self.stage(stage, if number == 0 { src } else { &from }, &mut to)?;
            std::mem::swap(&mut from, &mut to);
        }
        let outcome = self.stage(last, if before.is_empty() { src } else { &from }, dst);
        self.scratch = [from, to];
        outcome
    }

    fn stage(&self, stage: &[Step], src: &[u8], dst: &mut [u8]) -> Result<()> {
        if src.is_empty() {
            return Ok(());
        }
        let [step] = stage else { return self.points(stage, src, dst) };
        let Stack { height, width, channels, .. } = self.stack;
        let image = Image { pixels: src, height, width, channels };
        let m = step.magnitude;
        let linear = self.interpolation == Interpolation::Linear;
        let moved = |places: &Affine, dst: &mut [u8]| {
            sample(image, places, self.interpolation, self.fill, dst)
        };
        match step.operation {
            ShearX if linear => moved(&Affine([[1.0, m, 0.0], [0.0, 1.0, 0.0]]), dst)?,
            ShearY if linear => moved(&Affine([[1.0, 0.0, 0.0], [m, 1.0, 0.0]]), dst)?,
            ShearX => shift_rows(image, |y| sheared_by(m, y), self.fill, dst),
            ShearY => shift_columns(image, |x| sheared_by(m, x), self.fill, dst)?,
            TranslateX => shift_rows(image, |_| -m.trunc(), self.fill, dst),
            TranslateY => shift_columns(image, |_| -m.trunc(), self.fill, dst)?,
            Rotate => {
                let turn = (m / 360.0).rem_euclid(1.0).min(1.0 - f64::EPSILON);
                let (sine, cosine) = sin_cos_of_turn(turn);
                moved(&Affine::rotation(sine, cosine, height, width), dst)?;
            }
            Color if channels == 3 => bytes::saturate(src, dst, (1.0 + m) as f32),
            Color => dst.copy_from_slice(src),
            Sharpness => bytes::sharpen(src, dst, &self.stack, (1.0 + m) as f32),
            _ => return self.points(stage, src, dst),
        }
        Ok(())
    }

    /// Runs consecutive point operations in one pass.
    fn points(&self, steps: &[Step], src: &[u8], dst: &mut [u8]) -> Result<()> {
        if let [step] = steps {
            let formula = match step.operation {
                Contrast => Some(self.contrast(step, src, None)),
                _ => step.formula(),
            };
            if let Some(formula) = formula {
                formula.apply(src, dst);
                return Ok(());
            }
        }
        let channels = self.stack.channels;
        let mut tables: Vec<Table> = filled(bytes::table(|x| x), channels)?;
        let mut counts: Option<Vec<Histogram>> = None;
        for step in steps {
            let formula = match step.operation {
                Contrast => Some(self.contrast(step, src, Some(&tables))),
                _ => step.formula(),
            };
            if let Some(formula) = formula {
                let next = formula.table();
                tables.iter_mut().for_each(|table| *table = table.map(|x| next[usize::from(x)]));
                continue;
            }
            let counts = match &counts {
                Some(counts) => counts,
                None => counts.insert(bytes::histograms(src, channels)?),
            };
            for (table, counts) in tables.iter_mut().zip(counts) {
                let counts = bytes::looked_up(counts, table);
                let next = match (step.operation, bytes::ends(&counts)) {
                    (Equalize, _) => bytes::equalizing(&counts),
                    (_, Some((low, high))) => bytes::stretch(low, high),
                    (_, None) => continue,
                };
                *table = table.map(|x| next[usize::from(x)]);
            }
        }
        bytes::look_up(src, dst, &tables);
        Ok(())
    }

    /// Contrast relative to the mean gray value of the image, after its tables are applied.
    fn contrast(&self, step: &Step, src: &[u8], tables: Option<&[Table]>) -> Formula {
        let gain = (1.0 + step.magnitude) as f32;
        let mean = bytes::mean_gray(src, self.stack.channels, tables);
        Formula::Linear { gain, bias: mean * (1.0 - gain) }
    }
}

/// Groups steps that run together, dropping those without effect.
fn stages(steps: &[Step]) -> Result<Vec<Vec<Step>>> {
    let mut made: Vec<Vec<Step>> = crate::value::with_room(steps.len())?;
    for &step in steps.iter().filter(|step| !step.is_nothing()) {
        match made.last_mut() {
            Some(last) if step.operation.is_point() && last[0].operation.is_point() => {
                last.push(step);
            }
            _ => made.push(vec![step]),
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(operation: Operation, magnitude: f64) -> Step {
        Step { operation, magnitude }
    }

    #[test]
    fn a_chain_equals_its_steps_run_one_by_one() {
        let stack = Stack { height: 23, width: 17, channels: 3 };
        let src: Vec<u8> = (0..stack.elements()).map(|i| (i * i % 241) as u8).collect();
        let mut chains = Chains::new(stack, Interpolation::Nearest, &[1, 2, 3]);
        let magnitude = |operation| match operation {
            Posterize => 5.0,
            Rotate => 20.0,
            TranslateX | TranslateY => 3.0,
            _ => 0.4,
        };
        for first in Operation::ALL {
            for second in Operation::ALL {
                for third in [Identity, AutoContrast, Equalize, Contrast, ShearY] {
                    let steps = [first, second, third].map(|each| step(each, magnitude(each)));
                    let mut expected = src.clone();
                    for each in &steps {
                        let before = expected.clone();
                        chains.run(&[*each], &before, &mut expected).unwrap();
                    }
                    let mut found = vec![0; src.len()];
                    chains.run(&steps, &src, &mut found).unwrap();
                    assert!(found == expected, "{steps:?}");
                }
            }
        }
    }

    #[test]
    fn invalid_magnitudes_are_rejected() {
        assert!(step(Posterize, 9.0).checked().is_err());
        assert!(step(Color, -1.1).checked().is_err());
        assert!(step(ShearX, f64::NAN).checked().is_err());
        assert!(step(ShearX, 1e300).checked().is_ok());
    }
}
