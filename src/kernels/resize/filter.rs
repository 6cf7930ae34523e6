//! Filters, and the weights with which input elements contribute to each output element.

use std::cell::{OnceCell, RefCell};
use std::f64::consts::PI;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::OnceLock;

use super::extent::Map;
use crate::kernels::Result;
use crate::kernels::contract::problems::argument;
use crate::kernels::numeric::precision::is_long;
use crate::kernels::resize::problem::Resize;
use crate::value::{Cause, append, filled, with_room};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    Nearest,
    Linear,
    Cubic,
    Lanczos3,
    Triangular,
    Gaussian,
}

impl Filter {
    /// From the value of the API's enumeration.
    pub fn from_code(name: &'static str, code: i64) -> Result<Filter> {
        use Filter::*;
        let known = [Nearest, Linear, Cubic, Lanczos3, Triangular, Gaussian];
        usize::try_from(code)
            .ok()
            .and_then(|code| known.get(code).copied())
            .ok_or_else(|| argument(name, Resize::Interpolation { given: code }))
    }

    /// Radius of the unscaled filter.
    fn radius(self) -> f64 {
        match self {
            Filter::Nearest => 0.5,
            Filter::Linear | Filter::Triangular | Filter::Gaussian => 1.0,
            Filter::Cubic => 2.0,
            Filter::Lanczos3 => 3.0,
        }
    }

    fn at(self, x: f64) -> f64 {
        match self {
            Filter::Nearest => 1.0,
            Filter::Linear | Filter::Triangular => (1.0 - x.abs()).max(0.0),
            Filter::Cubic => sampled(&CUBIC, 2, cubic, x),
            Filter::Lanczos3 => sampled(&LANCZOS3, 3, lanczos3, x),
            Filter::Gaussian => sampled(&GAUSSIAN, 1, |x| (-4.0 * x * x).exp(), x),
        }
    }

    /// The sum of the weights of the elements in `from..to`, around a `centre`. The filter is
    /// piecewise linear, so this sums a few arithmetic series.
    fn sum(self, from: i64, to: i64, centre: f64, stretch: f64) -> f64 {
        let pieces = (self.radius() as i64 + 1) * PER_UNIT as i64;
        let mut sum = 0.0;
        let mut at = from;
        for piece in 1 - pieces..=pieces {
            // End of this piece, and start of the next one.
            let end = centre + piece as f64 * stretch / PER_UNIT as f64;
            let end = if piece == pieces { to } else { (end.ceil() as i64).clamp(at, to) };
            if end > at {
                let [first, last] = [at, end - 1].map(|x| self.at((x as f64 - centre) / stretch));
                sum += (end - at) as f64 * 0.5 * (first + last);
                at = end;
            }
        }
        sum
    }
}

/// Smooth filters are tables of this many values per unit with linear interpolation, as DALI's
/// results show.
const PER_UNIT: usize = 32;

static CUBIC: OnceLock<Vec<f64>> = OnceLock::new();
static LANCZOS3: OnceLock<Vec<f64>> = OnceLock::new();
static GAUSSIAN: OnceLock<Vec<f64>> = OnceLock::new();

/// A symmetric filter, from its table.
fn sampled(table: &OnceLock<Vec<f64>>, radius: usize, filter: fn(f64) -> f64, x: f64) -> f64 {
    let last = radius * PER_UNIT;
    let values = table
        .get_or_init(|| (0..=last).map(|i| filter(i as f64 / PER_UNIT as f64)).collect::<Vec<_>>());
    let place = x.abs() * PER_UNIT as f64;
    let below = place as usize;
    let beyond = place - below as f64;
    match (values.get(below), values.get(below.saturating_add(1))) {
        (Some(a), Some(b)) => a + (b - a) * beyond,
        // Beyond its end, the table is 0.
        (Some(a), None) => a * (1.0 - beyond),
        _ => 0.0,
    }
}

/// Catmull-Rom.
fn cubic(x: f64) -> f64 {
    if x < 1.0 {
        (1.5 * x - 2.5) * x * x + 1.0
    } else if x < 2.0 {
        ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    } else {
        0.0
    }
}

fn lanczos3(x: f64) -> f64 {
    let sinc = |x: f64| (PI * x).sin() / (PI * x);
    match x {
        0.0 => 1.0,
        // The sine of a rounded multiple of pi would not be exactly 0.
        _ if x.fract() == 0.0 || x > 3.0 => 0.0,
        _ => sinc(x) * sinc(x / 3.0),
    }
}

