//! Pixel formats, by the names that FFmpeg gives them.

/// How the channels of a picture are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gray,
    /// Luma and two planes of chroma.
    Planar,
    /// Luma and one plane with both chroma channels; `swapped` if the second comes first.
    SemiPlanar {
        swapped: bool,
    },
    /// Planes of green, blue and red.
    PlanarRgb,
    /// Pixels of `step` bytes with red, green and blue at these places.
    PackedRgb {
        step: usize,
        places: [usize; 3],
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelFormat {
    pub kind: Kind,
    /// Bits of a value. Values of more than eight bits take two bytes.
    pub depth: u32,
    /// Chroma has one value for `1 << shift` columns and rows of luma.
    pub shifts: [u32; 2],
    /// Whether the format itself says that values use their full range.
    pub full_range: bool,
}

impl PixelFormat {
    /// `None` for formats that are not supported.
    pub fn parse(name: &str) -> Option<PixelFormat> {
        let packed = |step, places| {
            let kind = Kind::PackedRgb { step, places };
            Some(PixelFormat { kind, depth: 8, shifts: [0, 0], full_range: true })
        };
        match name {
            "rgb24" => return packed(3, [0, 1, 2]),
            "bgr24" => return packed(3, [2, 1, 0]),
            "rgba" | "rgb0" => return packed(4, [0, 1, 2]),
            "bgra" | "bgr0" => return packed(4, [2, 1, 0]),
            "argb" | "0rgb" => return packed(4, [1, 2, 3]),
            "abgr" | "0bgr" => return packed(4, [3, 2, 1]),
            _ => {}
        }
        let semi = |swapped, depth, shifts| {
            let kind = Kind::SemiPlanar { swapped };
            Some(PixelFormat { kind, depth, shifts, full_range: false })
        };
        match name {
            "nv12" => return semi(false, 8, [1, 1]),
            "nv21" => return semi(true, 8, [1, 1]),
            "nv16" => return semi(false, 8, [1, 0]),
            "nv24" => return semi(false, 8, [0, 0]),
            // Their ten or twelve bits are the upper ones of sixteen.
            "p010le" | "p012le" | "p016le" => return semi(false, 16, [1, 1]),
            "p210le" | "p212le" | "p216le" => return semi(false, 16, [1, 0]),
            "p410le" | "p412le" | "p416le" => return semi(false, 16, [0, 0]),
            _ => {}
        }
        let (base, depth) = match name.strip_suffix("le") {
            None => (name, 8),
            Some(name) => {
                let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
                (base, name[base.len()..].parse().ok().filter(|depth| (9..=16).contains(depth))?)
            }
        };
        let made = |kind, shifts, full_range| Some(PixelFormat { kind, depth, shifts, full_range });
        match base {
            // FFmpeg takes gray without a tag for full range, too.
            "gray" => made(Kind::Gray, [0, 0], true),
            "gbrp" | "gbrap" => made(Kind::PlanarRgb, [0, 0], true),
            _ => {
                let full = base.starts_with("yuvj");
                let rest =
                    ["yuvj", "yuva", "yuv"].into_iter().find_map(|p| base.strip_prefix(p))?;
                let shifts = match rest {
                    "420p" => [1, 1],
                    "422p" => [1, 0],
                    "444p" => [0, 0],
                    "440p" => [0, 1],
                    "411p" => [2, 0],
                    "410p" => [2, 2],
                    _ => return None,
                };
                made(Kind::Planar, shifts, full)
            }
        }
    }

    pub fn bytes_per_value(&self) -> usize {
        if self.depth > 8 { 2 } else { 1 }
    }

    /// The number of planes that are read; alpha is not.
    pub fn planes(&self) -> usize {
        match self.kind {
            Kind::Gray | Kind::PackedRgb { .. } => 1,
            Kind::SemiPlanar { .. } => 2,
            Kind::Planar | Kind::PlanarRgb => 3,
        }
    }

    /// Height of a plane, and bytes of its rows.
    pub fn plane(&self, plane: usize, height: usize, width: usize) -> (usize, usize) {
        let [x, y] = if plane == 0 { [0, 0] } else { self.shifts };
        let values = match self.kind {
            Kind::PackedRgb { step, .. } => width * step,
            Kind::SemiPlanar { .. } if plane > 0 => 2 * width.div_ceil(1 << x),
            _ => width.div_ceil(1 << x),
        };
        (height.div_ceil(1 << y), values * self.bytes_per_value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_planes_depth_and_subsampling() {
        let format = |name| PixelFormat::parse(name).unwrap();
        let yuv = format("yuv420p10le");
        assert_eq!((yuv.kind, yuv.depth, yuv.shifts), (Kind::Planar, 10, [1, 1]));
        assert_eq!(yuv.plane(0, 181, 321), (181, 642));
        assert_eq!(yuv.plane(2, 181, 321), (91, 322));
        assert!(format("yuvj422p").full_range && !format("yuv422p").full_range);
        assert_eq!(format("yuva444p12le").depth, 12);
        assert_eq!(format("gray").kind, Kind::Gray);
        assert_eq!(format("gbrp10le").kind, Kind::PlanarRgb);
        assert_eq!(format("nv21").plane(1, 5, 5), (3, 6));
        assert_eq!(format("p010le").plane(1, 4, 4), (2, 8));
        assert_eq!(format("bgra").plane(0, 2, 3), (2, 12));
        for name in ["yuv420p10be", "pal8", "yuyv422", "gray9001le", "yuv", "", "xyz12le"] {
            assert_eq!(PixelFormat::parse(name), None, "{name}");
        }
    }
}
