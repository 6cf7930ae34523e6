//! Trying again: how often, how long, and with which pauses.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::abi::FailureKind;
use crate::failure::Fault;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How often a server that has never answered is tried: most likely its name is wrong.
const FIRST_CONTACT: u32 = 4;

#[derive(Debug)]
pub struct Patience {
    /// How long to go on.
    pub total: Duration,
    /// How many attempts after the first.
    pub retries: u32,
    /// Whether the server has ever answered.
    answered: AtomicBool,
}

/// Why it was given up.
#[derive(Debug)]
pub struct GivenUp {
    pub fault: Fault,
    pub attempts: u32,
    pub spent: Duration,
}

impl Patience {
    pub fn new(total: Duration, retries: u32) -> Patience {
        Patience { total, retries, answered: AtomicBool::new(false) }
    }

    pub fn begin(&self) -> Tries<'_> {
        Tries { patience: self, start: Instant::now(), attempts: 0 }
    }
}

/// The attempts of one request.
pub struct Tries<'a> {
    patience: &'a Patience,
    start: Instant,
    attempts: u32,
}

impl Tries<'_> {
    /// The request has succeeded.
    pub fn done(self) {
        self.patience.answered.store(true, Ordering::Relaxed);
    }

    /// An attempt has failed: waits until the next one, or gives up.
    pub async fn again(&mut self, fault: Fault) -> Result<(), GivenUp> {
        let Patience { total, retries, answered } = self.patience;
        self.attempts += 1;
        let reached = fault.kind != FailureKind::Unreachable;
        if reached && fault.status != 0 {
            answered.store(true, Ordering::Relaxed);
        }
        let stranger = !reached && !answered.load(Ordering::Relaxed);
        let pause = pause(self.attempts).max(fault.wait.unwrap_or_default().min(LONGEST_PAUSE));
        if !fault.transient
            || self.attempts > *retries
            || (stranger && self.attempts >= FIRST_CONTACT)
            || self.start.elapsed() + pause > *total
        {
            let (attempts, spent) = (self.attempts, self.start.elapsed());
            return Err(GivenUp { fault, attempts, spent });
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// Twice as long after each attempt, with a jitter: hundreds of threads that were refused together
/// should not come back together.
fn pause(attempts: u32) -> Duration {
    let longest = FIRST_PAUSE * 2_u32.saturating_pow(attempts.min(16) - 1);
    let random = RandomState::new().hash_one(0) >> 11;
    longest.min(LONGEST_PAUSE).mul_f64(0.5 + random as f64 / (1_u64 << 54) as f64)
}
