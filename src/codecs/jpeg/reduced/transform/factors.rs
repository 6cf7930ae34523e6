//! What libjpeg-turbo's inverse transforms multiply with.

/// Most pixels of half a block.
pub const HALF: usize = 7;

/// One pass of a transform to blocks of a size.
pub struct Pass {
    /// What the coefficients (across) add to the pixels of the first half (down). To those of the
    /// second, odd ones add the opposite. Factors of coefficients that don't count are 0.
    pub factors: [[i32; 8]; HALF],
    /// Factors are larger by so many bits.
    pub larger: u32,
    /// Whether libjpeg computes with vectors, which saturate; otherwise pixels are kept modulo 1024.
    pub saturates: bool,
}

/// The sizes that there are transforms for.
#[cfg(test)]
pub const SIZES: [usize; 10] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14];

/// The transform to blocks of this size, for both passes.
pub const fn pass(size: usize) -> Pass {
    match size {
        2 => Pass {
            factors: first(&[[32768, 29692, 0, -10426, 0, 6967, 0, -5906]]),
            larger: 2,
            saturates: true,
        },
        3 => Pass {
            factors: first(&[[8192, 10033, 5793, 0, 0, 0, 0, 0], [8192, 0, -11586, 0, 0, 0, 0, 0]]),
            larger: 0,
            saturates: false,
        },
        4 => Pass {
            factors: first(&[
                [16384, 20995, 15137, 7373, 0, -4926, -6270, -4176],
                [16384, 8697, -15137, -17799, 0, 11893, 6270, -1730],
            ]),
            larger: 1,
            saturates: true,
        },
        5 => Pass {
            factors: first(&[
                [8192, 11019, 9372, 6810, 3580, 0, 0, 0],
                [8192, 6810, -3580, -11018, -9372, 0, 0, 0],
                [8192, 0, -11584, 0, 11584, 0, 0, 0],
            ]),
            larger: 0,
            saturates: false,
        },
        6 => Pass {
            factors: first(&[
                [8192, 11190, 10033, 8192, 5793, 2998, 0, 0],
                [8192, 8192, 0, -8192, -11586, -8192, 0, 0],
                [8192, 2998, -10033, -8192, 5793, 11190, 0, 0],
            ]),
            larger: 0,
            saturates: false,
        },
        7 => Pass {
            factors: first(&[
                [8192, 11295, 10438, 9058, 7223, 5027, 2578, 0],
                [8192, 9058, 2578, -5027, -10438, -11295, -7223, 0],
                [8192, 5027, -7223, -11295, -2578, 9058, 10438, 0],
                [8192, 0, -11585, 0, 11585, 0, -11585, 0],
            ]),
            larger: 0,
            saturates: false,
        },
        8 => Pass {
            factors: first(&[
                [8192, 11363, 10703, 9633, 8192, 6437, 4433, 2260],
                [8192, 9633, 4433, -2259, -8192, -11362, -10704, -6436],
                [8192, 6437, -4433, -11362, -8192, 2261, 10704, 9633],
                [8192, 2260, -10703, -6436, 8192, 9633, -4433, -11363],
            ]),
            larger: 0,
            saturates: true,
        },
        10 => Pass {
            factors: first(&[
                [8192, 11443, 11019, 10322, 9373, 8192, 6810, 5260],
                [8192, 10323, 6810, 1812, -3580, -8192, -11018, -11442],
                [8192, 8192, 0, -8192, -11586, -8192, 0, 8192],
                [8192, 5260, -6810, -11442, -3580, 8192, 11018, 1812],
                [8192, 1812, -11019, -5260, 9373, 8192, -6810, -10322],
            ]),
            larger: 0,
            saturates: false,
        },
        12 => Pass {
            factors: first(&[
                [8192, 11487, 11190, 10703, 10033, 9192, 8192, 7053],
                [8192, 10703, 8192, 4433, 0, -4433, -8192, -10703],
                [8192, 9192, 2998, -4433, -10033, -11485, -8192, -1512],
                [8192, 7053, -2998, -10703, -10033, -1512, 8192, 11486],
                [8192, 4433, -8192, -10704, 0, 10704, 8192, -4433],
                [8192, 1513, -11190, -4433, 10033, 7053, -8192, -9191],
            ]),
            larger: 0,
            saturates: false,
        },
        14 => Pass {
            factors: first(&[
                [8192, 11513, 11295, 10935, 10438, 9810, 9058, 8192],
                [8192, 10935, 9058, 6164, 2578, -1297, -5026, -8192],
                [8192, 9810, 5027, -1297, -7223, -10934, -11295, -8192],
                [8192, 8192, 0, -8192, -11586, -8192, 0, 8192],
                [8192, 6164, -5027, -11512, -7223, 3826, 11295, 8192],
                [8192, 3826, -9058, -9809, 2578, 11512, 5026, -8192],
                [8192, 1297, -11295, -3826, 10438, 6164, -9058, -8192],
            ]),
            larger: 0,
            saturates: false,
        },
        _ => Pass { factors: first(&[]), larger: 0, saturates: false },
    }
}

const fn first<const N: usize>(rows: &[[i32; 8]; N]) -> [[i32; 8]; HALF] {
    let mut all = [[0; 8]; HALF];
    let mut index = 0;
    while index < N {
        all[index] = rows[index];
        index += 1;
    }
    all
}
