//! What flows through the engine: element types, memory, samples and faults.

mod buffer;
mod device;
mod dtype;
mod fault;
mod io_fault;
mod layout;
mod lineage;
mod memory;
mod problem;
mod room;
mod sample;
mod stores;
mod strided;

pub use buffer::{Buffer, Loan, is_anything_lent, loan_time};
pub use device::{Accelerator, Device};
pub(crate) use dtype::with_element;
pub use dtype::{Bool, DType, Element};
pub use fault::{Cause, Damage, Fault};
pub use io_fault::{SystemFault, io_fault, io_problem};
pub use layout::Layout;
pub use lineage::{Given, Lineage};
pub use memory::{CacheLocks, lock_cache};
pub(crate) use problem::problems;
pub use problem::{Figure, Kind, Problem};
pub use room::{append, collected, filled, has_room_for_thread, is_available, with_room, zeroed};
pub use sample::{
    Desc, MemoryFault, Origin, Sample, Shape, Strides, contiguous_strides, extent, fits,
};
pub use stores::{LINE, Line, Stores};
pub use strided::copy_strided;
