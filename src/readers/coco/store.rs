//! Preprocessed annotations: arrays in binary files, which load much faster than JSON. Names and
//! contents are DALI's: each file is a count followed by as many records.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{Coco, Objects, Options, Outlines, Runs};
use crate::readers::files::Files;
use crate::readers::ranges::Unreadable;
use crate::readers::read::{Opened, not_regular};
use crate::readers::source::Source;
use crate::value::{Cause, Problem, io_problem, problems};

type Result<T> = std::result::Result<T, Unreadable>;

problems! {
    /// What is wrong with stored annotations.
    pub enum StoreFault {
        LineBreak,
        LargeId { id: i64 },
        Beyond { what: &'static str },
        Twice { what: &'static str },
        NoObject { what: &'static str },
        CutOff,
        Masks { count: usize },
        Claimed,
        Count { found: usize, count: usize },
        Keypoints { found: usize, all: usize },
        WritePermission,
    }
}

const NAMES: &str = "filenames.dat";
const KEYPOINTS: &str = "keypoints.dat";
const ANNOTATION_IDS: &str = "annotation_ids.dat";

/// Writes a file, replacing an existing one; doesn't wait for the reader of a pipe.
fn store(path: &Path, bytes: &[u8]) -> std::result::Result<(), Problem> {
    let mut how = OpenOptions::new();
    how.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
    let mut file = how.open(path).map_err(|error| say(&error))?;
    let known = file.metadata().map_err(|error| say(&error))?;
    match not_regular(known.file_type()) {
        Cause::File { problem } if !known.is_file() => Err(problem),
        _ => file.write_all(bytes).map_err(|error| say(&error)),
    }
}

/// Writes the samples to files in a folder.
pub fn save(coco: &Coco, folder: &Path) -> Result<()> {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        store(&path, bytes).map_err(|problem| Unreadable::new(&path, problem))
    };
    let samples = coco.len();
    let mut names = Vec::new();
    for number in 0..samples {
        let name = coco.files.name_bytes(number);
        if name.contains(&b'\n') {
            return Err(Unreadable::new(&folder.join(NAMES), StoreFault::LineBreak));
        }
        names.extend_from_slice(name);
        names.push(b'\n');
    }
    write(NAMES, &names)?;
    let mut boxes = Records::default();
    let (mut labels, mut offsets, mut counts) =
        (Records::default(), Records::default(), Records::default());
    let mut objects = 0_u32;
    for sample in 0..samples {
        let members = coco.members(sample);
        offsets.push(objects.to_le_bytes());
        counts.push((members.len() as u32).to_le_bytes());
        for &object in members {
            let sides = coco.boxed(sample, coco.objects.boxes[object as usize]);
            sides.iter().for_each(|side| boxes.push(side.to_le_bytes()));
            labels.push(coco.objects.labels[object as usize].to_le_bytes());
        }
        objects += members.len() as u32;
    }
    write("offsets.dat", &offsets.finish())?;
    write("counts.dat", &counts.finish())?;
    write("boxes.dat", &boxes.finish())?;
    write("labels.dat", &labels.finish())?;
    if coco.options.image_ids {
        let mut ids = Records::default();
        for &id in &coco.ids {
            let id = i32::try_from(id).map_err(|_| {
                Unreadable::new(&folder.join("original_ids.dat"), StoreFault::LargeId { id })
            })?;
            ids.push(id.to_le_bytes());
        }
        write("original_ids.dat", &ids.finish())?;
    }
    save_keypoints_and_ids(coco, &write)?;
    if coco.options.outlines != Outlines::None {
        save_polygons(coco, &write)?;
    }
    if coco.options.outlines == Outlines::Pixels {
        save_masks(coco, &write)?;
    }
    Ok(())
}

/// Files that DALI doesn't have, and ignores.
fn save_keypoints_and_ids(coco: &Coco, write: &impl Fn(&str, &[u8]) -> Result<()>) -> Result<()> {
    let (mut points, mut ids) = (Records::default(), Records::default());
    for sample in 0..coco.len() {
        for &object in coco.members(sample) {
            if coco.options.keypoints {
                for point in coco.keypoints(sample, object) {
                    let bytes = point.map(f32::to_le_bytes).concat();
                    points.push::<12>(bytes.try_into().unwrap_or_default());
                }
            }
            if coco.options.annotation_ids {
                ids.push(coco.objects.ids[object as usize].to_le_bytes());
            }
        }
    }
    if coco.options.keypoints {
        write(KEYPOINTS, &points.finish())?;
    }
    if coco.options.annotation_ids {
        write(ANNOTATION_IDS, &ids.finish())?;
    }
    Ok(())
}

fn save_polygons(coco: &Coco, write: &impl Fn(&str, &[u8]) -> Result<()>) -> Result<()> {
    let objects = &coco.objects;
    let mut rows = Records::default();
    let mut vertices = Records::default();
    let mut places: [Records; 4] = Default::default();
    for sample in 0..coco.len() {
        let (first_row, first_vertex) = (u64::from(rows.count), u64::from(vertices.count));
        let mut at = 0_u32;
        for (place, &object) in coco.members(sample).iter().enumerate() {
            for polygon in objects.polygons(object as usize) {
                let outline = objects.outline(polygon);
                let end = at + outline.len() as u32;
                let row = [place as u32, at, end];
                rows.push::<12>(row.map(u32::to_le_bytes).concat().try_into().unwrap_or_default());
                for &vertex in outline {
                    // Outlines of pixel masks stay in pixels, since a stored ratio is not known
                    // when loading.
                    let painted = coco.options.outlines == Outlines::Pixels;
                    let vertex = if painted { vertex } else { coco.vertex(sample, vertex) };
                    let bytes = vertex.map(f32::to_le_bytes).concat();
                    vertices.push::<8>(bytes.try_into().unwrap_or_default());
                }
                at = end;
            }
        }
        let here = [
            first_row,
            u64::from(rows.count) - first_row,
            first_vertex,
            u64::from(vertices.count) - first_vertex,
        ];
        places.iter_mut().zip(here).for_each(|(records, value)| records.push(value.to_le_bytes()));
    }
    write("polygon_data.dat", &rows.finish())?;
    write("vertices.dat", &vertices.finish())?;
    let names =
        ["polygon_offset.dat", "polygons_count.dat", "vertices_offset.dat", "vertices_count.dat"];
    places.into_iter().zip(names).try_for_each(|(records, name)| write(name, &records.finish()))
}

fn save_masks(coco: &Coco, write: &impl Fn(&str, &[u8]) -> Result<()>) -> Result<()> {
    let mut sizes: [Records; 2] = Default::default();
    let mut places: [Records; 2] = Default::default();
    let (mut masks, mut owners) = (Records::default(), Records::default());
    for sample in 0..coco.len() {
        sizes[0].push(coco.heights[sample].to_le_bytes());
        sizes[1].push(coco.widths[sample].to_le_bytes());
        let first = u64::from(masks.count);
        for (place, &object) in coco.members(sample).iter().enumerate() {
            if let Some((runs, counts)) = coco.objects.runs(object as usize) {
                owners.push((place as u32).to_le_bytes());
                let head = [u64::from(runs.height), u64::from(runs.width), counts.len() as u64];
                let head: [u8; 24] =
                    head.map(u64::to_le_bytes).concat().try_into().unwrap_or([0; 24]);
                masks.push(head);
                masks.bytes.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
            }
        }
        places[0].push(first.to_le_bytes());
        places[1].push((u64::from(masks.count) - first).to_le_bytes());
    }
    let [heights, widths] = sizes;
    let [offsets, counts] = places;
    write("heights.dat", &heights.finish())?;
    write("widths.dat", &widths.finish())?;
    write("masks_offset.dat", &offsets.finish())?;
    write("mask_count.dat", &counts.finish())?;
    write("masks_rles.dat", &masks.finish())?;
    write("masks_rles_idx.dat", &owners.finish())
}

#[derive(Default)]
struct Records {
    count: u32,
    bytes: Vec<u8>,
}

impl Records {
    fn push<const N: usize>(&mut self, record: [u8; N]) {
        self.count += 1;
        self.bytes.extend_from_slice(&record);
    }

    fn finish(self) -> Vec<u8> {
        [&self.count.to_le_bytes()[..], &self.bytes].concat()
    }
}

/// Reads what `save` wrote. Boxes and vertices have the form they were saved in.
pub fn load(folder: &Path, root: &Path, options: Options) -> Result<Coco> {
    let store = Folder(folder);
    let mut coco = Coco { files: Files::new(root.to_path_buf()), ..Coco::default() };
    let names = store.bytes(NAMES)?;
    for name in names.split(|&byte| byte == b'\n').filter(|name| !name.is_empty()) {
        coco.files.push(name, 0);
    }
    let samples = coco.len();
    let offsets = store.records("offsets.dat", Some(samples), u32::from_le_bytes)?;
    let counts = store.records("counts.dat", Some(samples), u32::from_le_bytes)?;
    let labels = store.records("labels.dat", None, i32::from_le_bytes)?;
    let sides = store.records("boxes.dat", Some(labels.len() * 4), f32::from_le_bytes)?;
    let sides = sides.as_chunks::<4>().0;
    let polygons = match options.outlines {
        Outlines::None => None,
        _ => Some(Polygons::load(&store, samples)?),
    };
    let masks = match options.outlines {
        Outlines::Pixels => Some(Masks::load(&store, samples)?),
        _ => None,
    };
    if options.outlines == Outlines::Pixels {
        coco.heights = store.records("heights.dat", Some(samples), i32::from_le_bytes)?;
        coco.widths = store.records("widths.dat", Some(samples), i32::from_le_bytes)?;
    } else {
        coco.heights = vec![0; samples];
        coco.widths = vec![0; samples];
    }
    coco.ids = if options.image_ids {
        let ids = store.records("original_ids.dat", Some(samples), i32::from_le_bytes)?;
        ids.into_iter().map(i64::from).collect()
    } else {
        vec![0; samples]
    };
    let all = labels.len();
    let points = match options.keypoints {
        true => store.records(KEYPOINTS, None, |row: [u8; 12]| row)?,
        false => Vec::new(),
    };
    coco.keypoints = points.len().checked_div(all).unwrap_or(0);
    if points.len() != all * coco.keypoints {
        return Err(store.wrong(KEYPOINTS, StoreFault::Keypoints { found: points.len(), all }));
    }
    let ids = match options.annotation_ids {
        true => store.records(ANNOTATION_IDS, Some(all), i64::from_le_bytes)?,
        false => Vec::new(),
    };
    let objects = &mut coco.objects;
    for sample in 0..samples {
        let (offset, count) = (offsets[sample] as usize, counts[sample] as usize);
        let (Some(sides), Some(labels)) =
            (sides.get(offset..offset + count), labels.get(offset..offset + count))
        else {
            return Err(store.wrong("offsets.dat", StoreFault::Beyond { what: "boxes" }));
        };
        // Each box belongs to one sample: otherwise a few bytes could request any amount of memory.
        if objects.labels.len() + count > all {
            return Err(store.wrong("offsets.dat", StoreFault::Twice { what: "boxes" }));
        }
        let first = objects.boxes.len() as u32;
        objects.boxes.extend_from_slice(sides);
        objects.labels.extend_from_slice(labels);
        coco.bounds.push((first, first + count as u32));
        objects.ids.extend(ids.iter().skip(offset).take(count));
        if options.keypoints {
            for row in &points[offset * coco.keypoints..(offset + count) * coco.keypoints] {
                let [x, y, visible, ..] = row.as_chunks::<4>().0 else { continue };
                objects.keypoints.push([*x, *y, *visible].map(f32::from_le_bytes));
            }
            let ends = (1..=count).map(|index| (first as usize + index) * coco.keypoints);
            objects.keypoint_ends.extend(ends.map(|end| end as u32));
        }
        if let Some(polygons) = &polygons {
            polygons.add(&store, sample, count, objects)?;
        }
        if let Some(masks) = &masks {
            masks.add(&store, sample, first, count as u32, objects)?;
        }
    }
    coco.members = (0..coco.objects.boxes.len() as u32).collect();
    coco.options = Options { corners: false, ratio: false, images: Vec::new(), ..options };
    Ok(coco)
}

struct Polygons {
    rows: Vec<[u8; 12]>,
    vertices: Vec<[u8; 8]>,
    /// The rows and vertices of each sample.
    places: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>,
}

impl Polygons {
    fn load(store: &Folder<'_>, samples: usize) -> Result<Polygons> {
        let rows = store.records("polygon_data.dat", None, |row: [u8; 12]| row)?;
        let vertices = store.records("vertices.dat", None, |row: [u8; 8]| row)?;
        let first =
            store.ranges("polygon_offset.dat", "polygons_count.dat", samples, rows.len())?;
        let second =
            store.ranges("vertices_offset.dat", "vertices_count.dat", samples, vertices.len())?;
        Ok(Polygons { rows, vertices, places: first.into_iter().zip(second).collect() })
    }

    fn add(
        &self,
        store: &Folder<'_>,
        sample: usize,
        count: usize,
        objects: &mut Objects,
    ) -> Result<()> {
        let (rows, vertices) = &self.places[sample];
        let vertices = &self.vertices[vertices.clone()];
        let number =
            |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let mut rows: Vec<[usize; 3]> = (self.rows[rows.clone()].iter())
            .map(|row| [number(&row[..4]), number(&row[4..8]), number(&row[8..])])
            .collect();
        rows.sort_by_key(|&[object, ..]| object);
        let mut rows = rows.into_iter().peekable();
        for object in 0..count {
            while let Some([_, start, end]) = rows.next_if(|row| row[0] == object) {
                let Some(outline) = vertices.get(start..end) else {
                    return Err(
                        store.wrong("polygon_data.dat", StoreFault::Beyond { what: "vertices" })
                    );
                };
                if objects.vertices.len() + outline.len() > self.vertices.len()
                    || objects.vertex_ends.len() >= self.rows.len()
                {
                    return Err(
                        store.wrong("polygon_data.dat", StoreFault::Twice { what: "vertices" })
                    );
                }
                objects.vertices.extend(outline.iter().map(|bytes| {
                    [
                        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
                        f32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
                    ]
                }));
                objects.vertex_ends.push(objects.vertices.len() as u32);
            }
            objects.polygon_ends.push(objects.vertex_ends.len() as u32);
        }
        match rows.next() {
            None => Ok(()),
            Some(_) => {
                Err(store.wrong("polygon_data.dat", StoreFault::NoObject { what: "polygons" }))
            }
        }
    }
}

struct Masks {
    /// Height, width and counts.
    masks: Vec<(u32, u32, Vec<u32>)>,
    owners: Vec<u32>,
    places: Vec<std::ops::Range<usize>>,
}

impl Masks {
    fn load(store: &Folder<'_>, samples: usize) -> Result<Masks> {
        const NAME: &str = "masks_rles.dat";
        let owners = store.records("masks_rles_idx.dat", None, u32::from_le_bytes)?;
        let places = store.ranges("masks_offset.dat", "mask_count.dat", samples, owners.len())?;
        let bytes = store.bytes(NAME)?;
        let mut rest = &bytes[..];
        let count = take(&mut rest).map(u32::from_le_bytes);
        let mut masks = Vec::new();
        let mut next = || -> Option<(u32, u32, Vec<u32>)> {
            let [height, width, count] =
                [take(&mut rest)?, take(&mut rest)?, take(&mut rest)?].map(u64::from_le_bytes);
            let bytes = usize::try_from(count).ok()?.checked_mul(4)?;
            let (counts, after) = rest.split_at_checked(bytes)?;
            rest = after;
            let counts = counts.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes));
            Some((height.try_into().ok()?, width.try_into().ok()?, counts.collect()))
        };
        for _ in 0..count.unwrap_or(0) {
            masks.push(next().ok_or_else(|| store.wrong(NAME, StoreFault::CutOff))?);
        }
        if masks.len() != owners.len() || !rest.is_empty() {
            return Err(store.wrong(NAME, StoreFault::Masks { count: owners.len() }));
        }
        Ok(Masks { masks, owners, places })
    }

    fn add(
        &self,
        store: &Folder<'_>,
        sample: usize,
        first: u32,
        count: u32,
        objects: &mut Objects,
    ) -> Result<()> {
        let mut range: Vec<usize> = self.places[sample].clone().collect();
        range.sort_by_key(|&mask| self.owners[mask]);
        for mask in range {
            let owner = self.owners[mask];
            let again = objects.runs.last().is_some_and(|runs| runs.object == first + owner);
            if owner >= count || again {
                return Err(
                    store.wrong("masks_rles_idx.dat", StoreFault::NoObject { what: "masks" })
                );
            }
            if objects.runs.len() >= self.masks.len() {
                return Err(store.wrong("masks_offset.dat", StoreFault::Twice { what: "masks" }));
            }
            let (height, width, counts) = &self.masks[mask];
            objects.counts.extend_from_slice(counts);
            let end = objects.counts.len();
            objects.runs.push(Runs { object: first + owner, height: *height, width: *width, end });
        }
        Ok(())
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*head)
}

