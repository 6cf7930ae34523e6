//! Opus, by libopus.

use std::ffi::c_int;
use std::ptr::NonNull;

use opusic_sys as sys;

use super::{AudioFault, Result, broken, unsupported};
use crate::value::{Cause, filled};

/// The header of an Opus stream.
#[derive(Clone, Debug)]
pub struct Head {
    pub channels: usize,
    /// Frames at 48 kHz that the encoder has put in front.
    pub delay: u64,
    /// The rate that the audio had before it was encoded.
    input_rate: u32,
    /// In dB, times 256.
    gain: i16,
    streams: u8,
    coupled: u8,
    mapping: Vec<u8>,
}

/// The rate that positions are in, whatever rate is decoded to.
pub const CLOCK: u32 = 48_000;

impl Head {
    pub fn read(bytes: &[u8]) -> Result<Head> {
        let damaged = || broken(AudioFault::Field { name: "Opus header" });
        let known: &[u8; 19] = bytes.first_chunk().ok_or_else(damaged)?;
        let [.., channels, d0, d1, r0, r1, r2, r3, g0, g1, family] = *known;
        let (streams, coupled, mapping) = match (family, channels) {
            (0, 1) => (1, 0, vec![0]),
            (0, 2) => (1, 1, vec![0, 1]),
            // Channels without a speaker, and those of a known layout, are coded in the same way.
            (1 | 255, 1..) => match &bytes[known.len()..] {
                [streams, coupled, mapping @ ..] => {
                    let mapping = mapping.get(..usize::from(channels)).ok_or_else(damaged)?;
                    (*streams, *coupled, mapping.to_vec())
                }
                _ => return Err(damaged()),
            },
            (2 | 3, 1..) => return Err(unsupported("ambisonic Opus")),
            _ => return Err(damaged()),
        };
        Ok(Head {
            channels: usize::from(channels),
            delay: u64::from(u16::from_le_bytes([d0, d1])),
            input_rate: u32::from_le_bytes([r0, r1, r2, r3]),
            gain: i16::from_le_bytes([g0, g1]),
            streams,
            coupled,
            mapping,
        })
    }

    /// The rate to decode to: that of the input if libopus has it, like libsndfile.
    pub fn rate(&self) -> u32 {
        match self.input_rate {
            8000 | 12_000 | 16_000 | 24_000 => self.input_rate,
            _ => CLOCK,
        }
    }
}

pub struct Opus {
    decoder: NonNull<sys::OpusMSDecoder>,
    pub channels: usize,
    /// Room for the longest packet.
    samples: Vec<f32>,
    /// The most frames in a packet.
    longest: c_int,
}

// SAFETY: a decoder is plain memory, used through `&mut self` only.
unsafe impl Send for Opus {}
// SAFETY: as above.
unsafe impl Sync for Opus {}

impl Opus {
    pub fn new(head: &Head) -> Result<Opus> {
        // 120 ms.
        let longest = head.rate() / 25 * 3;
        let samples = filled(0.0, longest as usize * head.channels)?;
        let mut error = sys::OPUS_OK;
        // SAFETY: `mapping` has an entry for each channel; libopus checks all numbers.
        let decoder = unsafe {
            sys::opus_multistream_decoder_create(
                head.rate() as i32,
                head.channels as c_int,
                c_int::from(head.streams),
                c_int::from(head.coupled),
                head.mapping.as_ptr(),
                &mut error,
            )
        };
        let Some(decoder) = NonNull::new(decoder) else {
            return Err(match error {
                sys::OPUS_ALLOC_FAIL => Cause::Memory { bytes: 1 << 15 },
                _ => broken(AudioFault::Field { name: "Opus header" }),
            });
        };
        // SAFETY: the decoder is valid, and this request takes one number.
        unsafe {
            sys::opus_multistream_decoder_ctl(
                decoder.as_ptr(),
                sys::OPUS_SET_GAIN_REQUEST,
                c_int::from(head.gain),
            );
        }
        Ok(Opus { decoder, channels: head.channels, samples, longest: longest as c_int })
    }

    /// The samples of a packet, interleaved. `None` if it is damaged.
    pub fn decode(&mut self, packet: &[u8]) -> Option<&[f32]> {
        // An empty packet would be taken for a lost one, and made up for.
        let length = i32::try_from(packet.len()).ok().filter(|&length| length > 0)?;
        // SAFETY: the decoder is valid, the packet has `length` bytes, and there is room for
        // `longest` frames of all channels.
        let frames = unsafe {
            sys::opus_multistream_decode_float(
                self.decoder.as_ptr(),
                packet.as_ptr(),
                length,
                self.samples.as_mut_ptr(),
                self.longest,
                0,
            )
        };
        self.samples.get(..usize::try_from(frames).ok()? * self.channels)
    }
}

impl Drop for Opus {
    fn drop(&mut self) {
        // SAFETY: the decoder is valid, and not used any more.
        unsafe { sys::opus_multistream_decoder_destroy(self.decoder.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_nonsense_are_refused() {
        let head = |channels: u8, family: u8, rest: &[u8]| {
            let mut bytes = b"OpusHead\x01".to_vec();
            bytes.extend([channels, 56, 1, 0x80, 0x3e, 0, 0, 0, 0, family]);
            bytes.extend(rest);
            Head::read(&bytes)
        };
        let mono = head(1, 0, &[]).ok();
        let mono =
            mono.map(|head| (head.channels, head.delay, head.rate(), Opus::new(&head).is_ok()));
        assert_eq!(mono, Some((1, 312, 16_000, true)));
        let three = head(3, 1, &[2, 1, 0, 1, 2]).and_then(|head| Opus::new(&head));
        assert!(three.is_ok());
        assert!(head(0, 0, &[]).is_err());
        assert!(head(3, 0, &[]).is_err());
        assert!(head(3, 1, &[2, 1, 0, 1]).is_err());
        assert!(head(3, 1, &[0, 9, 0, 1, 2]).and_then(|head| Opus::new(&head)).is_err());
        assert!(Head::read(b"OpusHead").is_err());
    }
}