/// The filters of a call: for axes that shrink, and for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters {
    pub shrink: Filter,
    pub enlarge: Filter,
    pub antialias: bool,
}

impl Filters {
    /// The filter for an axis, and the factor by which it is stretched.
    fn of(&self, map: &Map) -> (Filter, f64) {
        let scale = map.step.abs();
        let filter = if scale > 1.0 { self.shrink } else { self.enlarge };
        let stretched = self.antialias && filter != Filter::Nearest;
        (filter, if stretched { scale.max(1.0) } else { 1.0 })
    }
}

/// The input elements of an output element: `len` from `start` on; their weights begin at `at`.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub start: usize,
    pub len: usize,
    at: usize,
}

/// The input elements and weights for each output element along an axis.
pub struct Taps {
    pub spans: Vec<Span>,
    weights: Vec<f32>,
    exact: Vec<f64>,
    plain: OnceCell<Option<Fixed>>,
    signed: OnceCell<Option<Fixed>>,
    /// The lowest input element that is used, and the end of the highest.
    pub reach: (usize, usize),
    pub longest: usize,
    /// Whether every output element is a copy of an input element, so that `spans` are sufficient.
    pub picks: bool,
}

/// Weights in fixed point: the same number for each output element, padded with zeros at either end
/// if its span is shorter.
pub struct Fixed {
    /// Number of weights for each output element.
    pub count: usize,
    /// First input element of each output element.
    pub starts: Vec<usize>,
    /// Each weight twice, since filling a vector with a 32-bit value is free.
    pub weights: Vec<[u16; 2]>,
    /// The average loss from truncating products, in units of the last place, for each output
    /// element: for factors that are multiples of 256, and for any factors.
    pub losses: Vec<[u16; 2]>,
}

impl Fixed {
    /// The first input element of an output element, and the weights from there on.
    #[inline(always)]
    pub fn of(&self, index: usize) -> (usize, &[[u16; 2]]) {
        (self.starts[index], &self.weights[index * self.count..][..self.count])
    }
}

impl Taps {
    pub fn weights(&self, span: &Span) -> &[f32] {
        &self.weights[span.at..span.at + span.len]
    }

    pub fn exact(&self, span: &Span) -> &[f64] {
        &self.exact[span.at..span.at + span.len]
    }

    /// Weights as multiples of 1/65536 that add up to one; `None` if one is negative or a span is long.
    pub fn plain(&self) -> Result<Option<&Fixed>> {
        // With longer spans, truncated products lose too much.
        const LONGEST: usize = 64;
        if let Some(made) = self.plain.get() {
            return Ok(made.as_ref());
        }
        let fit = self.exact.iter().all(|w| (0.0..=1.001).contains(w));
        let made = match fit && self.longest <= LONGEST {
            true => Some(self.quantize(65536.0, 0..=65535)?),
            false => None,
        };
        Ok(self.plain.get_or_init(|| made).as_ref())
    }

    /// Weights as multiples of 1/16384, signed.
    pub fn signed(&self) -> Result<Option<&Fixed>> {
        // With longer spans, the errors of rounded products add up to too much.
        const LONGEST: usize = 128;
        // Keeps sums of bytes within 16 bits.
        const LARGEST: f64 = 1.6;
        if let Some(made) = self.signed.get() {
            return Ok(made.as_ref());
        }
        let size = |span| self.exact(span).iter().map(|w| w.abs()).sum::<f64>();
        let fit = self.spans.iter().all(|span| size(span) <= LARGEST);
        let made = match fit && self.longest <= LONGEST {
            true => Some(self.quantize(16384.0, -32767..=32767)?),
            false => None,
        };
        Ok(self.signed.get_or_init(|| made).as_ref())
    }

    pub fn new(map: &Map, filters: &Filters) -> Result<Taps> {
        let (filter, stretch) = filters.of(map);
        let each = (2.0 * filter.radius() * stretch).ceil() as usize;
        let usual = map.output.saturating_mul(each).min(1 << 16);
        let mut taps = Taps {
            spans: with_room(map.output)?,
            weights: with_room(usual)?,
            exact: with_room(usual)?,
            plain: OnceCell::new(),
            signed: OnceCell::new(),
            reach: (map.input, 0),
            longest: 0,
            picks: true,
        };
        let mut row = Vec::new();
        for i in 0..map.output {
            let start = if filter == Filter::Nearest {
                row.clear();
                row.push(1.0);
                nearest(map, i)
            } else {
                gather(map, i, filter, stretch, &mut row)?
            };
            taps.push(start, &row)?;
        }
        Ok(taps)
    }

