//! Work on long texts, apart from the threads that serve all requests.

use std::num::NonZero;
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

/// Runs work on long texts, such as reading a body of megabytes. It takes milliseconds, for which the
/// other requests of its thread would wait. The memory for bodies bounds how many requests wait here.
#[derive(Debug)]
pub(crate) struct LongWork(Semaphore);

impl LongWork {
    /// Leaves one processor, if there are more, to requests without long texts.
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self(Semaphore::new((processors - 1).max(1)))
    }

    /// Runs work on a text of `length` bytes: at once if it is short. Otherwise it waits for a permit,
    /// and another thread goes on with the other tasks of this one.
    pub(crate) async fn run<T>(&self, length: usize, work: impl FnOnce() -> T) -> T {
        if length < LONG {
            return work();
        }
        // It is never closed.
        let _permit = self.0.acquire().await;
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => block_in_place(work),
            _ => work(),
        }
    }
}

/// The length from which on a text is long, in bytes. Handing the tasks of a thread to another one
/// takes less than a tenth of the time that such a text takes.
const LONG: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The work waits for a task of the same thread, the only one, which could not run otherwise.
    #[test]
    fn other_tasks_go_on_beside_long_work() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let worked = runtime.spawn(async {
            let (send, receive) = channel();
            tokio::spawn(async move { send.send("small") });
            LongWork::new().run(LONG, move || receive.recv()).await
        });
        assert_eq!(runtime.block_on(worked).unwrap(), Ok("small"));
    }

    #[tokio::test]
    async fn work_also_runs_on_a_single_thread() {
        assert_eq!(LongWork::new().run(LONG, || 1).await, 1);
        assert_eq!(LongWork::new().run(LONG - 1, || 2).await, 2);
    }
}
