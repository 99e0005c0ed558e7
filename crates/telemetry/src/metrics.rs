//! Prometheus metrics. Labels come from closed lists, so the number of series is bounded.

mod durations;
pub mod gen_ai;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use policy::hedge::HedgeEvent;
use policy::limit::OWN_LIMITS;
use policy::limit::lease_client::Exchanges;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry, Unit};
use quota::Refused;

use self::durations::Durations;
use self::gen_ai::{GenAiMetrics, Generation};
use crate::close_reason::CloseReason;
use crate::log;
use crate::outcome::Outcome;
use crate::traces::span_result::SpanResult;

/// Every metric of the gateway, named `sluicegate_…` or, by the conventions for generative AI, `gen_ai_…`.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// The metrics whose names have no prefix of ours.
    unprefixed: Registry,
    gen_ai: GenAiMetrics,
    requests: Family<RequestLabels, Counter>,
    streams: Family<Labels<2>, Counter>,
    tokens: Family<Labels<1>, Counter>,
    left_out: Family<Labels<1>, Counter>,
    duration: Durations,
    in_flight: Gauge,
    /// Open client connections.
    pub connections: Gauge,
    connections_ended: Family<Labels<1>, Counter>,
    /// Connections that were refused because too many are open.
    pub connections_full: Counter,
    tls_handshake_failures: Family<Labels<2>, Counter>,
    tls_certificate_expiry: Family<Labels<1>, Gauge>,
    tls_reloads: Family<Labels<2>, Counter>,
    fetches: Family<Labels<1>, Counter>,
    limit_refusals: Family<LimitLabels, Counter>,
    queue_duration: Durations,
    queued: Gauge,
    upstream_failures: Family<UpstreamLabels, Counter>,
    hedges: Family<Labels<1>, Counter>,
    kept: Gauge,
    kept_bytes: Gauge,
    kept_evicted: Counter,
    key_refreshes: Family<KeyLabels, Counter>,
    lease_exchanges: Family<Labels<1>, Counter>,
    spans: Family<Labels<1>, Counter>,
    usage_refused: Counter,
    journal_faults: Family<Labels<1>, Counter>,
    panics: Counter,
    /// Panics that ended a request or a stream.
    caught: AtomicU64,
    log_dropped: Counter,
    reloads: Family<Labels<1>, Counter>,
    uptime: Gauge<f64, AtomicU64>,
    usual: [Usual; USUAL_ROUTES.len()],
    /// The counters of input and output tokens, from the first use on.
    token_counters: OnceLock<[Counter; 2]>,
}

