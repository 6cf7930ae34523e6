//! Search spaces and policies of the papers, with torchvision's constants.

use super::chain::Operation::{self, *};
use super::chain::Step;
use crate::kernels::numeric::philox::{Source, below, fraction};

/// Magnitude ranges of the operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Space {
    pub shear: f64,
    pub translation: Translation,
    pub rotation: f64,
    /// For brightness, color, contrast and sharpness.
    pub factor: f64,
    /// Bits that posterize keeps at the lowest level, and how many fewer at the highest.
    pub bits: [f64; 2],
}

/// Maximum translation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Translation {
    Pixels(f64),
    /// Fraction of the image's side.
    Share(f64),
}

/// AutoAugment and RandAugment.
pub const STANDARD: Space = Space {
    shear: 0.3,
    translation: Translation::Share(150.0 / 331.0),
    rotation: 30.0,
    factor: 0.9,
    bits: [8.0, 4.0],
};

/// TrivialAugment, wide.
pub const WIDE: Space = Space {
    shear: 0.99,
    translation: Translation::Pixels(32.0),
    rotation: 135.0,
    factor: 0.99,
    bits: [8.0, 6.0],
};

/// AugMix.
pub const AUGMIX: Space =
    Space { translation: Translation::Share(1.0 / 3.0), bits: [4.0, 4.0], ..STANDARD };

/// Operations of RandAugment and TrivialAugment.
pub const CHOICES: [Operation; 14] = [
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
];

/// Operations of AugMix; the last four are only used with `all_ops`.
pub const AUGMIX_CHOICES: [Operation; 13] = [
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
    Brightness,
    Color,
    Contrast,
    Sharpness,
];
pub const AUGMIX_PARTIAL: usize = 9;

impl Space {
    /// Unsigned magnitude of an operation at `level`, from 0 to 1, for an image of this size.
    pub fn magnitude(&self, operation: Operation, level: f64, height: usize, width: usize) -> f64 {
        let moved = |side: usize| match self.translation {
            Translation::Pixels(most) => most * level,
            Translation::Share(share) => share * side as f64 * level,
        };
        match operation {
            ShearX | ShearY => self.shear * level,
            TranslateX => moved(width),
            TranslateY => moved(height),
            Rotate => self.rotation * level,
            Brightness | Color | Contrast | Sharpness => self.factor * level,
            Posterize => (self.bits[0] - self.bits[1] * level).round_ties_even(),
            Solarize => 1.0 - level,
            Identity | AutoContrast | Equalize | Invert => 0.0,
        }
    }
}

fn is_signed(operation: Operation) -> bool {
    matches!(
        operation,
        ShearX
            | ShearY
            | TranslateX
            | TranslateY
            | Rotate
            | Brightness
            | Color
            | Contrast
            | Sharpness
    )
}

/// Random decisions for one sample. Each decision uses its own block of random numbers, so it does
/// not depend on how the others were made.
pub struct Draws<'a> {
    pub source: Source<'a>,
    pub space: &'static Space,
    pub height: usize,
    pub width: usize,
}

impl Draws<'_> {
    /// A random integer below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let [a, b, ..] = self.source.next();
        below(a, b, count as u64) as usize
    }

    pub fn happens(&mut self, chance: f64) -> bool {
        let [a, b, ..] = self.source.next();
        fraction(a, b) < chance
    }

    /// The operation at this level, with a random sign.
    pub fn step(&mut self, operation: Operation, level: f64) -> Step {
        let magnitude = self.space.magnitude(operation, level, self.height, self.width);
        let negative = self.happens(0.5) && is_signed(operation);
        Step { operation, magnitude: if negative { -magnitude } else { magnitude } }
    }
}

/// Number of levels of AutoAugment's policies.
pub const POLICY_LEVELS: usize = 10;

/// Operation, probability and level of a policy entry.
pub type Part = (Operation, f64, usize);

pub type Policy = [[Part; 2]; 25];

pub const IMAGENET: Policy = [
    [(Posterize, 0.4, 8), (Rotate, 0.6, 9)],
    [(Solarize, 0.6, 5), (AutoContrast, 0.6, 0)],
    [(Equalize, 0.8, 0), (Equalize, 0.6, 0)],
    [(Posterize, 0.6, 7), (Posterize, 0.6, 6)],
    [(Equalize, 0.4, 0), (Solarize, 0.2, 4)],
    [(Equalize, 0.4, 0), (Rotate, 0.8, 8)],
    [(Solarize, 0.6, 3), (Equalize, 0.6, 0)],
    [(Posterize, 0.8, 5), (Equalize, 1.0, 0)],
    [(Rotate, 0.2, 3), (Solarize, 0.6, 8)],
    [(Equalize, 0.6, 0), (Posterize, 0.4, 6)],
    [(Rotate, 0.8, 8), (Color, 0.4, 0)],
    [(Rotate, 0.4, 9), (Equalize, 0.6, 0)],
    [(Equalize, 0.0, 0), (Equalize, 0.8, 0)],
    [(Invert, 0.6, 0), (Equalize, 1.0, 0)],
    [(Color, 0.6, 4), (Contrast, 1.0, 8)],
    [(Rotate, 0.8, 8), (Color, 1.0, 2)],
    [(Color, 0.8, 8), (Solarize, 0.8, 7)],
    [(Sharpness, 0.4, 7), (Invert, 0.6, 0)],
    [(ShearX, 0.6, 5), (Equalize, 1.0, 0)],
    [(Color, 0.4, 0), (Equalize, 0.6, 0)],
    [(Equalize, 0.4, 0), (Solarize, 0.2, 4)],
    [(Solarize, 0.6, 5), (AutoContrast, 0.6, 0)],
    [(Invert, 0.6, 0), (Equalize, 1.0, 0)],
    [(Color, 0.6, 4), (Contrast, 1.0, 8)],
    [(Equalize, 0.8, 0), (Equalize, 0.6, 0)],
];

