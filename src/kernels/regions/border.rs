//! What an operator does where its window extends outside of the array.

use super::problem::Regions;
use crate::kernels::contract::problems::{Argument, unfit};
use crate::kernels::{Arg, FromArg, Result};
use crate::value::{Desc, Problem, Sample};

/// How an array is extended beyond its edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Border {
    /// The fill value.
    Constant,
    /// The nearest element.
    Edge,
    /// The mirrored array, its edge included: `2 1 0 | 0 1 2`.
    Reflect,
    /// The array mirrored at its edge: `2 1 | 0 1 2`.
    Reflect101,
    /// The array, repeated.
    Wrap,
}

/// What to do with a window that extends outside of its array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Refuse,
    /// Refuse, for operators without `out_of_bounds_policy`.
    Inside,
    Trim,
    Border(Border),
}

impl Policy {
    /// Where the window begins and ends on an axis, once the policy has been applied.
    pub fn place(self, desc: &Desc, axis: usize, (start, end): (i64, i64)) -> Result<(i64, i64)> {
        let n = desc.shape[axis] as i64;
        match self {
            Policy::Trim => Ok((start.clamp(0, n), end.clamp(0, n))),
            Policy::Refuse | Policy::Inside if start < 0 || end > n => {
                let shape = desc.shape.to_vec();
                Err(match self {
                    Policy::Inside => unfit(0, Regions::Outside { start, end, axis, shape }),
                    _ => unfit(0, Regions::OutsideOfPolicy { start, end, axis, shape }),
                })
            }
            Policy::Refuse | Policy::Inside | Policy::Border(_) => Ok((start, end)),
        }
    }

    /// The border, if windows may extend outside.
    pub fn border(self) -> Option<Border> {
        if let Policy::Border(border) = self { Some(border) } else { None }
    }
}

impl FromArg for Policy {
    fn from_constant(arg: &Arg) -> std::result::Result<Policy, Problem> {
        const NAMES: &[(&str, Policy)] = &[
            ("error", Policy::Refuse),
            ("trim_to_shape", Policy::Trim),
            ("pad", Policy::Border(Border::Constant)),
            ("constant", Policy::Border(Border::Constant)),
            ("edge", Policy::Border(Border::Edge)),
            ("clamp", Policy::Border(Border::Edge)),
            ("reflect", Policy::Border(Border::Reflect)),
            ("reflect_1001", Policy::Border(Border::Reflect)),
            ("reflect_101", Policy::Border(Border::Reflect101)),
            ("wrap", Policy::Border(Border::Wrap)),
        ];
        let given = if let Arg::Text(name) = arg { &**name } else { "" };
        match NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(given)) {
            Some(&(_, policy)) => Ok(policy),
            None => {
                let choices = "error, trim_to_shape, pad, constant, edge, clamp, reflect, \
                               reflect_1001, reflect_101, wrap";
                Err(Argument::OneOf { choices, given: arg.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Policy, Problem> {
        Err(Argument::SameForAll.into())
    }
}
