//! Which way is up, from EXIF data.

const ORIENTATION: u16 = 274;
const SHORT: u16 = 3;

/// The orientation in EXIF data, from 1 to 8; 1 where there is none.
pub fn from_exif(exif: &[u8]) -> u8 {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    find(exif).filter(|o| (1..=8).contains(o)).unwrap_or(1)
}

fn find(tiff: &[u8]) -> Option<u8> {
    let big = match tiff.get(..4)? {
        b"MM\0*" => true,
        b"II*\0" => false,
        _ => return None,
    };
    let short = |at: usize| -> Option<u16> {
        let bytes = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let bytes = tiff.get(4..8)?.try_into().ok()?;
    let first = if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) } as usize;
    (0..usize::from(short(first)?)).find_map(|n| {
        let entry = first.checked_add(2 + 12 * n)?;
        let found = short(entry)? == ORIENTATION && short(entry + 2)? == SHORT;
        found.then(|| short(entry + 8))?.and_then(|o| u8::try_from(o).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_are_read() {
        let big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0";
        let little = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0";
        assert_eq!(from_exif(big), 6);
        assert_eq!(from_exif(little), 8);
    }

    #[test]
    fn whatever_is_no_orientation_is_upright() {
        let wrong = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0";
        for exif in [&b""[..], b"MM\0*", b"II*\0\xff\xff\xff\xff", &wrong[..], &wrong[..16]] {
            assert_eq!(from_exif(exif), 1);
        }
    }
}
