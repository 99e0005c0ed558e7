//! Threads that take work in order, and a queue before them that is not without end.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use engine::EngineError;

/// Something to do on a thread of the pool. Whoever waits for it learns of a panic by what is dropped.
pub(crate) trait Job: Send {
    /// Whether anybody still waits for it.
    fn is_wanted(&self) -> bool;

    fn run(self: Box<Self>);

    /// Instead of [`Job::run`], when there is nobody left to run it.
    fn refuse(self: Box<Self>);
}

/// Dropping it ends its threads after the work that they are at; what is queued is refused.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    /// The most jobs at once, running and waiting.
    bound: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Box<dyn Job>>,
    running: usize,
    closed: bool,
}

impl Pool {
    /// `threads` threads, at least one, and at most `waiting` jobs waiting for one.
    pub(crate) fn new(name: &str, threads: usize, waiting: usize) -> io::Result<Self> {
        let threads = threads.max(1);
        let bound = threads.saturating_add(waiting);
        let pool = Self { shared: Arc::new(Shared { state: Mutex::default(), work: Condvar::new(), bound }) };
        for index in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new().name(format!("{name}-{index}")).stack_size(STACK);
            thread.spawn(move || shared.serve())?;
        }
        Ok(pool)
    }

    /// Puts a job behind those that wait.
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
                // The thread outlives what goes wrong on it.
                let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
            }
            self.lock().running -= 1;
        }
    }

    /// Waits for the next job; none once the pool is closed.
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
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No code of a job runs under the lock, so what a panic left behind is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For the deepest grammar there may be; what is not used of it takes no memory. In bytes.
const STACK: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Tells that it began, waits for leave, and does as told.
    struct Step {
        begun: Sender<usize>,
        leave: Receiver<bool>,
        number: usize,
        wanted: bool,
    }

    impl Job for Step {
        fn is_wanted(&self) -> bool {
            self.wanted
        }

        fn run(self: Box<Self>) {
            self.begun.send(self.number).unwrap();
            assert!(self.leave.recv().unwrap(), "told to fail");
        }

        fn refuse(self: Box<Self>) {
            self.begun.send(self.number + 100).unwrap();
        }
    }

    fn step(begun: &Sender<usize>, number: usize, wanted: bool) -> (Box<Step>, Sender<bool>) {
        let (leave, at) = channel();
        (Box::new(Step { begun: begun.clone(), leave: at, number, wanted }), leave)
    }

    /// A panic ends its own work alone: the thread goes on with what waits.
    #[test]
    fn e06_jobs_run_in_order_up_to_the_bound_and_a_panic_ends_only_its_own() {
        let pool = Pool::new("test", 1, 2).unwrap();
        let (begun, order) = channel();
        let (first, fail) = step(&begun, 1, true);
        let (second, leave) = step(&begun, 2, true);
        let (third, _unused) = step(&begun, 3, false);
        let (fourth, leave_fourth) = step(&begun, 4, true);
        pool.submit(first).unwrap();
        assert_eq!(order.recv(), Ok(1));
        pool.submit(second).unwrap();
        pool.submit(third).unwrap();
        pool.submit(fourth).unwrap();
        assert!(matches!(pool.submit(step(&begun, 5, true).0), Err(EngineError::Busy)));
        fail.send(false).unwrap();
        leave.send(true).unwrap();
        leave_fourth.send(true).unwrap();
        assert_eq!((order.recv(), order.recv()), (Ok(2), Ok(4)));
    }

    /// What waits when the threads go is refused at once.
    #[test]
    fn e06_what_waits_when_the_pool_goes_is_refused() {
        let pool = Pool::new("test", 1, 2).unwrap();
        let (begun, order) = channel();
        let (first, leave) = step(&begun, 1, true);
        let (second, _unused) = step(&begun, 2, true);
        pool.submit(first).unwrap();
        assert_eq!(order.recv(), Ok(1));
        pool.submit(second).unwrap();
        drop(pool);
        assert_eq!(order.recv(), Ok(102));
        leave.send(true).unwrap();
        drop(begun);
        assert!(order.recv().is_err());
    }
}
