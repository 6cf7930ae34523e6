//! Data sets that are read by number: what samples there are, in which order, and their bytes.

mod caffe;
mod fetch;
mod files;
mod glob;
mod list;
mod listing;
mod lmdb;
mod nemo;
mod order;
mod protobuf;
mod read;

pub use caffe::{Caffe, Caffe2, Labels};
pub use fetch::{Fetch, Source};
pub use files::{Files, Hash};
pub use glob::Globs;
pub use list::{ListError, parse_list};
pub use listing::list;
pub use lmdb::{Lmdb, OpenError};
pub use nemo::{BadLine, Durations, Manifest, Speech};
pub use order::shuffle;
pub use read::TABLE;
