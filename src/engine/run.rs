//! Runs one task: collects its inputs, calls the kernel, checks the results.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use super::node::{Node, Outcomes};
use super::value::lock;
use crate::kernels::{ArgReader, Attempt, OutputBuffer, SampleKernel, Samples, Work};
use crate::value::{Cause, Device, Fault, Sample};

impl Node {
    /// Runs a task whose inputs are ready. Panics of the kernel become faults.
    pub fn compute(&self, index: usize) -> Outcomes {
        // Without a limit, there is always an outcome.
        self.compute_if_small(index, usize::MAX)
            .unwrap_or_else(|| Err(self.fault(Cause::Internal("no outcome".into()), None, None)))
    }

    /// Like [`Node::compute`], but returns `None`, and saves the plan for the next attempt, if the
    /// results would exceed `limit` bytes.
    pub(super) fn compute_if_small(&self, index: usize, limit: usize) -> Option<Outcomes> {
        let inputs = match self.inputs_of(index) {
            Ok(inputs) => inputs,
            Err(fault) => return Some(Err(fault)),
        };
        let mut made = None;
        let mut launch = || {
            made = self.call_kernel(index, &inputs, limit)?;
            Ok(())
        };
        let outcome = guarded(|| self.call.device.accelerator().launch(&mut launch));
        if matches!(outcome, Ok(Ok(()))) && made.is_none() {
            return None;
        }
        Some(self.outcomes(index, &inputs, outcome.map(|done| done.map(|()| made))))
    }

    /// The checked results of a task, or its fault.
    fn outcomes(
        &self,
        index: usize,
        inputs: &[Sample],
        outcome: std::thread::Result<Result<Option<Samples>, Cause>>,
    ) -> Outcomes {
        let work = &self.call.operator.work;
        let whole_batch = work.is_whole_batch();
        let origin = || work.sample_kernel().and_then(|kernel| kernel.origin(index));
        let source = inputs.iter().find_map(|sample| sample.source.clone()).or_else(origin);
        let sample = (!whole_batch).then_some(index);
        let mut made = match outcome {
            Ok(Ok(made)) => made.unwrap_or_default(),
            Ok(Err(cause)) => return Err(self.fault(cause, sample, source)),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| text.to_string())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "panic".into());
                return Err(self.fault(Cause::Internal(text), sample, source));
            }
        };
        let tasks = if whole_batch { usize::MAX } else { 1 };
        let outputs =
            self.outputs.iter().flat_map(|o| std::iter::repeat_n(o, o.samples.min(tasks)));
        for (made, output) in made.iter_mut().zip(outputs) {
            if !output.promised(&made.desc) {
                let broken = format!("made {:?}, promised {:?}", made.desc, output.meta);
                return Err(self.fault(Cause::Internal(broken), sample, source));
            }
            made.desc.layout = output.meta.layout;
            if !whole_batch {
                made.source.clone_from(&source);
            }
        }
        self.copy_mutable(&mut made).map_err(|cause| self.fault(cause, sample, source))?;
        Ok(made)
    }

    /// A kernel may return its input's memory. If others on the host can modify that memory, a
    /// device result needs a copy.
    fn copy_mutable(&self, made: &mut [Sample]) -> Result<(), Cause> {
        let device = self.call.device;
        if device != Device::Cpu {
            for sample in made.iter_mut().filter(|sample| sample.buffer().mutable_outside()) {
                *sample = device.accelerator().copy(sample, false)?;
            }
        }
        Ok(())
    }

    /// The inputs of a task, or the fault of the first input that failed.
    pub fn inputs_of(&self, index: usize) -> Result<SmallVec<[Sample; 4]>, Arc<Fault>> {
        let mut inputs: SmallVec<[Sample; 4]> = SmallVec::new();
        let mut failed: Option<Arc<Fault>> = None;
        self.for_each_slot(index, |input, slot| {
            let lost = || Err(self.fault(Cause::Forked, None, None));
            match input.value.peek(slot).unwrap_or_else(lost) {
                Ok(sample) => inputs.push(sample),
                Err(fault) => {
                    failed.get_or_insert(fault);
                }
            }
        });
        if let Some(fault) = failed {
            return Err(fault);
        }
        if let Some(first) = inputs.first_mut().filter(|first| first.desc.layout.is_empty()) {
            first.desc.layout = self.call.layout;
        }
        Ok(inputs)
    }

    /// Returns `None` if the results would exceed `limit` bytes.
    fn call_kernel(
        &self,
        index: usize,
        inputs: &[Sample],
        limit: usize,
    ) -> Result<Option<Samples>, Cause> {
        let call = &self.call;
        match &call.operator.work {
            Work::Sample(kernel) => self.call_sample_kernel(*kernel, index, inputs, limit),
            Work::Source(kernel) => self.call_sample_kernel(&**kernel, index, inputs, limit),
            Work::Batch(kernel) => kernel
                .run(&call.args, &self.rows(inputs), &|desc| {
                    let bytes = desc.bytes();
                    self.count_bytes(bytes);
                    Ok(OutputBuffer::of(desc, call.device.accelerator().allocate(bytes)?))
                })
                .map(Some),
        }
    }

    /// The inputs of a whole-batch node: one row of samples per input.
    fn rows<'a>(&self, inputs: &'a [Sample]) -> SmallVec<[&'a [Sample]; 2]> {
        let mut rest = inputs;
        let row = |input| {
            let (row, after) = rest.split_at(self.picked(input));
            rest = after;
            row
        };
        self.call.inputs.iter().map(row).collect()
    }

    /// Whether the node returns views of its inputs, which are ready; then their size does not
    /// matter.
    pub(super) fn is_view(&self) -> bool {
        match &self.call.operator.work {
            Work::Sample(kernel) => kernel.traits().view,
            Work::Source(kernel) => kernel.traits().view,
            Work::Batch(kernel) => self.inputs_of(0).is_ok_and(|inputs| {
                guarded(|| kernel.is_view_of(&self.rows(&inputs))).unwrap_or(false)
            }),
        }
    }

    fn call_sample_kernel(
        &self,
        kernel: &dyn SampleKernel,
        index: usize,
        inputs: &[Sample],
        limit: usize,
    ) -> Result<Option<Samples>, Cause> {
        let args = ArgReader::new(&self.call.args, inputs, index);
        let data = &inputs[..self.call.data_inputs];
        let allocate = |output, desc| self.allocate(output, index, desc);
        if limit < usize::MAX {
            return Ok(match kernel.run_if_small(&args, data, &allocate, limit)? {
                Attempt::Done(made) => Some(made),
                Attempt::TooLarge(plan) => {
                    *lock(&self.plan) = Some(plan);
                    None
                }
            });
        }
        let saved = if index == 0 { lock(&self.plan).take() } else { None };
        let made = match saved {
            Some(plan) => kernel.run_saved(plan, &args, data, &allocate),
            None => kernel.run(&args, data, &allocate),
        };
        made.map(Some)
    }
}

/// Catches panics. A kernel's panic becomes a fault that is shown to the user, so the panic hook
/// stays silent.
pub fn guarded<R>(run: impl FnOnce() -> R) -> std::thread::Result<R> {
    use std::cell::Cell;
    use std::sync::Once;
    thread_local! {
        static IN_KERNEL: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IN_KERNEL.get() {
                print(info);
            }
        }));
    });
    let outer = IN_KERNEL.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    IN_KERNEL.set(outer);
    result
}
