//! Detection of vector instructions.

use std::sync::OnceLock;

/// An instruction set that code is compiled for. Values are only created for what the processor
/// supports; [`Isa::Scalar`] is the target's baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    Scalar,
    /// And what processors with AVX2 have beside it: fused multiplication, conversions of float16,
    /// and operations on bits.
    Avx2,
}

impl Isa {
    /// The best one available; `PENSTOCK_ISA=scalar` forces the baseline.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            if std::env::var("PENSTOCK_ISA").is_ok_and(|name| name == "scalar") {
                return Isa::Scalar;
            }
            *Isa::available().last().unwrap_or(&Isa::Scalar)
        })
    }

    /// Runs `work`, compiled for the best instruction set available. Call it through
    /// [`vectorized!`], which makes sure that `work` is inlined: code that is not inlined runs on
    /// the baseline.
    #[inline(always)]
    pub fn run_on_best<R>(work: impl FnOnce() -> R) -> R {
        match Isa::best() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                unsafe fn run<R>(work: impl FnOnce() -> R) -> R {
                    work()
                }
                // SAFETY: an `Isa::Avx2` only exists where all these were detected.
                unsafe { run(work) }
            }
            _ => work(),
        }
    }

    /// All that the processor supports, the best last.
    pub fn available() -> Vec<Isa> {
        let mut found = vec![Isa::Scalar];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            found.push(Isa::Avx2);
        }
        found
    }
}

/// Evaluates an expression with code compiled for the best instruction set available. Functions
/// that it calls benefit if they are inlined; mark them `#[inline(always)]`.
///
/// `vectorized!(copying gain, bias; ...)` copies variables first. The expression only has references
/// to what is outside of it: to the compiler, a loop that writes numbers might change such a
/// variable, so it reads the variable again for each number, and with several of them it does not
/// vectorize the loop at all.
///
/// A macro, because the closure must be marked `#[inline(always)]` too: otherwise a large body
/// would remain a separate function, compiled for the baseline.
macro_rules! vectorized {
    (copying $($copied:ident),+; $body:expr) => {
        $crate::kernels::numeric::isa::vectorized!({
            $(let $copied = $copied;)+
            $body
        })
    };
    ($body:expr) => {
        $crate::kernels::numeric::isa::Isa::run_on_best(
            #[inline(always)]
            || $body,
        )
    };
}
pub(crate) use vectorized;
