//! Decompression. The requested shape limits the size of the output.

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};
use smallvec::SmallVec;

use super::problem::Inflate;
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::{Arg, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Cause, DType, Damage, Desc, Problem, Sample, extent};

pub struct InflateChunks;

args! {
    pub struct InflateArgs {
        algorithm: Algorithm,
        chunk_offsets: Option<Ints>,
        chunk_sizes: Option<Ints>,
        dtype: DType,
        shape: Ints,
        rank: i64,
    }
}

type Ints = SmallVec<[i64; 6]>;

#[derive(Clone, Copy)]
pub enum Algorithm {
    /// A raw block without a frame.
    Lz4,
    Lz4Frame,
    Deflate,
    Zlib,
    Gzip,
    Zstd,
}

impl FromArg for Algorithm {
    fn from_constant(arg: &Arg) -> std::result::Result<Algorithm, Problem> {
        const NAMES: [(&str, Algorithm); 6] = [
            ("lz4", Algorithm::Lz4),
            ("lz4_frame", Algorithm::Lz4Frame),
            ("deflate", Algorithm::Deflate),
            ("zlib", Algorithm::Zlib),
            ("gzip", Algorithm::Gzip),
            ("zstd", Algorithm::Zstd),
        ];
        let name = String::from_constant(arg)?.to_ascii_lowercase();
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, algorithm)| *algorithm).ok_or_else(|| {
            let choices = "LZ4, LZ4_frame, deflate, zlib, gzip, zstd";
            Argument::OneOf { choices, given: arg.shown() }.into()
        })
    }

    fn from_sample(_: &Sample) -> std::result::Result<Algorithm, Problem> {
        Err(Argument::SameForAll.into())
    }
}

/// Position of a chunk in the input.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Chunk {
    start: usize,
    length: usize,
}

pub struct Plan {
    algorithm: Algorithm,
    chunks: Vec<Chunk>,
    /// Decompressed size of each chunk.
    bytes: usize,
}

impl Kernel for InflateChunks {
    type Args = InflateArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: InflateArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let input = inputs[0];
        if input.ndim() != 1 || input.dtype.size() != 1 {
            let (shape, dtype) = (input.shape.to_vec(), input.dtype.name());
            return Err(unfit(0, Inflate::NotBytes { shape, dtype }));
        }
        if args.shape.len() as i64 != args.rank {
            let (given, wanted) = (args.shape.len(), args.rank as usize);
            return Err(argument("shape", Inflate::Rank { given, wanted }));
        }
        let mut shape: SmallVec<[usize; 6]> = SmallVec::new();
        for &length in &args.shape {
            let problem = || Argument::Negative { given: length as f64 };
            shape.push(usize::try_from(length).map_err(|_| argument("shape", problem()))?);
        }
        let chunked = args.chunk_offsets.is_some() || args.chunk_sizes.is_some();
        let chunks = chunks(&args.chunk_offsets, &args.chunk_sizes, input.shape[0])?;
        let all = chunked.then_some(chunks.len());
        let whole: SmallVec<[usize; 6]> = all.into_iter().chain(shape.iter().copied()).collect();
        let bytes = |shape: &[usize]| {
            let bytes = extent(shape).and_then(|n| n.checked_mul(args.dtype.size()));
            bytes.filter(|&bytes| bytes <= isize::MAX as usize)
        };
        let (Some(each), Some(_)) = (bytes(&shape), bytes(&whole)) else {
            return Err(argument("shape", Argument::TooLarge));
        };
        let plan = Plan { algorithm: args.algorithm, chunks, bytes: each };
        Ok((plan, one(Desc::new(args.dtype, &whole))))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let input = inputs[0].elements_as_bytes();
        let out = outputs[0].bytes();
        let mut inflater = Inflater::new(plan.algorithm)?;
        for (index, chunk) in plan.chunks.iter().enumerate() {
            let out = &mut out[index * plan.bytes..][..plan.bytes];
            let src = &input[chunk.start..][..chunk.length];
            inflater.inflate(src, out).map_err(|fault| fault.cause(index, plan))?;
        }
        Ok(())
    }
}

