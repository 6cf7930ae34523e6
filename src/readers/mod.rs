//! Data sets that are read by number: what samples there are, in which order, and their bytes.

mod fetch;
mod files;
mod glob;
mod list;
mod listing;
mod order;
mod ranges;
mod read;
mod recordio;
mod tar;
mod tfrecord;
mod webdataset;

pub use fetch::{Fetch, Source};
pub use files::Files;
pub use glob::Globs;
pub use list::{ListError, parse_list};
pub use listing::list;
pub use order::shuffle;
pub use ranges::Unreadable;
pub use read::TABLE;
pub use recordio::RecordIo;
pub use tfrecord::{Fallback, Feature, Kind, TfRecords};
pub use webdataset::{Component, Missing, Wanted, fingerprint, open_archives};
