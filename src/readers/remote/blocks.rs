//! Blocks of large objects: a record is a part of one, so that nobody asks a server for each.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Object;
use super::disk::Name;
use super::flight::Flight;
use crate::readers::source::Result;
use crate::value::zeroed;

/// A request should take much longer than its latency.
pub const BLOCK: u64 = 8 << 20;

/// How many blocks of the disk's cache are kept open.
const OPEN_BLOCKS: usize = 128;

/// The blocks that were used last.
pub struct Blocks {
    /// How many bytes they may have in memory.
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashMap<Key, Slot>,
    bytes: usize,
    opened: usize,
    clock: u64,
}

/// An object, by a hash of its name and version, and the number of the block.
type Key = (u128, u64);

struct Slot {
    block: Arc<Flight<Arc<Block>>>,
    used: u64,
    /// The memory and the descriptors that it takes, once it is here.
    bytes: usize,
    opened: usize,
    here: bool,
}

/// In memory, or in a file of the cache.
enum Block {
    Memory(Vec<u8>),
    Cached(File),
}

impl Block {
    /// How much memory it takes.
    fn bytes(&self) -> usize {
        match self {
            Block::Memory(bytes) => bytes.len(),
            Block::Cached(..) => 0,
        }
    }

    fn descriptors(&self) -> usize {
        usize::from(matches!(self, Block::Cached(..)))
    }

    fn copy(&self, start: usize, out: &mut [u8]) -> bool {
        match self {
            Block::Memory(bytes) => {
                out.copy_from_slice(&bytes[start..start + out.len()]);
                true
            }
            Block::Cached(file) => file.read_exact_at(out, start as u64).is_ok(),
        }
    }
}

impl Blocks {
    pub fn new(limit: usize) -> Blocks {
        Blocks { limit, state: Mutex::default() }
    }

    /// Fills `out`, which must not go beyond the end of the object.
    pub fn read(&self, object: &Object, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut at = 0;
        while at < out.len() {
            let place = offset + at as u64;
            let (number, start) = (place / BLOCK, (place % BLOCK) as usize);
            let length = (out.len() - at).min(BLOCK as usize - start);
            let piece = &mut out[at..at + length];
            if !self.block(object, number)?.copy(start, piece) {
                // The disk of the cache has failed.
                object.fetch(place, piece)?;
            }
            at += length;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self, object: &Object, number: u64) -> Result<Arc<Block>> {
        let name = Name::new(object.url.as_bytes(), object.version(), Some(number));
        let key = (name.hash(), number);
        let block = {
            let mut state = self.lock();
            state.clock += 1;
            let now = state.clock;
            let new =
                || Slot { block: Arc::default(), used: now, bytes: 0, opened: 0, here: false };
            let slot = state.known.entry(key).or_insert_with(new);
            slot.used = now;
            slot.block.clone()
        };
        let found = block.get(|| {
            let loaded = Arc::new(load(object, &name, number)?);
            self.keep(key, &loaded);
            Ok(loaded)
        });
        if found.is_err() {
            let mut state = self.lock();
            if state.known.get(&key).is_some_and(|slot| !slot.here) {
                state.known.remove(&key);
            }
        }
        found
    }

    /// Counts a block that has arrived, and forgets others.
    fn keep(&self, key: Key, block: &Block) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(slot) = state.known.get_mut(&key).filter(|slot| !slot.here) else { return };
        (slot.bytes, slot.opened, slot.here) = (block.bytes(), block.descriptors(), true);
        state.bytes += slot.bytes;
        state.opened += slot.opened;
        // At least the last one is kept.
        while state.bytes > self.limit || state.opened > OPEN_BLOCKS {
            let others = state.known.iter().filter(|(other, slot)| **other != key && slot.here);
            let Some((_, oldest)) = others.map(|(other, slot)| (slot.used, *other)).min() else {
                break;
            };
            if let Some(slot) = state.known.remove(&oldest) {
                state.bytes -= slot.bytes;
                state.opened -= slot.opened;
            }
        }
    }
}

fn load(object: &Object, name: &Name<'_>, number: u64) -> Result<Block> {
    if let Some(disk) = &object.disk
        && let Some(file) = disk.open_entry(name)
    {
        return Ok(Block::Cached(file));
    }
    let start = number * BLOCK;
    let length = (object.size() - start).min(BLOCK) as usize;
    let mut bytes = zeroed(length)?;
    object.fetch(start, &mut bytes)?;
    if let Some(disk) = &object.disk
        && disk.write(name, &bytes)
        && let Some(file) = disk.open_entry(name)
    {
        return Ok(Block::Cached(file));
    }
    Ok(Block::Memory(bytes))
}
