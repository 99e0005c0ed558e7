//! The attempts to have a request answered, as its record and its response body share them.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use answer::{Report, Reported};
use engine::TextEvent;
use http::HeaderMap;
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
    /// The fields that the latest target could not be given, which are known before it has begun to
    /// answer.
    losses: RwLock<Vec<String>>,
    /// The kinds of content of the answer that the client's protocol cannot express.
    left_out: RwLock<Vec<&'static str>>,
    /// The place of the target that is asked and has not failed, plus one; 0 without such a target.
    pub(crate) asked: AtomicUsize,
    /// The usage and the images that this target has reported.
    pub(crate) reported: Arc<Reported>,
    /// The length of the translated content that this target has sent, in bytes.
    content: AtomicU64,
    /// The attempts that have failed, and may have cost something.
    failed: Mutex<Vec<Attempt>>,
    /// True if the target that was asked last has sent events, but no content yet.
    opened: AtomicBool,
    /// The headers for the client of the response by which the last target has failed.
    pub(crate) passed: RwLock<Option<Box<HeaderMap>>>,
    /// The id of the response, if it is made in the background, and where it waits for its usage.
    pub(crate) in_background: OnceLock<(Arc<Background>, String)>,
    /// The request in flight, from its admission on.
    pub(crate) live: OnceLock<Arc<LiveRequest>>,
    /// The attempts so far, for the report.
    attempts: Mutex<Vec<AttemptReport>>,
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

    /// Notes that a target is asked.
    pub(crate) fn set_asked(&self, target: &Target) {
        self.asked.store(target.place + 1, Ordering::Relaxed);
        self.opened.store(false, Ordering::Relaxed);
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

    /// Notes that the target that was asked last has sent events without content.
    pub(crate) fn set_opened(&self) {
        self.opened.store(true, Ordering::Relaxed);
    }

    /// Returns true if the target that was asked last has sent events, so that the wait for its
    /// content has the deadline of streams.
    pub(crate) fn has_opened(&self) -> bool {
        self.opened.load(Ordering::Relaxed)
    }

    /// Sets the head of the response by which the last target has failed.
    pub(crate) fn set_failed_head(&self, meta: ResponseMeta) {
        *self.passed.write().unwrap_or_else(PoisonError::into_inner) = meta.passed;
    }

    /// Notes that the target that was asked has failed before its answer began. `may_work` is true if it
    /// may still work on it, and `was_cut` if it had begun to respond.
    pub(crate) fn set_failed(&self, may_work: bool, was_cut: bool) {
        let counts = self.take_counts(Counts::default());
        let known = match () {
            () if may_work => FinalUsage::Unfinished(counts),
            () if was_cut => FinalUsage::Partial(counts),
            () => FinalUsage::partial(counts),
        };
        let asked = self.asked.swap(0, Ordering::Relaxed);
        self.opened.store(false, Ordering::Relaxed);
        if let Some(target) = asked.checked_sub(1)
            && !matches!(known, FinalUsage::Unused)
        {
            self.failed().push(Attempt { target, known });
        }
    }

    /// Returns the counts of an answer with those that were noted of it here, and forgets these.
    pub(crate) fn take_counts(&self, counts: Counts) -> Counts {
        let Report { usage, pictures } = self.reported.take();
        let content = self.content.swap(0, Ordering::Relaxed);
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

    pub(crate) fn failed(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the fields that the target which is tried next cannot be given.
    pub(crate) fn lose(&self, names: &[String]) {
        names.clone_into(&mut self.losses.write().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn losses(&self) -> Vec<String> {
        let losses = self.losses.read().unwrap_or_else(PoisonError::into_inner);
        losses.clone()
    }

    /// True if a target was tried.
    pub(crate) fn has_attempts(&self) -> bool {
        let attempts = self.attempts.lock();
        !attempts.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(crate) fn take_attempts(&self) -> Vec<AttemptReport> {
        let attempts = self.attempts.lock();
        std::mem::take(&mut *attempts.unwrap_or_else(PoisonError::into_inner))
    }

    /// The kinds of content of the answer that the client's protocol cannot express.
    pub(crate) fn left_out(&self) -> RwLockReadGuard<'_, Vec<&'static str>> {
        self.left_out.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the length of an event, or the kind of content that it leaves out, if it is such an event.
    pub(crate) fn note(&self, event: &TextEvent) {
        self.content.fetch_add(event.length(), Ordering::Relaxed);
        if let TextEvent::LeftOut(kind) = event {
            let mut kinds = self
                .left_out
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            kinds.push(kind);
        }
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
