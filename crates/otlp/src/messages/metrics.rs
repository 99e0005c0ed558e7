//! The messages for metrics.

use bytes::Bytes;
use prost::{Enumeration, Message, Oneof};

use super::{InstrumentationScope, KeyValue, Resource};

/// The body of an export of metrics.
#[derive(Clone, PartialEq, Message)]
pub struct ExportMetricsServiceRequest {
    /// The metrics, by the process that they come from.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// The metrics of a process.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    /// The process.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// The metrics, by the library that has made them.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// The metrics of a library.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    /// The library.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// The metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

/// A metric.
#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    /// The name.
    #[prost(bytes = "bytes", tag = "1")]
    pub name: Bytes,
    /// The description.
    #[prost(bytes = "bytes", tag = "2")]
    pub description: Bytes,
    /// The unit, in [UCUM](https://ucum.org/ucum).
    #[prost(bytes = "bytes", tag = "3")]
    pub unit: Bytes,
    /// The series.
    #[prost(oneof = "Data", tags = "5, 7, 9")]
    pub data: Option<Data>,
}

/// The series of a metric, by its kind.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    /// Current values.
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    /// Counts.
    #[prost(message, tag = "7")]
    Sum(Sum),
    /// Distributions.
    #[prost(message, tag = "9")]
    Histogram(Histogram),
}

/// Current values.
#[derive(Clone, PartialEq, Message)]
pub struct Gauge {
    /// A value for each series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

/// Counts.
#[derive(Clone, PartialEq, Message)]
pub struct Sum {
    /// A count for each series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    /// The time that the counts are about.
    #[prost(enumeration = "Temporality", tag = "2")]
    pub aggregation_temporality: i32,
    /// True if the counts never fall.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// Distributions.
#[derive(Clone, PartialEq, Message)]
pub struct Histogram {
    /// A distribution for each series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramDataPoint>,
    /// The time that the distributions are about.
    #[prost(enumeration = "Temporality", tag = "2")]
    pub aggregation_temporality: i32,
}

/// The time that a data point is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Temporality {
    /// Not known.
    Unspecified = 0,
    /// The time since the last export.
    Delta = 1,
    /// The time since the start of the process.
    Cumulative = 2,
}

/// The value of a series.
#[derive(Clone, PartialEq, Message)]
pub struct NumberDataPoint {
    /// The start of the time that the value is about, in nanoseconds since the Unix epoch.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// The time at which the value was read.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// The value.
    #[prost(oneof = "Number", tags = "4, 6")]
    pub value: Option<Number>,
    /// The attributes.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
}

/// A value, by its type.
#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum Number {
    /// A number.
    #[prost(double, tag = "4")]
    Double(f64),
    /// An integer.
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

/// The distribution of a series.
#[derive(Clone, PartialEq, Message)]
pub struct HistogramDataPoint {
    /// The start of the time that the distribution is about, in nanoseconds since the Unix epoch.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// The time at which the distribution was read.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// The number of measurements.
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    /// Their sum.
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    /// The number of measurements in each bucket.
    #[prost(fixed64, repeated, tag = "6")]
    pub bucket_counts: Vec<u64>,
    /// The upper bounds of the buckets. The last bucket has none.
    #[prost(double, repeated, tag = "7")]
    pub explicit_bounds: Vec<f64>,
    /// Measurements with their spans.
    #[prost(message, repeated, tag = "8")]
    pub exemplars: Vec<Exemplar>,
    /// The attributes.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
}

/// A measurement with its span.
#[derive(Clone, PartialEq, Message)]
pub struct Exemplar {
    /// The time of the measurement, in nanoseconds since the Unix epoch.
    #[prost(fixed64, tag = "2")]
    pub time_unix_nano: u64,
    /// The measured value.
    #[prost(double, optional, tag = "3")]
    pub as_double: Option<f64>,
    /// The id of the span, of 8 bytes.
    #[prost(bytes = "bytes", tag = "4")]
    pub span_id: Bytes,
    /// The id of the trace, of 16 bytes.
    #[prost(bytes = "bytes", tag = "5")]
    pub trace_id: Bytes,
}
