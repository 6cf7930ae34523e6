//! Compressed images: what they say of themselves, and their pixels.

pub mod bmp;
pub mod bounds;
pub mod gif;
pub mod jpeg2000;
pub mod orientation;
pub mod pixels;
pub mod png;
pub mod pnm;
#[cfg(test)]
mod samples;
pub mod tiff;
pub mod webp;

pub use pixels::{Broken, Color, Data, Format, Header, Pixels};
