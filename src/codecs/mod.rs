//! Compressed images: what they say of themselves, and their pixels.

pub mod pixels;

pub use pixels::{Broken, Color, Data, Format, Header, Pixels};