pub const CIFAR10: Policy = [
    [(Invert, 0.1, 0), (Contrast, 0.2, 6)],
    [(Rotate, 0.7, 2), (TranslateX, 0.3, 9)],
    [(Sharpness, 0.8, 1), (Sharpness, 0.9, 3)],
    [(ShearY, 0.5, 8), (TranslateY, 0.7, 9)],
    [(AutoContrast, 0.5, 0), (Equalize, 0.9, 0)],
    [(ShearY, 0.2, 7), (Posterize, 0.3, 7)],
    [(Color, 0.4, 3), (Brightness, 0.6, 7)],
    [(Sharpness, 0.3, 9), (Brightness, 0.7, 9)],
    [(Equalize, 0.6, 0), (Equalize, 0.5, 0)],
    [(Contrast, 0.6, 7), (Sharpness, 0.6, 5)],
    [(Color, 0.7, 7), (TranslateX, 0.5, 8)],
    [(Equalize, 0.3, 0), (AutoContrast, 0.4, 0)],
    [(TranslateY, 0.4, 3), (Sharpness, 0.2, 6)],
    [(Brightness, 0.9, 6), (Color, 0.2, 8)],
    [(Solarize, 0.5, 2), (Invert, 0.0, 0)],
    [(Equalize, 0.2, 0), (AutoContrast, 0.6, 0)],
    [(Equalize, 0.2, 0), (Equalize, 0.6, 0)],
    [(Color, 0.9, 9), (Equalize, 0.6, 0)],
    [(AutoContrast, 0.8, 0), (Solarize, 0.2, 8)],
    [(Brightness, 0.1, 3), (Color, 0.7, 0)],
    [(Solarize, 0.4, 5), (AutoContrast, 0.9, 0)],
    [(TranslateY, 0.9, 9), (TranslateY, 0.7, 9)],
    [(AutoContrast, 0.9, 0), (Solarize, 0.8, 3)],
    [(Equalize, 0.8, 0), (Invert, 0.1, 0)],
    [(TranslateY, 0.7, 9), (AutoContrast, 0.9, 0)],
];

pub const SVHN: Policy = [
    [(ShearX, 0.9, 4), (Invert, 0.2, 0)],
    [(ShearY, 0.9, 8), (Invert, 0.7, 0)],
    [(Equalize, 0.6, 0), (Solarize, 0.6, 6)],
    [(Invert, 0.9, 0), (Equalize, 0.6, 0)],
    [(Equalize, 0.6, 0), (Rotate, 0.9, 3)],
    [(ShearX, 0.9, 4), (AutoContrast, 0.8, 0)],
    [(ShearY, 0.9, 8), (Invert, 0.4, 0)],
    [(ShearY, 0.9, 5), (Solarize, 0.2, 6)],
    [(Invert, 0.9, 0), (AutoContrast, 0.8, 0)],
    [(Equalize, 0.6, 0), (Rotate, 0.9, 3)],
    [(ShearX, 0.9, 4), (Solarize, 0.3, 3)],
    [(ShearY, 0.8, 8), (Invert, 0.7, 0)],
    [(Equalize, 0.9, 0), (TranslateY, 0.6, 6)],
    [(Invert, 0.9, 0), (Equalize, 0.6, 0)],
    [(Contrast, 0.3, 3), (Rotate, 0.8, 4)],
    [(Invert, 0.8, 0), (TranslateY, 0.0, 2)],
    [(ShearY, 0.7, 6), (Solarize, 0.4, 8)],
    [(Invert, 0.6, 0), (Rotate, 0.8, 4)],
    [(ShearY, 0.3, 7), (TranslateX, 0.9, 3)],
    [(ShearX, 0.1, 6), (Invert, 0.6, 0)],
    [(Solarize, 0.7, 2), (TranslateY, 0.6, 7)],
    [(ShearY, 0.8, 4), (Invert, 0.8, 0)],
    [(ShearX, 0.7, 9), (TranslateY, 0.8, 3)],
    [(ShearY, 0.8, 5), (AutoContrast, 0.7, 0)],
    [(ShearX, 0.7, 2), (Invert, 0.1, 0)],
];
