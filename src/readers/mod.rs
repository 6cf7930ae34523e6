//! Data sets that are read by number: what samples there are, in which order, and their bytes.

mod coco;
mod coco_json;
mod coco_parse;
mod coco_store;
mod fetch;
mod files;
mod glob;
mod list;
mod listing;
mod numpy;
mod order;
mod ranges;
mod read;
mod recordio;
mod rle;
mod tar;
mod tfrecord;
mod webdataset;

pub use coco::{Coco, Options as CocoOptions, Outlines};
pub use coco_json::Wrong;
pub use coco_parse::parse as parse_coco;
pub use coco_store::{StoreError, load as load_coco, save as save_coco};
pub use fetch::{Fetch, Source};
pub use files::Files;
pub use glob::Globs;
pub use list::{ListError, parse_list};
pub use listing::{list, list_with_root};
pub use numpy::{Arrays, Bound, Cuts, Outside, WINDOW_ARGUMENTS, Window, Windows};
pub use order::shuffle;
pub use ranges::Unreadable;
pub use read::TABLE;
pub use recordio::RecordIo;
pub use tfrecord::{Fallback, Feature, Kind, TfRecords};
pub use webdataset::{Component, Missing, Wanted, fingerprint, open_archives};
