//! ADPCM in WAV files: blocks of differences between samples, four bits each.

use super::pcm::Pcm;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Microsoft,
    Ima,
}

/// Blocks that can be decoded one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    kind: Kind,
    channels: usize,
    /// A block's size in bytes.
    pub bytes: usize,
    /// The number of frames in a block.
    pub frames: usize,
}

impl Blocks {
    /// `None` if the size is too small for a block, or not made of whole samples.
    pub fn new(kind: Kind, channels: usize, bytes: usize) -> Option<Blocks> {
        let (head, first) = match kind {
            Kind::Microsoft => (7 * channels, 2),
            Kind::Ima => (4 * channels, 1),
        };
        let nibbles = 2 * bytes.checked_sub(head)?;
        let frames = first + nibbles.checked_div(channels)?;
        // Samples of a channel come in groups of eight.
        let whole = kind == Kind::Microsoft || nibbles % (8 * channels) == 0;
        whole.then_some(Blocks { kind, channels, bytes, frames })
    }

    /// Decodes a block; there is room for its frames. `false` if it is damaged.
    pub fn decode<T: Pcm>(&self, block: &[u8], samples: &mut [T]) -> bool {
        match self.kind {
            Kind::Microsoft => self.decode_microsoft(block, samples).is_some(),
            Kind::Ima => self.decode_ima(block, samples).is_some(),
        }
    }

    fn decode_microsoft<T: Pcm>(&self, block: &[u8], samples: &mut [T]) -> Option<()> {
        let channels = self.channels;
        let (choices, rest) = block.split_at_checked(channels)?;
        let (head, nibbles) = rest.split_at_checked(6 * channels)?;
        let number =
            |index: usize| i32::from(i16::from_le_bytes([head[2 * index], head[2 * index + 1]]));
        for (channel, &choice) in choices.iter().enumerate() {
            let &(near, far) = COEFFICIENTS.get(usize::from(choice))?;
            let mut step = number(channel);
            let (mut last, mut before) =
                (number(channels + channel), number(2 * channels + channel));
            let mut places = samples.iter_mut().skip(channel).step_by(channels);
            *places.next()? = full(before);
            *places.next()? = full(last);
            for (place, index) in places.zip((channel..).step_by(channels)) {
                // The high half of a byte is the first.
                let byte = nibbles.get(index / 2)?;
                let nibble = if index % 2 == 0 { byte >> 4 } else { byte & 15 };
                let signed = i32::from(nibble as i8) - if nibble & 8 == 0 { 0 } else { 16 };
                let predicted = (last * near + before * far) >> 8;
                let sample = signed.wrapping_mul(step).wrapping_add(predicted);
                before = last;
                last = sample.clamp(-32768, 32767);
                step = (ADAPTATION[usize::from(nibble)].wrapping_mul(step) >> 8).max(16);
                *place = full(last);
            }
        }
        Some(())
    }

    fn decode_ima<T: Pcm>(&self, block: &[u8], samples: &mut [T]) -> Option<()> {
        let channels = self.channels;
        let (heads, groups) = block.split_at_checked(4 * channels)?;
        for (channel, head) in heads.as_chunks::<4>().0.iter().enumerate() {
            let mut last = i32::from(i16::from_le_bytes([head[0], head[1]]));
            let mut index = i32::from(head[2]).min(88);
            let mut places = samples.iter_mut().skip(channel).step_by(channels);
            *places.next()? = full(last);
            // Channels take turns with four bytes each. The low half of a byte is the first.
            let bytes = groups.as_chunks::<4>().0.iter().skip(channel).step_by(channels).flatten();
            let nibbles = bytes.flat_map(|byte| [byte & 15, byte >> 4]);
            for (place, nibble) in places.zip(nibbles) {
                let step = STEPS[index as usize];
                let bit = |bit: u8, part: i32| if nibble & bit == 0 { 0 } else { part };
                let size = (step >> 3) + bit(1, step >> 2) + bit(2, step >> 1) + bit(4, step);
                last += if nibble & 8 == 0 { size } else { -size };
                last = last.clamp(-32768, 32767);
                index = (index + CHANGES[usize::from(nibble & 7)]).clamp(0, 88);
                *place = full(last);
            }
        }
        Some(())
    }
}

fn full<T: Pcm>(sample: i32) -> T {
    T::from_full(sample << 16)
}

/// Weights of the last sample and the one before, of which each block chooses.
const COEFFICIENTS: [(i32, i32); 7] =
    [(256, 0), (512, -256), (0, 0), (192, 64), (240, 0), (460, -208), (392, -232)];

const ADAPTATION: [i32; 16] =
    [230, 230, 230, 230, 307, 409, 512, 614, 768, 614, 512, 409, 307, 230, 230, 230];

const CHANGES: [i32; 8] = [-1, -1, -1, -1, 2, 4, 6, 8];

const STEPS: [i32; 89] = [
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66,
    73, 80, 88, 97, 107, 118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449,
    494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272,
    2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493,
    10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_whole_samples() {
        let frames = |kind, channels, bytes| Blocks::new(kind, channels, bytes).map(|b| b.frames);
        assert_eq!(frames(Kind::Microsoft, 1, 256), Some(500));
        assert_eq!(frames(Kind::Microsoft, 2, 1024), Some(1012));
        assert_eq!(frames(Kind::Ima, 1, 256), Some(505));
        assert_eq!(frames(Kind::Ima, 2, 1024), Some(1017));
        assert_eq!(frames(Kind::Ima, 1, 3), None);
        assert_eq!(frames(Kind::Ima, 2, 9), None);
        assert_eq!(frames(Kind::Microsoft, 0, 9), None);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused() {
        for kind in [Kind::Microsoft, Kind::Ima] {
            for value in [0, 7, 8, 0x7f, 0x80, 0xff] {
                for channels in [1, 2, 5] {
                    let Some(blocks) = Blocks::new(kind, channels, 40 * channels) else { continue };
                    let mut samples = vec![0_i16; blocks.frames * channels];
                    let good = blocks.decode(&vec![value; blocks.bytes], &mut samples);
                    assert_eq!(good, kind == Kind::Ima || value < 7, "{kind:?} {value}");
                    assert!(!blocks.decode(&[1], &mut samples));
                }
            }
        }
    }
}