/// Positions of the chunks in an input of `length` bytes. By default, the whole input is one chunk.
fn chunks(offsets: &Option<Ints>, sizes: &Option<Ints>, length: usize) -> Result<Vec<Chunk>> {
    let name = if sizes.is_some() { "chunk_sizes" } else { "chunk_offsets" };
    let number = |name, given: i64| {
        let problem = || Argument::Negative { given: given as f64 };
        usize::try_from(given).map_err(|_| argument(name, problem()))
    };
    let mut found = Vec::new();
    match (offsets, sizes) {
        (None, None) => found.push(Chunk { start: 0, length }),
        (Some(offsets), Some(sizes)) => {
            if offsets.len() != sizes.len() {
                let (offsets, sizes) = (offsets.len(), sizes.len());
                return Err(argument("chunk_sizes", Inflate::Counts { offsets, sizes }));
            }
            for (&start, &size) in offsets.iter().zip(sizes) {
                let start = number("chunk_offsets", start)?;
                found.push(Chunk { start, length: number("chunk_sizes", size)? });
            }
        }
        (None, Some(sizes)) => {
            let mut start = 0_usize;
            for &size in sizes {
                let length = number("chunk_sizes", size)?;
                found.push(Chunk { start, length });
                start = start.saturating_add(length);
            }
        }
        (Some(offsets), None) => {
            for (index, &start) in offsets.iter().enumerate() {
                let start = number("chunk_offsets", start)?;
                let end = match offsets.get(index + 1) {
                    Some(&next) => number("chunk_offsets", next)?,
                    None => length,
                };
                let backwards = || argument("chunk_offsets", Inflate::Backwards { start, end });
                let length = end.checked_sub(start).ok_or_else(backwards)?;
                found.push(Chunk { start, length });
            }
        }
    }
    for (index, chunk) in found.iter().enumerate() {
        let end = chunk.start.saturating_add(chunk.length);
        if end > length {
            let start = chunk.start;
            return Err(argument(name, Inflate::Outside { index, start, end, length }));
        }
    }
    Ok(found)
}

/// Problems of a chunk.
#[derive(Debug, PartialEq)]
enum ChunkFault {
    Longer,
    Shorter { found: usize },
    Ends,
    Damaged(String),
}

impl ChunkFault {
    fn cause(self, index: usize, plan: &Plan) -> Cause {
        let (chunk, wanted) = (index, plan.bytes);
        let (kind, problem) = match self {
            ChunkFault::Longer => (Damage::Broken, Inflate::Longer { chunk, wanted }),
            ChunkFault::Shorter { found } => {
                (Damage::Broken, Inflate::Shorter { chunk, found, wanted })
            }
            ChunkFault::Ends => (Damage::Truncated, Inflate::Ends { chunk }),
            ChunkFault::Damaged(text) => (Damage::Broken, Inflate::Damaged { chunk, text }),
        };
        Cause::Undecodable { kind, problem: problem.into() }
    }
}

/// A decompressor, with state that is reused for all chunks.
enum Inflater {
    Lz4,
    Lz4Frame,
    Flate { state: Decompress, wrapper: Wrapper },
    Zstd(zstd_safe::DCtx<'static>),
}

/// The container format of deflate data.
#[derive(Clone, Copy, PartialEq)]
enum Wrapper {
    None,
    Zlib,
    Gzip,
}

/// 32 KiB, the maximum window of the format.
const WINDOW_BITS: u8 = 15;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

impl Wrapper {
    fn start(self) -> Decompress {
        match self {
            Wrapper::Gzip => Decompress::new_gzip(WINDOW_BITS),
            other => Decompress::new(other == Wrapper::Zlib),
        }
    }
}

impl Inflater {
    fn new(algorithm: Algorithm) -> Result<Inflater> {
        let flate = |wrapper: Wrapper| Inflater::Flate { state: wrapper.start(), wrapper };
        Ok(match algorithm {
            Algorithm::Lz4 => Inflater::Lz4,
            Algorithm::Lz4Frame => Inflater::Lz4Frame,
            Algorithm::Deflate => flate(Wrapper::None),
            Algorithm::Zlib => flate(Wrapper::Zlib),
            Algorithm::Gzip => flate(Wrapper::Gzip),
            Algorithm::Zstd => {
                // Approximate size of a context.
                let memory = Cause::Memory { bytes: 1 << 17 };
                Inflater::Zstd(zstd_safe::DCtx::try_create().ok_or(memory)?)
            }
        })
    }

