//! Small calls on samples that are described alike, all in one go. What they make is one block,
//! without a slot for each sample.

use smallvec::{SmallVec, smallvec};

use super::node::{Input, Node, Pick};
use super::run::guarded;
use super::value::{Handle, Packed, Value};
use crate::kernels::{Alike, Lie, Work};
use crate::value::{Device, Sample};

impl Node {
    /// Runs a call of which all inputs are there. `None` when its samples have to be taken one by
    /// one: they differ, one of them failed, or the kernel does not make a block.
    pub(super) fn run_alike(&self) -> Option<SmallVec<[Handle; 1]>> {
        let call = &self.call;
        let ([output], Work::Sample(kernel)) = (&self.outputs[..], &call.operator.work) else {
            return None;
        };
        // On a device, a view may have to be copied, sample by sample.
        if call.samples < 2 || (kernel.is_view() && call.device != Device::Cpu) {
            return None;
        }
        let inputs = self.inputs_of(0).ok()?;
        if inputs.iter().any(|sample| !sample.is_contiguous() || sample.source.is_some()) {
            return None;
        }
        let first = inputs.clone();
        let fetch = |index: usize, samples: &mut [Sample]| {
            for ((input, sample), first) in call.inputs.iter().zip(samples).zip(&first) {
                match (&input.pick, input.value.as_packed()) {
                    (Pick::One(_), _) => {}
                    (_, Some(packed)) => packed.load(input.slot(index), sample),
                    (_, None) => {
                        *sample = input.value.peek(input.slot(index))?.ok()?;
                        let layout = std::mem::replace(&mut sample.desc.layout, first.desc.layout);
                        let alike = sample.desc == first.desc
                            && (layout == first.desc.layout || layout.is_empty())
                            && sample.is_contiguous()
                            && sample.source.is_none();
                        alike.then_some(())?;
                    }
                }
            }
            Some(())
        };
        let lie = |input: &Input| match (&input.pick, input.value.as_packed()) {
            (Pick::One(_), _) => Lie::Shared,
            (Pick::Same, Some(_)) => Lie::Packed,
            _ => Lie::Apart,
        };
        let lie = call.inputs.iter().map(lie).collect();
        let loaded = std::cell::Cell::new(0);
        let mut load = |index: usize, samples: &mut [Sample]| {
            loaded.set(index);
            fetch(index, samples)
        };
        let allocate = |output, desc| self.allocate(output, loaded.get(), desc);
        let data_inputs = call.data_inputs;
        let mut alike =
            Alike::new(call.samples, lie, &call.args, inputs, data_inputs, &mut load, &allocate);
        let mut made = None;
        let mut run = || {
            made = kernel.run_alike(&mut alike);
            Ok(())
        };
        guarded(|| call.device.accelerator().launch(&mut run)).ok()?.ok()?;
        let mut first = made.filter(|made| output.promised(&made.desc))?;
        first.desc.layout = output.meta.layout;
        self.pool().node_done(self);
        // SAFETY: the kernel has made all of them.
        let packed = unsafe { Packed::new(first, call.samples) };
        let value = Value::packed(output.meta.clone(), packed);
        Some(smallvec![value])
    }
}
