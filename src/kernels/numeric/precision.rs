//! Where single precision, in which DALI computes places, does not count elements any more.

/// Whether an axis has more elements than single precision can count.
pub fn is_long(n: usize) -> bool {
    // Some less than 2^24, for places a little outside of the axis.
    n > (1 << 24) - 8
}

/// A part of `n` elements. In single precision, as DALI, as long as that can count them.
pub fn part_of(part: f64, n: f64) -> f64 {
    if n.abs() <= f64::from(1 << 24) { f64::from(part as f32 * n as f32) } else { part * n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_an_axis_is_all_of_it() {
        for n in [1_u64, 1000, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 31) - 1] {
            assert_eq!(part_of(1.0, n as f64), n as f64);
            assert!(part_of(0.3, n as f64) < n as f64);
        }
    }
}
