//! Counts of what was predicted, and why calls were not.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::value::lock;

/// Calls that were submitted early.
pub(super) static PREDICTED: AtomicU64 = AtomicU64::new(0);
/// Those of them that the user made.
pub(super) static USED: AtomicU64 = AtomicU64::new(0);
/// Those that the user did not make.
pub(super) static DROPPED: AtomicU64 = AtomicU64::new(0);

static REASONS: Mutex<Option<HashMap<Reason, u64>>> = Mutex::new(None);

/// Programs that create code as they run have any number of call sites.
const MAX_REASONS: usize = 256;

/// Why a call could not be predicted.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason {
    /// Number of the operator.
    pub operator: usize,
    pub site: u32,
    pub why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// The argument has another value in each iteration.
    Argument(usize),
    /// The input is a value that was not made by calls on the loop's item.
    Input(usize),
    /// The RNG of the argument does not advance evenly.
    Draw(usize),
    /// Type, layout, device, context or size of the results differ.
    Results,
}

pub(super) fn count(counter: &AtomicU64, calls: usize) {
    counter.fetch_add(calls as u64, Ordering::Relaxed);
}

pub(super) fn note(reason: Reason) {
    let mut reasons = lock(&REASONS);
    let reasons = reasons.get_or_insert_default();
    if reasons.len() < MAX_REASONS || reasons.contains_key(&reason) {
        *reasons.entry(reason).or_default() += 1;
    }
}

/// Calls predicted, used and dropped, and how often each reason has occurred.
pub fn stats() -> ([u64; 3], Vec<(Reason, u64)>) {
    let counts = [&PREDICTED, &USED, &DROPPED].map(|count| count.load(Ordering::Relaxed));
    let reasons = lock(&REASONS);
    let reasons = reasons.iter().flatten().map(|(reason, times)| (*reason, *times)).collect();
    (counts, reasons)
}
