//! Tests of the metrics as messages of OTLP.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use telemetry::metrics::Metrics;
use telemetry::metrics::gen_ai::{Generation, Tokens};
use telemetry::traces::context::{SpanId, TraceContext, TraceId};

use super::*;
use crate::messages::Value;
use crate::messages::metrics::Number;

/// The metrics of the conventions that we use, as read from their models: see the file.
const CONVENTIONS: &str = include_str!("../../tests/data/metrics.tsv");
const PERIOD: Period = Period {
    start: Duration::from_secs(1_801_469_000),
    end: Duration::from_secs(1_801_469_349),
};

static TRACE: LazyLock<TraceContext> = LazyLock::new(|| TraceContext {
    trace: TraceId::new(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736),
    parent: None,
    span: SpanId::new(7),
    is_sampled: true,
});

/// A stream of 1.3 s that was completed, or has failed.
fn generation(outcome: Outcome) -> Generation<'static> {
    Generation {
        route: "messages",
        model: "coder",
        target: "house",
        provider: "openai",
        outcome,
        took: Duration::from_millis(1300),
        first_event: Some(Duration::from_millis(300)),
        tokens: Some(Tokens {
            input: 71,
            output: 11,
            ..Tokens::default()
        }),
        cost: None,
        trace: Some(&*TRACE),
    }
}

fn exported(metrics: &Metrics) -> BTreeMap<String, Metric> {
    let text = metrics.render(3, Duration::from_millis(1500));
    let metrics = read(&text, PERIOD).into_iter();
    metrics
        .map(|metric| (String::from_utf8(metric.name.to_vec()).unwrap(), metric))
        .collect()
}

