//! Connected components of labeled arrays with any number of dimensions.
//!
//! Each row is split into runs of equal labels. Runs that touch a run of the same label in an
//! adjacent row are merged with union-find, so that the cost depends on the number of runs, not
//! pixels. Pixels that only touch diagonally are not connected.

use smallvec::SmallVec;

use crate::kernels::Result;
use crate::value::{Cause, Element, with_room};

/// Element type of a mask.
pub trait Label: Element + PartialEq {
    fn number(self) -> i64;
    /// Converts from an integer, if it is in range.
    fn of(number: i64) -> Option<Self>;
}

macro_rules! labels {
    ($($type:ty)*) => {
        $(impl Label for $type {
            #[inline(always)]
            fn number(self) -> i64 {
                i64::from(self)
            }

            fn of(number: i64) -> Option<$type> {
                <$type>::try_from(number).ok()
            }
        })*
    };
}
labels!(u8 i8 u16 i16 u32 i32);

/// Pixels that form blobs.
#[derive(Clone, Copy)]
pub enum Wanted<T> {
    Label(T),
    /// All labels except this one; each label forms its own blobs.
    AllBut(Option<T>),
}

/// Bounds along each axis: `low` is inclusive, `high` exclusive.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    pub low: SmallVec<[i32; 4]>,
    pub high: SmallVec<[i32; 4]>,
}

impl Extent {
    pub fn whole(shape: &[usize]) -> Extent {
        Extent {
            low: SmallVec::from_elem(0, shape.len()),
            high: shape.iter().map(|&side| side as i32).collect(),
        }
    }

    pub fn volume(&self) -> i128 {
        self.high.iter().zip(&self.low).map(|(&high, &low)| i128::from(high - low)).product()
    }
}

/// A run of equal labels in a row.
struct Run<T> {
    start: u32,
    end: u32,
    /// An earlier run connected with this one, or its own index for a root.
    parent: u32,
    label: T,
}

/// Extents of all blobs, ordered by their first pixel. Axis lengths must fit an `i32`.
pub fn find<T: Label>(labels: &[T], shape: &[usize], wanted: Wanted<T>) -> Result<Vec<Extent>> {
    let Some((&width, outer)) = shape.split_last() else { return Ok(Vec::new()) };
    if labels.is_empty() {
        return Ok(Vec::new());
    }
    let rows: usize = outer.iter().product();
    // Distance between adjacent rows along each outer axis.
    let mut steps: SmallVec<[usize; 4]> = SmallVec::from_elem(1, outer.len());
    for axis in (1..outer.len()).rev() {
        steps[axis - 1] = steps[axis] * outer[axis];
    }
    let mut runs: Vec<Run<T>> = Vec::new();
    // Index of the first run of each row.
    let mut starts: Vec<usize> = with_room(rows + 1)?;
    let mut place: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
    for row in 0..rows {
        starts.push(runs.len());
        let pixels = &labels[row * width..][..width];
        add_runs(pixels, wanted, &mut runs)?;
        for (axis, &step) in steps.iter().enumerate() {
            if place[axis] > 0 {
                let before = starts[row - step]..starts[row - step + 1];
                join(&mut runs, before, starts[row]);
            }
        }
        advance(&mut place, outer);
    }
    starts.push(runs.len());
    extents(&runs, &starts, outer)
}

/// Advances to the next row.
fn advance(place: &mut [usize], outer: &[usize]) {
    for (coordinate, &side) in place.iter_mut().zip(outer).rev() {
        *coordinate += 1;
        if *coordinate < side {
            return;
        }
        *coordinate = 0;
    }
}

/// Pixels compared at a time.
const SKIP: usize = 32;

