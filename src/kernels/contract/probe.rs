//! Kernels that misbehave on request, for tests of the engine.

use std::time::Duration;

use smallvec::smallvec;

use crate::kernels::{Entry, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Cause, DType, Desc, Problem, Sample};

pub const TABLE: &[Entry] = &[Entry::new::<Probe>("probe"), Entry::new::<ProbePair>("probe_pair")];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// What a probe fails with.
        pub enum Probe { Failed }
    }
}

/// Copies its input after `sleep` microseconds; `action` 1 fails instead, 2 panics, 3 makes a result
/// that differs from what was promised.
pub struct Probe;

args! {
    pub struct ProbeArgs { action: i64, sleep: i64 }
}

impl Kernel for Probe {
    type Args = ProbeArgs;
    type Plan = ProbeArgs;
    const TRAITS: Traits = Traits { cheap: false, ..Traits::DEFAULT };

    fn plan(args: ProbeArgs, inputs: &[&Desc]) -> Result<(ProbeArgs, Outputs)> {
        let mut desc = inputs[0].clone();
        if args.action == 3 {
            desc.shape.push(1);
        }
        Ok((args, one(desc)))
    }

    fn run(args: &ProbeArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        std::thread::sleep(Duration::from_micros(args.sleep.clamp(0, 10_000_000) as u64));
        match args.action {
            1 => Err(Cause::Argument {
                name: "action",
                problem: Problem::from(problem::Probe::Failed),
            }),
            2 => panic!("the probe was told to panic"),
            _ => {
                outputs[0].bytes().copy_from_slice(inputs[0].elements_as_bytes());
                Ok(())
            }
        }
    }
}

/// Two outputs: the input's shape as numbers, and the input.
pub struct ProbePair;

impl Kernel for ProbePair {
    type Args = ();
    type Plan = ();

    fn plan((): (), inputs: &[&Desc]) -> Result<((), Outputs)> {
        let shape = Desc::new(DType::I64, &[inputs[0].ndim()]);
        Ok(((), smallvec![shape, inputs[0].clone()]))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let shape = outputs[0].elements::<i64>();
        for (out, &d) in shape.iter_mut().zip(&inputs[0].desc.shape) {
            *out = d as i64;
        }
        outputs[1].bytes().copy_from_slice(inputs[0].elements_as_bytes());
        Ok(())
    }
}
