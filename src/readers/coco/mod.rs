//! COCO: images annotated with objects, which have boxes, classes and outlines.

mod json;
mod parse;
mod rle;
mod store;

pub use parse::read;
pub use store::{load, save};

pub const KINDS: [&[crate::value::Kind]; 4] =
    [CocoFault::KINDS, json::JsonFault::KINDS, MaskFault::KINDS, store::StoreFault::KINDS];

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use smallvec::SmallVec;

use self::rle::{Canvas, MaskFault, Problem};
use super::files::{Files, Hash};
use super::options::{Bytes, Options as Given};
use super::read::read_file;
use super::source::{OpenError, Output, Part, Result, Source, fetched};
use crate::codecs::image::max_pixels;
use crate::kernels::Allocate;
use crate::value::{Cause, DType, Damage, Desc, Layout, Origin, Sample, problems};

problems! {
    /// What is wrong with annotations.
    pub enum CocoFault {
        NoId { what: &'static str },
        ImageMember { id: i64, name: &'static str },
        AnnotationMember { name: &'static str },
        LargeCategory { id: i64 },
        TooManyAnnotations,
        TooManyVertices,
        OddPolygon,
        Keypoints { found: usize },
        NoKeypoints,
        Extent { name: &'static str, extent: i64 },
        Box { found: usize },
        Mask { problem: crate::value::Problem },
        MaskExtent { extent: i64 },
        MaskSize,
        MaskCounts,
        ImageSize { height: i32, width: i32 },
        LargeImage { height: i32, width: i32, limit: usize },
        Object { problem: crate::value::Problem },
        LargeId { id: i64 },
    }
}

/// What samples consist of, and which are taken.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Boxes as two corners, not as one corner and the size.
    pub corners: bool,
    /// Coordinates relative to the image's size.
    pub ratio: bool,
    pub outlines: Outlines,
    pub image_ids: bool,
    pub keypoints: bool,
    pub annotation_ids: bool,
    /// Skip images without objects.
    pub skip_empty: bool,
    /// Skip objects that stand for a crowd.
    pub skip_crowds: bool,
    /// Skip objects that are narrower or lower than this.
    pub threshold: f32,
    /// Renumber the categories from 1.
    pub renumber: bool,
    /// The names of the images to take, in this order; if empty, all.
    pub images: Vec<Vec<u8>>,
}

/// The form in which outlines are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outlines {
    #[default]
    None,
    /// Polygons (object, first and last vertex), and vertices.
    Polygons,
    /// Polygons with offsets of coordinates, two per vertex.
    Coordinates,
    /// An image of labels.
    Pixels,
}

/// An image, as listed in the file.
pub struct Image {
    pub id: i64,
    pub height: i32,
    pub width: i32,
    /// The end of its name in the block of all names.
    pub name_end: usize,
}

/// A run-length encoded mask.
pub struct Runs {
    pub object: u32,
    pub height: u32,
    pub width: u32,
    /// The end of its counts.
    pub end: usize,
}

/// Objects in arrays; the data of an object ends where the next one's begins.
#[derive(Default)]
pub struct Objects {
    pub boxes: Vec<[f32; 4]>,
    pub labels: Vec<i32>,
    /// The end of each object's polygons; empty if outlines aren't read.
    pub polygon_ends: Vec<u32>,
    /// The end of each polygon's vertices.
    pub vertex_ends: Vec<u32>,
    pub vertices: Vec<[f32; 2]>,
    pub runs: Vec<Runs>,
    pub counts: Vec<u32>,
    /// The end of each object's keypoints; empty if they aren't read.
    pub keypoint_ends: Vec<u32>,
    /// Coordinates and visibility.
    pub keypoints: Vec<[f32; 3]>,
    /// The ids of the objects; empty if they aren't read.
    pub ids: Vec<i64>,
}

fn part<T>(ends: &[T], index: usize) -> std::ops::Range<usize>
where
    T: Copy + Into<u64>,
{
    let start = if index == 0 { 0 } else { ends[index - 1].into() };
    start as usize..ends[index].into() as usize
}

impl Objects {
    /// The polygons of an object, by number.
    pub fn polygons(&self, object: usize) -> std::ops::Range<usize> {
        if self.polygon_ends.is_empty() { 0..0 } else { part(&self.polygon_ends, object) }
    }

    pub fn outline(&self, polygon: usize) -> &[[f32; 2]] {
        &self.vertices[part(&self.vertex_ends, polygon)]
    }

    /// The largest number of keypoints that an object has.
    pub fn most_keypoints(&self) -> usize {
        (0..self.keypoint_ends.len()).map(|object| self.keypoints(object).len()).max().unwrap_or(0)
    }

    pub fn keypoints(&self, object: usize) -> &[[f32; 3]] {
        &self.keypoints[part(&self.keypoint_ends, object)]
    }

    /// The run-length encoded mask of an object, which most don't have.
    pub fn runs(&self, object: usize) -> Option<(&Runs, &[u32])> {
        let index = self.runs.binary_search_by_key(&(object as u32), |runs| runs.object).ok()?;
        let start = if index == 0 { 0 } else { self.runs[index - 1].end };
        Some((&self.runs[index], &self.counts[start..self.runs[index].end]))
    }
}

/// Samples by number: images and their objects.
#[derive(Default)]
pub struct Coco {
    pub(super) options: Options,
    pub(super) files: Files,
    pub(super) ids: Vec<i64>,
    pub(super) heights: Vec<i32>,
    pub(super) widths: Vec<i32>,
    /// The range of `members` of each sample.
    pub(super) bounds: Vec<(u32, u32)>,
    /// Numbers of objects.
    pub(super) members: Vec<u32>,
    pub(super) objects: Objects,
    /// The number of keypoints in the samples, the same for all objects.
    pub(super) keypoints: usize,
}

impl Coco {
    /// Matches objects with images; `owners` has the id of each object's image.
    pub fn new(
        options: Options,
        root: &std::path::Path,
        images: &[Image],
        names: &[u8],
        objects: Objects,
        owners: &[i64],
    ) -> Coco {
        let name = |index: usize| {
            let start = if index == 0 { 0 } else { images[index - 1].name_end };
            &names[start..images[index].name_end]
        };
        // By id; duplicates stay in order (the sort is stable).
        let mut order: Vec<u32> = (0..images.len() as u32).collect();
        order.sort_by_key(|&index| images[index as usize].id);
        let mut groups: HashMap<i64, u32> = HashMap::with_capacity(images.len());
        for &index in &order {
            let next = groups.len() as u32;
            groups.entry(images[index as usize].id).or_insert(next);
        }
        let mut ends = vec![0_u32; groups.len() + 1];
        let found: Vec<Option<u32>> = owners.iter().map(|id| groups.get(id).copied()).collect();
        found.iter().flatten().for_each(|&group| ends[group as usize + 1] += 1);
        for group in 1..ends.len() {
            ends[group] += ends[group - 1];
        }
        let starts = ends.clone();
        let mut members = vec![0_u32; starts.last().copied().unwrap_or(0) as usize];
        let mut next = starts.clone();
        for (object, group) in found.iter().enumerate() {
            if let Some(group) = group {
                let place = &mut next[*group as usize];
                members[*place as usize] = object as u32;
                *place += 1;
            }
        }
        let chosen: Vec<u32> = if options.images.is_empty() {
            order
        } else {
            let by_name: HashMap<&[u8], u32> =
                (0..images.len()).map(|index| (name(index), index as u32)).collect();
            let wanted = options.images.iter();
            wanted.filter_map(|name| by_name.get(&name[..]).copied()).collect()
        };
        let mut coco = Coco {
            files: Files::new(root.to_path_buf()),
            members,
            keypoints: objects.most_keypoints(),
            objects,
            ..Coco::default()
        };
        for index in chosen {
            let image = &images[index as usize];
            let group = groups[&image.id] as usize;
            let bounds = (starts[group], starts[group + 1]);
            if options.skip_empty && bounds.0 == bounds.1 {
                continue;
            }
            coco.files.push(name(index as usize), 0);
            coco.ids.push(image.id);
            coco.heights.push(image.height);
            coco.widths.push(image.width);
            coco.bounds.push(bounds);
        }
        coco.options = options;
        coco.options.images = Vec::new();
        coco
    }

    pub(super) fn members(&self, sample: usize) -> &[u32] {
        let (start, end) = self.bounds[sample];
        &self.members[start as usize..end as usize]
    }

    /// A box in the requested form.
    pub(super) fn boxed(&self, sample: usize, [x, y, w, h]: [f32; 4]) -> [f32; 4] {
        let [a, b, c, d] = if self.options.corners { [x, y, x + w, y + h] } else { [x, y, w, h] };
        if !self.options.ratio {
            return [a, b, c, d];
        }
        let (width, height) = (self.widths[sample] as f32, self.heights[sample] as f32);
        [a / width, b / height, c / width, d / height]
    }

    pub(super) fn vertex(&self, sample: usize, [x, y]: [f32; 2]) -> [f32; 2] {
        if !self.options.ratio {
            return [x, y];
        }
        [x / self.widths[sample] as f32, y / self.heights[sample] as f32]
    }

    /// The keypoints of an object in the requested form; those that it lacks are zeros.
    pub(super) fn keypoints(
        &self,
        sample: usize,
        object: u32,
    ) -> impl Iterator<Item = [f32; 3]> + '_ {
        let given = self.objects.keypoints(object as usize).iter().map(move |&[x, y, visible]| {
            let [x, y] = self.vertex(sample, [x, y]);
            [x, y, visible]
        });
        given.chain(std::iter::repeat([0.0; 3])).take(self.keypoints)
    }

    fn polygons(&self, sample: usize, allocate: &Allocate<'_>) -> Result<[Sample; 2]> {
        let objects = &self.objects;
        let members = self.members(sample);
        let polygons: usize = members.iter().map(|&o| objects.polygons(o as usize).len()).sum();
        let outlines = || members.iter().flat_map(|&object| objects.polygons(object as usize));
        let vertices: usize = outlines().map(|polygon| objects.outline(polygon).len()).sum();
        let mut buffer = allocate(3, Desc::new(DType::I32, &[polygons, 3]))?;
        let unit = if self.options.outlines == Outlines::Coordinates { 2 } else { 1 };
        let mut rows = buffer.elements::<i32>().as_chunks_mut::<3>().0.iter_mut();
        let mut at = 0;
        for (place, &object) in members.iter().enumerate() {
            for (polygon, row) in objects.polygons(object as usize).zip(&mut rows) {
                let end = at + objects.outline(polygon).len();
                *row = [place as i32, (at * unit) as i32, (end * unit) as i32];
                at = end;
            }
        }
        let mut corners = allocate(4, Desc::new(DType::F32, &[vertices, 2]))?;
        let rows = corners.elements::<f32>().as_chunks_mut::<2>().0.iter_mut();
        let all = outlines().flat_map(|polygon| objects.outline(polygon));
        for (row, &vertex) in rows.zip(all) {
            *row = self.vertex(sample, vertex);
        }
        Ok([buffer.into_sample()?, corners.into_sample()?])
    }

    /// An image of labels: where masks overlap, the larger label wins.
    fn pixels(&self, sample: usize, allocate: &Allocate<'_>) -> Result<Sample> {
        let (height, width) = (self.heights[sample], self.widths[sample]);
        if height < 0 || width < 0 {
            let problem = CocoFault::ImageSize { height, width }.into();
            return Err(Cause::Input { index: 0, problem });
        }
        let (extent, limit) = (height as usize * width as usize, max_pixels());
        if extent > limit {
            let problem = CocoFault::LargeImage { height, width, limit }.into();
            return Err(Cause::Undecodable { kind: Damage::Large, problem });
        }
        let shape = [height as usize, width as usize, 1];
        let mut buffer = allocate(3, Desc::new(DType::I32, &shape))?;
        let objects = &self.objects;
        let mut members: Vec<usize> = self.members(sample).iter().map(|&o| o as usize).collect();
        members.retain(|&o| !objects.polygons(o).is_empty() || objects.runs(o).is_some());
        members.sort_by_key(|&object| objects.labels[object]);
        if members.is_empty() {
            buffer.bytes().fill(0);
            return buffer.into_sample();
        }
        let mut canvas = Canvas::new(shape[0], shape[1])?;
        let refuse = |fault: MaskFault| Cause::Input {
            index: 0,
            problem: CocoFault::Object { problem: fault.into() }.into(),
        };
        let unpainted = |problem| match problem {
            Problem::Object(problem) => refuse(problem),
            Problem::Memory(cause) => cause,
        };
        for object in members {
            let label = objects.labels[object];
            if let Some((runs, counts)) = objects.runs(object) {
                if runs.height as usize != shape[0] {
                    return Err(refuse(MaskFault::Size {
                        height: runs.height,
                        width: runs.width,
                        image_height: height,
                        image_width: width,
                    }));
                }
                canvas.runs(counts, label).map_err(refuse)?;
            }
            for polygon in objects.polygons(object) {
                canvas.polygon(objects.outline(polygon), label).map_err(unpainted)?;
            }
        }
        canvas.write(buffer.elements::<i32>());
        buffer.into_sample()
    }
}

/// Opens the annotation file `annotations`, or annotations `stored` in a folder. `save_to` is a
/// folder to store them in.
pub fn open(given: &mut Given) -> Result<Arc<dyn Source>, OpenError> {
    let choices = [
        ("none", Outlines::None),
        ("polygons", Outlines::Polygons),
        ("coordinates", Outlines::Coordinates),
        ("pixels", Outlines::Pixels),
    ];
    let images: Vec<Bytes> = given.take("images")?;
    let options = Options {
        corners: given.take("corners")?,
        ratio: given.take("ratio")?,
        outlines: given.choice("outlines", &choices)?,
        image_ids: given.take("image_ids")?,
        keypoints: given.take("keypoints")?,
        annotation_ids: given.take("annotation_ids")?,
        skip_empty: given.take("skip_empty")?,
        skip_crowds: given.take("skip_crowds")?,
        threshold: given.take("threshold")?,
        renumber: given.take("renumber")?,
        images: images.into_iter().map(|Bytes(name)| name).collect(),
    };
    let root: PathBuf = given.take("root")?;
    let save_to: Option<PathBuf> = given.take("save_to")?;
    if let Some(folder) = given.take::<Option<PathBuf>>("stored")? {
        let loaded = load(&folder, &root, options);
        return Ok(Arc::new(loaded.map_err(|error| error.option("stored"))?));
    }
    let file: PathBuf = given.take("annotations")?;
    let coco = read(&file, &root, options).map_err(|wrong| wrong.of_file(&file))?;
    if let Some(folder) = save_to.filter(|_| !coco.is_empty()) {
        save(&coco, &folder).map_err(|error| error.option("save_to"))?;
    }
    Ok(Arc::new(coco))
}

impl Source for Coco {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let mut made = SmallVec::new();
        made.push(read_file(&self.files.path(number), allocate)?);
        let members = self.members(number);
        let mut boxes = allocate(1, Desc::new(DType::F32, &[members.len(), 4]))?;
        let rows = boxes.elements::<f32>().as_chunks_mut::<4>().0.iter_mut();
        for (row, &object) in rows.zip(members) {
            *row = self.boxed(number, self.objects.boxes[object as usize]);
        }
        made.push(boxes.into_sample()?);
        let mut labels = allocate(2, Desc::new(DType::I32, &[members.len()]))?;
        for (label, &object) in labels.elements::<i32>().iter_mut().zip(members) {
            *label = self.objects.labels[object as usize];
        }
        made.push(labels.into_sample()?);
        match self.options.outlines {
            Outlines::None => {}
            Outlines::Pixels => made.push(self.pixels(number, allocate)?),
            Outlines::Polygons | Outlines::Coordinates => {
                made.extend(self.polygons(number, allocate)?);
            }
        }
        if self.options.image_ids {
            let mut id = allocate(made.len(), Desc::new(DType::I32, &[1]))?;
            let given = self.ids[number];
            id.elements::<i32>()[0] = i32::try_from(given).map_err(|_| Cause::Input {
                index: 0,
                problem: CocoFault::LargeId { id: given }.into(),
            })?;
            made.push(id.into_sample()?);
        }
        if self.options.keypoints {
            let shape = [members.len(), self.keypoints, 3];
            let mut points = allocate(made.len(), Desc::new(DType::F32, &shape))?;
            let rows = points.elements::<f32>().as_chunks_mut::<3>().0.iter_mut();
            let all = members.iter().flat_map(|&object| self.keypoints(number, object));
            rows.zip(all).for_each(|(row, point)| *row = point);
            made.push(points.into_sample()?);
        }
        if self.options.annotation_ids {
            let mut ids = allocate(made.len(), Desc::new(DType::I64, &[members.len()]))?;
            for (id, &object) in ids.elements::<i64>().iter_mut().zip(members) {
                *id = self.objects.ids[object as usize];
            }
            made.push(ids.into_sample()?);
        }
        Ok(made)
    }

    fn outputs(&self) -> Vec<Part> {
        let mut outputs =
            vec![Output::new(DType::U8, 1), Output::new(DType::F32, 2), Output::new(DType::I32, 1)];
        match self.options.outlines {
            Outlines::None => {}
            Outlines::Pixels => outputs.push(Output {
                layout: Layout::new("HWC").unwrap_or_default(),
                ..Output::new(DType::I32, 3)
            }),
            Outlines::Polygons | Outlines::Coordinates => {
                outputs.extend([Output::new(DType::I32, 2), Output::new(DType::F32, 2)]);
            }
        }
        if self.options.image_ids {
            outputs.push(Output::uniform(DType::I32, 1));
        }
        if self.options.keypoints {
            outputs.push(Output::new(DType::F32, 3));
        }
        if self.options.annotation_ids {
            outputs.push(Output::new(DType::I64, 1));
        }
        fetched(outputs)
    }

    /// Depends on the images, their names and their objects.
    fn fingerprint(&self) -> u64 {
        let mut hash = Hash::new(self.files.fingerprint());
        self.ids.iter().for_each(|&id| hash.word(id as u64));
        for &object in &self.members {
            let object = object as usize;
            hash.word(self.objects.labels[object] as u64);
            for side in self.objects.boxes[object] {
                hash.word(u64::from(side.to_bits()));
            }
        }
        hash.finish()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.files.name(number)
    }

    fn origin(&self, number: usize, part: usize) -> Origin {
        self.files.origin(number, part)
    }
}
