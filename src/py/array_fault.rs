//! Problems with the memory of arrays that other libraries share with us, or we with them.

use crate::value::problems;

problems! {
    /// Why an array can't be imported, exported or unpickled.
    pub enum ArrayFault {
        DlpackVersion { version: u32, newest: u32 },
        NotACapsule,
        OnDevice { kind: i32 },
        DlpackType { code: u8, bits: u8, lanes: u16 },
        BufferType { size: usize, format: String },
        Dimensions { ndim: i32 },
        NoShape,
        Shape,
        Strides,
        NoData,
        Offset { offset: u64 },
        Memory { bytes: usize },
        PackedType,
        PackedCount { shapes: usize, sources: usize },
        PackedShape { shape: Vec<usize> },
        Layout { most: usize, given: String },
        ReadOnly,
        ReadOnlyBeforeVersions,
        ExportedStrides,
    }
}
