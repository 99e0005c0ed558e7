//! A waker that is silent while its task is at work anyway.
//!
//! The halves of a connection tell each other of news by waking the tasks that poll them. Here one task polls them all:
//! woken while it runs, it would be scheduled once more for nothing, and another thread woken to look for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// What futures are polled with that talk to each other within one task.
#[derive(Debug)]
pub struct CoalescingWaker {
    inner: Arc<Inner>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Inner {
    task: AtomicWaker,
    at_work: AtomicBool,
    rung: AtomicBool,
}

impl CoalescingWaker {
    /// A bell that nobody has heard yet.
    #[must_use]
    pub fn new() -> Self {
        let inner = Arc::<Inner>::default();
        Self { waker: Waker::from(Arc::clone(&inner)), inner }
    }

    /// Does `work` until there is something, or nothing rings any more that it has polled. Rings that come later wake the
    /// task of `cx`. When there is something, whatever else has rung is left for the next time, which has to come.
    pub fn poll<T>(&self, cx: &mut Context<'_>, mut work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let Inner { task, at_work, rung } = &*self.inner;
        task.register(cx.waker());
        for _ in 0..ROUNDS {
            rung.store(false, Ordering::SeqCst);
            at_work.store(true, Ordering::SeqCst);
            let polled = work(&mut Context::from_waker(&self.waker));
            // In this order: who rings meanwhile is either seen here, or sees that the task is to be woken.
            at_work.store(false, Ordering::SeqCst);
            if polled.is_ready() || !rung.load(Ordering::SeqCst) {
                return polled;
            }
        }
        // It rings on and on, as when the task's share of time is used up: others are next.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Default for CoalescingWaker {
    fn default() -> Self {
        Self::new()
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        if !self.at_work.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

/// How often news are followed before other tasks have their turn.
const ROUNDS: usize = 4;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Task {
        fn woken(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// What a bell that rings in the first `rings` polls comes to, in how many polls, and how often the task was woken.
    fn polled(rings: usize) -> (Poll<()>, usize, usize) {
        let (bell, task) = (CoalescingWaker::new(), Arc::<Task>::default());
        let mut polls = 0;
        let polled = bell.poll(&mut Context::from_waker(&Waker::from(Arc::clone(&task))), |cx| {
            polls += 1;
            if polls <= rings {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        });
        (polled, polls, task.woken())
    }

    #[test]
    fn what_rings_at_work_is_looked_at_without_waking_the_task() {
        assert_eq!(polled(0), (Poll::Pending, 1, 0));
        assert_eq!(polled(2), (Poll::Pending, 3, 0));
    }

    #[test]
    fn what_rings_on_and_on_is_left_to_the_tasks_next_turn() {
        assert_eq!(polled(usize::MAX), (Poll::Pending, ROUNDS, 1));
    }

    #[test]
    fn what_rings_later_wakes_the_task_that_polled_last() {
        let (bell, [first, last]) = (CoalescingWaker::new(), [Arc::<Task>::default(), Arc::default()]);
        let mut kept = None;
        for task in [&first, &last] {
            let waker = Waker::from(Arc::clone(task));
            let polled = bell.poll(&mut Context::from_waker(&waker), |cx| {
                kept = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
            assert_eq!(polled, Poll::Pending);
        }
        kept.unwrap().wake();
        assert_eq!((first.woken(), last.woken()), (0, 1));
    }

    #[test]
    fn what_is_there_is_handed_out() {
        let bell = CoalescingWaker::new();
        assert_eq!(bell.poll(&mut Context::from_waker(Waker::noop()), |_| Poll::Ready(7)), Poll::Ready(7));
    }
}
