//! Reads an annotation file in one pass.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use super::json::{Result, Scanner, Wrong};
use super::rle::{MaskFault, decompress};
use super::{Coco, CocoFault, Image, Objects, Options, Outlines, Runs};
use crate::readers::read::Opened;
use crate::value::append;

/// Reads an annotation file. Names of images are relative to `root`.
pub fn read(file: &Path, root: &Path, options: Options) -> Result<Coco> {
    let opened = Opened::open_whole(file).map_err(Wrong::from)?;
    match opened.size {
        0 => parse(&opened.bytes().map_err(Wrong::from)?[..], root, options),
        // Not beyond this size: another process may keep writing to the file.
        size => parse(opened.into_stream().map_err(Wrong::from)?.take(size), root, options),
    }
}

fn parse(input: impl Read, root: &Path, options: Options) -> Result<Coco> {
    let mut found = Found::new(options);
    let mut scanner = Scanner::new(input)?;
    let known = |name: &[u8]| match name {
        b"images" => Part::Images,
        b"annotations" => Part::Objects,
        b"categories" => Part::Categories,
        _ => Part::Other,
    };
    scanner.object(known, |scanner, part| match part {
        Part::Images => scanner.list(|scanner| found.image(scanner)),
        Part::Objects => scanner.list(|scanner| found.object(scanner)),
        Part::Categories => scanner.list(|scanner| found.category(scanner)),
        Part::Other => scanner.skip(),
    })?;
    scanner.finish()?;
    if found.options.keypoints && found.objects.keypoints.is_empty() {
        return Err(scanner.wrong(CocoFault::NoKeypoints));
    }
    Ok(found.finish(root))
}

enum Part {
    Images,
    Objects,
    Categories,
    Other,
}

struct Found {
    options: Options,
    images: Vec<Image>,
    names: Vec<u8>,
    categories: Vec<i64>,
    objects: Objects,
    owners: Vec<i64>,
    /// Scratch memory for the text of a mask.
    text: Vec<u8>,
}

impl Found {
    fn new(options: Options) -> Found {
        Found {
            options,
            images: Vec::new(),
            names: Vec::new(),
            categories: Vec::new(),
            objects: Objects::default(),
            owners: Vec::new(),
            text: Vec::new(),
        }
    }