    /// Decompresses a chunk, which must fill `out` exactly.
    fn inflate(&mut self, src: &[u8], out: &mut [u8]) -> std::result::Result<(), ChunkFault> {
        let found = match self {
            Inflater::Lz4 => lz4(src, out)?,
            Inflater::Lz4Frame => lz4_frame(src, out)?,
            Inflater::Flate { state, wrapper } => flate(state, *wrapper, src, out)?,
            Inflater::Zstd(context) => zstd(context, src, out)?,
        };
        if found == out.len() { Ok(()) } else { Err(ChunkFault::Shorter { found }) }
    }
}

fn lz4(src: &[u8], out: &mut [u8]) -> std::result::Result<usize, ChunkFault> {
    use lz4_flex::block::{DecompressError, decompress_into};
    decompress_into(src, out).map_err(|error| match error {
        DecompressError::OutputTooSmall { .. } => ChunkFault::Longer,
        DecompressError::LiteralOutOfBounds | DecompressError::ExpectedAnotherByte => {
            ChunkFault::Ends
        }
        other => ChunkFault::Damaged(other.to_string()),
    })
}

fn lz4_frame(src: &[u8], out: &mut [u8]) -> std::result::Result<usize, ChunkFault> {
    let mut decoder = lz4_flex::frame::FrameDecoder::new(src);
    let mut found = 0;
    let mut spare = [0];
    loop {
        // One spare byte tells whether the data ends where `out` does.
        let room = if found < out.len() { &mut out[found..] } else { &mut spare[..] };
        match decoder.read(room) {
            Ok(0) => return Ok(found),
            Ok(_) if found == out.len() => return Err(ChunkFault::Longer),
            Ok(count) => found += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(ChunkFault::Ends);
            }
            Err(error) => return Err(ChunkFault::Damaged(error.to_string())),
        }
    }
}

fn flate(
    state: &mut Decompress,
    wrapper: Wrapper,
    src: &[u8],
    out: &mut [u8],
) -> std::result::Result<usize, ChunkFault> {
    let (mut taken, mut found) = (0, 0);
    loop {
        match wrapper {
            Wrapper::Gzip => *state = wrapper.start(),
            other => state.reset(other == Wrapper::Zlib),
        }
        let (more_taken, more_found) = flate_member(state, &src[taken..], &mut out[found..])?;
        taken += more_taken;
        found += more_found;
        // Gzip files may be concatenated.
        if wrapper != Wrapper::Gzip || !src[taken..].starts_with(&GZIP_MAGIC) {
            return Ok(found);
        }
    }
}

/// Decompresses one stream; returns the number of bytes consumed and produced.
fn flate_member(
    state: &mut Decompress,
    src: &[u8],
    out: &mut [u8],
) -> std::result::Result<(usize, usize), ChunkFault> {
    let mut spare = [0];
    let (mut taken, mut found) = (0, 0);
    loop {
        // One spare byte tells whether the data ends where `out` does.
        let room = if found < out.len() { &mut out[found..] } else { &mut spare[..] };
        let status = state
            .decompress(&src[taken..], room, FlushDecompress::Finish)
            .map_err(|error| ChunkFault::Damaged(error.to_string()))?;
        let (before_taken, before_found) = (taken, found);
        taken = state.total_in() as usize;
        found = state.total_out() as usize;
        if found > out.len() {
            return Err(ChunkFault::Longer);
        }
        if status == Status::StreamEnd {
            return Ok((taken, found));
        }
        if (taken, found) == (before_taken, before_found) {
            return Err(ChunkFault::Ends);
        }
    }
}

