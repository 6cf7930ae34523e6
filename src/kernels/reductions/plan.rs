//! The order in which a reduction reads memory.

use smallvec::SmallVec;

/// A contiguous array as blocks of rows and columns: the rows of a block are reduced, its columns
/// are results. The remaining axes are looped over.
pub struct Plan {
    /// Outermost first.
    outer: SmallVec<[Axis; 4]>,
    pub rows: usize,
    pub columns: usize,
    kept: usize,
    count: usize,
}

#[derive(Clone, Copy)]
struct Axis {
    extent: usize,
    reduced: bool,
    /// Elements of the array, and results, per step.
    stride: usize,
    results: usize,
}

impl Plan {
    pub fn new(shape: &[usize], reduced: &[bool]) -> Plan {
        // Adjacent axes that are both reduced, or both kept, are merged.
        let mut axes: SmallVec<[(usize, bool); 4]> = SmallVec::new();
        for (&extent, &reduced) in shape.iter().zip(reduced).filter(|&(&extent, _)| extent != 1) {
            match axes.last_mut() {
                Some((inner, same)) if *same == reduced => *inner *= extent,
                _ => axes.push((extent, reduced)),
            }
        }
        let product =
            |which| axes.iter().filter(|axis| axis.1 == which).map(|axis| axis.0).product();
        let (kept, count) = (product(false), product(true));
        let mut innermost = |reduced| match axes.last() {
            Some(&(extent, same)) if same == reduced => {
                axes.pop();
                extent
            }
            _ => 1,
        };
        let columns = innermost(false);
        let rows = innermost(true);
        let (mut stride, mut results) = (rows * columns, columns);
        let mut outer: SmallVec<[Axis; 4]> = SmallVec::new();
        for &(extent, reduced) in axes.iter().rev() {
            outer.push(Axis { extent, reduced, stride, results });
            stride *= extent;
            results *= if reduced { 1 } else { extent };
        }
        outer.reverse();
        Plan { outer, rows, columns, kept, count }
    }

    /// Number of results.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Number of elements per result.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.kept == 0 || self.count == 0
    }

    /// Whether the array is a sequence of blocks, each with its own results.
    pub fn is_flat(&self) -> bool {
        matches!(self.outer[..], [] | [Axis { reduced: false, .. }])
    }

    /// Calls `visit` with the first element and the first result of every block.
    pub fn for_each(&self, mut visit: impl FnMut(usize, usize)) {
        if !self.is_empty() {
            walk(&self.outer, 0, 0, &mut visit);
        }
    }
}

fn walk(outer: &[Axis], start: usize, at: usize, visit: &mut impl FnMut(usize, usize)) {
    let Some((axis, inner)) = outer.split_first() else {
        return visit(start, at);
    };
    let step = if axis.reduced { 0 } else { axis.results };
    for index in 0..axis.extent {
        walk(inner, start + index * axis.stride, at + index * step, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(shape: &[usize], axes: &[usize]) -> (usize, usize, Vec<(usize, usize)>) {
        let reduced: Vec<bool> = (0..shape.len()).map(|axis| axes.contains(&axis)).collect();
        let plan = Plan::new(shape, &reduced);
        let mut seen = Vec::new();
        plan.for_each(|start, at| seen.push((start, at)));
        (plan.rows, plan.columns, seen)
    }

    #[test]
    fn adjacent_axes_are_merged() {
        assert_eq!(blocks(&[4, 5, 3], &[0, 1]), (20, 3, vec![(0, 0)]));
        assert_eq!(blocks(&[4, 5, 3], &[0, 1, 2]), (60, 1, vec![(0, 0)]));
        assert_eq!(blocks(&[4, 5, 3], &[]), (1, 60, vec![(0, 0)]));
        assert_eq!(blocks(&[2, 5, 3], &[1, 2]), (15, 1, vec![(0, 0), (15, 1)]));
        assert_eq!(blocks(&[2, 1, 3], &[1]), (1, 6, vec![(0, 0)]));
        assert_eq!(blocks(&[], &[]), (1, 1, vec![(0, 0)]));
    }

    #[test]
    fn outer_reduced_axes_return_to_the_same_results() {
        assert_eq!(blocks(&[2, 2, 3], &[0, 2]), (3, 1, vec![(0, 0), (3, 1), (6, 0), (9, 1)]));
    }

    #[test]
    fn an_empty_array_has_no_blocks() {
        assert_eq!(blocks(&[0, 3], &[0]).2, []);
        assert_eq!(blocks(&[0, 3], &[1]).2, []);
        assert_eq!(Plan::new(&[0, 3], &[true, false]).kept(), 3);
    }
}
