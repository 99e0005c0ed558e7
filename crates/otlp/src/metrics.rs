//! The metrics of the gateway as messages of OTLP.
//!
//! They are read from the [text](https://prometheus.io/docs/specs/om/open_metrics_spec/) of `/metrics`: the encoders of
//! prometheus-client are a closed list, and the one for protobuf needs `protoc`. The rules are the rules of OpenTelemetry for
//! [Prometheus](https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/), but names have their
//! points. A collector that writes them for Prometheus makes the names of `/metrics` of them again.

mod sample;

use std::time::Duration;

use bytes::Bytes;
use telemetry::metrics::gen_ai;
use telemetry::outcome::Outcome;

use self::sample::Sample;
use crate::messages::metrics::{
    Data, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum, Temporality,
};
use crate::messages::{AnyValue, Copied, KeyValue};
use crate::names::{self, Name};

/// The time that cumulative metrics are about, since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) start: Duration,
    pub(crate) end: Duration,
}

/// A metric whose series are being read.
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    unit: Option<&'a str>,
    data: Option<Data>,
}

/// Reads the text of `/metrics`. Metrics without series are left out.
pub(crate) fn read(text: &str, period: Period) -> Vec<Metric> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            read_comment(comment, &mut families);
        } else if let (Some(family), Some(sample)) = (families.last_mut(), Sample::parse(line)) {
            family.add(&sample, period);
        }
    }
    let metrics = families.into_iter().map(Metric::from);
    metrics.filter(has_series).collect()
}

/// Reads a line about a metric. The first one has its help text.
fn read_comment<'a>(comment: &'a str, families: &mut Vec<Family<'a>>) {
    let mut words = comment.splitn(3, ' ');
    let words = [words.next(), words.next(), words.next()];
    if let [Some("HELP"), Some(name), Some(help)] = words {
        families.push(Family {
            name,
            help,
            unit: None,
            data: None,
        });
    }
    let Some(family) = families.last_mut() else {
        return;
    };
    match words {
        [Some("TYPE"), _, Some(kind)] => family.data = empty(kind),
        [Some("UNIT"), _, unit] => family.unit = unit,
        _ => {}
    }
}

/// The data of a kind of metric without series.
fn empty(kind: &str) -> Option<Data> {
    let aggregation_temporality = Temporality::Cumulative.into();
    match kind {
        "counter" => Some(Data::Sum(Sum {
            aggregation_temporality,
            is_monotonic: true,
            ..Sum::default()
        })),
        "gauge" => Some(Data::Gauge(Gauge::default())),
        "histogram" => Some(Data::Histogram(Histogram {
            aggregation_temporality,
            ..Histogram::default()
        })),
        _ => None,
    }
}

fn has_series(metric: &Metric) -> bool {
    match &metric.data {
        None => false,
        Some(Data::Gauge(gauge)) => !gauge.data_points.is_empty(),
        Some(Data::Sum(sum)) => !sum.data_points.is_empty(),
        Some(Data::Histogram(histogram)) => !histogram.data_points.is_empty(),
    }
}

impl Family<'_> {
    /// Adds a line. Each of a histogram begins with its sum, and goes on with its count and its buckets.
    fn add(&mut self, sample: &Sample<'_>, period: Period) {
        let (start, end) = (nanoseconds(period.start), nanoseconds(period.end));
        let number = || NumberDataPoint {
            start_time_unix_nano: start,
            time_unix_nano: end,
            value: sample.number(),
            attributes: attributes(self.name, sample),
        };
        match &mut self.data {
            Some(Data::Gauge(gauge)) => gauge.data_points.push(NumberDataPoint {
                start_time_unix_nano: 0,
                ..number()
            }),
            Some(Data::Sum(sum)) => sum.data_points.push(number()),
            Some(Data::Histogram(histogram)) if sample.name.ends_with("_sum") => {
                histogram.data_points.push(HistogramDataPoint {
                    start_time_unix_nano: start,
                    time_unix_nano: end,
                    sum: sample.value.parse().ok(),
                    attributes: attributes(self.name, sample),
                    ..HistogramDataPoint::default()
                });
            }
            Some(Data::Histogram(histogram)) => {
                if let Some(point) = histogram.data_points.last_mut() {
                    add_to_histogram(point, sample);
                }
            }
            None => {}
        }
    }
}

