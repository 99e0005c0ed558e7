//! A waker that coalesces wake-ups raised while its task is being polled.
//!
//! The HTTP side of a connection and the request that it serves notify each other by waking the tasks
//! that poll them. Here one task polls both: a wake-up during its own poll would schedule it again
//! for nothing, and would make the runtime wake another worker thread to look for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// A waker for futures that notify each other within one task.
#[derive(Debug)]
pub(crate) struct CoalescingWaker {
    inner: Arc<Inner>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Inner {
    task: AtomicWaker,
    polling: AtomicBool,
    woken: AtomicBool,
}

impl CoalescingWaker {
    /// Calls `poll` until it is ready, or until it was not woken during the call. Later wake-ups
    /// wake the task of `cx`. When it is ready, a wake-up raised meanwhile is left to the next
    /// call, which the caller has to make.
    pub(crate) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Inner {
            task,
            polling,
            woken,
        } = &*self.inner;
        task.register(cx.waker());
        for _ in 0..MAX_POLLS {
            woken.store(false, Ordering::SeqCst);
            polling.store(true, Ordering::SeqCst);
            let polled = poll(&mut Context::from_waker(&self.waker));
            // In this order: a concurrent wake-up is either seen below, or sees that it has to wake
            // the task.
            polling.store(false, Ordering::SeqCst);
            if polled.is_ready() || !woken.load(Ordering::SeqCst) {
                return polled;
            }
        }
        // Woken in every poll, for example because the task's cooperative budget is used up: yield
        // to other tasks.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Default for CoalescingWaker {
    fn default() -> Self {
        let inner = Arc::<Inner>::default();
        Self {
            waker: Waker::from(Arc::clone(&inner)),
            inner,
        }
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if !self.polling.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

/// The number of polls in a row before yielding to other tasks.
const MAX_POLLS: usize = 4;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Task {
        fn wakes(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls a future that wakes itself in its first `wakes` polls. Returns its result, the number
    /// of polls, and how often the task was woken.
    fn polled(wakes: usize) -> (Poll<()>, usize, usize) {
        let (waker, task) = (CoalescingWaker::default(), Arc::<Task>::default());
        let mut polls = 0;
        let polled = waker.poll(
            &mut Context::from_waker(&Waker::from(Arc::clone(&task))),
            |cx| {
                polls += 1;
                if polls <= wakes {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            },
        );
        (polled, polls, task.wakes())
    }

    #[test]
    fn wake_during_poll_repolls_without_scheduling() {
        assert_eq!(polled(0), (Poll::Pending, 1, 0));
        assert_eq!(polled(2), (Poll::Pending, 3, 0));
    }

    #[test]
    fn endless_wakes_during_poll_schedule_the_task() {
        assert_eq!(polled(usize::MAX), (Poll::Pending, MAX_POLLS, 1));
    }

    #[test]
    fn wake_after_poll_wakes_the_last_polling_task() {
        let (waker, [first, last]) = (
            CoalescingWaker::default(),
            [Arc::<Task>::default(), Arc::default()],
        );
        let mut kept = None;
        for task in [&first, &last] {
            let task_waker = Waker::from(Arc::clone(task));
            let polled = waker.poll(&mut Context::from_waker(&task_waker), |cx| {
                kept = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
            assert_eq!(polled, Poll::Pending);
        }
        kept.unwrap().wake();
        assert_eq!((first.wakes(), last.wakes()), (0, 1));
    }

    #[test]
    fn ready_result_is_returned() {
        let waker = CoalescingWaker::default();
        assert_eq!(
            waker.poll(&mut Context::from_waker(Waker::noop()), |_| Poll::Ready(7)),
            Poll::Ready(7)
        );
    }
}
