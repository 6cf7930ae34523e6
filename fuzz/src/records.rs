//! Files of records and arrays, opened like the readers do.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use smallvec::smallvec;

use _core::readers::{
    Arrays, Arrow, Bound, Caffe, Caffe2, Cuts, Fallback, Feature, Files, Fits, Given, Kind, Labels,
    Lmdb, Missing, Names, Options, Outside, Parquet, RecordIo, TfRecords, Wanted, Window, Windows,
    open, open_archives, remote::Context,
};
use _core::value::{Cause, DType};

use crate::poison::{file, folder, read};

/// The number of samples read from a file.
const SAMPLES: usize = 16;

pub fn npy(data: &[u8]) -> bool {
    file("0.npy", data);
    let bound = |name, value| Bound { name, values: smallvec![value], relative: false };
    let inner = Window {
        start: Some(bound("roi_start", -1.0)),
        end: None,
        shape: Some(bound("roi_shape", 3.0)),
    };
    for each in [vec![], vec![inner]] {
        let mut files = Files::new(folder().clone());
        files.push(b"0.npy", 0);
        let windows = Windows { outside: Outside::Filled, each, ..Windows::default() };
        let arrays = Arc::new(Arrays::new(files, false));
        if let Some(cuts) = Cuts::new(arrays, Box::new([0]), Arc::new(windows)) {
            read(&cuts, SAMPLES);
        }
    }
    true
}

pub fn tar(data: &[u8]) -> bool {
    archive(&file("0.tar", data), None)
}

fn archive(path: &Path, index: Option<&PathBuf>) -> bool {
    let index = index.map(std::slice::from_ref);
    let wanted = Wanted {
        extensions: vec![vec![b"jpg".to_vec(), b"png".to_vec()], vec![b"cls".to_vec()]],
        ignore_case: true,
        missing: Missing::Empty,
    };
    for tolerant in [false, true] {
        let files = vec![path.to_path_buf()];
        let dtypes = [DType::U8, DType::I32];
        if let Ok(archives) = open_archives(files, index, tolerant, &wanted, &dtypes) {
            read(&archives, SAMPLES);
        }
    }
    true
}

pub fn tfrecord(data: &[u8]) -> bool {
    examples(&file("0.tfrecord", data), None)
}

/// A record of any bytes, with correct checksums.
pub fn example(data: &[u8]) -> bool {
    tfrecord(&framed(data))
}

fn framed(data: &[u8]) -> Vec<u8> {
    let masked = |bytes: &[u8]| {
        crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
    };
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), data, &masked(data)].concat()
}

fn examples(path: &Path, index: Option<&PathBuf>) -> bool {
    for tolerant in [false, true] {
        let (files, index) = (vec![path.to_path_buf()], index.map(std::slice::from_ref));
        if let Ok(records) = TfRecords::open(files, index, tolerant, features()) {
            read(&records, SAMPLES);
        }
    }
    true
}

fn features() -> Vec<Feature> {
    let feature = |key: &str, kind, shape: &[usize], variable, fallback| Feature {
        key: key.into(),
        kind,
        shape: shape.into(),
        variable,
        fallback,
    };
    vec![
        feature("image", Kind::Bytes, &[], false, Fallback::Bytes(b"none".to_vec())),
        feature("label", Kind::Int, &[1], false, Fallback::Int(vec![-1])),
        feature("box", Kind::Float, &[4], true, Fallback::None),
        feature("ids", Kind::Int, &[], true, Fallback::None),
        feature("score", Kind::Float, &[2], false, Fallback::Float(vec![0.5])),
    ]
}

pub fn recordio(data: &[u8]) -> bool {
    packed(&file("0.rec", data), None)
}

fn packed(path: &Path, index: Option<&PathBuf>) -> bool {
    for tolerant in [false, true] {
        let (files, index) = (vec![path.to_path_buf()], index.map(std::slice::from_ref));
        if let Ok(records) = RecordIo::open(files, index, tolerant) {
            read(&records, SAMPLES);
        }
    }
    true
}

