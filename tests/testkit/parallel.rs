//! Work on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does the same for all items, some at once. The results are in no order.
pub fn in_parallel<'a, I: Sync, T: Send>(
    items: &'a [I],
    work: impl Fn(&'a I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || items.get(next.fetch_add(1, Ordering::Relaxed));
    let some = || std::iter::from_fn(take).map(&work).collect::<Vec<_>>();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(some)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    })
}

const THREADS: usize = 8;
