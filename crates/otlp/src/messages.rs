//! The messages of OTLP that are sent and received, as in version 1.10 of
//! [opentelemetry-proto](https://github.com/open-telemetry/opentelemetry-proto). Fields that are never
//! set are left out. Texts are `Bytes` in UTF-8: see the README.

pub mod metrics;

use bytes::Bytes;
use prost::{Enumeration, Message, Oneof};

/// The body of an export of traces.
#[derive(Clone, PartialEq, Message)]
pub struct ExportTraceServiceRequest {
    /// The spans, by the process that they come from.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// The body of the response to an export. The responses for traces and for metrics have the same fields.
#[derive(Clone, PartialEq, Message)]
pub struct ExportResponse {
    /// Set if the collector has rejected a part of the export, or has a warning.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// The part of an export that a collector has rejected.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    /// The number of rejected spans or data points.
    #[prost(int64, tag = "1")]
    pub rejected: i64,
    /// The reason, or a warning if nothing was rejected.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// The spans of a process.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceSpans {
    /// The process.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// The spans, by the library that has made them.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    /// Its attributes, such as `service.name`.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// The spans of a library.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeSpans {
    /// The library.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// The spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

/// A library that makes spans and metrics.
#[derive(Clone, PartialEq, Message)]
pub struct InstrumentationScope {
    /// Its name.
    #[prost(bytes = "bytes", tag = "1")]
    pub name: Bytes,
    /// Its version.
    #[prost(bytes = "bytes", tag = "2")]
    pub version: Bytes,
}

/// A span.
#[derive(Clone, PartialEq, Message)]
pub struct Span {
    /// The id of the trace, of 16 bytes.
    #[prost(bytes = "bytes", tag = "1")]
    pub trace_id: Bytes,
    /// The id of the span, of 8 bytes.
    #[prost(bytes = "bytes", tag = "2")]
    pub span_id: Bytes,
    /// The data of other systems in the trace: the value of `tracestate`.
    #[prost(bytes = "bytes", tag = "3")]
    pub trace_state: Bytes,
    /// The id of the parent. Empty: none.
    #[prost(bytes = "bytes", tag = "4")]
    pub parent_span_id: Bytes,
    /// The name.
    #[prost(bytes = "bytes", tag = "5")]
    pub name: Bytes,
    /// The kind.
    #[prost(enumeration = "SpanKind", tag = "6")]
    pub kind: i32,
    /// The start, in nanoseconds since the Unix epoch.
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    /// The end, in nanoseconds since the Unix epoch.
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    /// The attributes.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// The status. Absent: unset, which is no error.
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
    /// The flags of W3C Trace Context, and whether the parent is in another process.
    #[prost(fixed32, tag = "16")]
    pub flags: u32,
}

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum SpanKind {
    /// Not known.
    Unspecified = 0,
    /// Within a process.
    Internal = 1,
    /// The answer to a request.
    Server = 2,
    /// A request.
    Client = 3,
}

/// The status of a span.
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    /// The cause of the error.
    #[prost(bytes = "bytes", tag = "2")]
    pub message: Bytes,
    /// The code.
    #[prost(enumeration = "StatusCode", tag = "3")]
    pub code: i32,
}

/// The code of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum StatusCode {
    /// Not set.
    Unset = 0,
    /// Known to be no error.
    Ok = 1,
    /// An error.
    Error = 2,
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    /// The name.
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// The value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    /// The value.
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5")]
    pub value: Option<Value>,
}

/// The value of an attribute, by its type.
#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    /// A text.
    #[prost(bytes = "bytes", tag = "1")]
    String(Bytes),
    /// A truth value.
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// An integer.
    #[prost(int64, tag = "3")]
    Int(i64),
    /// A number.
    #[prost(double, tag = "4")]
    Double(f64),
    /// A list.
    #[prost(message, tag = "5")]
    Array(ArrayValue),
}

/// A list of values.
#[derive(Clone, PartialEq, Message)]
pub struct ArrayValue {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<AnyValue>,
}

/// The span has a parent, or none, that is known to be in this process.
pub(crate) const HAS_IS_REMOTE: u32 = 0x100;
/// The parent is in another process.
pub(crate) const IS_REMOTE: u32 = 0x200;

/// A text that is copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied<'a>(pub(crate) &'a str);

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::String(Bytes::from_static(text.as_bytes()))
    }
}

impl From<Copied<'_>> for Value {
    fn from(Copied(text): Copied<'_>) -> Self {
        Self::String(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl KeyValue {
    /// An attribute with a name that is known at compile time.
    pub(crate) fn new(name: &'static str, value: impl Into<Value>) -> Self {
        Self {
            key: Bytes::from_static(name.as_bytes()),
            value: Some(AnyValue {
                value: Some(value.into()),
            }),
        }
    }
}
