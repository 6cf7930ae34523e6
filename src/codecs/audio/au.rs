//! AU: a header of a few numbers, then the samples.

use super::pcm::{Coding, Order};
use super::raw::{Layout, Stored};
use super::{AudioFault, Result, Stream, broken, read_at, unsupported};

pub fn read(stream: &mut Box<dyn Stream + '_>) -> Result<Layout> {
    let mut head = [0; 24];
    read_at(stream, 0, &mut head)?;
    // Files of machines with the other byte order have their magic reversed as well.
    let order = if &head[..4] == b"dns." { Order::Little } else { Order::Big };
    let number = |at: usize| {
        let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
        match order {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    };
    let (start, size, encoding, rate) = (number(4), number(8), number(12), number(16));
    let channels = usize::try_from(number(20)).unwrap_or(usize::MAX);
    let coding = match encoding {
        1 => Coding::MuLaw,
        2 => Coding::Signed8,
        3 => Coding::Signed16(order),
        4 => Coding::Signed24(order),
        5 => Coding::Signed32(order),
        6 => Coding::Float32(order),
        7 => Coding::Float64(order),
        27 => Coding::ALaw,
        23..=26 => return Err(unsupported("AU with ADPCM samples")),
        _ => return Err(broken(AudioFault::Encoding { name: encoding.to_string() })),
    };
    // More channels than any format can have are a damaged header.
    if rate == 0 || !(1..=1 << 16).contains(&channels) {
        return Err(broken(AudioFault::Claims { channels, rate }));
    }
    let claimed = (size != u32::MAX).then_some(u64::from(size));
    Ok(Layout { rate, channels, stored: Stored::Samples(coding), start: u64::from(start), claimed })
}
