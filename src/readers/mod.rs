//! Data sets, read by sample number.
//!
//! A format is a file here with an `open` function, which makes a [`Source`] from the options of
//! its Python reader, and a row in [`FORMATS`].

mod arrow;
mod cache;
mod caffe;
mod coco;
mod columns;
mod files;
mod fits;
mod glob;
mod groups;
mod list;
mod listing;
mod lmdb;
mod mds;
mod nemo;
mod numpy;
mod options;
mod order;
mod parquet;
mod permutation;
mod protobuf;
mod ranges;
mod read;
mod recordio;
pub mod remote;
mod rows;
mod source;
mod tar;
mod tfrecord;
mod unpack;
mod video;
mod webdataset;

use std::sync::Arc;

use self::remote::Context;
use crate::value::Kind as KindOfProblem;

pub use arrow::Arrow;
pub use caffe::{Caffe, Caffe2, Labels};
pub use coco::read as read_coco;
pub use coco::{Coco, Options as CocoOptions, Outlines, load as load_coco};
pub use files::{Files, Hash};
pub use fits::Fits;
pub use glob::Globs;
pub use list::parse_list;
pub use lmdb::Lmdb;
pub use mds::Mds;
pub use nemo::{Durations, Manifest};
pub use numpy::{Arrays, Bound, Cuts, Outside, Window, Windows};
pub use options::{Given, Names, Options};
pub use order::shuffle;
pub use parquet::Parquet;
pub use permutation::Permutation;
pub use ranges::Unreadable;
pub use read::TABLE;
pub(crate) use read::{FileStream, Opened};
pub use recordio::RecordIo;
pub use rows::{Rows, RowsFault, Table};
pub use source::{Fetch, Open, OpenError, Output, Part, Skipped, Source};
pub use tfrecord::{Fallback, Feature, Kind, TfRecords};
pub use webdataset::{Missing, Wanted, open_archives};

/// The function that opens each format.
pub const FORMATS: &[(&str, Open)] = &[
    ("arrow", arrow::open),
    ("below", files::open_below),
    ("caffe", caffe::open),
    ("caffe2", caffe::open2),
    ("coco", coco::open),
    ("files", files::open),
    ("fits", fits::open),
    ("mds", mds::open),
    ("nemo", nemo::open),
    ("numpy", numpy::open),
    ("parquet", parquet::open),
    ("recordio", recordio::open),
    ("tfrecord", tfrecord::open),
    ("video", video::open),
    ("webdataset", webdataset::open),
];

/// Opens a source. It is an error if the format doesn't know one of the options.
pub fn open(
    format: &str,
    mut options: Options,
    context: Arc<Context>,
) -> Result<Arc<dyn Source>, OpenError> {
    let found = FORMATS.iter().find(|(name, _)| *name == format);
    let (_, open) =
        found.ok_or_else(|| OpenError::Options(format!("there is no format {format:?}")))?;
    context.check(&options)?;
    remote::open(context, || {
        let source = open(&mut options)?;
        options.finish()?;
        Ok(source)
    })
}

/// The kinds of problems that readers report.
pub const KINDS: &[&[KindOfProblem]] = &[
    arrow::ArrowFault::KINDS,
    caffe::CaffeFault::KINDS,
    coco::KINDS[0],
    coco::KINDS[1],
    coco::KINDS[2],
    coco::KINDS[3],
    columns::ColumnFault::KINDS,
    fits::FitsFault::KINDS,
    list::ListFault::KINDS,
    lmdb::LmdbFault::KINDS,
    mds::MdsFault::KINDS,
    nemo::ManifestFault::KINDS,
    numpy::WindowFault::KINDS,
    parquet::ParquetFault::KINDS,
    protobuf::ProtobufFault::KINDS,
    ranges::RecordFault::KINDS,
    read::ReadFault::KINDS,
    remote::RemoteFault::KINDS,
    recordio::RecordIoFault::KINDS,
    rows::RowsFault::KINDS,
    tar::TarFault::KINDS,
    tfrecord::TfRecordFault::KINDS,
    unpack::UnpackFault::KINDS,
    video::ClipFault::KINDS,
    video::ClipListFault::KINDS,
    webdataset::ArchiveFault::KINDS,
];
