//! Selects polygons by the masks they belong to.

use smallvec::smallvec;

use super::problem::Segmentation;
use crate::kernels::contract::problems::{Input, unfit};
use crate::kernels::{Allocate, DirectKernel, Result, Samples, Traits, args};
use crate::value::{Cause, DType, Desc, Sample, extent, with_room};

pub struct SelectMasks;

args! {
    pub struct SelectMasksArgs { reindex_masks: bool }
}

/// A polygon of a selected mask.
struct Polygon {
    /// Index of its mask among the selected ones.
    order: usize,
    start: usize,
    end: usize,
}

impl DirectKernel for SelectMasks {
    type Args = SelectMasksArgs;
    const TRAITS: Traits = Traits::DEFAULT;

    fn run(args: &SelectMasksArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let [ids, polygons, vertices] = inputs else {
            return Err(Cause::Internal("three inputs".into()));
        };
        let (ids, polygons, vertices) = (ids.compact()?, polygons.compact()?, vertices.compact()?);
        let shape_of = |sample: &Sample| sample.desc.shape.to_vec();
        let [_] = ids.desc.shape[..] else {
            return Err(unfit(0, Segmentation::NotAList { shape: shape_of(&ids) }));
        };
        let [_, 3] = polygons.desc.shape[..] else {
            return Err(unfit(1, Segmentation::NotPolygons { shape: shape_of(&polygons) }));
        };
        let [count, width] = vertices.desc.shape[..] else {
            return Err(unfit(2, Segmentation::NotVertices { shape: shape_of(&vertices) }));
        };
        let ids = integers(0, &ids)?;
        let chosen = chosen(ids, integers(1, &polygons)?.as_chunks::<3>().0, count)?;
        let kept = chosen.iter().try_fold(0_usize, |n, each| n.checked_add(each.end - each.start));
        let kept = kept.filter(|&kept| extent(&[kept, width]).is_some());
        let kept = kept.ok_or(Cause::Memory { bytes: usize::MAX })?;

        let mut made = allocate(0, Desc::new(DType::I32, &[chosen.len(), 3]))?;
        let mut start = 0;
        let rows = made.elements::<i32>().as_chunks_mut::<3>().0;
        for (row, polygon) in rows.iter_mut().zip(&chosen) {
            let id = if args.reindex_masks { polygon.order as i32 } else { ids[polygon.order] };
            let end = start + (polygon.end - polygon.start);
            *row = [id, start as i32, end as i32];
            start = end;
        }
        let mut points = allocate(1, Desc::new(vertices.desc.dtype, &[kept, width]))?;
        let row = width * vertices.desc.dtype.size();
        let (src, mut dst) = (vertices.elements_as_bytes(), points.bytes());
        for polygon in &chosen {
            let part = &src[polygon.start * row..polygon.end * row];
            let (next, rest) = dst.split_at_mut(part.len());
            next.copy_from_slice(part);
            dst = rest;
        }
        Ok(smallvec![made.into_sample()?, points.into_sample()?])
    }
}

fn integers(index: usize, sample: &Sample) -> Result<&[i32]> {
    if sample.desc.dtype != DType::I32 {
        let dtype = sample.desc.dtype.name();
        return Err(unfit(index, Input::Type { wanted: "int32", dtype }));
    }
    Ok(sample.elements())
}

/// The polygons of the selected masks, sorted by mask; polygons of one mask keep their order.
fn chosen(ids: &[i32], polygons: &[[i32; 3]], vertices: usize) -> Result<Vec<Polygon>> {
    let mut orders: Vec<(i32, usize)> = with_room(ids.len())?;
    orders.extend(ids.iter().copied().zip(0..));
    orders.sort_unstable();
    if let Some(pair) = orders.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(unfit(0, Segmentation::RepeatedMask { id: pair[0].0 }));
    }
    let mut chosen: Vec<Polygon> = with_room(polygons.len())?;
    for &[id, start, end] in polygons {
        let Ok(found) = orders.binary_search_by_key(&id, |&(id, _)| id) else { continue };
        let range = (usize::try_from(start), usize::try_from(end));
        let (Ok(first), Ok(last)) = range else { return Err(bad_range(id, start, end, vertices)) };
        if first > last || last > vertices {
            return Err(bad_range(id, start, end, vertices));
        }
        chosen.push(Polygon { order: orders[found].1, start: first, end: last });
    }
    chosen.sort_by_key(|polygon| polygon.order);
    let mut found = chosen.iter().map(|polygon| polygon.order).peekable();
    for (order, &id) in ids.iter().enumerate() {
        if found.next_if_eq(&order).is_none() {
            return Err(unfit(0, Segmentation::UnknownMask { id }));
        }
        while found.next_if_eq(&order).is_some() {}
    }
    Ok(chosen)
}

fn bad_range(id: i32, start: i32, end: i32, vertices: usize) -> Cause {
    unfit(1, Segmentation::VertexRange { id, start, end, vertices })
}
