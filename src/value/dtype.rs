//! Element types, as data and as Rust types.

use half::{bf16, f16};

/// Element type of a value. The variants' order defines the codes that Python uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    DataType,
    ImageType,
    InterpType,
}

impl DType {
    pub const ALL: [DType; 16] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::DataType,
        DType::ImageType,
        DType::InterpType,
    ];

    pub fn from_code(code: u8) -> Option<DType> {
        DType::ALL.get(code as usize).copied()
    }

    pub fn code(self) -> u8 {
        self as u8
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I64 | DType::U64 | DType::F64 => 8,
            _ => 4,
        }
    }

    /// The type in memory: the API's enumerations are stored as 32-bit integers.
    pub fn storage(self) -> DType {
        match self {
            DType::DataType | DType::ImageType | DType::InterpType => DType::I32,
            other => other,
        }
    }

    /// The short name users see.
    pub fn name(self) -> &'static str {
        [
            "bool",
            "i8",
            "i16",
            "i32",
            "i64",
            "u8",
            "u16",
            "u32",
            "u64",
            "f16",
            "bfloat16",
            "f32",
            "f64",
            "DataType",
            "ImageType",
            "InterpType",
        ][self as usize]
    }
}

/// A boolean in memory that others may have written: any byte is valid, non-zero is true.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(value as u8)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// The Rust type of a [`DType`]: plain old data for which every bit pattern is valid.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {
        $(
            impl sealed::Sealed for $rust {}
            impl Element for $rust {
                const DTYPE: DType = DType::$dtype;
            }
        )*
    };
}

elements! {
    Bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32,
    u64 => U64, f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
}

/// Evaluates the expression with `$T` bound to the Rust type that stores `$dtype`.
macro_rules! with_element {
    ($dtype:expr, |$T:ident| $body:expr) => {{
        use $crate::value::DType as D;
        macro_rules! run {
            ($rust:ty) => {{
                type $T = $rust;
                $body
            }};
        }
        match $dtype.storage() {
            D::Bool => run!($crate::value::Bool),
            D::I8 => run!(i8),
            D::I16 => run!(i16),
            D::I64 => run!(i64),
            D::U8 => run!(u8),
            D::U16 => run!(u16),
            D::U32 => run!(u32),
            D::U64 => run!(u64),
            D::F16 => run!(half::f16),
            D::BF16 => run!(half::bf16),
            D::F32 => run!(f32),
            D::F64 => run!(f64),
            // `storage` maps the enumerations to I32.
            D::I32 | D::DataType | D::ImageType | D::InterpType => run!(i32),
        }
    }};
}
pub(crate) use with_element;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for (code, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(dtype.code() as usize, code);
            assert_eq!(DType::from_code(code as u8), Some(dtype));
        }
        assert_eq!(DType::from_code(16), None);
    }

    #[test]
    fn element_types_have_the_size_of_their_dtype() {
        for dtype in DType::ALL {
            with_element!(dtype, |T| {
                assert_eq!(size_of::<T>(), dtype.size());
                assert_eq!(T::DTYPE, dtype.storage());
            });
        }
    }
}
