//! NIST SPHERE, the format of older speech corpora: a header of text, then the samples.

use super::pcm::{Coding, Order};
use super::raw::{Layout, Stored};
use super::{AudioFault, Result, Stream, broken, read_at, unsupported};
use crate::value::filled;

/// The most that is read of a header; real ones have 1024 bytes.
const LONGEST: usize = 1 << 16;

pub fn read(stream: &mut Box<dyn Stream + '_>) -> Result<Layout> {
    let mut head = [0; 16];
    read_at(stream, 0, &mut head)?;
    let size = str::from_utf8(&head[8..]).ok().and_then(|size| size.trim().parse().ok());
    let size = size.filter(|size| (head.len()..=LONGEST).contains(size));
    let Some(size) = size else { return Err(broken(AudioFault::Field { name: "header size" })) };
    let mut text = filled(0, size)?;
    read_at(stream, 0, &mut text)?;
    let fields = Fields(&text);
    let [count, rate, channels] = ["sample_count", "sample_rate", "channel_count"]
        .map(|name| fields.number(name).ok_or_else(|| broken(AudioFault::Field { name })));
    let rate = u32::try_from(rate?).unwrap_or(0);
    let channels = usize::try_from(channels?).unwrap_or(0);
    let bytes = fields.number("sample_n_bytes").unwrap_or(2);
    if rate == 0 || !(1..=1 << 16).contains(&channels) {
        return Err(broken(AudioFault::Claims { channels, rate }));
    }
    let order = match fields.text("sample_byte_format") {
        Some("10") => Order::Big,
        _ => Order::Little,
    };
    let coding = match (fields.text("sample_coding").unwrap_or("pcm"), bytes) {
        ("pcm", 1) => Coding::Signed8,
        ("pcm", 2) => Coding::Signed16(order),
        ("pcm", 3) => Coding::Signed24(order),
        ("pcm", 4) => Coding::Signed32(order),
        ("ulaw" | "mu-law", 1) => Coding::MuLaw,
        ("alaw", 1) => Coding::ALaw,
        (name, _) if name.contains("shorten") => {
            return Err(unsupported("NIST SPHERE compressed with Shorten"));
        }
        (name, _) => return Err(broken(AudioFault::Encoding { name: name.into() })),
    };
    let count = u64::try_from(count?).unwrap_or(0);
    let claimed = count.saturating_mul((channels * coding.bytes()) as u64);
    Ok(Layout {
        rate,
        channels,
        stored: Stored::Samples(coding),
        start: size as u64,
        claimed: Some(claimed),
    })
}

/// Lines of a name, a type and a value.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        let lines =
            self.0.split(|&byte| byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
        let mut lines = lines.take_while(|line| line.trim() != "end_head");
        lines.find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            (words.next() == Some(name)).then(|| words.nth(1)).flatten()
        })
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::{Sound, Span};

    fn sphere(fields: &str, samples: &[u8]) -> Vec<u8> {
        let mut file = format!("NIST_1A\n   1024\n{fields}end_head\n").into_bytes();
        file.resize(1024, b' ');
        file.extend(samples);
        file
    }

    const USUAL: &str = "sample_count -i 2\nsample_rate -i 16000\nchannel_count -i 1\n";

    fn read(file: &[u8]) -> Option<Vec<i16>> {
        let sound = Sound::open(Box::new(Cursor::new(file))).ok()?;
        assert_eq!((sound.rate(), sound.channels()), (16000, 1));
        sound.read(Span { start: 0, frames: None }).ok()
    }

    #[test]
    fn both_byte_orders_are_read() {
        assert_eq!(read(&sphere(USUAL, &[1, 0, 2, 0, 3, 0])), Some(vec![1, 2]));
        let swapped = format!("{USUAL}sample_byte_format -s2 10\nsample_n_bytes -i 2\n");
        assert_eq!(read(&sphere(&swapped, &[0, 1, 0, 2])), Some(vec![1, 2]));
        let law = format!("{USUAL}sample_coding -s4 ulaw\nsample_n_bytes -i 1\n");
        assert_eq!(read(&sphere(&law, &[0xff, 0x80])), Some(vec![0, 32124]));
    }

    #[test]
    fn headers_without_what_is_needed_are_refused() {
        assert_eq!(read(&sphere("", &[])), None);
        let packed = format!("{USUAL}sample_coding -s26 pcm,embedded-shorten-v2.00\n");
        assert_eq!(read(&sphere(&packed, &[0; 9])), None);
        assert_eq!(read(b"NIST_1A\n  -1024\n"), None);
        assert_eq!(read(b"NIST_1A\n99999999"), None);
        let whole = sphere(USUAL, &[1, 0, 2, 0]);
        for cut in 0..whole.len() {
            let _ = read(&whole[..cut]);
        }
    }
}
