//! Where a sound is not silent.

use smallvec::smallvec;

use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::generic::cast::Number;
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args};
use crate::value::{DType, Desc, Sample, with_room, zeroed};

pub struct NonsilentRegion;

args! {
    pub struct NonsilentArgs {
        cutoff_db: f64,
        reference_power: Option<f64>,
        window_length: i64,
    }
}

pub struct Plan {
    /// The part of the reference that isn't silent.
    share: f64,
    reference: Option<f64>,
    window: usize,
}

impl Kernel for NonsilentRegion {
    type Args = NonsilentArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: NonsilentArgs, _: &[&Desc]) -> Result<(Plan, Outputs)> {
        if args.cutoff_db.is_nan() {
            let problem = Argument::NotFinite { given: args.cutoff_db };
            return Err(argument("cutoff_db", problem));
        }
        if let Some(given) = args.reference_power.filter(|power| power.is_nan() || *power <= 0.0) {
            return Err(argument("reference_power", Argument::NotPositive { given }));
        }
        let window = usize::try_from(args.window_length).ok().filter(|&n| n > 0);
        let window = window.ok_or_else(|| {
            let given = args.window_length as f64;
            argument("window_length", Argument::AtLeast { least: 1.0, given })
        })?;
        let share = 10_f64.powf(args.cutoff_db / 10.0);
        let plan = Plan { share, reference: args.reference_power, window };
        let scalar = Desc::new(DType::I32, &[]);
        Ok((plan, smallvec![scalar.clone(), scalar]))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (begin, end) = plan.region(&inputs[0])?;
        let shown = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        outputs[0].elements::<i32>()[0] = shown(begin);
        outputs[1].elements::<i32>()[0] = shown(end - begin);
        Ok(())
    }
}

impl Plan {
    /// Start and end of what isn't silent.
    fn region(&self, sample: &Sample) -> Result<(usize, usize)> {
        let count = sample.desc.elements();
        // A window that is longer than the signal covers all that there is.
        let mut energy = Energy::new(sample, self.window.min(count))?;
        let mut chunks = with_room(count.div_ceil(energy.chunk))?;
        let mut loudest = 0.0_f64;
        for start in (0..count).step_by(energy.chunk) {
            let before = energy.total;
            let sums = energy.advance(start);
            let most = largest(sums);
            loudest = loudest.max(most);
            chunks.push(Chunk { start, before, most });
        }
        let reference = match self.reference {
            Some(power) => power * self.window as f64,
            None if loudest == 0.0 => return Ok((0, count)),
            None => loudest,
        };
        let threshold = reference * self.share;
        let is_loud = |chunk: &Chunk| chunk.most >= threshold;
        let (Some(first), Some(last)) =
            (chunks.iter().position(is_loud), chunks.iter().rposition(is_loud))
        else {
            return Ok((0, 0));
        };
        let (start, sums) = energy.again(&chunks, first);
        let found = sums.iter().position(|&sum| sum >= threshold).unwrap_or(0);
        let begin = (start + found).saturating_sub(self.window - 1);
        let (start, sums) = energy.again(&chunks, last);
        let found = sums.iter().rposition(|&sum| sum >= threshold).unwrap_or(0);
        Ok((begin, start + found + 1))
    }
}

/// A part of the signal, whose sums can be computed once more.
struct Chunk {
    start: usize,
    /// The energy of all before it.
    before: f64,
    /// The largest sum of a window that ends in it.
    most: f64,
}

/// The energy of the windows that end at each sample, as differences of running totals: these are
/// exactly zero for silence, whatever was before.
struct Energy<'a> {
    sample: &'a Sample,
    window: usize,
    /// Samples that are processed at once: at least a window.
    chunk: usize,
    total: f64,
    /// The totals up to each sample: those of a window, then those of a chunk.
    totals: Vec<f64>,
    sums: Vec<f64>,
}

/// Samples that are added up beside each other.
const LANES: usize = 8;
/// Samples that are converted at once.
const PIECE: usize = 512;

