//! What one request came to: told once, to the log and to the metrics, when the last of it is gone.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::Usage;
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::outcome::{Ending, Outcome};

/// One request, from its head to its last byte. Dropping it writes the log line.
#[derive(Debug)]
pub(crate) struct Record {
    metrics: Arc<Metrics>,
    started: Instant,
    /// Our id of the request.
    pub(crate) id: String,
    /// The client's own id of it, when it sent a harmless one.
    pub(crate) client_id: Option<String>,
    /// The endpoint, from a closed list.
    pub(crate) route: &'static str,
    /// The name of the key.
    pub(crate) key: Option<String>,
    /// The model, once it is known to be one of ours.
    pub(crate) model: Option<String>,
    /// The HTTP status.
    pub(crate) status: u16,
    /// The error's code, when there is one.
    pub(crate) code: Option<&'static str>,
    /// What the client is not told.
    pub(crate) cause: Option<String>,
    /// Who answers, once that is known: the name of an upstream, or that it is embedded.
    pub(crate) served: Arc<OnceLock<String>>,
    /// Whether the answer is a stream.
    pub(crate) stream: bool,
    /// How it ended; a record dropped without one means that the client went away, or a panic.
    pub(crate) outcome: Option<Outcome>,
    /// Tokens used.
    pub(crate) usage: Option<Usage>,
    /// When the first event of the model came.
    pub(crate) first_event: Option<Instant>,
}

impl Record {
    /// A request that has just come.
    pub(crate) fn new(metrics: Arc<Metrics>, id: String) -> Self {
        Self {
            metrics,
            started: Instant::now(),
            id,
            client_id: None,
            route: "other",
            key: None,
            model: None,
            status: 0,
            code: None,
            cause: None,
            served: Arc::default(),
            stream: false,
            outcome: None,
            usage: None,
            first_event: None,
        }
    }

    /// Notes how an answer ended that its engine brought to its end.
    pub(crate) fn finish(&mut self, ending: Ending) {
        self.usage = ending.usage;
        self.end(ending.outcome);
    }

    /// Notes a panic that was caught.
    pub(crate) fn panicked(&self) {
        self.metrics.panicked();
    }

    /// Sets the outcome, unless one is set: the first that is known stands.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.outcome.is_none() && std::thread::panicking() {
            (self.status, self.code, self.outcome) = (500, Some("server_error"), Some(Outcome::EngineError));
        }
        let outcome = self.outcome.unwrap_or(Outcome::ClientGone);
        let status = if outcome == Outcome::ClientGone { 499 } else { self.status };
        let took = self.started.elapsed();
        self.metrics.request_ended(self.route, status, self.code, took);
        if self.stream {
            self.metrics.stream_ended(self.route, outcome);
        }
        if let Some(usage) = self.usage {
            self.metrics.tokens(usage);
        }
        tracing::info!(
            target: "access",
            request_id = self.id,
            client_request_id = self.client_id,
            route = self.route,
            key = self.key,
            model = self.model,
            target = self.served.get(),
            status,
            code = self.code,
            cause = self.cause,
            stream = self.stream,
            outcome = outcome.as_str(),
            input_tokens = self.usage.map(|usage| usage.input),
            output_tokens = self.usage.map(|usage| usage.output),
            first_event_ms = self.first_event.map(|at| milliseconds(at.duration_since(self.started))),
            took_ms = milliseconds(took),
        );
    }
}

/// A time in milliseconds, to the microsecond.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
