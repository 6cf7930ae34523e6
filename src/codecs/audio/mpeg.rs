//! What surrounds the frames of an MP3 file.

use super::{Result, Stream, read_at};

/// Whether the first frame is no sound but a tag with the number of frames. Without one, symphonia
/// estimates that number.
pub fn has_length(start: &[u8]) -> bool {
    let [0xff, second, _, fourth, ..] = *start else { return false };
    // MPEG 1 has longer side information than MPEG 2, stereo longer than mono.
    let side = match (second & 8 != 0, fourth >> 6 == 3) {
        (true, false) => 32,
        (true, true) | (false, false) => 17,
        (false, true) => 9,
    };
    let at = |offset: usize, name: &[u8]| {
        start.get(offset..).is_some_and(|start| start.starts_with(name))
    };
    at(4 + side, b"Xing") || at(4 + side, b"Info") || at(4 + 32, b"VBRI")
}

/// The size of a file without the tags at its end, which could be taken for sound.
pub fn without_tags(stream: &mut Box<dyn Stream + '_>, bytes: u64) -> Result<u64> {
    let mut end = bytes;
    let mut tag = [0; 3];
    if end >= ID3_V1 {
        read_at(stream, end - ID3_V1, &mut tag)?;
        end -= if &tag == b"TAG" { ID3_V1 } else { 0 };
    }
    let mut footer = [0; APE_FOOTER as usize];
    if end >= APE_FOOTER {
        read_at(stream, end - APE_FOOTER, &mut footer)?;
        let number = |at: usize| {
            u32::from_le_bytes([footer[at], footer[at + 1], footer[at + 2], footer[at + 3]])
        };
        if footer.starts_with(b"APETAGEX") {
            // The size includes the footer, but not the header that the last bit tells of.
            let header = if number(20) >> 31 == 1 { APE_FOOTER } else { 0 };
            end = end.saturating_sub(u64::from(number(12)) + header);
        }
    }
    Ok(end)
}

const ID3_V1: u64 = 128;
const APE_FOOTER: u64 = 32;

/// The number of frames in a packet (of layers 2 and 3 at least), and that of packets that may have
/// to be decoded before one to get its exact samples: the bits of a frame may begin in up to 511
/// bytes before it, which are several of the smallest ones, and frames overlap.
pub const FRAMES: u64 = 1152;
pub const PREROLL: u64 = 24 * FRAMES;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn tags_at_the_end_are_left_out() {
        let size = |file: &[u8]| {
            let mut stream: Box<dyn Stream> = Box::new(Cursor::new(file));
            without_tags(&mut stream, file.len() as u64).ok()
        };
        let mut tag = b"TAG".to_vec();
        tag.resize(128, b'x');
        let mut ape = b"an itemAPETAGEX".to_vec();
        ape.extend([208, 7, 0, 0, 39, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let sound = vec![0xff; 500];
        assert_eq!(size(&sound), Some(500));
        assert_eq!(size(&[&sound[..], &tag].concat()), Some(500));
        assert_eq!(size(&[&sound[..], &ape].concat()), Some(500));
        assert_eq!(size(&[&sound[..], &ape, &tag].concat()), Some(500));
        assert_eq!(size(&[&b"x"[..], &ape[7..]].concat()), Some(0));
        assert_eq!(size(b""), Some(0));
    }

    #[test]
    fn tags_are_found_behind_side_information() {
        let frame = |second: u8, fourth: u8, offset: usize, name: &[u8]| {
            let mut frame = vec![0xff, second, 0x90, fourth];
            frame.resize(4 + offset, 0);
            frame.extend(name);
            frame
        };
        assert!(has_length(&frame(0xfb, 0x64, 32, b"Xing")));
        assert!(has_length(&frame(0xfb, 0xc4, 17, b"Info")));
        assert!(has_length(&frame(0xf3, 0xc4, 9, b"Xing")));
        assert!(has_length(&frame(0xfb, 0xc4, 32, b"VBRI")));
        assert!(!has_length(&frame(0xfb, 0x64, 17, b"Xing")));
        assert!(!has_length(b"\xff\xfb"));
    }
}