impl Energy<'_> {
    fn new(sample: &Sample, window: usize) -> Result<Energy<'_>> {
        let chunk = window.max(4096).next_multiple_of(LANES);
        let chunk = chunk.min(sample.desc.elements().max(1).next_multiple_of(LANES));
        let (totals, sums) = (zeroed(window + chunk)?, zeroed(chunk)?);
        Ok(Energy { sample, window, chunk, total: 0.0, totals, sums })
    }

    /// The energies of the windows that end in the next chunk.
    fn advance(&mut self, start: usize) -> &[f64] {
        let Energy { sample, window, chunk, total, totals, sums } = self;
        totals.copy_within(*chunk.., 0);
        let count = (*chunk).min(sample.desc.elements() - start);
        let mut piece = [0.0; PIECE];
        let after = &mut totals[*window..];
        for (at, after) in (0..count).step_by(PIECE).zip(after.chunks_mut(PIECE)) {
            let taken = PIECE.min(count - at);
            f64::convert_row(sample, start + at, &mut piece[..taken]);
            piece[taken..].fill(0.0);
            *total = add_up(&piece, *total, after);
        }
        let totals = &totals[..];
        vectorized!({
            let pairs = totals.iter().zip(&totals[*window..]);
            for (sum, (before, after)) in sums.iter_mut().zip(pairs) {
                *sum = after - before;
            }
        });
        &sums[..count]
    }

    /// The start of a chunk, and its energies; exactly the same as at the first time.
    fn again(&mut self, chunks: &[Chunk], index: usize) -> (usize, &[f64]) {
        let before = index.saturating_sub(1);
        self.total = chunks[before].before;
        self.totals.fill(0.0);
        if before < index {
            self.advance(chunks[before].start);
        }
        let start = chunks[index].start;
        (start, self.advance(start))
    }
}

/// Writes the totals up to each number's square, and returns the last one.
fn add_up(numbers: &[f64; PIECE], mut total: f64, totals: &mut [f64]) -> f64 {
    vectorized!({
        let blocks = numbers.as_chunks::<LANES>().0;
        for (block, totals) in blocks.iter().zip(totals.as_chunks_mut::<LANES>().0) {
            let mut s = [0.0; LANES];
            for lane in 0..LANES {
                let square = block[lane] * block[lane];
                s[lane] = if square < f64::INFINITY { square } else { 0.0 };
            }
            // Sums of pairs, of fours, of all, so that few additions wait for others.
            let s = [s[0], s[0] + s[1], s[2], s[2] + s[3], s[4], s[4] + s[5], s[6], s[6] + s[7]];
            let s = [s[0], s[1], s[1] + s[2], s[1] + s[3], s[4], s[5], s[5] + s[6], s[5] + s[7]];
            let sums = [s[0], s[1], s[2], s[3], s[3] + s[4], s[3] + s[5], s[3] + s[6], s[3] + s[7]];
            for lane in 0..LANES {
                totals[lane] = total + sums[lane];
            }
            total = totals[LANES - 1];
        }
        total
    })
}

fn largest(numbers: &[f64]) -> f64 {
    vectorized!({
        let (blocks, rest) = numbers.as_chunks::<LANES>();
        let mut most = [0.0; LANES];
        for block in blocks {
            for lane in 0..LANES {
                most[lane] = if block[lane] > most[lane] { block[lane] } else { most[lane] };
            }
        }
        most.iter().chain(rest).fold(0.0, |a: f64, &b| a.max(b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::OutputBuffer;

    fn region(data: &[f32], window: usize, cutoff_db: f64) -> (usize, usize) {
        let mut made = OutputBuffer::new(Desc::new(DType::F32, &[data.len()])).unwrap();
        made.elements::<f32>().copy_from_slice(data);
        let share = 10_f64.powf(cutoff_db / 10.0);
        let plan = Plan { share, reference: None, window };
        plan.region(&made.into_sample().unwrap()).unwrap()
    }

    #[test]
    fn a_burst_is_found_wherever_it_is() {
        for count in [1_usize, 7, 4096, 4097, 20_000] {
            for window in [1, 8, 100, 5000, 30_000] {
                for start in [0, count / 3, count.saturating_sub(4100), count - 1] {
                    let end = (start + 3).min(count);
                    let mut data = vec![0.0; count];
                    data[start..end].fill(0.5);
                    let expected =
                        (start.saturating_sub(window - 1), (end + window - 1).min(count));
                    assert_eq!(
                        region(&data, window, -60.0),
                        expected,
                        "{count}, {window}, {start}"
                    );
                }
            }
        }
    }

    #[test]
    fn silence_has_no_energy_whatever_was_before() {
        let mut data = vec![0.0; 30_000];
        data[..10_000].fill(1e9 / 3.0);
        assert_eq!(region(&data, 10, -1000.0), (0, 10_009));
    }

    #[test]
    fn what_is_no_number_is_silent() {
        let mut data = vec![0.0; 100];
        assert_eq!(region(&data, 10, -60.0), (0, 100));
        data[50] = 1.0;
        data[10] = f32::NAN;
        data[90] = f32::INFINITY;
        assert_eq!(region(&data, 10, -60.0), (41, 60));
        assert_eq!(region(&[], 10, -60.0), (0, 0));
    }
}
