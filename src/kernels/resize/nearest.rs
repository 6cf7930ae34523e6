//! Results whose elements are copies of input elements.

use std::rc::Rc;

use super::filter::Taps;

/// An axis: its extent in the input, and which elements to take; all of them without taps.
pub struct Axis {
    pub input: usize,
    pub taps: Option<Rc<Taps>>,
}

/// Copies the elements that the axes select; `pixel` is the size in bytes of an element of the last
/// axis.
pub fn pick(axes: &[Axis], pixel: usize, src: &[u8], dst: &mut [u8]) {
    match axes {
        [] => dst.copy_from_slice(src),
        [Axis { taps: None, input }, rest @ ..] => {
            let (from, to) = (src.len() / input.max(&1), dst.len() / input.max(&1));
            for (src, dst) in src.chunks_exact(from.max(1)).zip(dst.chunks_exact_mut(to.max(1))) {
                pick(rest, pixel, src, dst);
            }
        }
        [Axis { taps: Some(taps), .. }] => match pixel {
            1 => pixels::<1>(taps, src, dst),
            2 => pixels::<2>(taps, src, dst),
            3 => pixels::<3>(taps, src, dst),
            4 => pixels::<4>(taps, src, dst),
            6 => pixels::<6>(taps, src, dst),
            8 => pixels::<8>(taps, src, dst),
            12 => pixels::<12>(taps, src, dst),
            16 => pixels::<16>(taps, src, dst),
            _ => {
                for (span, dst) in taps.spans.iter().zip(dst.chunks_exact_mut(pixel.max(1))) {
                    dst.copy_from_slice(&src[span.start * pixel..][..pixel]);
                }
            }
        },
        [Axis { taps: Some(taps), input }, rest @ ..] => {
            let (from, to) = (src.len() / input.max(&1), dst.len() / taps.spans.len().max(1));
            let mut last = None;
            for (i, span) in taps.spans.iter().enumerate() {
                let (done, left) = dst.split_at_mut(i * to);
                if last == Some(span.start) {
                    left[..to].copy_from_slice(&done[(i - 1) * to..]);
                } else {
                    pick(rest, pixel, &src[span.start * from..][..from], &mut left[..to]);
                }
                last = Some(span.start);
            }
        }
    }
}

fn pixels<const PIXEL: usize>(taps: &Taps, src: &[u8], dst: &mut [u8]) {
    let src = src.as_chunks::<PIXEL>().0;
    for (span, dst) in taps.spans.iter().zip(dst.as_chunks_mut::<PIXEL>().0) {
        *dst = src[span.start];
    }
}