    /// Adds an output element; zero weights at both ends are dropped.
    fn push(&mut self, start: usize, row: &[f64]) -> Result<()> {
        let first = row.iter().position(|&w| w != 0.0).unwrap_or(0);
        let last = row.iter().rposition(|&w| w != 0.0).unwrap_or(0);
        let span = Span { start: start + first, len: last - first + 1, at: self.exact.len() };
        append(&mut self.exact, &row[first..=last])?;
        let room = self.weights.try_reserve(span.len);
        room.map_err(|_| Cause::Memory { bytes: self.exact.len() * size_of::<f32>() })?;
        self.weights.extend(row[first..=last].iter().map(|&w| w as f32));
        self.reach.0 = self.reach.0.min(span.start);
        self.reach.1 = self.reach.1.max(span.start + span.len);
        self.longest = self.longest.max(span.len);
        self.picks &= span.len == 1;
        self.spans.push(span);
        Ok(())
    }

    fn quantize(&self, one: f64, range: RangeInclusive<i64>) -> Result<Fixed> {
        let count = self.longest;
        let mut made = Fixed {
            count,
            starts: with_room(self.spans.len())?,
            weights: filled([0; 2], self.spans.len() * count)?,
            losses: with_room(self.spans.len())?,
        };
        for (index, span) in self.spans.iter().enumerate() {
            let start = span.start.min(self.reach.1 - count);
            let (mut sum, mut given) = (0.0, 0);
            let mut losses = [0; 2];
            let weights = &mut made.weights[index * count + span.start - start..];
            for (weight, &w) in weights.iter_mut().zip(self.exact(span)) {
                // The rounding error of a weight is carried to the next. Sums are above -`one`.
                sum += w * one;
                let rounded = (sum + (one + 0.5)) as i64 - one as i64;
                let fixed = (rounded - given).clamp(*range.start(), *range.end());
                given += fixed;
                *weight = [fixed as u16; 2];
                let zeros = (fixed as u32 | 1 << 16).trailing_zeros();
                // In units of 2^-17: half of the maximum that truncation can lose.
                for (loss, bits) in losses.iter_mut().zip([8_u32, 16]) {
                    *loss += (1 << 16) - (1_u32 << 16 >> bits.saturating_sub(zeros));
                }
            }
            made.starts.push(start);
            made.losses.push(losses.map(|loss| ((loss + (1 << 16)) >> 17) as u16));
        }
        Ok(made)
    }
}

/// The nearest input element. In single precision, like DALI, which decides ties.
fn nearest(map: &Map, i: usize) -> usize {
    if is_long(map.input) || is_long(map.output) {
        let at = map.origin + i as f64 * map.step + 0.5;
        return (at.floor().max(0.0) as usize).min(map.input - 1);
    }
    let step = map.step as f32;
    let at = (map.origin - 0.5 * map.step + 0.5) as f32 + (i as f32 + 0.5) * step;
    (at.floor().max(0.0) as usize).min(map.input - 1)
}

/// Far beyond any extent, but safe to compute with.
const FAR: f64 = (1_i64 << 60) as f64;

