//! Something that several threads want, and one fetches.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::readers::source::Result;
use crate::value::{Cause, Problem};

/// A value that is fetched by the first that asks for it. Those that ask meanwhile wait, and get
/// what it got: the value, or the fault. Whoever asks after a fault tries again.
pub struct Flight<V> {
    stage: Mutex<Stage<V>>,
    arrived: Condvar,
}

struct Stage<V> {
    value: Option<V>,
    /// The process whose thread fetches it. In a forked child, nobody does.
    coming: Option<u32>,
    /// How many attempts have failed, and why the last one did.
    failed: u64,
    fault: Option<Fault>,
}

/// A fault that can be told to all who wait.
#[derive(Clone)]
enum Fault {
    File(Problem),
    System(Problem),
    Memory(usize),
    Other(String),
}

impl From<Cause> for Fault {
    fn from(cause: Cause) -> Fault {
        match cause {
            Cause::File { problem } => Fault::File(problem),
            Cause::System { problem } => Fault::System(problem),
            Cause::Memory { bytes } => Fault::Memory(bytes),
            other => Fault::Other(format!("{other:?}")),
        }
    }
}

impl From<Fault> for Cause {
    fn from(fault: Fault) -> Cause {
        match fault {
            Fault::File(problem) => Cause::File { problem },
            Fault::System(problem) => Cause::System { problem },
            Fault::Memory(bytes) => Cause::Memory { bytes },
            Fault::Other(text) => Cause::Internal(text),
        }
    }
}

impl<V> Default for Flight<V> {
    fn default() -> Flight<V> {
        let stage = Stage { value: None, coming: None, failed: 0, fault: None };
        Flight { stage: Mutex::new(stage), arrived: Condvar::new() }
    }
}

impl<V: Clone> Flight<V> {
    fn lock(&self) -> MutexGuard<'_, Stage<V>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, fetch: impl FnOnce() -> Result<V>) -> Result<V> {
        let here = std::process::id();
        let mut stage = self.lock();
        let before = stage.failed;
        loop {
            if let Some(value) = &stage.value {
                return Ok(value.clone());
            }
            if stage.coming != Some(here) {
                break;
            }
            stage = self.arrived.wait(stage).unwrap_or_else(PoisonError::into_inner);
            if stage.failed != before
                && let Some(fault) = &stage.fault
            {
                return Err(fault.clone().into());
            }
        }
        stage.coming = Some(here);
        drop(stage);
        /// Whatever happens, nobody waits forever.
        struct Duty<'a, V: Clone>(&'a Flight<V>, Option<Result<V, Fault>>);
        impl<V: Clone> Drop for Duty<'_, V> {
            fn drop(&mut self) {
                let mut stage = self.0.lock();
                stage.coming = None;
                match self.1.take() {
                    Some(Ok(value)) => stage.value = Some(value),
                    failed => {
                        stage.failed += 1;
                        let panicked = || Fault::Other("it was not fetched".into());
                        stage.fault = Some(failed.and_then(Result::err).unwrap_or_else(panicked));
                    }
                }
                self.0.arrived.notify_all();
            }
        }
        let mut duty = Duty(self, None);
        let fetched = fetch().map_err(Fault::from);
        duty.1 = Some(fetched.clone());
        drop(duty);
        fetched.map_err(Cause::from)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_thread_fetches_for_all() {
        let (flight, fetched) = (Flight::default(), AtomicUsize::new(0));
        let fetch = |result: Result<u32>| {
            fetched.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(50));
            result
        };
        let fail = || fetch(Err(Cause::Memory { bytes: 7 }));
        thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| flight.get(fail))).collect();
            for one in all {
                assert!(matches!(one.join().unwrap(), Err(Cause::Memory { bytes: 7 })));
            }
        });
        let failures = fetched.swap(0, Ordering::Relaxed);
        assert!((1..=8).contains(&failures));
        thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| flight.get(|| fetch(Ok(5))))).collect();
            assert!(all.into_iter().all(|one| matches!(one.join().unwrap(), Ok(5))));
        });
        assert_eq!(fetched.load(Ordering::Relaxed), 1);
    }
}
