//! Functions of one floating-point number.

use super::{Operation, kernel, map, single};

macro_rules! functions {
    ($($name:ident: |$x:ident| $single:expr, $double:expr;)*) => {
        $(
            pub struct $name;
            kernel!(1 operands, floats: $name);

            impl Operation<1, f32> for $name {
                type Out = f32;
                #[inline(always)]
                fn row(operands: [&[f32]; 1], out: &mut [f32]) -> bool {
                    #[inline(always)]
                    fn op($x: f32) -> f32 {
                        $single
                    }
                    map(operands, out, op)
                }
            }

            functions!(@ $name: |$x| $double);
        )*
    };
    (@ $name:ident: |$x:ident| $double:expr) => {
        impl Operation<1, f64> for $name {
            type Out = f64;
            #[inline(always)]
            fn row(operands: [&[f64]; 1], out: &mut [f64]) -> bool {
                map(operands, out, |$x: f64| $double)
            }
        }
    };
}

functions! {
    Acos: |x| single::acos(x), x.acos();
    Acosh: |x| single::acosh(x), acosh(x);
    Asin: |x| single::asin(x), x.asin();
    Asinh: |x| single::asinh(x), x.asinh();
    Atan: |x| single::atan(x), x.atan();
    Atanh: |x| single::atanh(x), x.atanh();
    Cbrt: |x| single::cbrt(x), x.cbrt();
    Ceil: |x| x.ceil(), x.ceil();
    Cosh: |x| single::cosh(x), x.cosh();
    Exp: |x| single::exp(x), x.exp();
    Fabs: |x| x.abs(), x.abs();
    Floor: |x| x.floor(), x.floor();
    Log: |x| single::log(x), x.ln();
    Log10: |x| single::log10(x), x.log10();
    Log2: |x| single::log2(x), x.log2();
    Rsqrt: |x| 1.0 / x.sqrt(), 1.0 / x.sqrt();
    Sinh: |x| single::sinh(x), x.sinh();
    Sqrt: |x| x.sqrt(), x.sqrt();
    Tanh: |x| single::tanh(x), x.tanh();
}

/// The standard library squares the operand, which overflows for large ones.
pub(super) fn acosh(x: f64) -> f64 {
    if x < 1e8 { x.acosh() } else { x.ln() + std::f64::consts::LN_2 }
}

/// Trigonometric functions, computed by reduction to the first quadrant; angles that are too large
/// for that are left to the standard library.
macro_rules! of_angles {
    ($($name:ident: $function:ident;)*) => {
        $(
            pub struct $name;
            kernel!(1 operands, floats: $name);

            impl Operation<1, f32> for $name {
                type Out = f32;
                #[inline(always)]
                fn row([a]: [&[f32]; 1], out: &mut [f32]) -> bool {
                    if a.iter().any(|x| x.abs() > single::LARGEST_ANGLE) {
                        return map([a], out, |x: f32| x.$function());
                    }
                    map([a], out, single::$function)
                }
            }

            functions!(@ $name: |x| x.$function());
        )*
    };
}
of_angles! { Sin: sin; Cos: cos; Tan: tan; }
