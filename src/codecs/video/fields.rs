//! Pairs of fields in H.264: interlaced video may have a packet for each of the two fields of a
//! frame. Headers of slices tell which is the second one.

/// What is known of the stream so far.
#[derive(Default)]
pub struct Fields {
    /// Bytes of the length in front of each unit; `None` for start codes.
    length_bytes: Option<usize>,
    /// Sequence parameters, and which of them picture parameters refer to, by number.
    sequences: [Option<Sequence>; 32],
    pictures: Vec<Option<u8>>,
    /// The packet before, if it has the first field of a frame.
    first: Option<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sequence {
    frame_number_bits: u32,
    separate_planes: bool,
    /// There are no fields.
    only_frames: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Field {
    frame_number: u32,
    bottom: bool,
}

// Types of units.
const SLICE: u8 = 1;
const PARTITION: u8 = 2;
const KEY_SLICE: u8 = 5;
const SEQUENCE: u8 = 7;
const PICTURE: u8 = 8;

/// Bytes of a unit that are looked at: no header that matters is longer.
const HEADER: usize = 512;
/// The profiles whose sequence parameters say more about colors.
const HIGH: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

impl Fields {
    /// For a stream whose header has these bytes for the decoder.
    pub fn new(extradata: &[u8]) -> Fields {
        let mut fields = Fields { pictures: vec![None; 256], ..Fields::default() };
        // A record of units with lengths starts with a version; what has start codes, with zeros.
        let [1, _, _, _, length, rest @ ..] = extradata else {
            fields.read_parameters(extradata);
            return fields;
        };
        fields.length_bytes = Some(usize::from(length & 3) + 1);
        let mut rest = rest;
        for mask in [0x1f, 0xff] {
            let Some((count, after)) = rest.split_first() else { break };
            rest = after;
            for _ in 0..count & mask {
                let Some((unit, after)) = with_length(rest, 2) else { return fields };
                fields.keep(unit);
                rest = after;
            }
        }
        fields
    }

    fn read_parameters(&mut self, bytes: &[u8]) {
        for unit in starting(bytes) {
            self.keep(unit);
        }
    }

    /// Whether a packet has only the second field of the frame whose first one the packet before
    /// has. Packets have to be given in the order of the file.
    pub fn is_second(&mut self, packet: &[u8]) -> bool {
        let before = self.first.take();
        let mut found: Option<Field> = None;
        let mut is_key = false;
        let length = self.length_bytes;
        let mut rest = packet;
        loop {
            let unit = match length {
                Some(bytes) => with_length(rest, bytes),
                None => with_start_code(rest),
            };
            let Some((unit, after)) = unit else { break };
            rest = after;
            match unit.first().map(|first| first & 0x1f) {
                Some(kind @ (SLICE | PARTITION | KEY_SLICE)) => {
                    // Frames, and streams that can't be understood.
                    let Some(field) = self.field(unit) else { return false };
                    // Both fields.
                    if found.is_some_and(|found| found.bottom != field.bottom) {
                        return false;
                    }
                    is_key |= kind == KEY_SLICE && found.is_none();
                    found = Some(field);
                }
                Some(SEQUENCE | PICTURE) => self.keep(unit),
                _ => {}
            }
        }
        let Some(field) = found else { return false };
        let pair = before.is_some_and(|first| {
            first.frame_number == field.frame_number && first.bottom != field.bottom
        });
        if pair && !is_key {
            return true;
        }
        self.first = Some(field);
        false
    }

    fn keep(&mut self, unit: &[u8]) {
        let Some((first, _)) = unit.split_first() else { return };
        let bytes = unescaped(&unit[1..]);
        let mut bits = Bits::new(&bytes);
        match first & 0x1f {
            SEQUENCE => {
                if let Some((number, sequence)) = sequence(&mut bits)
                    && let Some(place) = self.sequences.get_mut(number as usize)
                {
                    *place = Some(sequence);
                }
            }
            PICTURE => {
                if let (Some(number), Some(sequence)) = (bits.golomb(), bits.golomb())
                    && let Some(place) = self.pictures.get_mut(number as usize)
                {
                    *place = u8::try_from(sequence).ok();
                }
            }
            _ => {}
        }
    }

    /// The field that a slice is of; `None` if it is of a frame.
    fn field(&self, slice: &[u8]) -> Option<Field> {
        let known = self.sequences.iter().flatten();
        if known.clone().all(|sequence| sequence.only_frames) {
            return None;
        }
        let bytes = unescaped(&slice[1..slice.len().min(64)]);
        let mut bits = Bits::new(&bytes);
        bits.golomb()?; // the place of the slice
        bits.golomb()?; // its type
        let picture = bits.golomb()?;
        let sequence = (*self.pictures.get(picture as usize)?)?;
        let sequence = (*self.sequences.get(usize::from(sequence))?)?;
        if sequence.separate_planes {
            bits.number(2)?;
        }
        let frame_number = bits.number(sequence.frame_number_bits)?;
        let is_field = !sequence.only_frames && bits.number(1)? == 1;
        if !is_field {
            return None;
        }
        Some(Field { frame_number, bottom: bits.number(1)? == 1 })
    }
}

/// Sequence parameters and their number.
fn sequence(bits: &mut Bits<'_>) -> Option<(u32, Sequence)> {
    let profile = bits.number(8)?;
    bits.number(16)?; // constraints and level
    let number = bits.golomb()?;
    let mut separate_planes = false;
    if HIGH.contains(&profile) {
        let chroma = bits.golomb()?;
        if chroma == 3 {
            separate_planes = bits.number(1)? == 1;
        }
        bits.golomb()?; // depths of luma and chroma
        bits.golomb()?;
        bits.number(1)?;
        if bits.number(1)? == 1 {
            for list in 0..if chroma == 3 { 12 } else { 8 } {
                if bits.number(1)? == 1 {
                    skip_scaling(bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    let frame_number_bits = bits.golomb()?.checked_add(4).filter(|bits| *bits <= 16)?;
    match bits.golomb()? {
        0 => {
            bits.golomb()?;
        }
        1 => {
            bits.number(1)?;
            bits.golomb()?;
            bits.golomb()?;
            for _ in 0..bits.golomb()?.min(255) {
                bits.golomb()?;
            }
        }
        _ => {}
    }
    bits.golomb()?; // reference frames
    bits.number(1)?;
    bits.golomb()?; // width and height
    bits.golomb()?;
    let only_frames = bits.number(1)? == 1;
    Some((number, Sequence { frame_number_bits, separate_planes, only_frames }))
}

fn skip_scaling(bits: &mut Bits<'_>, count: usize) -> Option<()> {
    let (mut last, mut next) = (8_i64, 8_i64);
    for _ in 0..count {
        if next != 0 {
            let code = i64::from(bits.golomb()?);
            let delta = if code % 2 == 1 { (code + 1) / 2 } else { -(code / 2) };
            next = (last + delta).rem_euclid(256);
        }
        last = if next == 0 { last } else { next };
    }
    Some(())
}

/// The first unit of bytes in which each has its length in front, and the rest.
fn with_length(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(length)?;
    let size = head.iter().fold(0_usize, |size, byte| size << 8 | usize::from(*byte));
    rest.split_at_checked(size)
}

/// The first unit of bytes in which each has a start code in front, and where to look for the next.
/// The end of the unit is not looked for: only its start matters.
fn with_start_code(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = bytes.windows(3).position(|code| code == [0, 0, 1])?;
    let unit = &bytes[start + 3..];
    Some((unit, unit))
}

fn starting(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (unit, rest) = with_start_code(bytes)?;
        bytes = rest;
        Some(unit)
    })
}

/// The start of a unit without the bytes that keep it from containing a start code.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(bytes.len().min(HEADER));
    let mut zeros = 0;
    for &byte in &bytes[..bytes.len().min(HEADER)] {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        made.push(byte);
    }
    made
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn new(bytes: &[u8]) -> Bits<'_> {
        Bits { bytes, at: 0 }
    }

    /// A number of up to 32 bits.
    fn number(&mut self, bits: u32) -> Option<u32> {
        let mut made = 0;
        for _ in 0..bits {
            let byte = self.bytes.get(self.at / 8)?;
            made = made << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(made)
    }

    /// An unsigned Exp-Golomb code; signed ones have the same length.
    fn golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.number(1)? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.number(zeros)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits as text, padded to bytes.
    fn packed(bits: &str) -> Vec<u8> {
        let bits: Vec<u8> = bits.bytes().filter(|b| *b != b' ').map(|b| b - b'0').collect();
        let byte = |chunk: &[u8]| {
            chunk.iter().enumerate().fold(0, |byte, (at, bit)| byte | bit << (7 - at))
        };
        bits.chunks(8).map(byte).collect()
    }

    fn unit(kind: u8, bits: &str) -> Vec<u8> {
        [vec![0, 0, 1, 0x60 | kind], packed(bits)].concat()
    }

    /// Baseline, number 0, frame numbers of 4 bits, order by type 2, one reference, 2 x 1 blocks.
    fn parameters(only_frames: u8) -> Vec<u8> {
        let sequence = format!("01001101 00000000 00011110 1 1 011 010 0 010 1 {only_frames} 1");
        [unit(SEQUENCE, &sequence), unit(PICTURE, "1 1 1")].concat()
    }

    fn slice(kind: u8, frame_number: u8, field: &str) -> Vec<u8> {
        unit(kind, &format!("1 011 1 {frame_number:04b} {field} 1"))
    }

    #[test]
    fn second_fields_are_recognized() {
        let mut fields = Fields::new(&parameters(0));
        assert!(!fields.is_second(&slice(KEY_SLICE, 0, "10")));
        assert!(fields.is_second(&slice(SLICE, 0, "11")));
        assert!(!fields.is_second(&slice(SLICE, 1, "10")));
        assert!(fields.is_second(&slice(SLICE, 1, "11")));
        // A frame, and two fields that are not a pair.
        assert!(!fields.is_second(&slice(SLICE, 2, "0")));
        assert!(!fields.is_second(&slice(SLICE, 3, "11")));
        assert!(!fields.is_second(&slice(SLICE, 4, "10")));
        assert!(!fields.is_second(&slice(KEY_SLICE, 4, "11")));
        // Both in one packet.
        let both = [slice(SLICE, 5, "10"), slice(SLICE, 5, "11")].concat();
        assert!(!fields.is_second(&both) && !fields.is_second(&both));
        assert!(!fields.is_second(&[]));
    }

    #[test]
    fn streams_of_frames_have_no_fields() {
        let mut fields = Fields::new(&parameters(1));
        for number in [0, 0, 1] {
            assert!(!fields.is_second(&slice(SLICE, number, "11")));
        }
        let mut unknown = Fields::new(&[]);
        assert!(!unknown.is_second(&slice(SLICE, 0, "10")));
        assert!(!unknown.is_second(&slice(SLICE, 0, "11")));
    }

    #[test]
    fn parameters_come_in_packets_or_with_lengths() {
        let mut fields = Fields::new(&[]);
        assert!(!fields.is_second(&[parameters(0), slice(KEY_SLICE, 0, "10")].concat()));
        assert!(fields.is_second(&slice(SLICE, 0, "11")));
        let units: Vec<Vec<u8>> = starting(&parameters(0)).map(<[u8]>::to_vec).collect();
        let mut record = vec![1, 77, 0, 30, 0xff, 0xe1, 0, units[0].len() as u8];
        record.extend(&units[0]);
        record.extend([1, 0, units[1].len() as u8]);
        record.extend(&units[1]);
        let mut fields = Fields::new(&record);
        let prefixed =
            |packet: Vec<u8>| [&[0, 0, 0, packet.len() as u8 - 3], &packet[3..]].concat();
        assert!(!fields.is_second(&prefixed(slice(KEY_SLICE, 0, "11"))));
        assert!(fields.is_second(&prefixed(slice(SLICE, 0, "10"))));
    }

    #[test]
    fn any_bytes_are_fine() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for _ in 0..2000 {
            let start: Vec<u8> = (0..12).map(|_| random()).collect();
            let mut fields = Fields::new(&[parameters(0), vec![0, 0, 1, 0x67], start].concat());
            let packet: Vec<u8> = (0..20).map(|_| random()).collect();
            fields.is_second(&[vec![0, 0, 1, 0x61], packet.clone()].concat());
            Fields::new(&[vec![1], packet].concat()).is_second(&[0, 0, 0, 2, 0x61, 7]);
        }
    }
}
