//! Compressed parts of files, whose size is known from elsewhere in the file.

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};

use super::ranges::broken;
use super::source::Result;
use crate::value::{Cause, problems, zeroed};

problems! {
    /// Why compressed data can't be used.
    pub enum UnpackFault {
        Claim { name: &'static str, packed: usize, claimed: u64 },
        Damaged { name: &'static str, text: String },
        Size { name: &'static str, found: usize, claimed: usize },
    }
}

/// How data is compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Packing {
    None,
    Snappy,
    Gzip,
    Zstd,
    /// A block without a frame.
    Lz4,
    Lz4Frame,
}

impl Packing {
    fn name(self) -> &'static str {
        match self {
            Packing::None => "plain data",
            Packing::Snappy => "Snappy",
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
            Packing::Lz4 | Packing::Lz4Frame => "LZ4",
        }
    }

    /// The most that a byte of compressed data can stand for, rounded up.
    fn most(self) -> u64 {
        match self {
            Packing::None => 1,
            Packing::Snappy => 64,
            Packing::Gzip => 1100,
            // A run of 128 KB takes four bytes.
            Packing::Zstd => 1 << 16,
            Packing::Lz4 | Packing::Lz4Frame => 256,
        }
    }
}

/// Decompresses data to exactly as many bytes as the file claims. A claim that can't be true is
/// refused before memory is allocated for it.
pub fn unpack(packing: Packing, packed: &[u8], claimed: u64) -> Result<Vec<u8>> {
    let name = packing.name();
    let possible = (packed.len() as u64).saturating_mul(packing.most()).saturating_add(64);
    if claimed > possible {
        return Err(broken(UnpackFault::Claim { name, packed: packed.len(), claimed }));
    }
    let mut out = zeroed::<u8>(claimed as usize)?;
    let claimed = out.len();
    let damaged = |text: String| broken(UnpackFault::Damaged { name, text });
    let found = match packing {
        Packing::None => {
            if packed.len() == claimed {
                out.copy_from_slice(packed);
            }
            packed.len()
        }
        Packing::Snappy => {
            let length = snap::raw::decompress_len(packed).map_err(|e| damaged(e.to_string()))?;
            if length == claimed {
                let mut decoder = snap::raw::Decoder::new();
                decoder.decompress(packed, &mut out).map_err(|e| damaged(e.to_string()))?;
            }
            length
        }
        Packing::Gzip => gzip(packed, &mut out).map_err(damaged)?,
        Packing::Zstd => {
            let memory = Cause::Memory { bytes: 1 << 17 };
            let mut context = zstd_safe::DCtx::try_create().ok_or(memory)?;
            let done = context.decompress(&mut out[..], packed);
            done.map_err(|code| damaged(zstd_safe::get_error_name(code).into()))?
        }
        Packing::Lz4 => lz4_flex::block::decompress_into(packed, &mut out)
            .map_err(|error| damaged(error.to_string()))?,
        Packing::Lz4Frame => {
            let mut decoder = lz4_flex::frame::FrameDecoder::new(packed);
            fill(&mut decoder, &mut out).map_err(|error| damaged(error.to_string()))?
        }
    };
    match found == claimed {
        true => Ok(out),
        false => Err(broken(UnpackFault::Size { name, found, claimed })),
    }
}

/// Reads until `out` is full or the data ends; a byte more counts as one.
fn fill(from: &mut impl Read, out: &mut [u8]) -> std::io::Result<usize> {
    let mut found = 0;
    let mut spare = [0];
    loop {
        let room = if found < out.len() { &mut out[found..] } else { &mut spare[..] };
        match from.read(room) {
            Ok(0) => return Ok(found),
            Ok(_) if found == out.len() => return Ok(found + 1),
            Ok(count) => found += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// All members of a gzip file; returns the number of bytes, or one more than there is room for.
fn gzip(packed: &[u8], out: &mut [u8]) -> Result<usize, String> {
    /// 32 KiB, the maximum window of the format.
    const WINDOW_BITS: u8 = 15;
    let (mut taken, mut found) = (0, 0);
    let mut spare = [0];
    loop {
        let mut state = Decompress::new_gzip(WINDOW_BITS);
        loop {
            let full = found == out.len();
            let room = if full { &mut spare[..] } else { &mut out[found..] };
            let (before_in, before_out) = (state.total_in(), state.total_out());
            let status = state
                .decompress(&packed[taken..], room, FlushDecompress::Finish)
                .map_err(|error| error.to_string())?;
            let more = (state.total_out() - before_out) as usize;
            taken += (state.total_in() - before_in) as usize;
            if full && more > 0 {
                return Ok(out.len() + 1);
            }
            found += more;
            if status == Status::StreamEnd {
                break;
            }
            if more == 0 && state.total_in() == before_in {
                return Err("it ends too early".into());
            }
        }
        if !packed[taken..].starts_with(b"\x1F\x8B") {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(packing: Packing, data: &[u8]) -> Vec<u8> {
        match packing {
            Packing::None => data.to_vec(),
            Packing::Snappy => snap::raw::Encoder::new().compress_vec(data).unwrap(),
            Packing::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
                writer.write_all(data).unwrap();
                writer.finish().unwrap()
            }
            Packing::Zstd => {
                let mut out = vec![0; zstd_safe::compress_bound(data.len())];
                let count = zstd_safe::compress(&mut out[..], data, 3).unwrap();
                out.truncate(count);
                out
            }
            Packing::Lz4 => lz4_flex::block::compress(data),
            Packing::Lz4Frame => {
                let mut writer = lz4_flex::frame::FrameEncoder::new(vec![]);
                writer.write_all(data).unwrap();
                writer.finish().unwrap()
            }
        }
    }

    #[test]
    fn what_was_packed_comes_back_and_false_claims_are_refused() {
        let data: Vec<u8> = (0..5000_u32).map(|i| (i * i / 7) as u8).collect();
        for packing in [
            Packing::None,
            Packing::Snappy,
            Packing::Gzip,
            Packing::Zstd,
            Packing::Lz4,
            Packing::Lz4Frame,
        ] {
            let small = packed(packing, &data);
            assert_eq!(unpack(packing, &small, 5000).unwrap(), data, "{packing:?}");
            for claimed in [0, 4999, 5001, u64::MAX, 1 << 40] {
                assert!(unpack(packing, &small, claimed).is_err(), "{packing:?} {claimed}");
            }
            assert!(unpack(packing, &small[..small.len() / 2], 5000).is_err(), "{packing:?}");
            for place in 0..small.len().min(400) {
                let mut flipped = small.clone();
                flipped[place] ^= 0x41;
                let _ = unpack(packing, &flipped, 5000);
            }
        }
        let twice = [packed(Packing::Gzip, b"ab"), packed(Packing::Gzip, b"cd")].concat();
        assert_eq!(unpack(Packing::Gzip, &twice, 4).unwrap(), b"abcd");
    }
}
