//! The queue of finished requests that wait to be exported. It is bounded: a request that finds no
//! room is counted, and has no spans.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::report::RequestReport;
use super::sampling::Sampling;
use crate::traces::context::{TraceContext, TraceParent};
use crate::traces::span_result::SpanResult;

/// The entrance of the queue, and the counts of spans.
#[derive(Debug)]
pub struct TraceQueue {
    sampling: Sampling,
    sender: Sender<Arc<RequestReport>>,
    counts: [AtomicU64; SpanResult::ALL.len()],
}

impl TraceQueue {
    /// Creates a queue, and returns its exit.
    pub fn new(sampling: Sampling) -> (Arc<Self>, Receiver<Arc<RequestReport>>) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let queue = Self {
            sampling,
            sender,
            counts: Default::default(),
        };
        (Arc::new(queue), receiver)
    }

    /// Begins the trace of a request, or continues the client's.
    pub fn begin(&self, parent: Option<TraceParent>, random: impl Fn() -> u128) -> TraceContext {
        self.sampling.begin(parent, random)
    }

    /// Adds a finished request, if it is to be exported.
    pub fn offer(&self, report: &Arc<RequestReport>) {
        let Some(trace) = &report.trace else { return };
        if self.sampling.keeps(report, &trace.context)
            && self.sender.try_send(Arc::clone(report)).is_err()
        {
            self.count(SpanResult::QueueFull, report.spans());
        }
    }

    /// Counts spans by the result of exporting them.
    pub fn count(&self, result: SpanResult, spans: u64) {
        self.counts[result as usize].fetch_add(spans, Ordering::Relaxed);
    }

    /// The numbers of spans so far.
    pub fn counts(&self) -> impl Iterator<Item = (SpanResult, u64)> {
        SpanResult::ALL
            .into_iter()
            .map(|result| (result, self.counts[result as usize].load(Ordering::Relaxed)))
    }
}

/// The maximum number of requests that wait. One with a fallback has about 1 KiB.
const CAPACITY: usize = 4096;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report(queue: &TraceQueue) -> Arc<RequestReport> {
        Arc::new(RequestReport::traced(queue.begin(None, || 7)))
    }

    fn counted(queue: &TraceQueue) -> Vec<u64> {
        queue.counts().map(|(_, spans)| spans).collect()
    }

    #[test]
    fn requests_past_the_bound_are_left_out_and_counted() {
        let sampling = Sampling::new(1.0, Duration::from_secs(30));
        let (queue, mut exit) = TraceQueue::new(sampling);
        for _ in 0..CAPACITY + 3 {
            queue.offer(&report(&queue));
        }
        assert_eq!(exit.len(), 4096);
        assert_eq!(counted(&queue), [0, 3, 0, 0]);
        exit.try_recv().unwrap();
        queue.offer(&report(&queue));
        assert_eq!(counted(&queue), [0, 3, 0, 0]);
    }

    #[test]
    fn requests_that_are_not_drawn_are_no_losses() {
        let (queue, exit) = TraceQueue::new(Sampling::new(0.0, Duration::from_secs(30)));
        queue.offer(&report(&queue));
        queue.offer(&Arc::new(RequestReport::completed("req_2".to_owned())));
        assert!(exit.is_empty());
        assert_eq!(counted(&queue), [0, 0, 0, 0]);
    }
}
