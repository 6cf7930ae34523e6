//! Annotations, manifests, lists and patterns.

use _core::readers::{
    CocoOptions, Durations, Files, Globs, Manifest, Outlines, Source, load_coco, parse_list,
    read_coco,
};

use crate::poison::{file, folder, read};

const SAMPLES: usize = 4;
const OUTLINES: [Outlines; 3] = [Outlines::Pixels, Outlines::Polygons, Outlines::Coordinates];
/// The files of a stored data set. In an input, each has a byte for its kind, two for its length, and
/// its bytes.
const STORED: [&str; 20] = [
    "filenames.dat",
    "offsets.dat",
    "counts.dat",
    "boxes.dat",
    "labels.dat",
    "original_ids.dat",
    "heights.dat",
    "widths.dat",
    "polygon_data.dat",
    "vertices.dat",
    "polygon_offset.dat",
    "polygons_count.dat",
    "vertices_offset.dat",
    "vertices_count.dat",
    "masks_offset.dat",
    "mask_count.dat",
    "masks_rles.dat",
    "masks_rles_idx.dat",
    "keypoints.dat",
    "annotation_ids.dat",
];

pub fn coco(data: &[u8]) -> bool {
    // The image that annotations name exists, so that a sample is read to its end.
    file("0.jpg", b"image");
    let annotations = file("0.json", data);
    for outlines in OUTLINES {
        for (skip_empty, skip_crowds) in [(false, false), (true, true)] {
            let options = CocoOptions {
                outlines,
                skip_empty,
                skip_crowds,
                image_ids: true,
                keypoints: skip_empty,
                annotation_ids: skip_crowds,
                ratio: skip_empty,
                renumber: skip_crowds,
                ..CocoOptions::default()
            };
            if let Ok(coco) = read_coco(&annotations, folder(), options) {
                read(&coco, SAMPLES);
            }
        }
    }
    true
}

pub fn coco_store(data: &[u8]) -> bool {
    file("0.jpg", b"image");
    let mut stored = [&b""[..]; STORED.len()];
    let mut rest = data;
    while let Some((&[which, low, high], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        let (bytes, next) = after.split_at(length);
        if let Some(stored) = stored.get_mut(usize::from(which)) {
            *stored = bytes;
        }
        rest = next;
    }
    for (name, bytes) in STORED.iter().zip(stored) {
        file(name, bytes);
    }
    for (outlines, more) in OUTLINES.into_iter().flat_map(|each| [(each, false), (each, true)]) {
        let options = CocoOptions {
            outlines,
            image_ids: true,
            keypoints: more,
            annotation_ids: more,
            ..CocoOptions::default()
        };
        if let Ok(coco) = load_coco(folder(), folder(), options) {
            read(&coco, SAMPLES);
        }
    }
    true
}

pub fn nemo(data: &[u8]) -> bool {
    let mut manifest = Manifest::default();
    manifest.add(0, data, Durations { least: 0.0, most: 20.0 });
    assert!(manifest.skipped().len() + manifest.len() <= data.len() + 1);
    let _ = manifest.fingerprint();
    true
}

pub fn list(data: &[u8]) -> bool {
    let mut files = Files::new(folder().clone());
    if parse_list(data, &mut files).is_ok() {
        let _ = files.fingerprint();
    }
    true
}

/// A pattern per line, and the name on the last one.
pub fn glob(data: &[u8]) -> bool {
    let mut lines: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
    let name = lines.pop().unwrap_or_default();
    for ignore_case in [false, true] {
        let _ = Globs::new(&lines, ignore_case).matches(name);
    }
    true
}
