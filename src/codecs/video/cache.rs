//! What is kept of files that were opened: their indexes, and decoders where they stopped.

use std::collections::{HashMap, VecDeque};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::ffmpeg::Choice;
use super::index::Index;
use super::session::Session;
use super::sound::SoundIndex;

/// Memory for indexes, in bytes: those of 10^5 short videos.
const INDEX_BYTES: usize = 512 << 20;
/// Sessions that are kept, and an estimate of the memory that they may have.
const SESSIONS: usize = 32;
const SESSION_BYTES: usize = 256 << 20;
/// Frames that a decoder keeps, for the estimate.
const FRAMES_OF_DECODER: usize = 8;

/// What a file is recognized by: device, inode, size and time, or a hash of its bytes; and which of
/// its streams is meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity([u64; 5], u64);

impl Identity {
    pub fn of_file(found: &Metadata) -> Identity {
        let (seconds, nanoseconds) = (found.mtime() as u64, found.mtime_nsec() as u64);
        Identity([found.dev(), found.ino(), found.len(), seconds, nanoseconds], 0)
    }

    /// The same file, with another stream of it.
    pub fn of_stream(self, choice: Choice) -> Identity {
        let stream = match choice {
            Choice::Video => 0,
            Choice::Numbered(number) => number as u64 + 1,
            Choice::Sound => u64::MAX,
        };
        Identity(self.0, stream)
    }

    /// A hash of all bytes, not only of some: a wrong index would give wrong frames.
    pub fn of_bytes(bytes: &[u8]) -> Identity {
        let mix = |sum: u64, word: u64| {
            let product = u128::from(sum ^ word) * 0x9E37_79B9_7F4A_7C15_u128;
            (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(32)
        };
        // Four at a time, which don't wait for each other.
        let mut sums = [1, 2, 3, 4];
        let (blocks, rest) = bytes.as_chunks::<32>();
        let mut last = [0; 32];
        last[..rest.len()].copy_from_slice(rest);
        for block in blocks.iter().chain([&last]) {
            for (sum, &word) in sums.iter_mut().zip(block.as_chunks::<8>().0) {
                *sum = mix(*sum, u64::from_le_bytes(word));
            }
        }
        let [a, b, c, d] = sums;
        Identity([bytes.len() as u64, a, b, c, d], 0)
    }
}

/// What is known of a stream.
#[derive(Clone)]
pub enum Known {
    Frames(Arc<Index>),
    Sound(Arc<SoundIndex>),
}

impl Known {
    fn bytes(&self) -> usize {
        match self {
            Known::Frames(index) => index.bytes(),
            Known::Sound(index) => index.bytes(),
        }
    }
}

#[derive(Default)]
struct Kept {
    indexes: HashMap<Identity, (Known, u64)>,
    index_bytes: usize,
    /// Counts uses, to find what was not used for longest.
    clock: u64,
    /// The most recent one last.
    sessions: VecDeque<(Identity, Session, usize)>,
    session_bytes: usize,
}

/// The cache of a process. A forked child gets a new one: its parent's may be locked forever.
pub struct Cache {
    process: u32,
    kept: Mutex<Kept>,
}

static CURRENT: AtomicPtr<Cache> = AtomicPtr::new(std::ptr::null_mut());

impl Cache {
    pub fn current() -> &'static Cache {
        let process = std::process::id();
        let found = CURRENT.load(Ordering::Acquire);
        // SAFETY: caches are never freed.
        if let Some(cache) = unsafe { found.as_ref() }
            && cache.process == process
        {
            return cache;
        }
        let made = Box::into_raw(Box::new(Cache { process, kept: Mutex::default() }));
        match CURRENT.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above. The parent's cache is left as it is.
            Ok(_) => unsafe { &*made },
            Err(other) => {
                // SAFETY: nobody else has seen `made`; the other one is never freed.
                unsafe {
                    drop(Box::from_raw(made));
                    &*other
                }
            }
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn index(&self, identity: &Identity) -> Option<Known> {
        let mut kept = self.kept();
        kept.clock += 1;
        let now = kept.clock;
        kept.indexes.get_mut(identity).map(|(index, used)| {
            *used = now;
            index.clone()
        })
    }

    pub fn keep_index(&self, identity: Identity, index: Known) {
        let mut kept = self.kept();
        kept.clock += 1;
        let now = kept.clock;
        kept.index_bytes += index.bytes();
        if let Some((old, _)) = kept.indexes.insert(identity, (index, now)) {
            kept.index_bytes -= old.bytes();
        }
        if kept.index_bytes > INDEX_BYTES {
            // Half of them at once, so that this is rare.
            let mut uses: Vec<u64> = kept.indexes.values().map(|(_, used)| *used).collect();
            uses.sort_unstable();
            let old = uses[uses.len() / 2];
            kept.indexes.retain(|_, (_, used)| *used > old);
            kept.index_bytes = kept.indexes.values().map(|(index, _)| index.bytes()).sum();
        }
    }

    /// A session of a file, the one that gets to a frame with the least work. Nobody else has it
    /// until it is kept again.
    pub fn take(&self, identity: &Identity, frame: usize) -> Option<Session> {
        let mut kept = self.kept();
        let mut fitting = kept.sessions.iter().enumerate().filter(|(_, (of, ..))| of == identity);
        let distance = |session: &Session| session.distance(frame);
        let place = fitting.by_ref().min_by_key(|(_, (_, session, _))| distance(session))?.0;
        let (_, session, bytes) = kept.sessions.remove(place)?;
        kept.session_bytes -= bytes;
        Some(session)
    }

    pub fn keep(&self, identity: Identity, session: Session, index: &Index) {
        let pixels = index.stream.height.saturating_mul(index.stream.width);
        let bytes = pixels.saturating_mul(3 * FRAMES_OF_DECODER).saturating_add(1 << 16);
        let mut dropped = Vec::new();
        {
            let mut kept = self.kept();
            kept.sessions.push_back((identity, session, bytes));
            kept.session_bytes = kept.session_bytes.saturating_add(bytes);
            while kept.sessions.len() > SESSIONS || kept.session_bytes > SESSION_BYTES {
                let Some(oldest) = kept.sessions.pop_front() else { break };
                kept.session_bytes -= oldest.2;
                dropped.push(oldest);
            }
        }
        // Closing takes a while, so it is done without the lock.
        drop(dropped);
    }
}