    fn image<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        #[derive(Clone, Copy)]
        enum Member {
            Id,
            Width,
            Height,
            Name,
            Other,
        }
        let known = |name: &[u8]| match name {
            b"id" => Member::Id,
            b"width" => Member::Width,
            b"height" => Member::Height,
            b"file_name" => Member::Name,
            _ => Member::Other,
        };
        let (mut id, mut width, mut height) = (None, None, None);
        let start = self.names.len();
        scanner.object(known, |scanner, member| {
            match member {
                Member::Id => id = Some(scanner.integer()?),
                Member::Width => width = Some(extent(scanner, "width")?),
                Member::Height => height = Some(extent(scanner, "height")?),
                Member::Name => {
                    self.names.truncate(start);
                    scanner.text(&mut self.names)?;
                }
                Member::Other => scanner.skip()?,
            }
            Ok(())
        })?;
        let id = id.ok_or_else(|| scanner.wrong(CocoFault::NoId { what: "image" }))?;
        if self.names.len() == start {
            return Err(scanner.wrong(CocoFault::ImageMember { id, name: "file_name" }));
        }
        if self.options.ratio || self.options.outlines == Outlines::Pixels {
            for (given, name) in [(width, "width"), (height, "height")] {
                if given.is_none() {
                    return Err(scanner.wrong(CocoFault::ImageMember { id, name }));
                }
            }
        }
        let (width, height) = (width.unwrap_or(0), height.unwrap_or(0));
        self.images.push(Image { id, height, width, name_end: self.names.len() });
        Ok(())
    }

    fn category<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        let mut id = None;
        scanner.object(
            |name| name == b"id",
            |scanner, is_id| match is_id {
                true => scanner.integer().map(|given| id = Some(given)),
                false => scanner.skip(),
            },
        )?;
        let id = id.ok_or_else(|| scanner.wrong(CocoFault::NoId { what: "category" }))?;
        self.categories.push(id);
        Ok(())
    }

    fn object<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        #[derive(Clone, Copy)]
        enum Member {
            Image,
            Category,
            Box,
            Crowd,
            Outline,
            Keypoints,
            Id,
            Other,
        }
        let (keypoints, ids) = (self.options.keypoints, self.options.annotation_ids);
        let known = |name: &[u8]| match name {
            b"image_id" => Member::Image,
            b"category_id" => Member::Category,
            b"bbox" => Member::Box,
            b"iscrowd" => Member::Crowd,
            b"segmentation" => Member::Outline,
            b"keypoints" if keypoints => Member::Keypoints,
            b"id" if ids => Member::Id,
            _ => Member::Other,
        };
        let (mut image, mut category, mut id, mut crowd) = (None, None, None, false);
        // As in DALI, an object without a box gets an empty one.
        let mut sides = [0.0; 4];
        let marks = self.marks();
        let outlines = self.options.outlines;
        scanner.object(known, |scanner, member| {
            match member {
                Member::Image => image = Some(scanner.integer()?),
                Member::Category => {
                    let given = scanner.integer()?;
                    let fits = i32::try_from(given);
                    category = Some(
                        fits.map_err(|_| scanner.wrong(CocoFault::LargeCategory { id: given }))?,
                    );
                }
                Member::Box => sides = four(scanner)?,
                Member::Crowd => {
                    crowd = match scanner.look()? {
                        b't' | b'f' => scanner.word()?.unwrap_or(false),
                        _ => scanner.number()? != 0.0,
                    }
                }
                Member::Outline if outlines != Outlines::None => {
                    self.reset_outline(&marks);
                    self.outline(scanner)?;
                }
                Member::Keypoints => {
                    self.objects.keypoints.truncate(marks[4]);
                    self.keypoints(scanner)?;
                }
                Member::Id => id = Some(scanner.integer()?),
                Member::Outline | Member::Other => scanner.skip()?,
            }
            Ok(())
        })?;
        let image =
            image.ok_or_else(|| scanner.wrong(CocoFault::AnnotationMember { name: "image_id" }))?;
        let category = category
            .ok_or_else(|| scanner.wrong(CocoFault::AnnotationMember { name: "category_id" }))?;
        let id = match id {
            None if ids => {
                return Err(scanner.wrong(CocoFault::AnnotationMember { name: "id" }));
            }
            id => id,
        };
        let [_, _, width, height] = sides;
        let small = width < self.options.threshold || height < self.options.threshold;
        if small || (crowd && self.options.skip_crowds) {
            self.reset_outline(&marks);
            self.objects.keypoints.truncate(marks[4]);
            return Ok(());
        }
        if self.owners.len() >= u32::MAX as usize {
            return Err(scanner.wrong(CocoFault::TooManyAnnotations));
        }
        append(&mut self.owners, &[image])?;
        append(&mut self.objects.boxes, &[sides])?;
        append(&mut self.objects.labels, &[category])?;
        if outlines != Outlines::None {
            let end = small_number(scanner, self.objects.vertex_ends.len())?;
            append(&mut self.objects.polygon_ends, &[end])?;
        }
        if keypoints {
            let end = small_number(scanner, self.objects.keypoints.len())?;
            append(&mut self.objects.keypoint_ends, &[end])?;
        }
        append(&mut self.objects.ids, id.as_slice())?;
        Ok(())
    }

    fn marks(&self) -> [usize; 5] {
        let objects = &self.objects;
        [
            objects.vertex_ends.len(),
            objects.vertices.len(),
            objects.runs.len(),
            objects.counts.len(),
            objects.keypoints.len(),
        ]
    }

    /// Discards the outline that was read after `marks`.
    fn reset_outline(&mut self, marks: &[usize; 5]) {
        self.objects.vertex_ends.truncate(marks[0]);
        self.objects.vertices.truncate(marks[1]);
        self.objects.runs.truncate(marks[2]);
        self.objects.counts.truncate(marks[3]);
    }

    fn outline<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        match scanner.look()? {
            b'[' => scanner.list(|scanner| self.polygon(scanner)),
            b'{' => self.runs(scanner),
            _ => scanner.skip(),
        }
    }

    fn keypoints<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        let keypoints = &mut self.objects.keypoints;
        let (mut point, mut found) = ([0.0; 3], 0);
        scanner.list(|scanner| {
            point[found % 3] = scanner.number()? as f32;
            found += 1;
            if found % 3 == 0 {
                append(keypoints, &[point])?;
            }
            Ok(())
        })?;
        if found % 3 != 0 {
            return Err(scanner.wrong(CocoFault::Keypoints { found }));
        }
        Ok(())
    }

    fn polygon<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        let vertices = &mut self.objects.vertices;
        let mut half: Option<f32> = None;
        scanner.list(|scanner| {
            let value = scanner.number()? as f32;
            match half.take() {
                None => half = Some(value),
                Some(x) => append(vertices, &[[x, value]])?,
            }
            Ok(())
        })?;
        if half.is_some() {
            return Err(scanner.wrong(CocoFault::OddPolygon));
        }
        let end = small_number(scanner, vertices.len())?;
        append(&mut self.objects.vertex_ends, &[end])?;
        Ok(())
    }

    fn runs<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        #[derive(Clone, Copy)]
        enum Member {
            Counts,
            Size,
            Other,
        }
        let known = |name: &[u8]| match name {
            b"counts" => Member::Counts,
            b"size" => Member::Size,
            _ => Member::Other,
        };
        let painted = self.options.outlines == Outlines::Pixels;
        let counts = &mut self.objects.counts;
        let text = &mut self.text;
        let mut size: Vec<u32> = Vec::new();
        let mut given = false;
        scanner.object(known, |scanner, member| {
            match member {
                Member::Counts if painted => {
                    given = true;
                    if scanner.look()? == b'"' {
                        text.clear();
                        scanner.text(text)?;
                        let taken = decompress(text, counts);
                        return taken
                            .map_err(|why| scanner.wrong(CocoFault::Mask { problem: why.into() }));
                    }
                    scanner.list(|scanner| {
                        let count = scanner.integer()?;
                        let count = u32::try_from(count).map_err(|_| {
                            scanner.wrong(CocoFault::Mask {
                                problem: MaskFault::Count { count }.into(),
                            })
                        })?;
                        Ok(append(counts, &[count])?)
                    })?;
                }
                Member::Size if painted => scanner.list(|scanner| {
                    let extent = scanner.integer()?;
                    size.push(
                        u32::try_from(extent)
                            .map_err(|_| scanner.wrong(CocoFault::MaskExtent { extent }))?,
                    );
                    Ok(())
                })?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        if !painted {
            return Ok(());
        }
        let &[height, width] = &size[..] else {
            return Err(scanner.wrong(CocoFault::MaskSize));
        };
        if !given {
            return Err(scanner.wrong(CocoFault::MaskCounts));
        }
        let object = self.objects.boxes.len() as u32;
        self.objects.runs.push(Runs { object, height, width, end: self.objects.counts.len() });
        Ok(())
    }

    fn finish(mut self, root: &Path) -> Coco {
        if self.options.renumber {
            // A category listed twice keeps its first number; an unlisted one gets 0.
            let mut numbers: HashMap<i64, i32> = HashMap::new();
            for (&id, number) in self.categories.iter().zip(1..) {
                numbers.entry(id).or_insert(number);
            }
            for label in &mut self.objects.labels {
                *label = numbers.get(&i64::from(*label)).copied().unwrap_or(0);
            }
        }
        self.objects.boxes.shrink_to_fit();
        self.objects.vertices.shrink_to_fit();
        self.objects.counts.shrink_to_fit();
        Coco::new(self.options, root, &self.images, &self.names, self.objects, &self.owners)
    }
}

fn small_number<R: Read>(scanner: &Scanner<R>, number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| scanner.wrong(CocoFault::TooManyVertices))
}

fn extent<R: Read>(scanner: &mut Scanner<R>, name: &'static str) -> Result<i32> {
    let given = scanner.integer()?;
    let fits = i32::try_from(given).ok().filter(|&extent| extent >= 0);
    fits.ok_or_else(|| scanner.wrong(CocoFault::Extent { name, extent: given }))
}

fn four<R: Read>(scanner: &mut Scanner<R>) -> Result<[f32; 4]> {
    let mut found = 0;
    let mut sides = [0.0; 4];
    let wrong =
        |scanner: &Scanner<R>, found: usize| -> Wrong { scanner.wrong(CocoFault::Box { found }) };
    scanner.list(|scanner| {
        let value = scanner.number()? as f32;
        let place = sides.get_mut(found).ok_or_else(|| wrong(scanner, found + 1))?;
        *place = value;
        found += 1;
        Ok(())
    })?;
    if found < 4 { Err(wrong(scanner, found)) } else { Ok(sides) }
}
