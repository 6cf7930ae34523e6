//! Functions of one number, in floats.

use super::{Operation, kernel, map};

macro_rules! functions {
    ($($name:ident: |$x:ident| $single:expr, $double:expr;)*) => {
        $(
            pub struct $name;
            kernel!(1 operands, floats: $name);

            impl Operation<1, f32> for $name {
                type Out = f32;
                #[inline(always)]
                fn row(operands: [&[f32]; 1], out: &mut [f32]) -> bool {
                    map(operands, out, |$x: f32| $single)
                }
            }

            impl Operation<1, f64> for $name {
                type Out = f64;
                #[inline(always)]
                fn row(operands: [&[f64]; 1], out: &mut [f64]) -> bool {
                    map(operands, out, |$x: f64| $double)
                }
            }
        )*
    };
}

functions! {
    Acos: |x| x.acos(), x.acos();
    Acosh: |x| acosh(x.into()) as f32, acosh(x);
    Asin: |x| x.asin(), x.asin();
    Asinh: |x| f64::from(x).asinh() as f32, x.asinh();
    Atan: |x| x.atan(), x.atan();
    Atanh: |x| f64::from(x).atanh() as f32, x.atanh();
    Cbrt: |x| x.cbrt(), x.cbrt();
    Ceil: |x| x.ceil(), x.ceil();
    Cos: |x| x.cos(), x.cos();
    Cosh: |x| x.cosh(), x.cosh();
    Exp: |x| x.exp(), x.exp();
    Fabs: |x| x.abs(), x.abs();
    Floor: |x| x.floor(), x.floor();
    Log: |x| x.ln(), x.ln();
    Log10: |x| x.log10(), x.log10();
    Log2: |x| x.log2(), x.log2();
    Rsqrt: |x| 1.0 / x.sqrt(), 1.0 / x.sqrt();
    Sin: |x| x.sin(), x.sin();
    Sinh: |x| x.sinh(), x.sinh();
    Sqrt: |x| x.sqrt(), x.sqrt();
    Tan: |x| x.tan(), x.tan();
    Tanh: |x| x.tanh(), x.tanh();
}

/// The standard library's squares its operand, which overflows for large ones.
fn acosh(x: f64) -> f64 {
    if x < 1e8 { x.acosh() } else { x.ln() + std::f64::consts::LN_2 }
}
