//! Audio of each format: whole and in part.

use std::io::Cursor;

use _core::codecs::audio::{Sound, Span};

/// Longer audio is read in part, to spend the time on parsing.
const FRAMES: u64 = 1 << 20;

pub fn wav(data: &[u8]) -> bool {
    (data.starts_with(b"RIFF") || data.starts_with(b"RF64")) && sound(data)
}

pub fn flac(data: &[u8]) -> bool {
    data.starts_with(b"fLaC") && sound(data)
}

pub fn vorbis(data: &[u8]) -> bool {
    data.starts_with(b"OggS") && sound(data)
}

fn sound(data: &[u8]) -> bool {
    let open = || Sound::open(Box::new(Cursor::new(data))).ok();
    let Some(sound) = open() else { return true };
    let (channels, frames) = (sound.channels(), sound.frames());
    let _ = (sound.rate(), frames);
    if let Ok(samples) = sound.read::<f32>(Span { start: 0, frames: Some(FRAMES) }) {
        assert_eq!(samples.len() % channels.max(1), 0, "the last frame is incomplete");
    }
    if let Some(sound) = open() {
        let _ = sound.read::<i16>(Span { start: frames.unwrap_or(100) / 2, frames: Some(1000) });
    }
    true
}
