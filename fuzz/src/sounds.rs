//! Audio of each format: whole and in part.

use std::io::Cursor;

use _core::codecs::audio::{Format, Sound, Span};

/// Longer audio is read in part, to spend the time on parsing.
const FRAMES: u64 = 1 << 20;

/// Declares the target of each format.
macro_rules! targets {
    ($($name:ident: $format:ident),+ $(,)?) => {
        $(pub fn $name(data: &[u8]) -> bool {
            sound(data, Format::$format)
        })+
    };
}

targets! {
    wav: Wav,
    w64: W64,
    aiff: Aiff,
    au: Au,
    sphere: Sphere,
    caf: Caf,
    flac: Flac,
    ogg: Ogg,
    mpeg: Mpeg,
    adts: Adts,
    mp4: Mp4,
    matroska: Matroska,
}

fn sound(data: &[u8], format: Format) -> bool {
    let identify = || Sound::identify(Box::new(Cursor::new(data))).ok();
    if !identify().is_some_and(|found| found.format == format) {
        return false;
    }
    let open = || identify()?.open().ok();
    let Some(sound) = open() else { return true };
    let (channels, frames) = (sound.channels(), sound.frames());
    let all = Span { start: 0, frames: Some(FRAMES) };
    let _ = (sound.rate(), sound.check_complete(all));
    if let Ok(samples) = sound.read::<f32>(all) {
        assert_eq!(samples.len() % channels.max(1), 0, "the last frame is incomplete");
    }
    if let Some(sound) = open() {
        let _ = sound.read::<i16>(Span { start: frames.unwrap_or(100) / 2, frames: Some(1000) });
    }
    true
}
