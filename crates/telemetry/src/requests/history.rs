//! The most recent finished requests, in bounded memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::report::RequestReport;
use super::trace_queue::TraceQueue;

/// The reports of the most recent requests.
///
/// Readers wait with [`RequestHistory::subscribe`] and read all reports after the last one that they
/// have seen, so a slow reader needs no queue of its own, and misses only reports that were displaced.
#[derive(Debug)]
pub struct RequestHistory {
    reports: Mutex<Reports>,
    /// The number of reports so far.
    count: watch::Sender<u64>,
    /// The queue of the exporter of traces, if there is one.
    traces: Option<Arc<TraceQueue>>,
}

#[derive(Debug, Default)]
struct Reports {
    /// Oldest first.
    recent: VecDeque<Arc<RequestReport>>,
    /// The number of the next report.
    next: u64,
}

impl Default for RequestHistory {
    fn default() -> Self {
        Self::new(None)
    }
}

impl RequestHistory {
    /// A history whose reports are also offered to the exporter of traces, if there is one.
    pub fn new(traces: Option<Arc<TraceQueue>>) -> Self {
        Self {
            reports: Mutex::default(),
            count: watch::Sender::new(0),
            traces,
        }
    }

    /// The queue of the exporter of traces, if there is one.
    pub fn traces(&self) -> Option<&TraceQueue> {
        self.traces.as_deref()
    }

    /// Adds a report, and removes the oldest one if there are too many.
    pub fn push(&self, report: Arc<RequestReport>) {
        if let Some(traces) = &self.traces {
            traces.offer(&report);
        }
        let (count, displaced) = {
            let mut reports = self.lock();
            let displaced = match reports.recent.len() < MAX_REPORTS {
                true => None,
                false => reports.recent.pop_front(),
            };
            reports.recent.push_back(report);
            reports.next += 1;
            (reports.next, displaced)
        };
        // Freed without the lock.
        drop(displaced);
        // Nobody looks at most gateways.
        if self.count.receiver_count() > 0 {
            self.count.send_if_modified(|known| {
                let is_later = count > *known;
                *known = count.max(*known);
                is_later
            });
        }
    }

    /// The reports whose number is at least `from`, oldest first, and the number of the next report.
    pub fn since(&self, from: u64) -> (Vec<Arc<RequestReport>>, u64) {
        let reports = self.lock();
        let first = reports.next - reports.recent.len() as u64;
        let skipped = from.saturating_sub(first);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        (
            reports.recent.iter().skip(skipped).cloned().collect(),
            reports.next,
        )
    }

    /// The report of a request, if it is recent.
    pub fn find(&self, request_id: &str) -> Option<Arc<RequestReport>> {
        let reports = self.lock();
        let mut newest_first = reports.recent.iter().rev();
        newest_first
            .find(|report| report.request_id == request_id)
            .cloned()
    }

    /// Receives the number of reports whenever one was added.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Reports> {
        // No step of a change panics halfway.
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of reports that are retained. One with a fallback has about 1 KiB.
pub const MAX_REPORTS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn report(number: usize) -> Arc<RequestReport> {
        Arc::new(RequestReport::completed(format!("req_{number}")))
    }

    fn ids(reports: &[Arc<RequestReport>]) -> Vec<&str> {
        reports.iter().map(|it| it.request_id.as_str()).collect()
    }

    #[test]
    fn the_oldest_report_is_displaced() {
        let history = RequestHistory::default();
        for number in 0..=MAX_REPORTS {
            history.push(report(number));
        }
        assert!(history.find("req_0").is_none());
        assert!(history.find("req_1").is_some());
        assert!(history.find("req_1000").is_some());
        assert_eq!(history.since(0).0.len(), 1000);
    }

    #[test]
    fn readers_get_the_reports_after_the_last_one_that_they_have_seen() {
        let history = RequestHistory::default();
        let mut count = history.subscribe();
        history.push(report(0));
        history.push(report(1));
        assert!(count.has_changed().unwrap());
        assert_eq!(*count.borrow_and_update(), 2);
        let (all, next) = history.since(0);
        assert_eq!((ids(&all), next), (vec!["req_0", "req_1"], 2));
        assert!(history.since(next).0.is_empty());
        history.push(report(2));
        assert_eq!(ids(&history.since(next).0), ["req_2"]);
        for number in 3..3 + 2 * MAX_REPORTS {
            history.push(report(number));
        }
        let (late, _) = history.since(next);
        assert_eq!(late.len(), 1000);
        assert_eq!(late[0].request_id, "req_1003");
    }
}
