//! Where a value lives, and the interface that an accelerator implements.

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

/// What the engine needs from a device. A real accelerator would implement this.
pub trait Accelerator: Send + Sync {
    /// Allocates memory on the device.
    fn allocate(&self, len: usize) -> Result<Arc<Buffer>, Cause>;
    /// The sample's data in the device's memory; shares the memory where that is safe.
    fn copy(&self, sample: &Sample, force: bool) -> Result<Sample, Cause>;
    /// Runs a kernel on the device.
    fn launch(&self, kernel: &mut dyn FnMut() -> Result<(), Cause>) -> Result<(), Cause>;
}

/// The host, and devices that are emulated on it: their memory is the host's, and kernels run on
/// the thread that launches them.
struct Host;

impl Accelerator for Host {
    fn allocate(&self, len: usize) -> Result<Arc<Buffer>, Cause> {
        Buffer::new(len)
    }

    fn copy(&self, sample: &Sample, force: bool) -> Result<Sample, Cause> {
        // The device must not share memory that others may still write to.
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

    /// From Python's code, in which -1 is the host.
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
