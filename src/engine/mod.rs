//! Dataflow per sample. A *value* is a row of samples that may still be pending; a *node* is one
//! submitted call, which fills values; a *pool* is a set of threads that run (node, sample) tasks
//! as their inputs become ready.

pub mod ahead;
mod lend;
mod node;
mod pool;
mod process;
pub mod profile;
mod run;
#[cfg(test)]
mod tests;
mod uniform;
mod value;

pub use lend::{CalledOff, lend, put_off, wait_for_readers};
pub use node::{Call, Input, Node, Output, Pick, Task};
pub use pool::{Pool, help, refused_threads, stand_in};
pub use process::{epoch, fork_parent, fork_prepare, shut_down};
pub use value::{Handle, Meta, Stack, Value};
