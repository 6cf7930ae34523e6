//! The two checksums of a frame: CRC-8 of its header, CRC-16 of all.

/// x^8 + x^2 + x + 1
pub fn crc8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc: u8, _| crc << 1 ^ if crc >> 7 == 1 { 0x07 } else { 0 })
    })
}

/// x^16 + x^15 + x^2 + 1, sixteen bytes at a time.
pub fn crc16(bytes: &[u8]) -> u16 {
    let (groups, rest) = bytes.as_chunks::<STEP>();
    let crc = groups.iter().fold(0_u16, |crc, group| {
        let mut group = *group;
        let [high, low] = crc.to_be_bytes();
        group[0] ^= high;
        group[1] ^= low;
        let terms = group.iter().zip(TABLES.iter().rev());
        terms.fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)])
    });
    let step = |crc: u16, byte: &u8| crc << 8 ^ TABLES[0][usize::from(crc.to_be_bytes()[0] ^ byte)];
    rest.iter().fold(crc, step)
}

/// How many bytes are taken at a time: the next ones need the checksum of those before.
const STEP: usize = 16;

/// `TABLES[n][byte]` is the checksum of a byte and `n` zeros after it.
static TABLES: [[u16; 256]; STEP] = {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut table = 0;
        while table < STEP {
            let mut bit = 0;
            while bit < 8 {
                crc = crc << 1 ^ if crc >> 15 == 1 { 0x8005 } else { 0 };
                bit += 1;
            }
            tables[table][byte] = crc;
            table += 1;
        }
        byte += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_catalogues() {
        // CRC-8/SMBUS and CRC-16/UMTS of the usual text.
        assert_eq!(crc8(b"123456789"), 0xf4);
        assert_eq!(crc16(b"123456789"), 0xfee8);
        assert_eq!((crc8(b""), crc16(b"")), (0, 0));
    }

    #[test]
    fn many_bytes_at_a_time_are_the_same_as_one() {
        let bytes: Vec<u8> =
            (0..=255).cycle().take(300).map(|byte: u8| byte.wrapping_mul(91)).collect();
        let one = |crc: u16, byte: &u8| {
            (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
                crc << 1 ^ if crc >> 15 == 1 { 0x8005 } else { 0 }
            })
        };
        for length in 0..bytes.len() {
            assert_eq!(crc16(&bytes[..length]), bytes[..length].iter().fold(0, one));
        }
    }
}
