//! The health of the upstreams and of the embedded engines.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use telemetry::requests::report::{AttemptReport, AttemptResult, RequestReport};
use upstream::{Circuit, HostHealth};

use super::AdminRequest;
use super::failure::Failure;

/// The upstreams.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UpstreamList {
    /// The upstreams by name, and `embedded` if it was tried recently.
    upstreams: Vec<UpstreamView>,
}

/// An upstream, or the embedded engines.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Upstream")]
struct UpstreamView {
    /// The name; `embedded` for the embedded engines.
    name: String,
    /// The protocol; null for the embedded engines.
    protocol: Option<&'static str>,
    /// The hosts: of the base URL, and of the fallback if there is one.
    hosts: Vec<HostView>,
    /// The attempts of the last 1000 requests.
    recent: Recent,
}

/// A host of an upstream.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Host")]
struct HostView {
    /// The name or address.
    host: String,
    /// The state of its circuit breaker.
    circuit: CircuitState,
    /// The time until a request is admitted as a probe, in milliseconds, while the circuit breaker is
    /// open.
    probe_in_ms: Option<u64>,
    /// The idle connections.
    idle_connections: usize,
}

/// The state of a circuit breaker.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum CircuitState {
    Closed,
    Open,
    HalfOpen,
}

/// The attempts of recent requests at an upstream.
#[derive(Default, Serialize, JsonSchema)]
struct Recent {
    /// The number of attempts.
    attempts: u64,
    /// The attempts after which the upstream has begun to answer.
    answered: u64,
    /// The failures by code, most frequent first.
    failures: Vec<FailureCount>,
    /// The time until the upstream began to answer, in milliseconds; null without an answer.
    answer_ms: Option<Percentiles>,
    /// The tokens of the prompts that were answered.
    input_tokens: u64,
    /// The part of them that was read from a cache.
    cache_read_tokens: u64,
}

/// The failures with one code.
#[derive(Serialize, JsonSchema)]
struct FailureCount {
    /// The code.
    code: &'static str,
    /// The number of failures.
    count: u64,
}

/// Percentiles of a time in milliseconds.
#[derive(Serialize, JsonSchema)]
struct Percentiles {
    /// The median.
    p50: f64,
    /// The time within which 95 of 100 are.
    p95: f64,
}

/// Sums of the attempts at an upstream.
#[derive(Default)]
struct Sums {
    recent: Recent,
    answer_ms: Vec<f64>,
    failures: BTreeMap<&'static str, u64>,
}

/// Lists the upstreams with their health.
pub(super) async fn list(admin: &AdminRequest<'_>) -> Result<UpstreamList, Failure> {
    let mut sums = BTreeMap::<String, Sums>::new();
    for report in admin.state.history.since(0).0 {
        for attempt in &report.attempts {
            let of_target = sums.entry(attempt.target.clone()).or_default();
            of_target.add(attempt, &report);
        }
    }
    let policy = admin.state.policies.current();
    let mut upstreams: Vec<_> = policy
        .routes
        .upstreams()
        .map(|server| UpstreamView {
            name: server.config.name.clone(),
            protocol: Some(server.config.protocol().as_str()),
            hosts: server
                .upstream
                .health()
                .into_iter()
                .map(HostView::from)
                .collect(),
            recent: sums
                .remove(&server.config.name)
                .unwrap_or_default()
                .finish(),
        })
        .collect();
    if let Some(embedded) = sums.remove("embedded") {
        upstreams.push(UpstreamView {
            name: "embedded".to_owned(),
            protocol: None,
            hosts: Vec::new(),
            recent: embedded.finish(),
        });
    }
    Ok(UpstreamList { upstreams })
}

impl Sums {
    fn add(&mut self, attempt: &AttemptReport, report: &RequestReport) {
        self.recent.attempts += 1;
        if attempt.result == AttemptResult::Cancelled {
            return;
        }
        if attempt.result != AttemptResult::Answered {
            *self
                .failures
                .entry(attempt.code.unwrap_or("unknown"))
                .or_default() += 1;
            return;
        }
        self.recent.answered += 1;
        self.recent.input_tokens += report.input_tokens.unwrap_or_default();
        self.recent.cache_read_tokens += report.cache_read_tokens.unwrap_or_default();
        self.answer_ms
            .push(attempt.answered_ms - attempt.started_ms);
    }

    fn finish(mut self) -> Recent {
        self.answer_ms.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let last = self.answer_ms.len().checked_sub(1)?;
            self.answer_ms.get(last * percent / 100).copied()
        };
        let percentiles = at(50).zip(at(95));
        self.recent.answer_ms = percentiles.map(|(p50, p95)| Percentiles { p50, p95 });
        let failures = self.failures.into_iter();
        self.recent.failures = failures
            .map(|(code, count)| FailureCount { code, count })
            .collect();
        self.recent
            .failures
            .sort_by_key(|failure| std::cmp::Reverse(failure.count));
        self.recent
    }
}

impl From<HostHealth> for HostView {
    fn from(health: HostHealth) -> Self {
        let (circuit, probe_in_ms) = match health.circuit {
            Circuit::Closed => (CircuitState::Closed, None),
            Circuit::HalfOpen => (CircuitState::HalfOpen, None),
            Circuit::Open { probe_in } => {
                let millis = u64::try_from(probe_in.as_millis()).unwrap_or(u64::MAX);
                (CircuitState::Open, Some(millis))
            }
        };
        Self {
            host: health.host,
            circuit,
            probe_in_ms,
            idle_connections: health.idle_connections,
        }
    }
}
