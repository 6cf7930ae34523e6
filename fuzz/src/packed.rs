//! Compressed bytes.

use _core::kernels::{Arg, ArgReader, find};
use _core::value::DType;

use crate::poison;

const ALGORITHMS: [&str; 6] = ["LZ4", "LZ4_frame", "deflate", "zlib", "gzip", "zstd"];

/// Bytes that say which algorithm, the size of a result, and where a second chunk begins, if not at
/// 0; then the compressed bytes.
pub fn inflate(data: &[u8]) -> bool {
    let Some((&[algorithm, low, high, second], packed)) = data.split_first_chunk() else {
        return false;
    };
    let Some(algorithm) = ALGORITHMS.get(usize::from(algorithm)) else { return false };
    let Ok(sample) = poison::sample(packed) else { return true };
    let entry = find("decoders.inflate").expect("a decoder");
    let argument = |name: &&str| match *name {
        "algorithm" => Arg::Text((*algorithm).into()),
        "chunk_offsets" if second > 0 => Arg::Ints([0, second.into()].into()),
        "dtype" => Arg::Int(DType::U8.code().into()),
        "shape" => Arg::Ints([u16::from_le_bytes([low, high]).into()].into()),
        "rank" => Arg::Int(1),
        _ => Arg::Absent,
    };
    let args: Vec<Arg> = entry.args.iter().map(argument).collect();
    let inputs = std::slice::from_ref(&sample);
    let work = (entry.cpu)();
    let kernel = work.sample_kernel().expect("a kernel of samples");
    poison::compare(|allocate| {
        kernel.run(&ArgReader::new(&args, inputs, 0), inputs, allocate).ok()
    });
    true
}