fn zstd(
    context: &mut zstd_safe::DCtx<'_>,
    src: &[u8],
    out: &mut [u8],
) -> std::result::Result<usize, ChunkFault> {
    context.decompress(out, src).map_err(|code| match zstd_safe::get_error_name(code) {
        "Destination buffer is too small" => ChunkFault::Longer,
        "Src size is incorrect" => ChunkFault::Ends,
        text => ChunkFault::Damaged(text.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(offsets: Option<&[i64]>, sizes: Option<&[i64]>) -> Option<Vec<[usize; 2]>> {
        let found = chunks(&offsets.map(Ints::from), &sizes.map(Ints::from), 10).ok()?;
        Some(found.iter().map(|chunk| [chunk.start, chunk.length]).collect())
    }

    #[test]
    fn chunks_from_offsets_sizes_or_both() {
        assert_eq!(places(None, None), Some(vec![[0, 10]]));
        assert_eq!(places(Some(&[0, 4]), None), Some(vec![[0, 4], [4, 6]]));
        assert_eq!(places(None, Some(&[3, 2])), Some(vec![[0, 3], [3, 2]]));
        assert_eq!(places(Some(&[6, 1]), Some(&[4, 2])), Some(vec![[6, 4], [1, 2]]));
        assert_eq!(places(Some(&[]), None), Some(vec![]));
    }

    #[test]
    fn chunks_outside_the_input_are_rejected() {
        for (offsets, sizes) in [
            (Some(&[-1_i64][..]), None),
            (Some(&[11]), None),
            (Some(&[4, 2]), None),
            (None, Some(&[-1_i64][..])),
            (None, Some(&[5, 6])),
            (None, Some(&[i64::MAX, i64::MAX])),
            (Some(&[5]), Some(&[6])),
            (Some(&[5]), Some(&[1, 1])),
        ] {
            assert_eq!(places(offsets, sizes), None, "{offsets:?} {sizes:?}");
        }
    }

    /// "abcd", then a match of eight bytes at distance four.
    const LZ4: &[u8] = &[0x44, b'a', b'b', b'c', b'd', 4, 0, 0x50, b'a', b'b', b'c', b'd', b'!'];

    #[test]
    fn a_chunk_must_fill_its_output_exactly() {
        let inflate = |length: usize| {
            let mut out = vec![0; length];
            let outcome = Inflater::new(Algorithm::Lz4).unwrap().inflate(LZ4, &mut out);
            outcome.map(|()| out)
        };
        assert_eq!(inflate(17), Ok(b"abcdabcdabcdabcd!".to_vec()));
        assert_eq!(inflate(16), Err(ChunkFault::Longer));
        assert_eq!(inflate(18), Err(ChunkFault::Shorter { found: 17 }));
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut noise = 1_u32;
        let mut byte = || {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        };
        let starts: [&[u8]; 6] = [
            &[],
            &[0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0],
            &[],
            &[0x78, 0x9c],
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
            &[0x28, 0xb5, 0x2f, 0xfd, 0x00],
        ];
        let all = [
            Algorithm::Lz4,
            Algorithm::Lz4Frame,
            Algorithm::Deflate,
            Algorithm::Zlib,
            Algorithm::Gzip,
            Algorithm::Zstd,
        ];
        for (algorithm, start) in all.into_iter().zip(starts) {
            let mut inflater = Inflater::new(algorithm).unwrap();
            for length in (0..400).cycle().take(4000) {
                let mut src = start.to_vec();
                src.extend((0..length).map(|_| byte()));
                let mut out = vec![0; usize::from(byte()) * 4];
                let _ = inflater.inflate(&src, &mut out);
            }
        }
    }
}
