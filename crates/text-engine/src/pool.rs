//! A thread pool with a bounded queue.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use engine::EngineError;

/// A job for a thread of the pool. A panic drops the job, which closes its channel and thereby
/// informs the caller.
pub(crate) trait Job: Send {
    /// Returns true if a caller is still waiting for the result.
    fn is_wanted(&self) -> bool;

    fn run(self: Box<Self>);

    /// Called instead of [`Job::run`] if the pool is dropped before the job runs.
    fn refuse(self: Box<Self>);
}

/// A thread pool. Dropping it stops its threads after their current jobs; queued jobs are refused.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    /// Maximum number of jobs, running and queued.
    bound: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Box<dyn Job>>,
    running: usize,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads, at least one. At most `waiting` jobs can be queued.
    pub(crate) fn new(name: &str, threads: usize, waiting: usize) -> io::Result<Self> {
        let threads = threads.max(1);
        let bound = threads.saturating_add(waiting);
        let pool = Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                work: Condvar::new(),
                bound,
            }),
        };
        for index in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new()
                .name(format!("{name}-{index}"))
                .stack_size(STACK);
            thread.spawn(move || shared.serve())?;
        }
        Ok(pool)
    }

    /// Queues a job. If the queue is full, jobs whose callers have gone away are removed first.
    pub(crate) fn submit(&self, job: Box<dyn Job>) -> Result<(), EngineError> {
        let mut state = self.shared.lock();
        if state.queue.len() + state.running >= self.shared.bound {
            state.queue.retain(|job| job.is_wanted());
        }
        if state.queue.len() + state.running >= self.shared.bound {
            return Err(EngineError::Busy);
        }
        state.queue.push_back(job);
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let undone = std::mem::take(&mut state.queue);
        drop(state);
        undone.into_iter().for_each(Job::refuse);
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn serve(&self) {
        while let Some(job) = self.take() {
            if job.is_wanted() {
                // A panic of a job does not end the thread.
                let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
            }
            self.lock().running -= 1;
        }
    }

    /// Waits for the next job. Returns `None` once the pool is closed.
    fn take(&self) -> Option<Box<dyn Job>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(job) = state.queue.pop_front() {
                state.running += 1;
                return Some(job);
            }
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Locks the state. Jobs do not run under the lock, so a panic cannot leave the state
    /// inconsistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stack size in bytes, enough for the deepest accepted grammar. Unused pages take no memory.
const STACK: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A job that reports its start, then waits to be resumed or made to panic.
    struct Step {
        started: Sender<usize>,
        resume: Receiver<bool>,
        number: usize,
        wanted: bool,
    }

    impl Job for Step {
        fn is_wanted(&self) -> bool {
            self.wanted
        }

        fn run(self: Box<Self>) {
            self.started.send(self.number).unwrap();
            assert!(self.resume.recv().unwrap(), "made to fail");
        }

        fn refuse(self: Box<Self>) {
            self.started.send(self.number + 100).unwrap();
        }
    }

    fn step(started: &Sender<usize>, number: usize, wanted: bool) -> (Box<Step>, Sender<bool>) {
        let (sender, resume) = channel();
        (
            Box::new(Step {
                started: started.clone(),
                resume,
                number,
                wanted,
            }),
            sender,
        )
    }

    /// A panic ends only its own job; the thread continues with the queued jobs.
    #[test]
    fn e06_jobs_run_in_order_and_a_panic_ends_only_its_own_job() {
        let pool = Pool::new("test", 1, 2).unwrap();
        let (started, order) = channel();
        let (first, fail) = step(&started, 1, true);
        let (second, resume) = step(&started, 2, true);
        let (third, _unused) = step(&started, 3, false);
        let (fourth, resume_fourth) = step(&started, 4, true);
        pool.submit(first).unwrap();
        assert_eq!(order.recv(), Ok(1));
        pool.submit(second).unwrap();
        pool.submit(third).unwrap();
        pool.submit(fourth).unwrap();
        assert!(matches!(
            pool.submit(step(&started, 5, true).0),
            Err(EngineError::Busy)
        ));
        fail.send(false).unwrap();
        resume.send(true).unwrap();
        resume_fourth.send(true).unwrap();
        assert_eq!((order.recv(), order.recv()), (Ok(2), Ok(4)));
    }

    /// Queued jobs are refused when the pool is dropped.
    #[test]
    fn e06_dropped_pool_refuses_queued_jobs() {
        let pool = Pool::new("test", 1, 2).unwrap();
        let (started, order) = channel();
        let (first, resume) = step(&started, 1, true);
        let (second, _unused) = step(&started, 2, true);
        pool.submit(first).unwrap();
        assert_eq!(order.recv(), Ok(1));
        pool.submit(second).unwrap();
        drop(pool);
        assert_eq!(order.recv(), Ok(102));
        resume.send(true).unwrap();
        drop(started);
        assert!(order.recv().is_err());
    }
}
