//! Small calls whose samples all have the same description, run in one go. The result is a single
//! stack instead of a slot per sample.

use smallvec::{SmallVec, smallvec};

use super::node::{Input, Node, Pick};
use super::run::guarded;
use super::value::{Handle, Stack, Value};
use crate::kernels::{OutputBuffer, Placement, SavedPlan, UniformAttempt, UniformBatch, Work};
use crate::value::{Cause, Desc, Device, Sample};

/// Outcome of trying to run a call on the calling thread.
pub(super) enum Inline {
    Done(SmallVec<[Handle; 1]>),
    /// Samples must be processed one by one: they differ, one of them failed, or the kernel does
    /// not write stacks.
    OneByOne,
    /// The results would be too large. Holds the plan of the first sample.
    TooLarge(SavedPlan),
}

impl Node {
    /// Runs a call whose inputs are all ready. `limit` is the maximum size of each sample's
    /// results, in bytes.
    pub(super) fn run_uniform(&self, limit: usize) -> Inline {
        self.try_uniform(limit).unwrap_or(Inline::OneByOne)
    }

    fn try_uniform(&self, limit: usize) -> Option<Inline> {
        let call = &self.call;
        let ([output], Work::Sample(kernel)) = (&self.outputs[..], &call.operator.work) else {
            return None;
        };
        let view = kernel.traits().view;
        // On a device, views may have to be copied, which happens per sample.
        if call.samples < 2 || (view && call.device != Device::Cpu) {
            return None;
        }
        if !view && !output.wants_block() {
            return None;
        }
        let inputs = self.inputs_of(0).ok()?;
        if inputs.iter().any(|sample| !sample.is_contiguous() || sample.source.is_some()) {
            return None;
        }
        let first = inputs.clone();
        let fetch = |index: usize, samples: &mut [Sample]| {
            for ((input, sample), first) in call.inputs.iter().zip(samples).zip(&first) {
                match (&input.pick, input.value.as_stack()) {
                    (Pick::One(_), _) => {}
                    (_, Some(stack)) => stack.load(input.slot(index), sample),
                    (_, None) => {
                        *sample = input.value.peek(input.slot(index))?.ok()?;
                        let layout = std::mem::replace(&mut sample.desc.layout, first.desc.layout);
                        let uniform = sample.desc == first.desc
                            && (layout == first.desc.layout || layout.is_empty())
                            && sample.is_contiguous()
                            && sample.source.is_none();
                        uniform.then_some(())?;
                    }
                }
            }
            Some(())
        };
        let placement = |input: &Input| match (&input.pick, input.value.as_stack()) {
            (Pick::One(_), _) => Placement::Shared,
            (Pick::Same, Some(_)) => Placement::Stacked,
            _ => Placement::Separate,
        };
        let placements = call.inputs.iter().map(placement).collect();
        let loaded = std::cell::Cell::new(0);
        let mut load = |index: usize, samples: &mut [Sample]| {
            loaded.set(index);
            fetch(index, samples)
        };
        let allocate = |output, desc| self.allocate(output, loaded.get(), desc);
        let stack = |desc| self.allocate_stack(desc);
        let mut batch = UniformBatch::new(
            call.samples,
            limit,
            placements,
            &call.args,
            inputs,
            call.data_inputs,
            &mut load,
            &allocate,
            &stack,
        );
        let mut attempt = UniformAttempt::OneByOne;
        let mut run = || {
            attempt = kernel.run_uniform(&mut batch);
            Ok(())
        };
        guarded(|| call.device.accelerator().launch(&mut run)).ok()?.ok()?;
        let mut first = match attempt {
            UniformAttempt::Done(first) if output.promised(&first.desc) => first,
            UniformAttempt::TooLarge(plan) => return Some(Inline::TooLarge(plan)),
            UniformAttempt::Done(_) | UniformAttempt::OneByOne => return None,
        };
        first.desc.layout = output.meta.layout;
        self.pool().node_done(self);
        // SAFETY: the kernel has written all samples.
        let stack = unsafe { Stack::new(first, call.samples) };
        let value = Value::stacked(output.meta.clone(), stack);
        Some(Inline::Done(smallvec![value]))
    }

    /// Allocates the stack for all samples of the only output. Also returns the description of each
    /// sample: `desc` with the layout that the definition promised.
    fn allocate_stack(&self, mut desc: Desc) -> Result<(Desc, OutputBuffer), Cause> {
        let target = &self.outputs[0];
        desc.layout = target.meta.layout;
        let whole = desc.stack(self.call.samples).filter(|_| target.promised(&desc));
        let whole = whole.ok_or_else(|| Cause::Internal(format!("no stack of {desc:?}")))?;
        let bytes = whole.bytes();
        self.count_bytes(bytes);
        let buffer = self.call.device.accelerator().allocate(bytes)?;
        Ok((desc, OutputBuffer::of(whole, buffer)))
    }
}
