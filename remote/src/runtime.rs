//! The threads that talk to servers, and waiting for them.

use std::future::Future;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// They pass bytes on and compute signatures; what callers do with the bytes is done elsewhere.
const THREADS: usize = 2;

/// The runtime of the process with this id. A forked child has none of its parent's threads, so it
/// makes its own; the parent's is left alone.
static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

fn runtime() -> std::io::Result<&'static Runtime> {
    let here = std::process::id();
    let mut current = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((owner, runtime)) = *current
        && owner == here
    {
        return Ok(runtime);
    }
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(THREADS).thread_name("penstock-net").enable_all();
    let made = &*Box::leak(Box::new(builder.build()?));
    *current = Some((here, made));
    Ok(made)
}

/// Runs a future on the runtime's threads, and waits for it on this one: it is woken once, however
/// many pieces an answer comes in. The future is finished or dropped when this returns.
pub fn wait<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, String> {
    let runtime = runtime().map_err(|error| format!("no thread can be started: {error}"))?;
    let (done, result) = oneshot::channel();
    let task = runtime.spawn(async move {
        let _ = done.send(future.await);
    });
    match result.blocking_recv() {
        Ok(result) => Ok(result),
        Err(_) => {
            // It has panicked. Its memory is given up only when the task has ended.
            while !task.is_finished() {
                std::thread::yield_now();
            }
            Err("an error in penstock-remote; please report it".into())
        }
    }
}
