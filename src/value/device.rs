//! Where a value lives, and the small interface behind which an accelerator sits.

use std::sync::Arc;

use super::buffer::Buffer;
use super::fault::Cause;
use super::sample::Sample;

/// The host, or one of the accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Cpu,
    Gpu(u8),
}

/// What the engine asks of a device. A real accelerator is another implementation of this.
pub trait Accelerator: Send + Sync {
    /// Memory on the device.
    fn allocate(&self, len: usize) -> Result<Arc<Buffer>, Cause>;
    /// The sample's data in the device's memory; the same memory where that is safe.
    fn copy(&self, sample: &Sample, force: bool) -> Result<Sample, Cause>;
    /// Runs a kernel there.
    fn launch(&self, kernel: &mut dyn FnMut() -> Result<(), Cause>) -> Result<(), Cause>;
}

/// The host itself, and a device that is emulated on it: its memory is the host's, and kernels
/// run on the thread that launches them.
struct Host;

impl Accelerator for Host {
    fn allocate(&self, len: usize) -> Result<Arc<Buffer>, Cause> {
        Buffer::new(len)
    }

    fn copy(&self, sample: &Sample, force: bool) -> Result<Sample, Cause> {
        // Memory that others may still write to must not be taken for the device's own.
        if force || sample.buffer().mutable_outside() {
            sample.duplicate()
        } else {
            sample.compact()
        }
    }

    fn launch(&self, kernel: &mut dyn FnMut() -> Result<(), Cause>) -> Result<(), Cause> {
        kernel()
    }
}

impl Device {
    pub fn accelerator(self) -> &'static dyn Accelerator {
        match self {
            Device::Cpu | Device::Gpu(_) => &Host,
        }
    }

    /// From the code that Python uses: -1 is the host.
    pub fn from_code(code: i32) -> Device {
        u8::try_from(code).map_or(Device::Cpu, Device::Gpu)
    }

    pub fn code(self) -> i32 {
        match self {
            Device::Cpu => -1,
            Device::Gpu(id) => i32::from(id),
        }
    }
}
