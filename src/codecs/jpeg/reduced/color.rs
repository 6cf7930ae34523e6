//! From rows of channels to rows of pixels.

// An index is what becomes vectors.
#![allow(clippy::needless_range_loop)]

/// Pixels whose colors are converted together.
const GROUP: usize = 16;

/// Converts a row from luma and chroma.
#[inline(always)]
pub fn to_rgb(luma: &[u8], blue: &[u8], red: &[u8], out: &mut [u8], bgr: bool) {
    let mut at = 0;
    while at < luma.len() {
        let count = GROUP.min(luma.len() - at);
        let mut channels = [[0_u8; GROUP]; 3];
        let mut given = [[0_u8; GROUP]; 3];
        for (given, plane) in given.iter_mut().zip([luma, blue, red]) {
            given[..count].copy_from_slice(&plane[at..at + count]);
        }
        for i in 0..GROUP {
            let y = i32::from(given[0][i]);
            let (cb, cr) = (i32::from(given[1][i]) - 128, i32::from(given[2][i]) - 128);
            // Sixteen bits after the point; halves are rounded up.
            let y = (y << 16) + (1 << 15);
            let r = (y + 91_881 * cr) >> 16;
            let g = (y - 22_554 * cb - 46_802 * cr) >> 16;
            let b = (y + 116_130 * cb) >> 16;
            channels[0][i] = r.clamp(0, 255) as u8;
            channels[1][i] = g.clamp(0, 255) as u8;
            channels[2][i] = b.clamp(0, 255) as u8;
        }
        if bgr {
            channels.swap(0, 2);
        }
        let pixels = out[3 * at..][..3 * count].as_chunks_mut::<3>().0;
        for (i, pixel) in pixels.iter_mut().enumerate() {
            *pixel = [channels[0][i], channels[1][i], channels[2][i]];
        }
        at += count;
    }
}

/// Doubles a row as libjpeg does: new samples are a quarter of the way to their neighbors. Where it
/// doesn't, because there are hardly any, samples are repeated.
#[inline(always)]
pub fn double(given: &[u8], smooth: bool, out: &mut [u8]) {
    let pairs = out.as_chunks_mut::<2>().0;
    if !smooth || given.len() <= 2 {
        for (pair, &value) in pairs.iter_mut().zip(given) {
            *pair = [value; 2];
        }
        return;
    }
    let last = given.len() - 1;
    let near = |value: u8, neighbor: u8, half: u16| {
        ((3 * u16::from(value) + u16::from(neighbor) + half) >> 2) as u8
    };
    for (three, pair) in given.windows(3).zip(&mut pairs[1..]) {
        *pair = [near(three[1], three[0], 1), near(three[1], three[2], 2)];
    }
    pairs[0] = [given[0], near(given[0], given[1], 2)];
    pairs[last] = [near(given[last], given[last - 1], 1), given[last]];
}
