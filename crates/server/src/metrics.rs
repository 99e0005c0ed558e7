//! Prometheus metrics. Labels come from closed lists, so the number of series is bounded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::Usage;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::connection_state::CloseReason;
use crate::log;
use crate::outcome::Outcome;

/// Every metric of the gateway, all named `sluicegate_…`.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    streams: Family<StreamLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    duration: Histogram,
    in_flight: Gauge,
    connections: Gauge,
    connections_ended: Family<ConnectionLabels, Counter>,
    connections_full: Counter,
    fetches: Family<FetchLabels, Counter>,
    upstream_failures: Family<UpstreamLabels, Counter>,
    panics: Counter,
    /// Panics that ended a request or a stream.
    caught: AtomicU64,
    log_dropped: Counter,
    reloads: Family<ReloadLabels, Counter>,
    uptime: Gauge<f64, AtomicU64>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StreamLabels {
    protocol: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TokenLabels {
    direction: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConnectionLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FetchLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct UpstreamLabels {
    upstream: String,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReloadLabels {
    outcome: &'static str,
}

impl Metrics {
    /// Creates the metrics, all zero.
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("sluicegate"),
            requests: Family::default(),
            streams: Family::default(),
            tokens: Family::default(),
            duration: Histogram::new(exponential_buckets(0.001, 2.0, 20)),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            connections_ended: Family::default(),
            connections_full: Counter::default(),
            fetches: Family::default(),
            upstream_failures: Family::default(),
            panics: Counter::default(),
            caught: AtomicU64::new(0),
            log_dropped: Counter::default(),
            reloads: Family::default(),
            uptime: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("requests", "Requests by route, status and error code", self.requests.clone());
        registry.register("streams_ended", "Streams by protocol and outcome", self.streams.clone());
        registry.register("tokens", "Tokens used", self.tokens.clone());
        let help = "Time from the head of a request to the last byte of its response";
        registry.register_with_unit("request_duration", help, Unit::Seconds, self.duration.clone());
        registry.register("in_flight", "Requests in flight", self.in_flight.clone());
        registry.register("connections", "Open client connections", self.connections.clone());
        registry.register("connections_ended", "Ended client connections by reason", self.connections_ended.clone());
        let help = "Times that the connection limit was reached";
        registry.register("connections_full", help, self.connections_full.clone());
        registry.register("config_reloads", "Configuration reloads by outcome", self.reloads.clone());
        registry.register("fetches", "Images fetched for requests, by outcome", self.fetches.clone());
        let help = "Failed upstream requests by upstream and error code";
        registry.register("upstream_failures", help, self.upstream_failures.clone());
        registry.register("panics", "Caught panics", self.panics.clone());
        let help = "Log lines that were dropped or could not be written";
        registry.register("log_dropped", help, self.log_dropped.clone());
        registry.register_with_unit("uptime", "Time since the start", Unit::Seconds, self.uptime.clone());
    }

    pub(crate) fn request_ended(&self, route: &'static str, status: u16, code: Option<&'static str>, took: Duration) {
        let labels = RequestLabels { route, status, code: code.unwrap_or("") };
        self.requests.get_or_create(&labels).inc();
        self.duration.observe(took.as_secs_f64());
    }

    pub(crate) fn stream_ended(&self, protocol: &'static str, outcome: Outcome) {
        self.streams.get_or_create(&StreamLabels { protocol, outcome: outcome.as_str() }).inc();
    }

    pub(crate) fn tokens(&self, usage: Usage) {
        self.tokens.get_or_create(&TokenLabels { direction: "input" }).inc_by(usage.input);
        self.tokens.get_or_create(&TokenLabels { direction: "output" }).inc_by(usage.output);
    }

    pub(crate) fn connection_opened(&self) {
        self.connections.inc();
    }

    pub(crate) fn connection_closed(&self, reason: CloseReason) {
        self.connections.dec();
        self.connections_ended.get_or_create(&ConnectionLabels { reason: reason.as_str() }).inc();
    }

    pub(crate) fn connections_full(&self) {
        self.connections_full.inc();
    }

    pub(crate) fn reloaded(&self, accepted: bool) {
        self.reloads.get_or_create(&ReloadLabels { outcome: if accepted { "taken" } else { "refused" } }).inc();
    }

    pub(crate) fn fetched(&self, outcome: &'static str) {
        self.fetches.get_or_create(&FetchLabels { outcome }).inc();
    }

    pub(crate) fn upstream_failed(&self, upstream: &str, code: &'static str) {
        self.upstream_failures.get_or_create(&UpstreamLabels { upstream: upstream.to_owned(), code }).inc();
    }

    pub(crate) fn panicked(&self) {
        self.caught.fetch_add(1, Ordering::Relaxed);
    }

    /// Renders every metric in the Prometheus text format.
    pub(crate) fn render(&self, in_flight: usize, uptime: Duration) -> String {
        self.in_flight.set(i64::try_from(in_flight).unwrap_or(i64::MAX));
        self.uptime.set(uptime.as_secs_f64());
        // The log's counter includes panics of decoders and engines, which end no stream by themselves, and all of
        // `caught`.
        let panics = self.caught.load(Ordering::Relaxed).max(log::panics());
        self.panics.inner().store(panics, Ordering::Relaxed);
        self.log_dropped.inner().store(log::lost(), Ordering::Relaxed);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