pub fn lmdb(data: &[u8]) -> bool {
    let path = file("data.mdb", data);
    for tolerant in [false, true] {
        let mut records = Lmdb::default();
        if records.add(&path, tolerant).is_err() {
            continue;
        }
        let records = Arc::new(records);
        read(&Caffe { records: records.clone(), image: true, label: true }, SAMPLES);
        for labels in Labels::ALL {
            let records = records.clone();
            let (classes, additional) = (10, 1);
            let caffe2 = Caffe2 { records, image: true, labels, classes, additional, bbox: true };
            read(&caffe2, SAMPLES);
        }
    }
    true
}

/// All columns that can be read.
pub fn parquet(data: &[u8]) -> bool {
    let path = file("0.parquet", data);
    for tolerant in [false, true] {
        if let Ok(rows) = Parquet::open(vec![path.clone()], None, tolerant) {
            read(&rows, SAMPLES);
        }
    }
    true
}

pub fn arrow(data: &[u8]) -> bool {
    let path = file("0.arrow", data);
    for tolerant in [false, true] {
        if let Ok(rows) = Arrow::open(vec![path.clone()], None, tolerant) {
            read(&rows, SAMPLES);
        }
    }
    true
}

/// A shard, plain and as what compressed data would become. Its index has as many samples as it.
pub fn mds(data: &[u8]) -> bool {
    let path = file("0.mds", data);
    let count = data.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let names = |name: &str| {
        let mut names = Names::default();
        names.push(name.as_bytes());
        Given::Names(names)
    };
    let column = |name: &str, encoding: &str, size: i64| {
        let text = |text: &str| Given::Bytes(text.as_bytes().to_vec());
        Given::List(vec![text(name), text(encoding), Given::Int(size)])
    };
    for (packing, size) in [("", data.len() as i64), ("zstd", 1 << 12), ("snappy", 1 << 12)] {
        let mut wanted = Names::default();
        ["any", "image", "label", "mask"].iter().for_each(|name| wanted.push(name.as_bytes()));
        let columns = vec![
            column("any", "ndarray", 0),
            column("image", "jpeg", 0),
            column("label", "int", 8),
            column("mask", "pil", 0),
        ];
        let options = vec![
            ("files", names(&path.to_string_lossy())),
            ("packings", names(packing)),
            ("sizes", Given::Ints(vec![size])),
            ("samples", Given::Ints(vec![i64::from(count)])),
            ("columns", Given::List(columns)),
            ("wanted", Given::Names(wanted)),
            ("tolerant", Given::Flag(false)),
        ];
        let options = options.into_iter().map(|(name, given)| (name.to_string(), given)).collect();
        let no_urls = Box::new(|_: &str| Err(Cause::Internal("files are local here".into())));
        let context = Context::new(no_urls, 1 << 20, None);
        if let Ok(samples) = open("mds", Options(options), context) {
            read(&*samples, SAMPLES);
        }
    }
    true
}

pub fn fits(data: &[u8]) -> bool {
    file("0.fits", data);
    let mut files = Files::new(folder().clone());
    files.push(b"0.fits", 0);
    for unit in [1, 2] {
        let mut files = Files::new(folder().clone());
        files.push(b"0.fits", 0);
        read(&Fits { files, units: vec![(unit, None)] }, SAMPLES);
    }
    read(&Fits { files, units: vec![(2, Some(DType::U8))] }, SAMPLES);
    true
}

/// An index, for each kind of file that has one.
pub fn index(data: &[u8]) -> bool {
    static FILES: OnceLock<[PathBuf; 3]> = OnceLock::new();
    let [examples_path, records_path, archive_path] = FILES.get_or_init(|| {
        let record = [&0xced7_230a_u32.to_le_bytes()[..], &24_u32.to_le_bytes(), &[0; 24]].concat();
        let mut member = vec![0; 1536];
        member[..5].copy_from_slice(b"0.jpg");
        member[124..135].copy_from_slice(b"00000000003");
        member[156] = b'0';
        member[257..265].copy_from_slice(b"ustar\x0000");
        [
            file("fixed.tfrecord", &[framed(b""), framed(b"\x0a\x00")].concat()),
            file("fixed.rec", &[&record[..], &record].concat()),
            file("fixed.tar", &member),
        ]
    });
    let index = file("0.idx", data);
    examples(examples_path, Some(&index));
    packed(records_path, Some(&index));
    archive(archive_path, Some(&index))
}