/// The weights of an output element, and the first input element they apply to. Edge elements are
/// replicated.
fn gather(map: &Map, i: usize, filter: Filter, stretch: f64, row: &mut Vec<f64>) -> Result<usize> {
    let centre = map.origin + i as f64 * map.step;
    let radius = filter.radius() * stretch;
    // Always the same number of weights, as in DALI: it matters if a filter is not 0 at its end.
    let low = (centre - radius).ceil().clamp(-FAR, FAR) as i64;
    let count = (2.0 * radius).ceil() as i64;
    let last = map.input as i64 - 1;
    let (start, end) = (low.clamp(0, last), (low + count - 1).clamp(0, last));
    let room = (end - start) as usize + 1;
    row.clear();
    row.try_reserve(room).map_err(|_| Cause::Memory { bytes: room * size_of::<f64>() })?;
    row.resize(room, 0.0);
    let mut sum = 0.0;
    let mut add = |x: i64, weight: f64| {
        sum += weight;
        row[(x.clamp(start, end) - start) as usize] += weight;
    };
    let weigh = |x: i64| filter.at((x as f64 - centre) / stretch);
    // Elements beyond the input are all equal: if they are many, their weights are summed at once.
    let (first, past) = (low.max(0).min(low + count), (low + count).min(last + 1).max(low));
    let many = |outside: i64| outside > 8 * map.input as i64 + 64;
    if many(first - low) {
        add(low, filter.sum(low, first, centre, stretch));
    } else {
        (low..first).for_each(|x| add(x, weigh(x)));
    }
    (first..past).for_each(|x| add(x, weigh(x)));
    let rest = past.max(first);
    if many(low + count - rest) {
        add(low + count - 1, filter.sum(rest, low + count, centre, stretch));
    } else {
        (rest..low + count).for_each(|x| add(x, weigh(x)));
    }
    if sum == 0.0 {
        row.truncate(1);
        row[0] = 1.0;
        return Ok(centre.clamp(0.0, last as f64).round() as usize);
    }
    let scale = 1.0 / sum;
    row.iter_mut().for_each(|w| *w *= scale);
    Ok(start as usize)
}

/// The taps for a map. Each thread caches the last few, since batches repeat the same resize.
pub fn taps(map: &Map, filters: &Filters) -> Result<Rc<Taps>> {
    type Known = Vec<(Map, Filters, Rc<Taps>)>;
    const REMEMBERED: usize = 16;
    const LARGEST_REMEMBERED: usize = 1 << 16;
    thread_local! {
        static KNOWN: RefCell<Known> = const { RefCell::new(Vec::new()) };
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(place) = known.iter().position(|(m, f, _)| m == map && f == filters) {
            known[..=place].rotate_right(1);
            return Ok(known[0].2.clone());
        }
        let made = Rc::new(Taps::new(map, filters)?);
        if made.exact.len() <= LARGEST_REMEMBERED {
            known.truncate(REMEMBERED - 1);
            known.insert(0, (*map, *filters, made.clone()));
        }
        Ok(made)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(input: usize, output: usize) -> Taps {
        let step = input as f64 / output as f64;
        let map = Map { input, output, origin: 0.5 * step - 0.5, step };
        let filters = Filters { shrink: Filter::Linear, enlarge: Filter::Linear, antialias: true };
        Taps::new(&map, &filters).unwrap()
    }

    #[test]
    fn weights_sum_to_one() {
        for (input, output) in [(1, 1), (1, 9), (500, 224), (375, 224), (7, 3), (3, 7), (50, 1)] {
            let taps = linear(input, output);
            for span in &taps.spans {
                assert!(span.start + span.len <= input);
                assert!((taps.exact(span).iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
            for index in 0..output {
                let (start, weights) = taps.plain().unwrap().unwrap().of(index);
                assert!(start + weights.len() <= input);
                let sum: u32 = weights.iter().map(|w| u32::from(w[0])).sum();
                assert!((65535..=65536).contains(&sum));
                let (_, weights) = taps.signed().unwrap().unwrap().of(index);
                assert_eq!(weights.iter().map(|w| w[0] as i16).sum::<i16>(), 16384);
            }
        }
    }

    #[test]
    fn sums_match_the_single_weights() {
        use Filter::*;
        for filter in [Linear, Cubic, Lanczos3, Triangular, Gaussian] {
            for (centre, stretch) in [(0.0, 1.0), (3.3, 17.0), (-999.25, 333.3), (5000.5, 4096.0)] {
                let (middle, reach) = (centre as i64, 3 * stretch as i64 + 4);
                let (low, high) = (middle - reach, middle + reach);
                for (from, to) in [(low, high), (low, middle), (middle + 1, high), (low, low)] {
                    let each = (from..to).map(|x| filter.at((x as f64 - centre) / stretch));
                    let (sum, each) = (filter.sum(from, to, centre, stretch), each.sum::<f64>());
                    assert!((sum - each).abs() < 1e-9 * stretch, "{filter:?} {centre} {from} {to}");
                }
            }
        }
    }

    #[test]
    fn halving_takes_four_elements() {
        let taps = linear(16, 8);
        assert_eq!(taps.exact(&taps.spans[4]), [0.125, 0.375, 0.375, 0.125]);
        assert_eq!(taps.spans[4].start, 7);
        assert_eq!(taps.exact(&taps.spans[0]), [0.5, 0.375, 0.125]);
    }
}