/// The attributes of a series as texts.
fn texts(attributes: &[KeyValue]) -> Vec<(&str, &str)> {
    let attributes = attributes.iter();
    attributes
        .map(|it| match &it.value.as_ref().unwrap().value {
            Some(Value::String(value)) => (
                str::from_utf8(&it.key).unwrap(),
                str::from_utf8(value).unwrap(),
            ),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn histogram(metric: &Metric) -> &Histogram {
    match &metric.data {
        Some(Data::Histogram(histogram)) => histogram,
        other => panic!("{other:?}"),
    }
}

fn sum(metric: &Metric) -> &Sum {
    match &metric.data {
        Some(Data::Sum(sum)) => sum,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_histogram_has_its_buckets_and_the_span_of_a_request() {
    let metrics = Metrics::default();
    metrics.generated(&generation(Outcome::Completed));
    metrics.generated(&generation(Outcome::Completed));
    let exported = exported(&metrics);
    let metric = &exported["gen_ai.server.request.duration"];
    assert_eq!(metric.unit, "s");
    let text = "Time from the head of a request to the last byte of its response";
    assert_eq!(metric.description, text);
    let histogram = histogram(metric);
    assert_eq!(histogram.aggregation_temporality(), Temporality::Cumulative);
    let [point] = &histogram.data_points[..] else {
        panic!("{histogram:?}")
    };
    assert_eq!(
        texts(&point.attributes),
        [
            ("route", "messages"),
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "openai"),
            ("gen_ai.request.model", "coder"),
            ("target", "house"),
            ("outcome", "completed"),
        ]
    );
    assert_eq!((point.count, point.sum), (2, Some(2.6)));
    assert_eq!(point.start_time_unix_nano, 1_801_469_000_000_000_000);
    assert_eq!(point.time_unix_nano, 1_801_469_349_000_000_000);
    // The bounds that the conventions advise.
    assert_eq!(
        point.explicit_bounds,
        [
            0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92
        ]
    );
    let counts = [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0];
    assert_eq!(point.bucket_counts, counts);
    let [exemplar] = &point.exemplars[..] else {
        panic!("{point:?}")
    };
    assert_eq!(exemplar.as_double, Some(1.3));
    assert_eq!(&exemplar.trace_id[..], TRACE.trace.to_bytes());
    assert_eq!(&exemplar.span_id[..], TRACE.span.to_bytes());
    assert!(exemplar.time_unix_nano > 0);
}

#[test]
fn tokens_are_counted_with_the_attributes_that_the_conventions_require() {
    let metrics = Metrics::default();
    metrics.generated(&generation(Outcome::Completed));
    let exported = exported(&metrics);
    let metric = &exported["gen_ai.client.inference.usage.input_tokens"];
    assert_eq!(metric.unit, "{token}");
    let sum = sum(metric);
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality(), Temporality::Cumulative);
    let [point] = &sum.data_points[..] else {
        panic!("{sum:?}")
    };
    assert_eq!(point.value, Some(Number::Int(71)));
    let modality = ("gen_ai.token.modality", "unknown");
    assert!(texts(&point.attributes).contains(&modality));
}

#[test]
fn a_failure_has_its_type_where_the_conventions_require_it() {
    let metrics = Metrics::default();
    metrics.generated(&generation(Outcome::UpstreamTruncated));
    let exported = exported(&metrics);
    let points = &histogram(&exported["gen_ai.server.request.duration"]).data_points;
    let failure = ("error.type", "upstream_truncated");
    assert!(texts(&points[0].attributes).contains(&failure));
    let points = &histogram(&exported["gen_ai.server.time_to_first_token"]).data_points;
    assert!(!texts(&points[0].attributes).contains(&failure));
}

#[test]
fn own_metrics_have_points_and_no_unit_in_their_names() {
    let metrics = Metrics::default();
    metrics.request_ended("messages", 200, None, Duration::from_millis(5));
    let exported = exported(&metrics);
    let requests = sum(&exported["sluicegate.requests"]);
    // Its label `code` is empty.
    let attributes = texts(&requests.data_points[0].attributes);
    assert_eq!(attributes, [("route", "messages"), ("status", "200")]);
    let duration = &exported["sluicegate.request_duration"];
    assert_eq!(duration.unit, "s");
    assert_eq!(histogram(duration).data_points[0].count, 1);
    let gauge = |name: &str| match &exported[name].data {
        Some(Data::Gauge(gauge)) => gauge.data_points[0].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(gauge("sluicegate.in_flight").value, Some(Number::Int(3)));
    assert_eq!(gauge("sluicegate.in_flight").start_time_unix_nano, 0);
    assert_eq!(gauge("sluicegate.uptime").value, Some(Number::Double(1.5)));
    // No streams have ended.
    assert!(!exported.contains_key("sluicegate.streams_ended"));
}

/// Each line of `/metrics` that has a value is a part of a message.
#[test]
fn no_line_is_lost() {
    let metrics = Metrics::default();
    metrics.generated(&generation(Outcome::Completed));
    metrics.upstream_failed("a \"house\"", "upstream_error");
    let text = metrics.render(0, Duration::ZERO);
    let lines = text.lines().filter(|line| !line.starts_with('#')).count();
    let points = |metric: &Metric| match &metric.data {
        None => 0,
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => {
            let points = histogram.data_points.iter();
            points.map(|point| 2 + point.bucket_counts.len()).sum()
        }
    };
    let exported = read(&text, PERIOD);
    assert_eq!(exported.iter().map(points).sum::<usize>(), lines);
}

/// Names, kinds, units and required attributes are as in the file of the conventions.
#[test]
fn metrics_of_the_conventions_are_as_their_models_have_them() {
    let metrics = Metrics::default();
    metrics.generated(&generation(Outcome::Internal));
    let exported = exported(&metrics);
    let ours = exported.keys().filter(|name| name.starts_with("gen_ai"));
    let rows = CONVENTIONS.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<Vec<_>> = rows.map(|line| line.split('\t').collect()).collect();
    let mut known: Vec<_> = rows.iter().map(|row| row[0]).collect();
    known.sort_unstable();
    assert!(ours.map(String::as_str).eq(known));
    for row in rows {
        let [name, instrument, unit, required] = row[..] else {
            panic!("{row:?}")
        };
        let metric = &exported[name];
        assert_eq!(metric.unit, unit, "{name}");
        let (kind, attributes) = match &metric.data {
            Some(Data::Sum(sum)) => ("counter", &sum.data_points[0].attributes),
            Some(Data::Histogram(it)) => ("histogram", &it.data_points[0].attributes),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(kind, instrument, "{name}");
        let attributes = texts(attributes);
        for required in required.split(' ') {
            let mut found = attributes.iter();
            assert!(
                found.any(|(found, _)| *found == required),
                "{name}: {required}"
            );
        }
    }
}
