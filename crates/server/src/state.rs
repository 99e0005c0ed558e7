//! The state that all requests share.

use std::sync::Arc;

use auth::Entry;
use engine::{ImageEngine, TextEngine};
use fetch::Fetcher;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::body::budget::Budget;
use crate::config::Limits;
use crate::kept::Kept;
use crate::lifecycle::Lifecycle;
use crate::limit::Limiter;
use crate::metrics::Metrics;
use crate::origins::Origins;
use crate::policy::{Policies, Policy};
use crate::record::Record;

pub(crate) struct ServerState {
    pub(crate) policies: Arc<Policies>,
    pub(crate) limits: Limits,
    pub(crate) limiter: Limiter,
    pub(crate) budget: Budget,
    pub(crate) text_engine: Option<Arc<dyn TextEngine>>,
    pub(crate) image_engine: Option<Arc<dyn ImageEngine>>,
    pub(crate) fetcher: Fetcher,
    /// Permits for fetching images, in total and per key.
    pub(crate) fetches: Limiter,
    /// Permits for parsing large bodies, which takes many times their size in memory.
    pub(crate) reading: Arc<Semaphore>,
    /// The answers that later requests may refer to. `None` if none is kept.
    pub(crate) kept: Option<Arc<Kept>>,
    /// The upstreams that keep responses, for models that allow it.
    pub(crate) origins: Origins,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) started: Instant,
}

/// An authenticated caller, and the state for serving it.
pub(crate) struct Caller<'a> {
    pub(crate) state: &'a Arc<ServerState>,
    pub(crate) policy: &'a Arc<Policy>,
    pub(crate) key: &'a Entry,
    /// The record of the request, which is attached to the response.
    pub(crate) record: &'a mut Record,
    /// The time by which a plain reply has to be complete, and a stream has to have its first
    /// event.
    pub(crate) deadline: Instant,
}

impl ServerState {
    /// Returns the time by which a plain reply has to be complete, and a stream has to have its
    /// first event.
    pub(crate) fn deadline(&self, record: &Record) -> Instant {
        record.started + self.limits.request_timeout
    }

    pub(crate) fn render_metrics(&self) -> String {
        if let Some(kept) = &self.kept {
            self.metrics.kept(kept.figures());
        }
        self.metrics
            .render(self.limiter.taken(), self.started.elapsed())
    }
}
