//! What a call draws random numbers from.

use std::sync::Arc;

use super::philox::{Position, Stream};
use crate::value::Lineage;

/// What a call draws from.
#[derive(Clone, Debug, PartialEq)]
pub enum Draw {
    /// A position in the sequence of an RNG.
    At(Position),
    /// Streams of the samples themselves. Shared, since it is copied with the call.
    BySample(Arc<SampleDraw>),
}

/// Draws that depend on which samples of a data set a call is for, not on their batch.
#[derive(Debug)]
pub struct SampleDraw {
    pub seed: u64,
    pub places: Places,
    pub lineage: Lineage,
}

/// How many draws there were before, for each sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// As many for all samples.
    Same(u32),
    Each(Box<[u32]>),
}

impl Places {
    pub fn get(&self, index: usize) -> u32 {
        match self {
            Places::Same(place) => *place,
            Places::Each(places) => places[index],
        }
    }
}

impl PartialEq for SampleDraw {
    fn eq(&self, other: &SampleDraw) -> bool {
        self.seed == other.seed
            && self.places == other.places
            && self.lineage.is_same(&other.lineage)
    }
}

impl Draw {
    /// The random stream of one sample.
    pub fn stream(&self, sample: usize) -> Stream {
        match self {
            Draw::At(position) => position.stream(sample),
            Draw::BySample(draw) => {
                let (epoch, number) = draw.lineage.get(sample);
                Stream::by_sample(draw.seed, epoch, number, draw.places.get(sample))
            }
        }
    }

    /// The random stream of a call that draws once for all samples; `None` if each sample has its
    /// own.
    pub fn of_batch(&self) -> Option<Stream> {
        match self {
            Draw::At(position) => Some(position.stream(0)),
            Draw::BySample(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::value::Given;

    #[test]
    fn a_sample_draws_the_same_in_any_batch() {
        let draw = |numbers: &[u64], epoch, place, seed| {
            let given = Given::new(numbers.into(), smallvec![epoch]).unwrap();
            let lineage = Lineage::Whole(Arc::new(given));
            Draw::BySample(Arc::new(SampleDraw { seed, places: Places::Same(place), lineage }))
        };
        let words = |draw: &Draw, sample| draw.stream(sample).block(0);
        let usual = words(&draw(&[4, 8, 6], 3, 1, 9), 1);
        assert_eq!(usual, words(&draw(&[8], 3, 1, 9), 0));
        for other in [draw(&[6], 3, 1, 9), draw(&[8], 2, 1, 9), draw(&[8], 3, 0, 9)] {
            assert_ne!(usual, words(&other, 0));
        }
        assert_ne!(usual, words(&draw(&[8], 3, 1, 8), 0));
        assert!(draw(&[8], 3, 1, 9).of_batch().is_none());
    }
}