struct Folder<'a>(&'a Path);

impl Folder<'_> {
    fn wrong(&self, name: &str, fault: StoreFault) -> Unreadable {
        Unreadable::new(&self.0.join(name), fault)
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.0.join(name);
        let read = Opened::open(&path).and_then(|opened| opened.bytes());
        read.map_err(|cause| Unreadable::of(&path, cause))
    }

    /// The records of a file, of which there must be `count` if given.
    fn records<T, const N: usize>(
        &self,
        name: &str,
        count: Option<usize>,
        make: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        let bytes = self.bytes(name)?;
        let found = bytes.split_first_chunk().and_then(|(&head, rest)| {
            let (records, over) = rest.as_chunks::<N>();
            let claimed = u32::from_le_bytes(head) as usize;
            (over.is_empty() && records.len() == claimed).then_some(records)
        });
        let Some(found) = found else {
            return Err(self.wrong(name, StoreFault::Claimed));
        };
        match count {
            Some(count) if count != found.len() => {
                Err(self.wrong(name, StoreFault::Count { found: found.len(), count }))
            }
            _ => Ok(found.iter().map(|&record| make(record)).collect()),
        }
    }

    /// Ranges of records in another file, which has `limit` of them.
    fn ranges(
        &self,
        offsets: &str,
        counts: &str,
        samples: usize,
        limit: usize,
    ) -> Result<Vec<std::ops::Range<usize>>> {
        let starts = self.records(offsets, Some(samples), u64::from_le_bytes)?;
        let lengths = self.records(counts, Some(samples), u64::from_le_bytes)?;
        let range = |(start, length): (u64, u64)| {
            let end = start.checked_add(length).filter(|&end| end <= limit as u64)?;
            Some(start as usize..end as usize)
        };
        let ranges = starts.into_iter().zip(lengths).map(range).collect::<Option<Vec<_>>>();
        ranges.ok_or_else(|| self.wrong(offsets, StoreFault::Beyond { what: "records" }))
    }
}

fn say(error: &io::Error) -> Problem {
    match error.kind() {
        ErrorKind::PermissionDenied => StoreFault::WritePermission.into(),
        _ => io_problem(error),
    }
}
