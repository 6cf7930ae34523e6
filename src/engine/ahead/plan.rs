//! The calls that are expected in each iteration: those that were the same in the last two.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use smallvec::SmallVec;

use super::super::value::Value;
use super::note::{Drawn, Key, Note, Origin, Shape};
use super::reasons::{self, Reason, Why};
use crate::kernels::Position;

/// Where an input of an early call comes from.
#[derive(Clone)]
pub enum Feed {
    Item(usize),
    /// This output of an earlier entry of the plan.
    Result(usize, usize),
    /// A constant, or a value from before the iteration.
    Value(Arc<Value>),
}

pub struct Entry {
    pub key: Key,
    pub shape: Arc<Shape>,
    pub feeds: SmallVec<[Feed; 2]>,
    /// The draws of the last iteration, and by how many words RNGs advance in each.
    pub draws: SmallVec<[(Drawn, u128); 1]>,
    /// Whether only other entries have read the results. Then nothing is kept for the user: samples
    /// are freed as they are consumed, and computed again in case the user reads them after all.
    pub internal: bool,
    /// Whether somebody has read the results.
    pub read: Arc<AtomicBool>,
}

pub struct Plan {
    pub entries: Vec<Entry>,
    pub index: Arc<HashMap<Key, usize>>,
    /// Number of samples of each output of the item.
    pub sizes: SmallVec<[usize; 4]>,
}

impl Plan {
    /// The plan after two iterations; `None` if there is nothing to run early.
    pub fn learn(
        before: &[Note],
        notes: &[Note],
        sizes: &[usize],
        is_trusted: impl Fn(&Key) -> bool,
    ) -> Option<Plan> {
        let earlier: HashMap<Key, &Note> = before.iter().map(|note| (note.key, note)).collect();
        let mut entries: Vec<(Entry, bool)> = Vec::new();
        let mut index: HashMap<Key, usize> = HashMap::default();
        for note in notes {
            let Some(&before) = earlier.get(&note.key) else { continue };
            match entry(before, note, &index) {
                Ok(entry) if is_trusted(&note.key) => {
                    index.insert(note.key, entries.len());
                    entries.push((entry, note.worthwhile));
                }
                Err(Some(why)) => {
                    let Key { operator, site, .. } = note.key;
                    reasons::note(Reason { operator, site, why });
                }
                Ok(_) | Err(None) => {}
            }
        }
        let entries = without_small(entries);
        if entries.is_empty() {
            return None;
        }
        let index = entries.iter().enumerate().map(|(place, entry)| (entry.key, place)).collect();
        let mut plan = Plan { entries, index: Arc::new(index), sizes: sizes.into() };
        plan.find_internal(&earlier, notes);
        Some(plan)
    }

    /// Results that only other entries read, as far as the iterations have shown.
    fn find_internal(&mut self, earlier: &HashMap<Key, &Note>, notes: &[Note]) {
        let others = notes.iter().filter(|note| !self.index.contains_key(&note.key));
        let used_otherwise: HashSet<Key> = others
            .flat_map(|note| &note.shape.inputs)
            .filter_map(|(origin, _)| match origin {
                Origin::Result(key, _) => Some(*key),
                _ => None,
            })
            .collect();
        let mut consumed = vec![false; self.entries.len()];
        let feeds = self.entries.iter().flat_map(|entry| &entry.feeds);
        for feed in feeds {
            if let Feed::Result(entry, _) = feed {
                consumed[*entry] = true;
            }
        }
        for (entry, consumed) in self.entries.iter_mut().zip(consumed) {
            // Those of the iteration before: the last one's may be in variables that are about to
            // be assigned again.
            let before = earlier.get(&entry.key);
            let is_held = before.is_none_or(|note| {
                note.read.load(Ordering::Relaxed)
                    || note.results.iter().any(|value| value.upgrade().is_some_and(|v| v.is_held()))
            });
            entry.internal = consumed
                && !is_held
                && !used_otherwise.contains(&entry.key)
                && !entry.read.load(Ordering::Relaxed);
        }
    }

