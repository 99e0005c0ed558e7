//! The metrics of the conventions for generative AI, release 0.1.0:
//! [of model servers](https://github.com/open-telemetry/semantic-conventions-genai/blob/v0.1.0/docs/gen-ai/gen-ai-metrics.md)
//! and [of tokens](https://github.com/open-telemetry/semantic-conventions-genai/blob/v0.1.0/docs/gen-ai/client-inference.md),
//! under the names that they have in Prometheus, and the costs.
//!
//! In Prometheus, a name has underscores in place of points, and ends in its unit:
//! <https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/#metric-metadata-1>.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, UNIX_EPOCH};

use hashbrown::{Equivalent, HashMap};
use policy::clock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::registry::Unit;
use quota::Money;

use crate::outcome::Outcome;
use crate::traces::context::{SpanId, TraceContext, TraceId};

/// The series of all requests that a model has answered, or failed to.
#[derive(Clone, Debug, Default)]
pub(super) struct GenAiMetrics(Arc<RwLock<HashMap<Labels, Arc<Series>>>>);

/// A finished request for a model.
#[derive(Clone, Copy, Debug)]
pub struct Generation<'a> {
    /// The endpoint, from a closed list.
    pub route: &'static str,
    /// The id of the model in the catalog.
    pub model: &'a str,
    /// The target that has answered: an upstream or `embedded`; empty if all have failed.
    pub target: &'a str,
    /// The vendor of the target, in the words of the conventions; `sluicegate` if all have failed.
    pub provider: &'static str,
    /// The outcome.
    pub outcome: Outcome,
    /// The time to the last byte of the response.
    pub took: Duration,
    /// The time to the first event, if it was a stream.
    pub first_event: Option<Duration>,
    /// The tokens, if they are known.
    pub tokens: Option<Tokens>,
    /// The cost, if it is known.
    pub cost: Option<Money>,
    /// Its place in its trace.
    pub trace: Option<&'a TraceContext>,
}

/// The tokens of a request, of all attempts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of the prompt, including cached tokens.
    pub input: u64,
    /// Of the prompt, read from a cache.
    pub cache_read: u64,
    /// Of the prompt, written to a cache.
    pub cache_write: u64,
    /// Of the answer, including reasoning tokens.
    pub output: u64,
    /// Of the answer, used for reasoning.
    pub reasoning: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    route: &'static str,
    gen_ai_operation_name: &'static str,
    gen_ai_provider_name: &'static str,
    gen_ai_request_model: String,
    /// The configuration bounds the number of names.
    target: String,
    outcome: &'static str,
}

/// Labels that are looked up, with the hash of [`Labels`].
#[derive(Hash)]
struct LabelsRef<'a> {
    route: &'static str,
    gen_ai_operation_name: &'static str,
    gen_ai_provider_name: &'static str,
    gen_ai_request_model: &'a str,
    target: &'a str,
    outcome: &'static str,
}

/// The metrics of requests with the same labels.
#[derive(Debug)]
struct Series {
    duration: Histogram,
    to_first_token: Histogram,
    per_output_token: Histogram,
    tokens: [Counter; TOKENS.len()],
    cost: Counter<f64, AtomicU64>,
}

type Histogram = HistogramWithExemplars<ExemplarLabels>;

/// The span of a request, as labels of an exemplar.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ExemplarLabels {
    trace_id: TraceId,
    span_id: SpanId,
}

/// The name of a counter of tokens, its help text, and the number that is added.
type TokenCounter = (&'static str, &'static str, fn(&Tokens) -> u64);
/// The name of a histogram, its help text, and its place.
type HistogramOfSeries = (&'static str, &'static str, fn(&Series) -> &Histogram);

impl Equivalent<Labels> for LabelsRef<'_> {
    fn equivalent(&self, labels: &Labels) -> bool {
        let own = (
            self.route,
            self.gen_ai_operation_name,
            self.gen_ai_provider_name,
        );
        let other = (
            labels.route,
            labels.gen_ai_operation_name,
            labels.gen_ai_provider_name,
        );
        own == other
            && self.gen_ai_request_model == labels.gen_ai_request_model
            && self.target == labels.target
            && self.outcome == labels.outcome
    }
}

impl From<&LabelsRef<'_>> for Labels {
    fn from(labels: &LabelsRef<'_>) -> Self {
        Self {
            route: labels.route,
            gen_ai_operation_name: labels.gen_ai_operation_name,
            gen_ai_provider_name: labels.gen_ai_provider_name,
            gen_ai_request_model: labels.gen_ai_request_model.to_owned(),
            target: labels.target.to_owned(),
            outcome: labels.outcome,
        }
    }
}

impl GenAiMetrics {
    /// Counts a request.
    pub(super) fn observe(&self, request: &Generation<'_>) {
        let labels = LabelsRef {
            route: request.route,
            gen_ai_operation_name: operation(request.route),
            gen_ai_provider_name: request.provider,
            gen_ai_request_model: request.model,
            target: request.target,
            outcome: request.outcome.as_str(),
        };
        let known = self.find(&labels);
        let series = known.unwrap_or_else(|| self.create(&labels));
        series.observe(request);
    }

