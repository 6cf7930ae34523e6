//! From rows of channels to rows of pixels.

/// Converts a row from luma and chroma to three channels.
#[inline(always)]
pub fn to_rgb(luma: &[u8], blue: &[u8], red: &[u8], out: [&mut [u8]; 3]) {
    // The upper half of a product.
    let high = |value: i16, factor: i16| ((i32::from(value) * i32::from(factor)) >> 16) as i16;
    let [r, g, b] = out;
    let channels = r.iter_mut().zip(g).zip(b);
    for (((&y, &cb), &cr), ((r, g), b)) in luma.iter().zip(blue).zip(red).zip(channels) {
        let y = i16::from(y);
        let (cb, cr) = (i16::from(cb) - 128, i16::from(cr) - 128);
        // 1.402, 0.34414, 0.71414 and 1.772 with 16 bits after the point. The nearest integer is
        // added separately, so that the rest fits into 16 bits. Halves are rounded up.
        let of_r = cr + ((high(2 * cr, 26_345) + 1) >> 1);
        let of_g = (18_734 * i32::from(cr) - 22_554 * i32::from(cb) + (1 << 15)) >> 16;
        let of_b = 2 * cb + ((high(2 * cb, -14_942) + 1) >> 1);
        *r = (y + of_r).clamp(0, 255) as u8;
        *g = (y - cr + of_g as i16).clamp(0, 255) as u8;
        *b = (y + of_b).clamp(0, 255) as u8;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_those_of_libjpeg() {
        let all: Vec<u8> = (0..=255).collect();
        for luma in [0, 1, 97, 128, 254, 255] {
            for blue in 0..=255 {
                let mut made = [[0; 256]; 3];
                let out = made.each_mut().map(|channel| &mut channel[..]);
                to_rgb(&[luma; 256], &[blue; 256], &all, out);
                for (i, &red) in all.iter().enumerate() {
                    let y = (i32::from(luma) << 16) + (1 << 15);
                    let (cb, cr) = (i32::from(blue) - 128, i32::from(red) - 128);
                    let expected =
                        [y + 91_881 * cr, y - 22_554 * cb - 46_802 * cr, y + 116_130 * cb]
                            .map(|color| (color >> 16).clamp(0, 255) as u8);
                    assert_eq!(made.map(|channel| channel[i]), expected, "{luma} {blue} {red}");
                }
            }
        }
    }
}