/// Adds the count of all measurements, or of a bucket and all before it.
fn add_to_histogram(point: &mut HistogramDataPoint, sample: &Sample<'_>) {
    let count: u64 = sample.value.parse().unwrap_or_default();
    if sample.name.ends_with("_count") {
        point.count = count;
        return;
    }
    let before: u64 = point.bucket_counts.iter().sum();
    point.bucket_counts.push(count.saturating_sub(before));
    let bound = sample.label("le").and_then(|bound| bound.parse().ok());
    point
        .explicit_bounds
        .extend(bound.filter(|bound: &f64| bound.is_finite()));
    point.exemplars.extend(sample.exemplar.clone());
}

impl From<Family<'_>> for Metric {
    fn from(family: Family<'_>) -> Self {
        let (name, unit) = name_and_unit(family.name, family.unit);
        Self {
            name,
            description: Bytes::copy_from_slice(family.help.as_bytes()),
            unit: Bytes::from_static(unit.as_bytes()),
            data: family.data,
        }
    }
}

/// The name with its points and without its unit, and the unit in UCUM.
fn name_and_unit(family: &str, unit: Option<&str>) -> (Bytes, &'static str) {
    let without_unit = unit.and_then(|unit| family.strip_suffix(unit)?.strip_suffix('_'));
    let name = without_unit.unwrap_or(family);
    if let Some((known, unit)) = gen_ai::names().find(|(known, _)| is_same(known, name)) {
        return (Bytes::from_static(known.as_bytes()), unit);
    }
    let unit = match unit {
        Some("seconds") => "s",
        _ => "",
    };
    (name.replacen('_', ".", 1).into(), unit)
}

/// The attributes of a series. Labels without a value are left out.
fn attributes(family: &str, sample: &Sample<'_>) -> Vec<KeyValue> {
    let labels = sample.labels.iter();
    let labels = labels.filter(|(name, value)| *name != "le" && !value.is_empty());
    let mut attributes: Vec<_> = labels.map(|(name, value)| attribute(name, value)).collect();
    if family.starts_with(USAGE) {
        attributes.push(KeyValue::new(names::TOKEN_MODALITY.latest(), "unknown"));
    }
    let outcome = sample.label("outcome").and_then(Outcome::named);
    if let Some(outcome) = outcome.filter(|it| it.is_failure() && family == REQUEST_DURATION) {
        attributes.push(KeyValue::new(names::ERROR_TYPE.latest(), outcome.as_str()));
    }
    attributes
}

/// The attribute of a label, whose name has points if the conventions have it.
fn attribute(label: &str, value: &str) -> KeyValue {
    let names = [names::OPERATION, names::PROVIDER, names::REQUEST_MODEL];
    let known = names
        .map(Name::latest)
        .into_iter()
        .find(|name| is_same(name, label));
    let copied = || Bytes::copy_from_slice(label.as_bytes());
    KeyValue {
        key: known.map_or_else(copied, |name| Bytes::from_static(name.as_bytes())),
        value: Some(AnyValue {
            value: Some(Copied(value).into()),
        }),
    }
}

/// True if a name of the conventions has this name in Prometheus.
fn is_same(name: &str, in_prometheus: &str) -> bool {
    let underscored = name
        .bytes()
        .map(|byte| if byte == b'.' { b'_' } else { byte });
    underscored.eq(in_prometheus.bytes())
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The beginning of the names of metrics that need a modality.
const USAGE: &str = "gen_ai_client_inference_usage_";
/// The metric of failed requests, by error.
const REQUEST_DURATION: &str = "gen_ai_server_request_duration_seconds";

#[cfg(test)]
mod tests;