    /// Releases the lock before the series is used or created.
    fn find(&self, labels: &LabelsRef<'_>) -> Option<Arc<Series>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(labels).cloned()
    }

    fn create(&self, labels: &LabelsRef<'_>) -> Arc<Series> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(labels.into()).or_default())
    }

    /// All series with their labels, so that the lock is not held while they are written.
    fn all(&self) -> Vec<(Labels, Arc<Series>)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let series = all.iter();
        series
            .map(|(labels, series)| (labels.clone(), Arc::clone(series)))
            .collect()
    }
}

impl Default for Series {
    fn default() -> Self {
        let histogram = |buckets: &'static [f64]| Histogram::new(buckets.iter().copied());
        Self {
            duration: histogram(&SECONDS),
            to_first_token: histogram(&SECONDS_TO_FIRST_TOKEN),
            per_output_token: histogram(&SECONDS_PER_TOKEN),
            tokens: Default::default(),
            cost: Counter::default(),
        }
    }
}

impl Series {
    fn observe(&self, request: &Generation<'_>) {
        // A trace that is exported only if a request fails may not be found.
        let trace = request.trace.filter(|trace| trace.is_sampled);
        let now = trace.map(|_| UNIX_EPOCH + clock::since_epoch());
        let observe = |histogram: &Histogram, time: Duration| {
            let labels = trace.map(|trace| ExemplarLabels {
                trace_id: trace.trace,
                span_id: trace.span,
            });
            histogram.observe(time.as_secs_f64(), labels, now);
        };
        observe(&self.duration, request.took);
        let tokens = request.tokens.unwrap_or_default();
        let is_success = matches!(request.outcome, Outcome::Completed | Outcome::Incomplete);
        if let Some(first) = request.first_event.filter(|_| is_success) {
            observe(&self.to_first_token, first);
            if tokens.output > 1 {
                let rest = request.took.saturating_sub(first);
                let each = rest.div_f64((tokens.output - 1) as f64);
                observe(&self.per_output_token, each);
            }
        }
        for (counter, (_, _, count)) in self.tokens.iter().zip(TOKENS) {
            counter.inc_by(count(&tokens));
        }
        if let Some(cost) = request.cost {
            self.cost.inc_by(cost.nanos() as f64 / 1e9);
        }
    }
}

impl Collector for GenAiMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let all = self.all();
        for (name, help, histogram) in HISTOGRAMS {
            let seconds = Some(&Unit::Seconds);
            encode(&mut encoder, (name, help, seconds), &all, histogram)?;
        }
        for (index, (name, help, _)) in TOKENS.into_iter().enumerate() {
            encode(&mut encoder, (name, help, None), &all, |it| {
                &it.tokens[index]
            })?;
        }
        let cost = ("sluicegate.cost", COST, None);
        encode(&mut encoder, cost, &all, |it| &it.cost)
    }
}

/// Writes a metric of all series.
fn encode<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, unit): (&str, &str, Option<&Unit>),
    all: &[(Labels, Arc<Series>)],
    metric: impl Fn(&Series) -> &M,
) -> Result<(), fmt::Error> {
    let Some((_, first)) = all.first() else {
        return Ok(());
    };
    let kind = metric(first).metric_type();
    let name = name.replace('.', "_");
    let mut metrics = encoder.encode_descriptor(&name, help, unit, kind)?;
    for (labels, series) in all {
        metric(series).encode(metrics.encode_family(labels)?)?;
    }
    Ok(())
}

/// The operation of an endpoint, in the words of the conventions.
pub fn operation(route: &str) -> &'static str {
    match route {
        "image_generations" | "image_edits" => "generate_content",
        "count_tokens" | "input_tokens" => "count_tokens",
        _ => "chat",
    }
}

/// The metrics of the conventions, by their own names, with their units in UCUM.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let histograms = HISTOGRAMS.into_iter().map(|(name, ..)| (name, "s"));
    histograms.chain(TOKENS.into_iter().map(|(name, ..)| (name, "{token}")))
}

/// The histograms of times.
const HISTOGRAMS: [HistogramOfSeries; 3] = [
    (
        "gen_ai.server.request.duration",
        "Time from the head of a request to the last byte of its response",
        |series| &series.duration,
    ),
    (
        "gen_ai.server.time_to_first_token",
        "Time to the first event of a stream that was completed",
        |series| &series.to_first_token,
    ),
    (
        "gen_ai.server.time_per_output_token",
        "Time for each token after the first one, of a stream that was completed",
        |series| &series.per_output_token,
    ),
];

