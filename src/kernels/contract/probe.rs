//! Kernels that misbehave when told to, for the tests of everything around kernels.

use std::time::Duration;

use smallvec::{SmallVec, smallvec};

use crate::kernels::{Entry, Kernel, ManyKernel, Result, Space, args};
use crate::value::{Cause, Desc, Sample};

pub const TABLE: &[Entry] = &[Entry::one::<Probe>("probe"), Entry::many::<ProbePair>("probe_pair")];

/// Copies its input after `sleep` microseconds; `action` 1 fails instead, 2 panics, 3 makes
/// something else than was promised.
pub struct Probe;

args! {
    pub struct ProbeArgs { action: i64, sleep: i64 }
}

impl Kernel for Probe {
    type Args = ProbeArgs;
    const CHEAP: bool = false;

    fn output(args: &ProbeArgs, inputs: &[&Desc]) -> Result<Desc> {
        let mut desc = inputs[0].clone();
        if args.action == 3 {
            desc.shape.push(1);
        }
        Ok(desc)
    }

    fn run(args: &ProbeArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        std::thread::sleep(Duration::from_micros(args.sleep.clamp(0, 10_000_000) as u64));
        match args.action {
            1 => Err(Cause::Argument { name: "action", problem: "says to fail".into() }),
            2 => panic!("the probe was told to panic"),
            _ => {
                out.bytes().copy_from_slice(inputs[0].elements_as_bytes());
                Ok(())
            }
        }
    }
}

/// Two outputs: the input's shape as numbers, and the input.
pub struct ProbePair;

impl ManyKernel for ProbePair {
    type Args = ();

    fn outputs(_: &(), inputs: &[&Desc]) -> Result<SmallVec<[Desc; 2]>> {
        let shape = Desc::new(crate::value::DType::I64, &[inputs[0].ndim()]);
        Ok(smallvec![shape, inputs[0].clone()])
    }

    fn run(_: &(), inputs: &[Sample], outs: &mut [Space]) -> Result<()> {
        let shape = outs[0].elements::<i64>();
        for (out, &d) in shape.iter_mut().zip(&inputs[0].desc.shape) {
            *out = d as i64;
        }
        outs[1].bytes().copy_from_slice(inputs[0].elements_as_bytes());
        Ok(())
    }
}