/// Length of the prefix for which `passes` is true.
#[inline(always)]
fn count_while<T: Copy>(pixels: &[T], passes: impl Fn(T) -> bool) -> usize {
    let mut passed = 0;
    for chunk in pixels.as_chunks::<SKIP>().0 {
        // No early exit, so that the loop vectorizes.
        if !chunk.iter().fold(true, |all, &pixel| all & passes(pixel)) {
            break;
        }
        passed += SKIP;
    }
    passed + pixels[passed..].iter().take_while(|&&pixel| passes(pixel)).count()
}

fn add_runs<T: Label>(pixels: &[T], wanted: Wanted<T>, runs: &mut Vec<Run<T>>) -> Result<()> {
    let mut at = 0;
    while at < pixels.len() {
        at += match wanted {
            Wanted::Label(label) => count_while(&pixels[at..], |pixel| pixel != label),
            Wanted::AllBut(Some(label)) => count_while(&pixels[at..], |pixel| pixel == label),
            Wanted::AllBut(None) => 0,
        };
        let Some(&label) = pixels.get(at) else { break };
        let length = count_while(&pixels[at..], |pixel| pixel == label);
        let number = u32::try_from(runs.len()).map_err(|_| too_many())?;
        runs.try_reserve(1).map_err(|_| too_many())?;
        runs.push(Run { start: at as u32, end: (at + length) as u32, parent: number, label });
        at += length;
    }
    Ok(())
}

fn too_many() -> Cause {
    Cause::Memory { bytes: u32::MAX as usize * size_of::<Run<i32>>() }
}

/// Merges the runs from `own` on with touching runs of an earlier row.
fn join<T: Label>(runs: &mut [Run<T>], before: std::ops::Range<usize>, own: usize) {
    let (mut above, mut below) = (before.start, own);
    while above < before.end && below < runs.len() {
        let (a, b) = (&runs[above], &runs[below]);
        let (a_end, b_end) = (a.end, b.end);
        if a.start < b.end && b.start < a.end && a.label == b.label {
            unite(runs, above, below);
        }
        if a_end <= b_end {
            above += 1;
        }
        if b_end <= a_end {
            below += 1;
        }
    }
}

/// The root of a run: the first run of its blob.
fn root<T>(runs: &mut [Run<T>], mut run: usize) -> usize {
    while runs[run].parent as usize != run {
        let parent = runs[run].parent as usize;
        // Path halving.
        runs[run].parent = runs[parent].parent;
        run = runs[run].parent as usize;
    }
    run
}

fn unite<T>(runs: &mut [Run<T>], a: usize, b: usize) {
    let (a, b) = (root(runs, a), root(runs, b));
    runs[a.max(b)].parent = a.min(b) as u32;
}