/// The counters of tokens. They do not distinguish `gen_ai.token.modality`, which few servers report.
const TOKENS: [TokenCounter; 5] = [
    (
        "gen_ai.client.inference.usage.input_tokens",
        "Tokens of prompts, including cached tokens",
        |tokens| tokens.input,
    ),
    (
        "gen_ai.client.inference.usage.cache_read.input_tokens",
        "Tokens of prompts that were read from a cache",
        |tokens| tokens.cache_read,
    ),
    (
        "gen_ai.client.inference.usage.cache_write.input_tokens",
        "Tokens of prompts that were written to a cache",
        |tokens| tokens.cache_write,
    ),
    (
        "gen_ai.client.inference.usage.output_tokens",
        "Tokens of answers, including reasoning tokens",
        |tokens| tokens.output,
    ),
    (
        "gen_ai.client.inference.usage.reasoning.output_tokens",
        "Tokens of answers that were used for reasoning",
        |tokens| tokens.reasoning,
    ),
];

const COST: &str = "Cost of requests, in the currency of the prices";

/// The upper bounds of the buckets that the conventions advise, in seconds.
const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const SECONDS_TO_FIRST_TOKEN: [f64; 16] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
const SECONDS_PER_TOKEN: [f64; 13] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
];

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::traces::context::{SpanId, TraceId};

    const REQUEST: Generation<'_> = Generation {
        route: "messages",
        model: "coder",
        target: "house",
        provider: "openai",
        outcome: Outcome::Completed,
        took: Duration::from_millis(1300),
        first_event: Some(Duration::from_millis(300)),
        tokens: Some(Tokens {
            input: 71,
            cache_read: 30,
            cache_write: 0,
            output: 11,
            reasoning: 5,
        }),
        cost: Some(Money::from_nanos(2_500_000)),
        trace: None,
    };

    fn rendered(requests: &[Generation<'_>]) -> String {
        let metrics = GenAiMetrics::default();
        requests.iter().for_each(|request| metrics.observe(request));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(metrics));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[track_caller]
    fn assert_lines(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line}: {text}");
        }
    }

    #[test]
    fn a_stream_is_counted_by_the_names_of_the_conventions() {
        let text = rendered(&[REQUEST, REQUEST]);
        let labels = "route=\"messages\",gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"openai\",\
                      gen_ai_request_model=\"coder\",target=\"house\",outcome=\"completed\"";
        assert_lines(
            &text,
            &[
                "# TYPE gen_ai_server_request_duration_seconds histogram",
                "# UNIT gen_ai_server_request_duration_seconds seconds",
                &format!("gen_ai_server_request_duration_seconds_sum{{{labels}}} 2.6"),
                &format!("gen_ai_server_request_duration_seconds_bucket{{le=\"1.28\",{labels}}} 0"),
                &format!("gen_ai_server_request_duration_seconds_bucket{{le=\"2.56\",{labels}}} 2"),
                &format!("gen_ai_server_time_to_first_token_seconds_sum{{{labels}}} 0.6"),
                &format!("gen_ai_server_time_per_output_token_seconds_sum{{{labels}}} 0.2"),
                &format!("gen_ai_client_inference_usage_input_tokens_total{{{labels}}} 142"),
                &format!(
                    "gen_ai_client_inference_usage_cache_read_input_tokens_total{{{labels}}} 60"
                ),
                &format!("gen_ai_client_inference_usage_output_tokens_total{{{labels}}} 22"),
                &format!(
                    "gen_ai_client_inference_usage_reasoning_output_tokens_total{{{labels}}} 10"
                ),
                &format!("sluicegate_cost_total{{{labels}}} 0.005"),
            ],
        );
    }

    #[test]
    fn a_failure_has_a_duration_but_no_time_to_its_first_token() {
        let failure = Generation {
            outcome: Outcome::UpstreamTruncated,
            ..REQUEST
        };
        let text = rendered(&[failure]);
        let count = |metric: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with(&format!("{metric}_count")));
            line.and_then(|line| line.rsplit(' ').next())
                .unwrap()
                .to_owned()
        };
        assert_eq!(count("gen_ai_server_request_duration_seconds"), "1");
        assert_eq!(count("gen_ai_server_time_to_first_token_seconds"), "0");
        assert_eq!(count("gen_ai_server_time_per_output_token_seconds"), "0");
    }

    /// As in <https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md#exemplars>.
    /// The time of the exemplar follows its value.
    #[test]
    fn a_bucket_names_a_trace_that_is_exported() {
        let mut trace = TraceContext {
            trace: TraceId::new(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736),
            parent: None,
            span: SpanId::new(1),
            is_sampled: true,
        };
        let traced = Generation {
            trace: Some(&trace),
            ..REQUEST
        };
        let exemplar =
            "# {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\",span_id=\"0000000000000001\"} 1.3 ";
        let text = rendered(&[traced]);
        assert!(
            text.lines()
                .any(|line| line.contains("le=\"2.56\"") && line.contains(exemplar)),
            "{text}"
        );
        trace.is_sampled = false;
        let untraced = Generation {
            trace: Some(&trace),
            ..REQUEST
        };
        assert!(!rendered(&[untraced]).contains("trace_id"));
    }
}
