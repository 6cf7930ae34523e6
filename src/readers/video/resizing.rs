//! The sizes of frames: the arguments of `resize`, for frames that are resized when decoded.

use std::sync::Arc;

use super::super::options::Options;
use super::super::source::{OpenError, Result};
use crate::codecs::video::Resized;
use crate::kernels::resize::{Map, Sizes, filters};
use crate::value::{DType, Desc};

/// The arguments about sizes.
struct Arguments {
    size: Option<Vec<f64>>,
    xyz: [Option<f64>; 3],
    shorter: Option<f64>,
    longer: Option<f64>,
    mode: String,
    max_size: Option<Vec<f64>>,
    roi_start: Option<Vec<f64>>,
    roi_end: Option<Vec<f64>>,
    roi_relative: bool,
    subpixel: bool,
}

/// How frames are resized, by the options that have the names of `resize`'s arguments. `None` if
/// they keep their size.
pub fn take(options: &mut Options) -> Result<Option<Resized>, OpenError> {
    if !options.take::<Option<bool>>("is_resized")?.unwrap_or(false) {
        return Ok(None);
    }
    let flag = |options: &mut Options, name: &str, default: bool| {
        options.take::<Option<bool>>(name).map(|given| given.unwrap_or(default))
    };
    let antialias = flag(options, "antialias", true)?;
    let filters = filters(
        options.take("interp_type")?,
        options.take("min_filter")?,
        options.take("mag_filter")?,
        antialias,
    );
    let filters = filters.map_err(|_| OpenError::Options("there is no such filter".into()))?;
    let mut number = |name: &str| options.take::<Option<f64>>(name);
    let xyz = [number("resize_x")?, number("resize_y")?, number("resize_z")?];
    let (shorter, longer) = (number("resize_shorter")?, number("resize_longer")?);
    let given = Arguments {
        size: options.take("size")?,
        xyz,
        shorter,
        longer,
        mode: options.take::<Option<String>>("mode")?.unwrap_or_else(|| "default".into()),
        max_size: options.take("max_size")?,
        roi_start: options.take("roi_start")?,
        roi_end: options.take("roi_end")?,
        roi_relative: flag(options, "roi_relative", false)?,
        subpixel: flag(options, "subpixel_scale", true)?,
    };
    let maps = move |height: usize, width: usize| -> Result<[Map; 2]> {
        let sizes = Sizes {
            size: given.size.as_deref(),
            xyz: given.xyz,
            shorter: given.shorter,
            longer: given.longer,
            mode: &given.mode,
            max_size: given.max_size.as_deref(),
            roi: [given.roi_start.as_deref(), given.roi_end.as_deref()],
            roi_relative: given.roi_relative,
            subpixel: given.subpixel,
        };
        let (_, maps) = sizes.maps(&Desc::new(DType::U8, &[height, width]), &[0, 1])?;
        Ok([maps[0], maps[1]])
    };
    Ok(Some(Resized { maps: Arc::new(maps), filters }))
}