/// The counters of the successful requests and streams of a route, from the first use on. A look-up
/// in a family for each of these takes a lock and a hash.
#[derive(Debug, Default)]
struct Usual {
    requests: OnceLock<Counter>,
    streams: OnceLock<Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LimitLabels {
    /// The name of the limit. The configuration bounds the number of names.
    limit: String,
    dimension: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct UpstreamLabels {
    upstream: String,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KeyLabels {
    upstream: String,
    outcome: &'static str,
}

/// Names and values of labels.
type Labels<const N: usize> = [(&'static str, &'static str); N];

impl Default for Metrics {
    fn default() -> Self {
        let gen_ai = GenAiMetrics::default();
        let mut unprefixed = Registry::default();
        unprefixed.register_collector(Box::new(gen_ai.clone()));
        let mut registry = Registry::with_prefix("sluicegate");
        let to = &mut registry;
        let [duration, queue_duration] = [Durations::default(), Durations::default()];
        Self {
            requests: registered(to, "requests", "Requests by route, status and error code"),
            streams: registered(to, "streams_ended", "Streams by protocol and outcome"),
            tokens: registered(to, "tokens", "Tokens used"),
            left_out: registered(to, "content_left_out", CONTENT_LEFT_OUT),
            duration: in_seconds(to, "request_duration", REQUEST_DURATION, duration),
            in_flight: registered(to, "in_flight", "Requests in flight"),
            connections: registered(to, "connections", "Open client connections"),
            connections_ended: registered(
                to,
                "connections_ended",
                "Ended client connections by reason",
            ),
            connections_full: registered(
                to,
                "connections_full",
                "Times that the connection limit was reached",
            ),
            tls_handshake_failures: registered(to, "tls_handshake_failures", TLS_FAILURES),
            tls_certificate_expiry: in_seconds(
                to,
                "tls_certificate_expiry_timestamp",
                TLS_EXPIRY,
                Family::default(),
            ),
            tls_reloads: registered(to, "tls_reloads", TLS_RELOADS),
            reloads: registered(to, "config_reloads", "Configuration reloads by outcome"),
            fetches: registered(to, "fetches", "Images fetched for requests, by outcome"),
            limit_refusals: registered(to, "limit_refusals", LIMIT_REFUSALS),
            queue_duration: in_seconds(to, "queue_duration", QUEUE_DURATION, queue_duration),
            queued: registered(to, "queued", "Requests that wait in queues of quotas"),
            upstream_failures: registered(to, "upstream_failures", UPSTREAM_FAILURES),
            hedges: registered(to, "hedges", HEDGES),
            kept: registered(to, "responses_kept", "Answers of Responses in memory"),
            kept_bytes: registered(to, "responses_kept_bytes", "Their size in bytes"),
            kept_evicted: registered(to, "responses_evicted", RESPONSES_EVICTED),
            key_refreshes: registered(to, "key_refreshes", KEY_REFRESHES),
            lease_exchanges: registered(to, "lease_exchanges", LEASE_EXCHANGES),
            spans: registered(to, "spans", SPANS),
            usage_refused: registered(to, "usage_refused", USAGE_REFUSED),
            journal_faults: registered(to, "journal_faults", JOURNAL_FAULTS),
            panics: registered(to, "panics", "Caught panics"),
            log_dropped: registered(
                to,
                "log_dropped",
                "Log lines that were dropped or could not be written",
            ),
            uptime: in_seconds(to, "uptime", "Time since the start", Gauge::default()),
            caught: AtomicU64::new(0),
            usual: Default::default(),
            token_counters: OnceLock::new(),
            registry,
            unprefixed,
            gen_ai,
        }
    }
}

impl Metrics {
    /// Counts a finished request, and its duration to the last byte.
    pub fn request_ended(
        &self,
        route: &'static str,
        status: u16,
        code: Option<&'static str>,
        took: Duration,
    ) {
        let labels = RequestLabels {
            route,
            status,
            code: code.unwrap_or(""),
        };
        match self.usual(route) {
            Some(usual) if (status, code) == (200, None) => {
                let create = || self.requests.get_or_create_owned(&labels);
                usual.requests.get_or_init(create).inc();
            }
            _ => {
                self.requests.get_or_create(&labels).inc();
            }
        }
        self.duration.observe(took);
    }

    /// Counts a finished request that a model has answered, or failed to.
    pub fn generated(&self, request: &Generation<'_>) {
        self.gen_ai.observe(request);
    }

    /// Counts a finished stream by its outcome.
    pub fn stream_ended(&self, protocol: &'static str, outcome: Outcome) {
        let labels = [("protocol", protocol), ("outcome", outcome.as_str())];
        match self.usual(protocol) {
            Some(usual) if outcome == Outcome::Completed => {
                let create = || self.streams.get_or_create_owned(&labels);
                usual.streams.get_or_init(create).inc();
            }
            _ => {
                self.streams.get_or_create(&labels).inc();
            }
        }
    }

    /// Counts the tokens of a request.
    pub fn tokens(&self, prompt: u64, answer: u64) {
        let counter = |direction| self.tokens.get_or_create_owned(&[("direction", direction)]);
        let create = || [counter("input"), counter("output")];
        let [input, output] = self.token_counters.get_or_init(create);
        input.inc_by(prompt);
        output.inc_by(answer);
    }

    fn usual(&self, route: &str) -> Option<&Usual> {
        let index = USUAL_ROUTES.iter().position(|usual| *usual == route)?;
        self.usual.get(index)
    }

    /// Counts an answer whose content of this kind its client does not get.
    pub fn left_out(&self, kind: &'static str) {
        self.left_out.get_or_create(&[("kind", kind)]).inc();
    }

    /// Counts a client connection that ended.
    pub fn connection_closed(&self, reason: CloseReason) {
        self.connections.dec();
        self.connections_ended
            .get_or_create(&[("reason", reason.as_str())])
            .inc();
    }

    /// Counts a TLS handshake that has failed, by listener and reason.
    pub fn tls_handshake_failed(&self, listener: &'static str, reason: &'static str) {
        let labels = [("listener", listener), ("reason", reason)];
        self.tls_handshake_failures.get_or_create(&labels).inc();
    }

    /// Sets the end of the validity of a listener's certificate, in Unix seconds.
    pub fn tls_certificate(&self, listener: &'static str, not_after: Duration) {
        let seconds = i64::try_from(not_after.as_secs()).unwrap_or(i64::MAX);
        let labels = [("listener", listener)];
        self.tls_certificate_expiry
            .get_or_create(&labels)
            .set(seconds);
    }

    /// Counts an attempt to read the certificate of a listener again.
    pub fn tls_reloaded(&self, listener: &'static str, accepted: bool) {
        let outcome = if accepted { "taken" } else { "refused" };
        let labels = [("listener", listener), ("outcome", outcome)];
        self.tls_reloads.get_or_create(&labels).inc();
    }

    /// Counts an attempt to reload the configuration.
    pub fn reloaded(&self, accepted: bool) {
        self.reloads
            .get_or_create(&[("outcome", if accepted { "taken" } else { "refused" })])
            .inc();
    }

    /// Counts a fetched image, or a failed fetch.
    pub fn fetched(&self, outcome: &'static str) {
        self.fetches.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Counts a request that a limit has refused. The own limits of all keys are one series, because
    /// keys come and go while the gateway runs.
    pub fn limited(&self, refused: &Refused) {
        let limit = match refused.limit.starts_with(OWN_LIMITS) {
            true => "own limits of a key".to_owned(),
            false => refused.limit.to_string(),
        };
        let dimension = refused.dimension.as_str();
        let labels = LimitLabels { limit, dimension };
        self.limit_refusals.get_or_create(&labels).inc();
    }

    /// Observes the time that a request has waited in queues of quotas.
    pub fn queued(&self, waited: Duration) {
        self.queue_duration.observe(waited);
    }

    /// Sets the number of requests that wait in queues of quotas.
    pub fn waiting(&self, requests: usize) {
        self.queued.set(i64::try_from(requests).unwrap_or(i64::MAX));
    }

    /// Counts a failed request to an upstream.
    pub fn upstream_failed(&self, upstream: &str, code: &'static str) {
        self.upstream_failures
            .get_or_create(&UpstreamLabels {
                upstream: upstream.to_owned(),
                code,
            })
            .inc();
    }

    /// Counts an event of a hedge.
    pub fn hedge(&self, event: HedgeEvent) {
        self.hedges
            .get_or_create(&[("event", event.as_str())])
            .inc();
    }

    /// Sets the figures of the response store: the number of its responses, their bytes, and the number that
    /// was removed for others before they were too old.
    pub fn kept(&self, responses: usize, bytes: usize, evicted: u64) {
        let gauge = |number| i64::try_from(number).unwrap_or(i64::MAX);
        self.kept.set(gauge(responses));
        self.kept_bytes.set(gauge(bytes));
        self.kept_evicted.inner().store(evicted, Ordering::Relaxed);
    }

    /// Sets the numbers of exchanges with the lease store.
    pub fn exchanged(&self, exchanges: Exchanges) {
        for (outcome, count) in [
            ("answered", exchanges.answered),
            ("failed", exchanges.failed),
        ] {
            let counter = self.lease_exchanges.get_or_create(&[("outcome", outcome)]);
            counter.inner().store(count, Ordering::Relaxed);
        }
    }

    /// Sets the numbers of spans by the result of exporting them.
    pub fn spans(&self, counts: impl Iterator<Item = (SpanResult, u64)>) {
        for (result, spans) in counts {
            let counter = self.spans.get_or_create(&[("result", result.as_str())]);
            counter.inner().store(spans, Ordering::Relaxed);
        }
    }

    /// Sets the number of entries of usage that the store refuses.
    pub fn usage_refused(&self, entries: u64) {
        self.usage_refused.inner().store(entries, Ordering::Relaxed);
    }

    /// Sets the numbers of failures of the journal of usage.
    pub fn journal_faults(&self, faults: impl Iterator<Item = (&'static str, u64)>) {
        for (kind, count) in faults {
            let counter = self.journal_faults.get_or_create(&[("kind", kind)]);
            counter.inner().store(count, Ordering::Relaxed);
        }
    }

    /// Counts a refresh of an upstream's key by its command.
    pub fn key_refreshed(&self, upstream: &str, succeeded: bool) {
        self.key_refreshes
            .get_or_create(&KeyLabels {
                upstream: upstream.to_owned(),
                outcome: if succeeded { "succeeded" } else { "failed" },
            })
            .inc();
    }

    /// Counts a panic that ended a request or a stream.
    pub fn panicked(&self) {
        self.caught.fetch_add(1, Ordering::Relaxed);
    }

    /// Renders every metric in the Prometheus text format.
    pub fn render(&self, in_flight: u64, uptime: Duration) -> String {
        self.in_flight
            .set(i64::try_from(in_flight).unwrap_or(i64::MAX));
        self.uptime.set(uptime.as_secs_f64());
        // The log's counter includes panics of decoders and engines, which end no stream by
        // themselves, and all of `caught`.
        let panics = self.caught.load(Ordering::Relaxed).max(log::panics());
        self.panics.inner().store(panics, Ordering::Relaxed);
        self.log_dropped
            .inner()
            .store(log::lost(), Ordering::Relaxed);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode_registry(&mut text, &self.unprefixed);
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Adds a metric to the registry.
fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Adds a metric of a time to the registry.
fn in_seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

/// The routes whose successes are counted without a look-up.
const USUAL_ROUTES: [&str; 5] = [
    "chat_completions",
    "messages",
    "responses",
    "image_generations",
    "image_edits",
];
const TLS_FAILURES: &str = "TLS handshakes of clients that failed, by listener and reason";
const TLS_EXPIRY: &str = "End of the validity of a listener's certificate, in Unix time";
const TLS_RELOADS: &str = "Times that a listener's certificate was read again, by outcome";
const REQUEST_DURATION: &str = "Time from the head of a request to the last byte of its response";
const CONTENT_LEFT_OUT: &str =
    "Translated answers by the kind of content that their clients' protocol cannot express";
const RESPONSES_EVICTED: &str =
    "ResponseStore answers that were removed early to make room for others";
const LEASE_EXCHANGES: &str = "Exchanges with the store that lends quotas, by outcome";
const SPANS: &str =
    "Spans of requests by the result of exporting them: sent to the collector, or lost";
const USAGE_REFUSED: &str =
    "Entries of usage that the store will never take, and that were set aside";
const JOURNAL_FAULTS: &str = "Failures of the journal of usage by kind, such as damaged entries";
const LIMIT_REFUSALS: &str = "Requests that a limit has refused, by limit and dimension";
const QUEUE_DURATION: &str = "Time that requests have waited in queues of quotas";
const UPSTREAM_FAILURES: &str = "Failed upstream requests by upstream and error code";
const HEDGES: &str = "Requests sent to another target while the first one is slow, by event";
const KEY_REFRESHES: &str = "Refreshes of upstream keys by their commands, by upstream and outcome";
