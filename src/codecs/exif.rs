//! The EXIF orientation.

/// The orientation in a TIFF structure, by EXIF's numbers; 1 if there is none.
pub fn orientation(tiff: &[u8]) -> u8 {
    find(tiff).filter(|way| (1..=8).contains(way)).unwrap_or(1) as u8
}

fn find(tiff: &[u8]) -> Option<u16> {
    const ORIENTATION: u16 = 0x112;
    const SHORT: u16 = 3;
    let big = match tiff.get(..4)? {
        [b'I', b'I', 42, 0] => false,
        [b'M', b'M', 0, 42] => true,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let bytes = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let u32_at = |at: usize| {
        let bytes = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let directory = u32_at(4)? as usize;
    let entries = usize::from(u16_at(directory)?);
    let mut at = directory + 2;
    for _ in 0..entries {
        if u16_at(at)? == ORIENTATION {
            return if u16_at(at + 2)? == SHORT { u16_at(at + 8) } else { None };
        }
        at += 12;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiff(big: bool, entries: &[(u16, u16, u16)]) -> Vec<u8> {
        let short = |x: u16| if big { x.to_be_bytes() } else { x.to_le_bytes() };
        let long = |x: u32| if big { x.to_be_bytes() } else { x.to_le_bytes() };
        let mut out = if big { b"MM\0\x2a".to_vec() } else { b"II\x2a\0".to_vec() };
        out.extend(long(8));
        out.extend(short(entries.len() as u16));
        for &(tag, kind, value) in entries {
            out.extend(short(tag));
            out.extend(short(kind));
            out.extend(long(1));
            out.extend(short(value));
            out.extend([0, 0]);
        }
        out
    }

    #[test]
    fn the_orientation_is_found_in_either_byte_order() {
        for big in [false, true] {
            assert_eq!(orientation(&tiff(big, &[(0x10f, 2, 0), (0x112, 3, 6)])), 6);
            assert_eq!(orientation(&tiff(big, &[(0x10f, 2, 0)])), 1);
            assert_eq!(orientation(&tiff(big, &[(0x112, 3, 9)])), 1);
            assert_eq!(orientation(&tiff(big, &[(0x112, 3, 0)])), 1);
        }
    }

    #[test]
    fn what_is_cut_off_tells_nothing() {
        let whole = tiff(true, &[(0x10f, 2, 0), (0x112, 3, 6)]);
        for end in 0..whole.len() - 2 {
            assert_eq!(orientation(&whole[..end]), 1, "{end}");
        }
        assert_eq!(orientation(b"II\x2a\0\xff\xff\xff\xff"), 1);
    }
}
