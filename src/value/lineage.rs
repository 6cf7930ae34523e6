//! Which samples of a data set a value was made from.

use std::sync::Arc;

use smallvec::SmallVec;

/// Samples that a reader gave together.
#[derive(Debug)]
pub struct Given {
    /// Their numbers in the data set.
    numbers: Box<[u64]>,
    /// The epoch of each, or of all of them.
    epochs: SmallVec<[u64; 1]>,
}

impl Given {
    /// `None` unless there is one epoch, or one for each sample.
    pub fn new(numbers: Box<[u64]>, epochs: SmallVec<[u64; 1]>) -> Option<Given> {
        let fits = epochs.len() == 1 || epochs.len() == numbers.len();
        fits.then_some(Given { numbers, epochs })
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Epoch and number of a sample.
    fn get(&self, index: usize) -> (u64, u64) {
        let epoch = if let [epoch] = self.epochs[..] { epoch } else { self.epochs[index] };
        (epoch, self.numbers[index])
    }
}

/// For each sample of a value, the sample of a data set that it was made from.
#[derive(Clone, Debug)]
pub enum Lineage {
    /// All that a reader gave together, in that order.
    Whole(Arc<Given>),
    /// Some of these, in any order.
    Parts(Arc<[(Arc<Given>, usize)]>),
}

impl Lineage {
    pub fn len(&self) -> usize {
        match self {
            Lineage::Whole(given) => given.len(),
            Lineage::Parts(parts) => parts.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Epoch and number of a sample.
    pub fn get(&self, index: usize) -> (u64, u64) {
        match self {
            Lineage::Whole(given) => given.get(index),
            Lineage::Parts(parts) => parts[index].0.get(parts[index].1),
        }
    }

    /// Where a sample comes from: what it was given with, and its index there.
    pub fn part(&self, index: usize) -> (Arc<Given>, usize) {
        match self {
            Lineage::Whole(given) => (given.clone(), index),
            Lineage::Parts(parts) => parts[index].clone(),
        }
    }

    /// The lineage of some of the samples.
    pub fn picked(&self, indices: &[usize]) -> Lineage {
        if indices.len() == self.len() && indices.iter().enumerate().all(|(i, &index)| i == index) {
            return self.clone();
        }
        Lineage::Parts(indices.iter().map(|&index| self.part(index)).collect())
    }

    /// The lineage of single samples that are put together; `None` if one has none.
    pub fn joined<'a>(rows: impl Iterator<Item = Option<&'a Lineage>>) -> Option<Lineage> {
        let parts = rows.map(|row| row.filter(|row| row.len() == 1).map(|row| row.part(0)));
        parts.collect::<Option<Arc<_>>>().map(Lineage::Parts)
    }

    /// Whether it is of the same samples, given at the same time.
    pub fn is_same(&self, other: &Lineage) -> bool {
        let same = |a: &Arc<Given>, b: &Arc<Given>| Arc::ptr_eq(a, b);
        match (self, other) {
            (Lineage::Whole(a), Lineage::Whole(b)) => same(a, b),
            (Lineage::Parts(a), Lineage::Parts(b)) => {
                a.len() == b.len()
                    && a.iter().zip(&b[..]).all(|(a, b)| same(&a.0, &b.0) && a.1 == b.1)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    #[test]
    fn picked_samples_keep_their_numbers() {
        let given = Given::new([7, 3, 9].into(), smallvec![2]).unwrap();
        let whole = Lineage::Whole(Arc::new(given));
        let picked = whole.picked(&[2, 0, 0]);
        assert_eq!((picked.len(), picked.get(0), picked.get(2)), (3, (2, 9), (2, 7)));
        assert!(whole.picked(&[0, 1, 2]).is_same(&whole));
        assert!(!picked.is_same(&whole) && picked.is_same(&whole.picked(&[2, 0, 0])));
        let (first, last) = (picked.picked(&[0]), picked.picked(&[2]));
        assert_eq!(
            Lineage::joined([Some(&last), Some(&first)].into_iter()).unwrap().get(1),
            (2, 9)
        );
        assert!(Lineage::joined([Some(&last), None].into_iter()).is_none());
    }

    #[test]
    fn epochs_are_common_or_one_for_each() {
        let each = Given::new([7, 3].into(), smallvec![1, 2]).unwrap();
        assert_eq!((each.get(0), each.get(1)), ((1, 7), (2, 3)));
        assert!(Given::new([7, 3, 4].into(), smallvec![1, 2]).is_none());
    }
}
