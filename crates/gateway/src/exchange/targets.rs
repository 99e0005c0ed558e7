//! The attempts to have a request answered, as its record and its response body share them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use answer::{Asked, Report};
use http::HeaderMap;
use policy::hedge::HedgePermit;
use policy::limit::{Attempt, Counts, FinalUsage};
use policy::targets::Target;
use telemetry::requests::live::LiveRequest;
use telemetry::requests::report::AttemptReport;
use upstream::ResponseMeta;

use crate::background::Background;

/// The targets of a request, as its attempts and its response share it.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// The target that answers, once known.
    pub(crate) served_by: OnceLock<ServedBy>,
    /// The attempt in progress, or the one that answers unless that is the hedge.
    pub(crate) asked: Arc<Asked>,
    /// The hedge of the request, once it was sent. Boxed, because it is rare.
    pub(crate) hedge: OnceLock<Box<SentHedge>>,
    /// The attempts that have failed, and may have cost something.
    failed: Mutex<Vec<Attempt>>,
    /// The headers for the client of the response by which the last target has failed.
    pub(crate) passed: RwLock<Option<Box<HeaderMap>>>,
    /// The id of the response, if it is made in the background, and where it waits for its usage.
    pub(crate) in_background: OnceLock<(Arc<Background>, String)>,
    /// The request in flight, from its admission on.
    pub(crate) live: OnceLock<Arc<LiveRequest>>,
    /// The attempts so far, for the report.
    attempts: Mutex<Vec<AttemptReport>>,
}

/// The hedge of a request: the attempt at another target while the first one was slow.
#[derive(Debug)]
pub(crate) struct SentHedge {
    /// The name of its target.
    pub(crate) target: String,
    pub(crate) asked: Arc<Asked>,
    pub(crate) permit: HedgePermit,
}

impl Targets {
    /// Notes that the response is made in the background.
    pub(crate) fn set_in_background(&self, background: Arc<Background>, id: &str) {
        // A response has one id.
        let _ = self.in_background.set((background, id.to_owned()));
    }

    /// Notes the target that answers.
    pub(crate) fn set_served_by(&self, target: &Target, meta: ResponseMeta) {
        // It cannot be set already: a request is answered by one target.
        let _ = self.served_by.set(ServedBy {
            target: target.label().to_owned(),
            provider: target.provider(),
            meta,
        });
    }

    /// Shows the target that is asked, or answers, among the requests in flight.
    pub(crate) fn show_target(&self, target: &Target) {
        if let Some(live) = self.live.get() {
            live.set_target(target.label());
        }
    }

    /// Notes that the limits have admitted the request.
    pub(crate) fn set_admitted(&self) {
        if let Some(live) = self.live.get() {
            live.set_admitted();
        }
    }

    /// Notes the result of an attempt.
    pub(crate) fn report_attempt(&self, attempt: AttemptReport) {
        let attempts = self.attempts.lock();
        let mut attempts = attempts.unwrap_or_else(PoisonError::into_inner);
        // Targets whose circuit breakers are open can be passed by more than once.
        if attempts.len() < MAX_ATTEMPTS {
            attempts.push(attempt);
        }
    }

    /// Counts an event of the answer that was written for the client.
    pub(crate) fn count_event(&self) {
        if let Some(live) = self.live.get() {
            live.count_event();
        }
    }

    /// True once an operator has ended the request.
    pub(crate) fn is_ended_by_operator(&self) -> bool {
        self.live.get().is_some_and(|live| live.is_ended())
    }

    /// The attempt that answers, or is in progress.
    pub(crate) fn current(&self) -> &Asked {
        match self.hedge.get() {
            Some(hedge) if self.asked.place().is_none() => &hedge.asked,
            _ => &self.asked,
        }
    }

    /// The attempt of the hedge, while the one at the first target is in progress as well.
    pub(crate) fn rival(&self) -> Option<&Asked> {
        let hedge = self.hedge.get().filter(|_| self.asked.place().is_some());
        hedge.map(|hedge| &*hedge.asked)
    }

    /// Returns true if a target that is asked has sent events, so that the wait for its content has the
    /// deadline of streams.
    pub(crate) fn has_opened(&self) -> bool {
        self.current().has_opened() || self.rival().is_some_and(Asked::has_opened)
    }

    /// Sets the head of the response by which the last target has failed.
    pub(crate) fn set_failed_head(&self, meta: ResponseMeta) {
        *self.passed.write().unwrap_or_else(PoisonError::into_inner) = meta.passed;
    }

    /// Notes that an attempt has ended before its answer began. `may_work` is true if the target may
    /// still work on it, and `was_cut` if it had begun to respond.
    pub(crate) fn set_failed(&self, asked: &Asked, may_work: bool, was_cut: bool) {
        let counts = counts_of(asked, Counts::default());
        let known = match () {
            () if may_work => FinalUsage::Unfinished(counts),
            () if was_cut => FinalUsage::Partial(counts),
            () => FinalUsage::partial(counts),
        };
        if let Some(target) = asked.end()
            && !matches!(known, FinalUsage::Unused)
        {
            self.failed().push(Attempt { target, known });
        }
    }

    pub(crate) fn failed(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a target was tried.
    pub(crate) fn has_attempts(&self) -> bool {
        let attempts = self.attempts.lock();
        !attempts.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns the reports of the attempts in the order in which they began.
    pub(crate) fn take_attempts(&self) -> Vec<AttemptReport> {
        let attempts = self.attempts.lock();
        let mut attempts = std::mem::take(&mut *attempts.unwrap_or_else(PoisonError::into_inner));
        attempts.sort_by(|one, other| one.started_ms.total_cmp(&other.started_ms));
        attempts
    }
}

/// Returns the counts of an answer with those that were noted of it here, and forgets these.
pub(crate) fn counts_of(asked: &Asked, counts: Counts) -> Counts {
    let (Report { usage, pictures }, content) = asked.take();
    Counts {
        usage: counts.usage.or(usage),
        content: counts.content.max(content),
        pictures: match counts.pictures.count {
            0 => pictures.into(),
            _ => counts.pictures,
        },
        ..counts
    }
}

/// The target that answers a request.
#[derive(Debug)]
pub(crate) struct ServedBy {
    /// The name of an upstream, or `embedded`.
    pub(crate) target: String,
    /// Its vendor.
    pub(crate) provider: &'static str,
    /// The parts of the head of the upstream's response for the log and for the client.
    pub(crate) meta: ResponseMeta,
}

/// The maximum number of attempts in a report.
const MAX_ATTEMPTS: usize = 16;
