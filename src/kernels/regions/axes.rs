//! The axes that an operator works along, and the limits of their extents.

use smallvec::SmallVec;

use super::problem::Regions;
use crate::kernels::Result;
use crate::kernels::contract::problems::{Argument, argument};
use crate::value::{Cause, Desc, Layout};

/// The axes that a call gives by number or by letter; all axes if it gives none.
pub fn axes_of(
    desc: &Desc,
    layout: Layout,
    numbers: Option<&[i64]>,
    letters: Option<Layout>,
) -> Result<SmallVec<[usize; 6]>> {
    let ndim = desc.ndim();
    let mut found: SmallVec<[usize; 6]> = SmallVec::new();
    match (numbers, letters) {
        (Some(_), Some(_)) => {
            return Err(argument("axes", Argument::Together { other: "axis_names" }));
        }
        (Some(numbers), None) => {
            for &axis in numbers {
                let from_start = if axis < 0 { axis + ndim as i64 } else { axis };
                if !(0..ndim as i64).contains(&from_start) {
                    return Err(argument("axes", Argument::AxisOutside { axis, ndim }));
                }
                found.push(from_start as usize);
            }
        }
        (None, Some(letters)) => {
            for &letter in letters.letters() {
                let Some(axis) = layout.find(letter) else {
                    if layout.is_empty() {
                        return Err(argument("axis_names", Regions::NoLayout));
                    }
                    let letter = (letter as char).to_string();
                    let layout = layout.as_str().to_string();
                    return Err(argument("axis_names", Regions::NoSuchAxis { letter, layout }));
                };
                found.push(axis);
            }
        }
        (None, None) => {}
    }
    let name = if numbers.is_some() { "axes" } else { "axis_names" };
    if let Some(again) = (1..found.len()).find(|&i| found[..i].contains(&found[i])) {
        return Err(argument(name, Regions::RepeatedAxis { axis: found[again] }));
    }
    if found.is_empty() {
        found.extend(0..ndim);
    }
    Ok(found)
}

/// Element `index` of a list that has one value for each of `count` axes, or one for all.
pub fn value_of<T: Copy>(
    values: &[T],
    index: usize,
    count: usize,
    name: &'static str,
) -> Result<T> {
    match values {
        [one] => Ok(*one),
        all if all.len() == count => Ok(all[index]),
        all => Err(argument(name, Argument::Count { wanted: count, given: all.len() })),
    }
}

/// The largest extent, as in DALI.
pub const LONGEST: f64 = i32::MAX as f64;

/// The layout assumed for images without one.
pub fn implied_layout(desc: &Desc) -> Layout {
    if !desc.layout.is_empty() {
        return desc.layout;
    }
    let letters = match desc.ndim() {
        2 => "HW",
        3 => "HWC",
        4 => "DHWC",
        5 => "FDHWC",
        _ => "",
    };
    Layout::new(letters).unwrap_or_default()
}

pub fn too_large(name: &'static str) -> Cause {
    argument(name, Argument::TooLarge)
}
