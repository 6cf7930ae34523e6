//! FFmpeg, loaded at run time. Everything unsafe about it is in this module: what it exports are
//! safe types that free what they own.

mod abi;
mod decoder;
mod demuxer;
mod input;
mod library;
mod pixel_format;

pub use self::decoder::{Decoder, Frame, Picture, Received};
pub use self::demuxer::{Choice, Demuxer, OpenFault, Packet, Read, Stream};
pub use self::input::Bytes;
pub use self::library::{Library, NO_PTS, Refusal};
pub use self::pixel_format::{Kind, PixelFormat};