fn extents<T: Label>(runs: &[Run<T>], starts: &[usize], outer: &[usize]) -> Result<Vec<Extent>> {
    let mut found: Vec<Extent> = Vec::new();
    let mut place: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
    // Blob number of each run; a run's parent always precedes it.
    let mut numbers: Vec<u32> = with_room(runs.len())?;
    for bounds in starts.windows(2) {
        for (run, index) in runs[bounds[0]..bounds[1]].iter().zip(bounds[0]..) {
            let parent = run.parent as usize;
            let (start, end) = (run.start as i32, run.end as i32);
            if parent == index {
                numbers.push(found.len() as u32);
                let mut low: SmallVec<[i32; 4]> = place.iter().map(|&at| at as i32).collect();
                let mut high: SmallVec<[i32; 4]> = low.iter().map(|&at| at + 1).collect();
                low.push(start);
                high.push(end);
                found.try_reserve(1).map_err(|_| too_many())?;
                found.push(Extent { low, high });
                continue;
            }
            let number = numbers[parent];
            numbers.push(number);
            let blob = &mut found[number as usize];
            for (axis, &at) in place.iter().enumerate() {
                blob.low[axis] = blob.low[axis].min(at as i32);
                blob.high[axis] = blob.high[axis].max(at as i32 + 1);
            }
            let last = outer.len();
            blob.low[last] = blob.low[last].min(start);
            blob.high[last] = blob.high[last].max(end);
        }
        advance(&mut place, outer);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(labels: &[i32], shape: &[usize], wanted: Wanted<i32>) -> Vec<(Vec<i32>, Vec<i32>)> {
        let found = find(labels, shape, wanted).unwrap();
        found.into_iter().map(|blob| (blob.low.to_vec(), blob.high.to_vec())).collect()
    }

    #[test]
    fn corners_do_not_connect() {
        let labels = [0, 1, 0, 1, 2, 1, 0, 0, 0, 0, 1, 0, 2, 2, 0, 3];
        let found = boxes(&labels, &[4, 4], Wanted::Label(1));
        let expected = [([0, 1], [2, 2]), ([0, 3], [1, 4]), ([2, 2], [3, 3])];
        assert_eq!(found, expected.map(|(low, high)| (low.to_vec(), high.to_vec())));
        assert_eq!(boxes(&labels, &[4, 4], Wanted::AllBut(Some(0))).len(), 6);
        assert_eq!(boxes(&labels, &[4, 4], Wanted::AllBut(None)).len(), 10);
    }

    #[test]
    fn u_shapes_are_one_blob() {
        let labels = [1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1];
        assert_eq!(boxes(&labels, &[3, 5], Wanted::Label(1)), [(vec![0, 0], vec![3, 5])]);
    }

    /// Reference: blobs found by flood fill from each pixel.
    fn flooded(labels: &[i32], shape: &[usize]) -> Vec<(Vec<i32>, Vec<i32>)> {
        let place = |mut index: usize| {
            let mut place = vec![0; shape.len()];
            for (axis, &side) in shape.iter().enumerate().rev() {
                place[axis] = index % side;
                index /= side;
            }
            place
        };
        let index = |place: &[usize]| place.iter().zip(shape).fold(0, |i, (&p, &n)| i * n + p);
        let mut seen = vec![false; labels.len()];
        let mut found = vec![];
        for first in 0..labels.len() {
            if labels[first] == 0 || seen[first] {
                continue;
            }
            let (mut low, mut high) = (place(first), place(first));
            let mut stack = vec![first];
            seen[first] = true;
            while let Some(at) = stack.pop() {
                let own = place(at);
                for axis in 0..shape.len() {
                    low[axis] = low[axis].min(own[axis]);
                    high[axis] = high[axis].max(own[axis]);
                    for step in [-1_isize, 1] {
                        let mut next = own.clone();
                        let moved = own[axis] as isize + step;
                        if !(0..shape[axis] as isize).contains(&moved) {
                            continue;
                        }
                        next[axis] = moved as usize;
                        let next = index(&next);
                        if labels[next] == labels[first] && !seen[next] {
                            seen[next] = true;
                            stack.push(next);
                        }
                    }
                }
            }
            let ints =
                |place: &[usize], more: i32| place.iter().map(|&p| p as i32 + more).collect();
            found.push((ints(&low, 0), ints(&high, 1)));
        }
        found
    }

    #[test]
    fn blobs_match_flood_fill() {
        let mut state = 1_u32;
        let mut random = move |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % bound
        };
        for shape in [&[7, 90][..], &[90, 7], &[1, 70], &[70, 1], &[6, 5, 40], &[3, 4, 5, 6], &[50]]
        {
            for labels in [2, 3, 5] {
                let count = shape.iter().product();
                let mask: Vec<i32> = (0..count).map(|_| random(labels) as i32).collect();
                let found = boxes(&mask, shape, Wanted::AllBut(Some(0)));
                assert_eq!(found, flooded(&mask, shape), "{shape:?}, {labels} labels");
            }
        }
    }

    #[test]
    fn empty_masks_have_no_blobs() {
        assert_eq!(boxes(&[], &[0, 5], Wanted::Label(1)), []);
        assert_eq!(boxes(&[0; 4], &[2, 2], Wanted::Label(1)), []);
        assert_eq!(boxes(&[1], &[], Wanted::Label(1)), []);
    }
}
