//! Blocks of large objects: a record is a part of one, so that nobody asks a server for each.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Object;
use super::disk::Name;
use crate::readers::source::Result;
use crate::value::{Cause, Problem, zeroed};

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

enum Slot {
    /// The process and the thread that it is on its way to.
    Coming(u32, Arc<Arrival>),
    Here {
        block: Arc<Block>,
        used: u64,
    },
}

/// Where others wait for a block.
#[derive(Default)]
struct Arrival {
    result: Mutex<Option<std::result::Result<Arc<Block>, Broken>>>,
    arrived: Condvar,
}

/// A fault that can be told to all who wait.
#[derive(Clone)]
enum Broken {
    File(Problem),
    System(Problem),
    Memory(usize),
    Other(String),
}

impl From<Cause> for Broken {
    fn from(cause: Cause) -> Broken {
        match cause {
            Cause::File { problem } => Broken::File(problem),
            Cause::System { problem } => Broken::System(problem),
            Cause::Memory { bytes } => Broken::Memory(bytes),
            other => Broken::Other(format!("{other:?}")),
        }
    }
}

impl From<Broken> for Cause {
    fn from(broken: Broken) -> Cause {
        match broken {
            Broken::File(problem) => Cause::File { problem },
            Broken::System(problem) => Cause::System { problem },
            Broken::Memory(bytes) => Cause::Memory { bytes },
            Broken::Other(text) => Cause::Internal(text),
        }
    }
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

    fn is_open(&self) -> bool {
        matches!(self, Block::Cached(..))
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn block(&self, object: &Object, number: u64) -> Result<Arc<Block>> {
        let name = Name::new(object.url.as_bytes(), object.version(), Some(number));
        let key = (name.hash(), number);
        let here = std::process::id();
        let arrival = {
            let mut state = lock(&self.state);
            state.clock += 1;
            let now = state.clock;
            match state.known.get_mut(&key) {
                Some(Slot::Here { block, used }) => {
                    *used = now;
                    return Ok(block.clone());
                }
                // In a forked child, the parent's threads don't bring it.
                Some(Slot::Coming(process, arrival)) if *process == here => {
                    let arrival = arrival.clone();
                    drop(state);
                    return arrival.wait();
                }
                _ => {
                    let arrival = Arc::new(Arrival::default());
                    state.known.insert(key, Slot::Coming(here, arrival.clone()));
                    arrival
                }
            }
        };
        /// Whatever happens here, nobody waits forever.
        struct Duty<'a>(&'a Blocks, Key, &'a Arrival);
        impl Drop for Duty<'_> {
            fn drop(&mut self) {
                if lock(&self.2.result).is_none() {
                    lock(&self.0.state).known.remove(&self.1);
                    self.2.tell(Err(Broken::Other("a block was not read".into())));
                }
            }
        }
        let _duty = Duty(self, key, &arrival);
        let loaded = load(object, &name, number).map(Arc::new);
        match &loaded {
            Ok(block) => self.keep(key, block.clone()),
            Err(_) => drop(lock(&self.state).known.remove(&key)),
        }
        let told = loaded.map_err(Broken::from);
        arrival.tell(told.clone());
        told.map_err(Cause::from)
    }

    fn keep(&self, key: Key, block: Arc<Block>) {
        let mut state = lock(&self.state);
        state.bytes += block.bytes();
        state.opened += usize::from(block.is_open());
        state.clock += 1;
        let used = state.clock;
        state.known.insert(key, Slot::Here { block, used });
        // At least the last one is kept.
        while state.bytes > self.limit || state.opened > OPEN_BLOCKS {
            let oldest = state.known.iter().filter_map(|(other, slot)| match slot {
                Slot::Here { used, .. } if *other != key => Some((*used, *other)),
                _ => None,
            });
            let Some((_, oldest)) = oldest.min() else { break };
            if let Some(Slot::Here { block, .. }) = state.known.remove(&oldest) {
                state.bytes -= block.bytes();
                state.opened -= usize::from(block.is_open());
            }
        }
    }
}

impl Arrival {
    fn tell(&self, result: std::result::Result<Arc<Block>, Broken>) {
        *lock(&self.result) = Some(result);
        self.arrived.notify_all();
    }

    fn wait(&self) -> Result<Arc<Block>> {
        let mut result = lock(&self.result);
        loop {
            if let Some(result) = &*result {
                return result.clone().map_err(Cause::from);
            }
            result = self.arrived.wait(result).unwrap_or_else(PoisonError::into_inner);
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
