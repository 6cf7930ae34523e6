//! Lookup tables and one-hot encoding.

use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::kernels::{Entry, Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Cause, DType, Desc, Element, Sample, Shape, extent, filled, with_element};

pub const TABLE: &[Entry] =
    &[Entry::new::<LookupTable>("lookup_table"), Entry::new::<OneHot>("one_hot")];

struct LookupTable;

args! {
    struct LookupTableArgs {
        default_value: f64,
        dtype: DType,
        keys: Vec<i64>,
        values: Vec<f64>,
    }
}

impl Kernel for LookupTable {
    type Args = LookupTableArgs;
    type Plan = LookupTableArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, stacks: true, ..Traits::DEFAULT };

    fn plan(args: LookupTableArgs, inputs: &[&Desc]) -> Result<(LookupTableArgs, Outputs)> {
        if matches!(inputs[0].dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
            let dtype = inputs[0].dtype.name();
            return Err(unfit(0, Input::Type { wanted: "integers", dtype }));
        }
        let desc = Desc { dtype: args.dtype, ..inputs[0].clone() };
        Ok((args, one(desc)))
    }

    fn run(args: &LookupTableArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        with_element!(args.dtype, |T| look_up::<T>(args, &inputs[0], out))
    }
}

fn look_up<T: Element>(args: &LookupTableArgs, input: &Sample, out: &mut Output<'_>) -> Result<()>
where
    f32: Convert<T>,
{
    // DALI's values are single precision.
    let value = |value: f64| (value as f32).convert();
    let other: T = value(args.default_value);
    // At least 256 entries, so that 8-bit keys need no bounds check.
    let length = args.keys.iter().map(|&key| key.clamp(0, LARGEST_KEY) + 1).fold(256, i64::max);
    let mut table = filled(other, length as usize)?;
    for (&key, &v) in args.keys.iter().zip(&args.values) {
        if let Some(place) = usize::try_from(key).ok().and_then(|key| table.get_mut(key)) {
            *place = value(v);
        }
    }
    if let (DType::U8 | DType::Bool, Some(table)) = (input.desc.dtype, table.first_chunk::<256>()) {
        return out.write(|start, piece| {
            for (out, &key) in piece.iter_mut().zip(&input.elements_as_bytes()[start..]) {
                *out = table[usize::from(key)];
            }
            Ok(())
        });
    }
    with_element!(input.desc.dtype, |K| out.write(|start, piece| {
        for (out, &key) in piece.iter_mut().zip(&input.elements::<K>()[start..]) {
            let key: i64 = Convert::<i64>::convert(key);
            *out =
                usize::try_from(key).ok().and_then(|key| table.get(key)).copied().unwrap_or(other);
        }
        Ok(())
    }))
}

/// The largest key, as in DALI; the definition rejects larger ones.
const LARGEST_KEY: i64 = 65_535;

struct OneHot;

args! {
    /// `axis` counts from the front; `lone` says to treat the input's only element as a scalar.
    struct OneHotArgs {
        axis: i64,
        lone: bool,
        dtype: DType,
        num_classes: i64,
        off_value: f64,
        on_value: f64,
    }
}

impl Kernel for OneHot {
    type Args = OneHotArgs;
    type Plan = OneHotArgs;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: OneHotArgs, inputs: &[&Desc]) -> Result<(OneHotArgs, Outputs)> {
        let classes = usize::try_from(args.num_classes).map_err(|_| {
            argument("num_classes", Argument::Negative { given: args.num_classes as f64 })
        })?;
        let mut shape = if args.lone { Shape::new() } else { inputs[0].shape.clone() };
        let axis = usize::try_from(args.axis).unwrap_or(usize::MAX);
        if axis > shape.len() || (args.lone && inputs[0].elements() != 1) {
            let problem = Argument::AxisOutside { axis: args.axis, ndim: shape.len() + 1 };
            return Err(argument("axis", problem));
        }
        shape.insert(axis, classes);
        let desc = match extent(&shape) {
            Some(_) => Ok(Desc { dtype: args.dtype, shape, ..inputs[0].clone() }),
            None => Err(Cause::Memory { bytes: usize::MAX }),
        }?;
        Ok((args, one(desc)))
    }

    fn run(args: &OneHotArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let classes = args.num_classes as usize;
        let inner: usize = out.desc.shape[args.axis as usize + 1..].iter().product();
        with_element!(args.dtype, |T| {
            let (on, off) = (T::cut(args.on_value), T::cut(args.off_value));
            let out = out.elements::<T>();
            out.fill(off);
            if !out.is_empty() {
                with_element!(inputs[0].desc.dtype, |K| {
                    let keys = inputs[0].elements::<K>();
                    // An unknown class sets no element.
                    let known = |key: &K| key.class().filter(|&class| class < classes);
                    if inner == 1 {
                        for (block, key) in out.chunks_exact_mut(classes).zip(keys) {
                            if let Some(class) = known(key) {
                                block[class] = on;
                            }
                        }
                        return Ok(());
                    }
                    let blocks = out.chunks_exact_mut(classes * inner);
                    for (block, keys) in blocks.zip(keys.chunks_exact(inner)) {
                        for (i, key) in keys.iter().enumerate() {
                            if let Some(class) = known(key) {
                                block[class * inner + i] = on;
                            }
                        }
                    }
                });
            }
        });
        Ok(())
    }
}

/// Conversion of numbers as in DALI's `one_hot`: truncated, and wrapped around if an integer can't
/// hold them.
trait Cut: Element {
    fn cut(value: f64) -> Self;
    fn class(self) -> Option<usize>;
}

macro_rules! cut_integers {
    ($($int:ty)*) => {
        $(
            impl Cut for $int {
                fn cut(value: f64) -> $int {
                    // Numbers that don't fit 64 bits either get the result of the processor's own
                    // conversion.
                    let value = f64::from(value as f32);
                    match value {
                        _ if value.abs() < 9.2e18 => value as i64 as $int,
                        _ if value >= 0.0 && <$int>::MAX as u64 == u64::MAX => value as $int,
                        _ => <$int>::MIN,
                    }
                }

                fn class(self) -> Option<usize> {
                    usize::try_from(self).ok()
                }
            }
        )*
    };
}

macro_rules! cut_floats {
    ($($float:ty)*) => {
        $(
            impl Cut for $float {
                fn cut(value: f64) -> $float {
                    (value as f32).convert()
                }

                fn class(self) -> Option<usize> {
                    let value: f64 = self.convert();
                    (value > -1.0 && value < 9.2e18).then_some(value as usize)
                }
            }
        )*
    };
}
cut_integers!(i8 i16 i32 i64 u8 u16 u32 u64);
cut_floats!(half::f16 half::bf16 f32 f64);

impl Cut for crate::value::Bool {
    fn cut(value: f64) -> Self {
        Self::from(value != 0.0)
    }

    fn class(self) -> Option<usize> {
        Some(usize::from(self.get()))
    }
}
