//! Traversing the window of an image in any layout, row by row.

use std::ops::Range;

use crate::kernels::regions::Region;
use crate::value::{Desc, contiguous_strides};

/// An axis other than that of the channels, in elements.
#[derive(Clone, Copy)]
pub struct Axis {
    /// Where the window begins in the image.
    pub start: i64,
    pub extent: usize,
    pub step: usize,
    pub out_extent: usize,
    pub out_step: usize,
}

impl Axis {
    /// The index in the image of a position of the window, if it is inside.
    pub fn find(&self, place: usize) -> Option<usize> {
        let at = self.start + place as i64;
        (0..self.extent as i64).contains(&at).then_some(at as usize)
    }
}

pub struct Channels {
    pub count: usize,
    pub padded: usize,
    pub step: usize,
    pub out_step: usize,
}

/// Any image layout as rows of pixels. Axes that a layout lacks have an extent of one.
pub struct Walk {
    /// Frames, depth, height.
    pub outer: [Axis; 3],
    pub width: Axis,
    pub channels: Channels,
    pub mirror: bool,
    /// The positions of a row that are inside the image.
    pub inside: Range<usize>,
}

impl Walk {
    pub fn new(desc: &Desc, region: &Region, out: &Desc, mirror: bool) -> Walk {
        let (steps, out_steps) =
            (contiguous_strides(&desc.shape, 1), contiguous_strides(&out.shape, 1));
        let axis = |letter| match (desc.layout.find(letter), out.layout.find(letter)) {
            (Some(a), Some(b)) => Axis {
                start: region.start[a],
                extent: desc.shape[a],
                step: steps[a] as usize,
                out_extent: out.shape[b],
                out_step: out_steps[b] as usize,
            },
            _ => Axis { start: 0, extent: 1, step: 0, out_extent: 1, out_step: 0 },
        };
        let (width, channels) = (axis(b'W'), axis(b'C'));
        let clip = |place: i64| place.clamp(0, width.out_extent as i64) as usize;
        let first = clip(-width.start);
        Walk {
            outer: [axis(b'F'), axis(b'D'), axis(b'H')],
            width,
            channels: Channels {
                count: channels.extent,
                padded: channels.out_extent,
                step: channels.step,
                out_step: channels.out_step,
            },
            mirror,
            inside: first..clip(width.extent as i64 - width.start).max(first),
        }
    }

    pub fn is_interleaved(&self) -> bool {
        self.width.step == self.channels.count && self.channels.step == 1
    }
}
