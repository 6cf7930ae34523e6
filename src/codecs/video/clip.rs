//! Which frames a clip consists of.

/// What stands in for frames that don't exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Nothing: clips end with the video.
    None,
    /// Frames of one color.
    Constant,
    /// The first or the last frame.
    Edge,
    /// Frames in reverse, with the edge twice: `cba|abc|cba`.
    Reflect1001,
    /// Frames in reverse, with the edge once: `cb|abc|ba`.
    Reflect101,
}

/// A frame outside of a video that is not padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFrame;

impl Padding {
    pub const NAMES: &str =
        "none, constant, edge, repeat, reflect_1001, symmetric, reflect_101, reflect";

    pub fn parse(name: &str) -> Option<Padding> {
        Some(match name {
            "" | "none" => Padding::None,
            "constant" => Padding::Constant,
            "edge" | "repeat" => Padding::Edge,
            "reflect_1001" | "symmetric" => Padding::Reflect1001,
            "reflect_101" | "reflect" => Padding::Reflect101,
            _ => return None,
        })
    }

    /// The frame of a video of `count` frames that is shown at a number, which may be outside:
    /// `Ok(None)` is a frame of one color, and `Err` says that there is none.
    pub fn pick(self, number: i64, count: usize) -> Result<Option<usize>, NoFrame> {
        let length = i64::try_from(count).unwrap_or(i64::MAX / 4);
        if (0..length).contains(&number) {
            return Ok(Some(number as usize));
        }
        if length == 0 {
            return if self == Padding::Constant { Ok(None) } else { Err(NoFrame) };
        }
        let found = match self {
            Padding::None => return Err(NoFrame),
            Padding::Constant => return Ok(None),
            Padding::Edge => number.clamp(0, length - 1),
            Padding::Reflect1001 => {
                let place = number.rem_euclid(2 * length);
                place.min(2 * length - 1 - place)
            }
            Padding::Reflect101 => {
                let period = (2 * length - 2).max(1);
                let place = number.rem_euclid(period);
                place.min(period - place)
            }
        };
        Ok(Some(found.clamp(0, length - 1) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_are_padded() {
        let pick = |name, number| Padding::parse(name).unwrap().pick(number, 60);
        assert_eq!(pick("none", 59), Ok(Some(59)));
        assert_eq!(pick("none", 60), Err(NoFrame));
        assert_eq!(pick("constant", -1), Ok(None));
        assert_eq!(pick("edge", 99), Ok(Some(59)));
        assert_eq!(pick("edge", -9), Ok(Some(0)));
        assert_eq!(pick("reflect_101", 60), Ok(Some(58)));
        assert_eq!(pick("reflect", 200), Ok(Some(36)));
        assert_eq!(pick("reflect", -1), Ok(Some(1)));
        assert_eq!(pick("reflect_1001", 60), Ok(Some(59)));
        assert_eq!(pick("symmetric", 200), Ok(Some(39)));
        assert_eq!(pick("symmetric", -1), Ok(Some(0)));
        for padding in [Padding::Reflect101, Padding::Reflect1001, Padding::Edge] {
            assert_eq!(padding.pick(-7, 1), Ok(Some(0)));
            assert!(padding.pick(i64::MAX, 3).is_ok());
        }
        assert_eq!(Padding::parse("mirror"), None);
    }
}
