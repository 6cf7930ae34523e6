//! DALI computes positions in single precision, which can't count the elements of very long axes.

/// Whether an axis has more elements than single precision can count.
pub fn is_long(n: usize) -> bool {
    // A little less than 2^24, to allow for positions slightly outside the axis.
    n > (1 << 24) - 8
}

/// A fraction of `n` elements, in single precision like DALI if that can count them.
pub fn part_of(part: f64, n: f64) -> f64 {
    if n.abs() <= f64::from(1 << 24) { f64::from(part as f32 * n as f32) } else { part * n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_one_is_the_whole_axis() {
        for n in [1_u64, 1000, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 31) - 1] {
            assert_eq!(part_of(1.0, n as f64), n as f64);
            assert!(part_of(0.3, n as f64) < n as f64);
        }
    }
}
