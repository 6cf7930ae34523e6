//! Transposition of small matrices.

#[cfg(target_arch = "x86_64")]
use crate::kernels::numeric::isa::Isa;

/// `dst[column * dst_stride + row] = src[row * src_stride + column]`, for all rows and columns.
pub fn transpose(
    src: &[f32],
    src_stride: usize,
    size: [usize; 2],
    dst: &mut [f32],
    dst_stride: usize,
) {
    transpose_before(src, src_stride, size, dst, dst_stride, None);
}

/// Like [`transpose`], while another matrix is on its way from memory to the caches: that of the
/// same size at `next`, whose rows lie one after the other. The blocks of a matrix are too short for
/// the processor to foresee what is read.
pub fn transpose_before(
    src: &[f32],
    src_stride: usize,
    [rows, columns]: [usize; 2],
    dst: &mut [f32],
    dst_stride: usize,
    next: Option<*const f32>,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!((rows - 1) * src_stride + columns <= src.len());
    assert!((columns - 1) * dst_stride + rows <= dst.len());
    // Whole blocks first, then what is to the right of them and below.
    #[allow(unused_mut)] // unused on other processors
    let mut done = [0, 0];
    #[cfg(target_arch = "x86_64")]
    if Isa::best() == Isa::Avx2 {
        done = [rows / 8 * 8, columns / 8 * 8];
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected. The blocks are inside of both
        // matrices, whose bounds were checked.
        unsafe {
            avx2::transpose(src.as_ptr(), src_stride, done, dst.as_mut_ptr(), dst_stride, next);
        }
    }
    for column in 0..columns {
        let from = if column < done[1] { done[0] } else { 0 };
        for row in from..rows {
            dst[column * dst_stride + row] = src[row * src_stride + column];
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Rows and columns are multiples of eight.
    ///
    /// # Safety
    /// Both must be matrices of at least that size.
    #[target_feature(enable = "avx2")]
    pub unsafe fn transpose(
        src: *const f32,
        src_stride: usize,
        [rows, columns]: [usize; 2],
        dst: *mut f32,
        dst_stride: usize,
        mut next: Option<*const f32>,
    ) {
        for row in (0..rows).step_by(8) {
            for column in (0..columns).step_by(8) {
                if let Some(next) = &mut next {
                    // As many lines of the cache as a block has bytes.
                    for _ in 0..4 {
                        _mm_prefetch::<_MM_HINT_T0>(next.cast());
                        *next = next.wrapping_add(16);
                    }
                }
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let src = src.add(row * src_stride + column);
                    let dst = dst.add(column * dst_stride + row);
                    transpose_block(src, src_stride, dst, dst_stride);
                }
            }
        }
    }

    /// Eight rows of eight.
    ///
    /// # Safety
    /// Both must be matrices of at least that size.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn transpose_block(
        src: *const f32,
        src_stride: usize,
        dst: *mut f32,
        dst_stride: usize,
    ) {
        // SAFETY: guaranteed by the caller.
        let row = |i: usize| unsafe { _mm256_loadu_ps(src.add(i * src_stride)) };
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        let (e, f, g, h) = (row(4), row(5), row(6), row(7));
        // Pairs of rows, then fours, then all eight.
        let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (ef, gh) = (_mm256_unpacklo_ps(e, f), _mm256_unpacklo_ps(g, h));
        let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        let (ef_high, gh_high) = (_mm256_unpackhi_ps(e, f), _mm256_unpackhi_ps(g, h));
        let left = [
            _mm256_shuffle_ps::<0x44>(ab, cd),
            _mm256_shuffle_ps::<0xee>(ab, cd),
            _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
            _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
        ];
        let right = [
            _mm256_shuffle_ps::<0x44>(ef, gh),
            _mm256_shuffle_ps::<0xee>(ef, gh),
            _mm256_shuffle_ps::<0x44>(ef_high, gh_high),
            _mm256_shuffle_ps::<0xee>(ef_high, gh_high),
        ];
        for i in 0..4 {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let low = _mm256_permute2f128_ps::<0x20>(left[i], right[i]);
                _mm256_storeu_ps(dst.add(i * dst_stride), low);
                let high = _mm256_permute2f128_ps::<0x31>(left[i], right[i]);
                _mm256_storeu_ps(dst.add((i + 4) * dst_stride), high);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        for (rows, columns) in [(1, 1), (8, 8), (16, 257), (5, 40), (23, 17), (0, 3), (3, 0)] {
            let (src_stride, dst_stride) = (columns + 3, rows + 2);
            let src: Vec<f32> = (0..(rows + 1) * src_stride).map(|i| i as f32).collect();
            let mut dst = vec![-1.0; (columns + 1) * dst_stride];
            transpose(&src, src_stride, [rows, columns], &mut dst, dst_stride);
            for (at, &found) in dst.iter().enumerate() {
                let (column, row) = (at / dst_stride, at % dst_stride);
                let inside = column < columns && row < rows;
                let expected = if inside { src[row * src_stride + column] } else { -1.0 };
                assert_eq!(found, expected, "{rows} x {columns}, {column}, {row}");
            }
        }
    }
}
