//! Fill values.

use half::{bf16, f16};
use smallvec::SmallVec;

use super::axes::implied_layout;
use super::border::Border;
use super::window::Region;
use crate::kernels::Result;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::generic::cast::Convert;
use crate::value::{DType, Desc, Element, with_element};

/// What [`Border::Constant`] puts around an array: one value, or one for each channel.
pub struct Fill {
    /// The values' bytes, one after the other.
    pub values: SmallVec<[u8; 16]>,
    /// The axis that counts the channels, when there are several values.
    pub channels: Option<usize>,
}

impl Fill {
    pub fn new(values: &[f32], dtype: DType, channels: Option<usize>) -> Fill {
        let values = values.iter().flat_map(|&value| fill_bytes(value, dtype)).collect();
        Fill { values, channels }
    }

    /// One value, rounded to the nearest of the type.
    pub fn nearest(value: f32, dtype: DType) -> Fill {
        let values = with_element!(dtype, |T| {
            let value: T = value.convert();
            SmallVec::from_slice(bytes_of(&value))
        });
        Fill { values, channels: None }
    }
}

fn bytes_of<T: Element>(value: &T) -> &[u8] {
    // SAFETY: elements are plain numbers without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Fills `dst` with a repeated pattern.
pub fn repeat(pattern: &[u8], dst: &mut [u8]) {
    if pattern.iter().all(|&byte| byte == pattern[0]) {
        return dst.fill(pattern[0]);
    }
    let mut done = pattern.len().min(dst.len());
    dst[..done].copy_from_slice(&pattern[..done]);
    while done < dst.len() {
        let more = done.min(dst.len() - done);
        dst.copy_within(..more, done);
        done += more;
    }
}

/// A fill value as an element. As in DALI, it is truncated and wraps around like a cast in C.
pub fn fill_bytes(value: f32, dtype: DType) -> SmallVec<[u8; 8]> {
    let int32 = || {
        if (-2_147_483_648.0..2_147_483_648.0).contains(&value) { value as i32 } else { i32::MIN }
    };
    let int64 = |value: f32| {
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
        if fits { value as i64 } else { i64::MIN }
    };
    match dtype.storage() {
        DType::Bool => SmallVec::from_slice(&[u8::from(value != 0.0)]),
        DType::I8 | DType::U8 => SmallVec::from_slice(&(int32() as u8).to_ne_bytes()),
        DType::I16 | DType::U16 => SmallVec::from_slice(&(int32() as u16).to_ne_bytes()),
        DType::U32 => SmallVec::from_slice(&(int64(value) as u32).to_ne_bytes()),
        DType::I64 => SmallVec::from_slice(&int64(value).to_ne_bytes()),
        DType::U64 if value >= 9_223_372_036_854_775_808.0 => {
            let low = int64(value - 9_223_372_036_854_775_808.0) as u64;
            SmallVec::from_slice(&(low ^ (1 << 63)).to_ne_bytes())
        }
        DType::U64 => SmallVec::from_slice(&int64(value).to_ne_bytes()),
        DType::F16 => SmallVec::from_slice(&f16::from_f32(value).to_ne_bytes()),
        DType::BF16 => SmallVec::from_slice(&bf16::from_f32(value).to_ne_bytes()),
        DType::F32 => SmallVec::from_slice(&value.to_ne_bytes()),
        DType::F64 => SmallVec::from_slice(&f64::from(value).to_ne_bytes()),
        _ => SmallVec::from_slice(&int32().to_ne_bytes()),
    }
}

/// The fill that `fill_values` ask for: one value, or one per channel. Only `Border::Constant` uses
/// it.
pub fn fill_of(
    values: &[f64],
    desc: &Desc,
    region: &Region,
    border: Option<Border>,
    dtype: DType,
) -> Result<Fill> {
    let refuse = |problem: Argument| Err(argument("fill_values", problem));
    let values: SmallVec<[f32; 4]> = values.iter().map(|&value| value as f32).collect();
    if values.len() <= 1 || border != Some(Border::Constant) {
        return Ok(Fill::new(&[values.first().copied().unwrap_or(0.0)], dtype, None));
    }
    match implied_layout(desc).find(b'C') {
        None => {
            let layout = desc.layout.as_str().to_string();
            refuse(Argument::NoChannels { given: values.len(), layout })
        }
        Some(axis) if region.shape[axis] != values.len() => {
            let channels = region.shape[axis];
            refuse(Argument::ChannelCount { channels, given: values.len() })
        }
        Some(axis) => Ok(Fill::new(&values, dtype, Some(axis))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_values_wrap_like_a_cast_in_c() {
        assert_eq!(fill_bytes(300.7, DType::U8)[..], [44]);
        assert_eq!(fill_bytes(-1.0, DType::U64)[..], [255; 8]);
        assert_eq!(fill_bytes(f32::NAN, DType::U8)[..], [0]);
        assert_eq!(fill_bytes(3e9, DType::I32)[..], i32::MIN.to_ne_bytes());
        assert_eq!(fill_bytes(0.4, DType::Bool)[..], [1]);
    }
}