    /// Whether an iteration had all planned calls, as they were planned. They may be at other sites:
    /// the loop may be in a function that is called from several places. Then they are expected
    /// there from now on.
    pub fn is_confirmed_by(&mut self, notes: &[Note]) -> bool {
        let mut places: HashMap<Key, Key> = HashMap::default();
        let mut found: Vec<&Note> = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let is_it = |note: &&Note| {
                note.key.operator == entry.key.operator
                    && !found.iter().any(|other| other.key == note.key)
                    && entry
                        .shape
                        .differs_but_for_keys(&note.shape, |own, its| places.get(own) == Some(its))
                        .is_none()
                    && { entry.draws.iter().zip(&note.draws) }
                        .all(|(before, now)| words_between(&before.0, now).is_some())
            };
            let mut here = notes.iter().filter(|note| note.key == entry.key);
            let Some(note) = here.find(is_it).or_else(|| notes.iter().find(is_it)) else {
                return false;
            };
            places.insert(entry.key, note.key);
            found.push(note);
        }
        if places.iter().all(|(own, its)| own == its) {
            return true;
        }
        for (entry, note) in self.entries.iter_mut().zip(found) {
            (entry.key, entry.shape) = (note.key, note.shape.clone());
        }
        let index = self.entries.iter().enumerate().map(|(place, entry)| (entry.key, place));
        self.index = Arc::new(index.collect());
        true
    }

    /// Takes over the draws of an iteration in which all calls were as planned.
    pub fn advance(&mut self, notes: &[Note]) {
        for note in notes {
            if let Some(&place) = self.index.get(&note.key) {
                let draws = self.entries[place].draws.iter_mut();
                draws.zip(&note.draws).for_each(|(draw, now)| draw.0 = now.clone());
            }
        }
        for entry in &mut self.entries {
            entry.internal &= !entry.read.load(Ordering::Relaxed);
        }
    }
}

/// The entry for a call, or why there is none; `None` if only because of another call.
fn entry(before: &Note, note: &Note, index: &HashMap<Key, usize>) -> Result<Entry, Option<Why>> {
    let shape = &note.shape;
    if !Arc::ptr_eq(shape, &before.shape)
        && let Some(why) = before.shape.differs_from(shape)
    {
        return Err(match why {
            Why::Input(input) if follows_from_result(note, input) => None,
            why => Some(why),
        });
    }
    let feed = |(position, (origin, _)): (usize, &(Origin, _))| match origin {
        Origin::Item(output) => Ok(Feed::Item(*output)),
        Origin::Result(key, output) => {
            index.get(key).map(|&entry| Feed::Result(entry, *output)).ok_or(None)
        }
        Origin::Constant(handle) => Ok(Feed::Value(handle.value().clone())),
        Origin::Other(value) => value.upgrade().map(Feed::Value).ok_or(Some(Why::Input(position))),
    };
    let feeds = shape.inputs.iter().enumerate().map(feed).collect::<Result<_, _>>()?;
    let stride = |(place, (a, b)): (usize, (&Drawn, &Drawn))| {
        words_between(a, b).map(|words| (b.clone(), words)).ok_or(Some(Why::Draw(place)))
    };
    let draws = before.draws.iter().zip(&note.draws).enumerate().map(stride);
    Ok(Entry {
        key: note.key,
        shape: shape.clone(),
        feeds,
        draws: draws.collect::<Result<_, _>>()?,
        internal: false,
        read: note.read.clone(),
    })
}

fn follows_from_result(note: &Note, input: usize) -> bool {
    matches!(note.shape.inputs.get(input), Some((Origin::Result(..), _)))
}

/// By how many words an RNG has advanced; `None` if it was seeded, or set back.
fn words_between(from: &Drawn, to: &Drawn) -> Option<u128> {
    let (from, to) = match (from, to) {
        (Drawn::At(from), Drawn::At(to)) => (from, to),
        (
            Drawn::OfItem { output: a, seed: from, place: before },
            Drawn::OfItem { output: b, seed: to, place: now },
        ) if (a, from, before) == (b, to, now) => return Some(0),
        _ => return None,
    };
    let block =
        |position: &Position| u128::from(position.sequence) << 64 | u128::from(position.offset);
    let blocks = block(to).wrapping_sub(block(from));
    (from.seed == to.seed && blocks < 1 << 64).then_some(())?;
    (4 * blocks + u128::from(to.phase)).checked_sub(u128::from(from.phase))
}

/// Without calls that are as quickly run when they are made, unless other entries need them.
fn without_small(entries: Vec<(Entry, bool)>) -> Vec<Entry> {
    let mut needed: Vec<bool> = entries.iter().map(|(_, worthwhile)| *worthwhile).collect();
    for place in (0..entries.len()).rev() {
        if needed[place] {
            for feed in &entries[place].0.feeds {
                if let Feed::Result(entry, _) = feed {
                    needed[*entry] = true;
                }
            }
        }
    }
    let mut places = vec![0; entries.len()];
    let mut kept = Vec::new();
    for (place, (mut entry, _)) in entries.into_iter().enumerate() {
        places[place] = kept.len();
        if needed[place] {
            for feed in &mut entry.feeds {
                if let Feed::Result(entry, _) = feed {
                    *entry = places[*entry];
                }
            }
            kept.push(entry);
        }
    }
    kept
}
