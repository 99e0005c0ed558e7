//! The report of a finished request. Times are in milliseconds since the request was received, unless
//! stated otherwise.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use policy::targets::{Backend, Target};
use quota::{Money, Refused};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::outcome::Outcome;
#[cfg(any(test, feature = "test-util"))]
use crate::traces::context::TraceContext;
use crate::traces::request::RequestTrace;

/// A finished request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Request")]
pub struct RequestReport {
    /// The gateway's id of the request.
    pub request_id: String,
    /// The client's own id of the request, if it is safe to log.
    pub client_request_id: Option<String>,
    /// The id of its trace; null without `[traces]`.
    #[serde(rename = "trace_id", serialize_with = "trace_id")]
    #[schemars(with = "Option<String>")]
    pub trace: Option<Arc<RequestTrace>>,
    /// The time at which the request was received.
    pub at: ReceivedAt,
    /// The endpoint, from a closed list.
    pub route: &'static str,
    /// The name of the key.
    #[serde(serialize_with = "shared_text")]
    #[schemars(with = "String")]
    pub key: Arc<str>,
    /// The client's name of the model.
    pub model: Option<String>,
    /// True if the request asked for a stream.
    pub stream: bool,
    /// The outcome, as in the log.
    #[serde(serialize_with = "outcome")]
    #[schemars(with = "String")]
    pub outcome: Outcome,
    /// The HTTP status; 499 if the client disconnected.
    pub status: u16,
    /// The code of the error, if the request failed.
    pub code: Option<&'static str>,
    /// The internal cause of the failure, which the client does not see.
    pub cause: Option<String>,
    /// The decision of the limits; null if the request ended before they were asked.
    pub admission: Option<Box<Admission>>,
    /// The targets that were tried, in order.
    pub attempts: Vec<AttemptReport>,
    /// The kinds of content of the answer that the client's protocol cannot express.
    pub left_out: Vec<&'static str>,
    /// The tokens of the prompts that the targets have reported, of all attempts together.
    pub input_tokens: Option<u64>,
    /// The tokens of the prompts that were read from a cache, of all attempts together.
    pub cache_read_tokens: Option<u64>,
    /// The tokens of the prompts that were written to a cache, of all attempts together.
    pub cache_write_tokens: Option<u64>,
    /// The tokens of the answers that the targets have reported, of all attempts together.
    pub output_tokens: Option<u64>,
    /// The tokens of the answers that were used for reasoning, of all attempts together.
    pub reasoning_tokens: Option<u64>,
    /// The cost as a decimal string; null without a price, or if no limit and no journal counts it.
    #[serde(serialize_with = "decimal")]
    #[schemars(with = "Option<String>")]
    pub cost: Option<Money>,
    /// The time to the first event of the stream.
    pub first_event_ms: Option<f64>,
    /// The time to the last byte of the response.
    pub took_ms: f64,
}

/// The decision of the limits on a request.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Admission {
    /// The limits of the configuration and of the key that apply to the request, besides the limits of
    /// the process. All of them have admitted it, unless `refused_by` is set.
    pub limits: Vec<AppliedLimit>,
    /// The limit that has refused the request.
    pub refused_by: Option<RefusingLimit>,
    /// The time for which the request has waited in queues.
    pub queued_ms: Option<f64>,
    /// True if the store of a shared limit did not answer, or was in quarantine.
    pub degraded: bool,
    /// The tokens that were reserved for the request.
    pub reserved_tokens: u64,
}

/// A limit that applies to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AppliedLimit {
    /// The name of the limit.
    pub limit: String,
    /// The name of the key, if the limit counts each key by itself.
    #[serde(serialize_with = "optional_shared_text")]
    #[schemars(with = "Option<String>")]
    pub key: Option<Arc<str>>,
}

/// The limit that has refused a request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RefusingLimit {
    /// The name of the limit.
    #[serde(serialize_with = "shared_text")]
    #[schemars(with = "String")]
    pub limit: Arc<str>,
    /// The dimension with too little left: `concurrency`, `requests_per_minute`, `tokens_per_minute` or
    /// `budget`.
    pub dimension: &'static str,
    /// The time after which the same request would fit, in milliseconds; null if that depends on other
    /// requests.
    pub retry_after_ms: Option<u64>,
}

/// An attempt to have a request answered by a target.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Attempt")]
pub struct AttemptReport {
    /// The name of an upstream, or `embedded`.
    pub target: String,
    /// The target's name of the model, if it differs from the client's.
    pub model: Option<String>,
    /// The road to the target.
    pub road: Road,
    /// The result.
    pub result: AttemptResult,
    /// The code of the failure.
    pub code: Option<&'static str>,
    /// The internal cause of the failure.
    pub cause: Option<String>,
    /// The upstream's id of the request.
    pub upstream_request_id: Option<String>,
    /// The fields of the request that the target could not be given.
    pub dropped: Vec<String>,
    /// The start of the attempt.
    pub started_ms: f64,
    /// The time until the target began to answer, or failed.
    pub answered_ms: f64,
}

impl AttemptReport {
    /// The report of an attempt that has begun at `started_ms`, relayed or not, and is not answered yet.
    pub fn new(target: &Target, is_relayed: bool, started_ms: f64) -> Self {
        Self {
            target: target.label().to_owned(),
            model: target.model.clone(),
            road: match target.backend {
                Backend::Embedded => Road::Embedded,
                Backend::Upstream(_) if is_relayed => Road::Relayed,
                Backend::Upstream(_) => Road::Translated,
            },
            result: AttemptResult::Answered,
            code: None,
            cause: None,
            upstream_request_id: None,
            dropped: Vec::new(),
            started_ms,
            answered_ms: started_ms,
        }
    }
}

/// The road of a request to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Road {
    /// To an upstream of the client's protocol, almost unchanged.
    Relayed,
    /// Translated to the protocol of the upstream.
    Translated,
    /// To an engine in the gateway's process.
    Embedded,
}

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    /// The target has begun to answer.
    Answered,
    /// The target has failed before its answer began.
    Failed,
    /// The target was not asked, because its circuit breaker was open.
    CircuitOpen,
    /// It was cancelled, because another target has answered a hedged request first.
    Cancelled,
}

/// A time in Unix milliseconds, written as of RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedAt(pub i64);

impl Serialize for ReceivedAt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = Timestamp::from_millisecond(self.0).unwrap_or(Timestamp::MAX);
        serializer.collect_str(&time)
    }
}

impl JsonSchema for ReceivedAt {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ReceivedAt".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

impl RequestReport {
    /// The attempt that was answered.
    pub fn answered(&self) -> Option<&AttemptReport> {
        let mut attempts = self.attempts.iter();
        attempts.find(|attempt| attempt.result == AttemptResult::Answered)
    }

    /// The number of its spans: its own, and one for each attempt.
    pub fn spans(&self) -> u64 {
        1 + self.attempts.len() as u64
    }
}

#[cfg(any(test, feature = "test-util"))]
impl RequestReport {
    /// A completed request in a trace, for tests.
    pub fn traced(context: TraceContext) -> Self {
        Self {
            trace: Some(Arc::new(RequestTrace {
                context,
                state: None,
                path: "/v1/messages".to_owned(),
                host: None,
            })),
            ..Self::completed("req_1".to_owned())
        }
    }

    /// A completed request, for tests.
    pub fn completed(request_id: String) -> Self {
        Self {
            request_id,
            client_request_id: None,
            trace: None,
            at: ReceivedAt(0),
            route: "messages",
            key: "team".into(),
            model: Some("small".to_owned()),
            stream: true,
            outcome: Outcome::Completed,
            status: 200,
            code: None,
            cause: None,
            admission: None,
            attempts: Vec::new(),
            left_out: Vec::new(),
            input_tokens: None,
            cache_read_tokens: None,
            cache_write_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            cost: None,
            first_event_ms: None,
            took_ms: 412.4,
        }
    }
}

impl Admission {
    /// Sets the limit that has refused the request.
    pub fn set_refused(&mut self, refused: &Refused) {
        self.degraded = refused.is_degraded;
        self.refused_by = Some(RefusingLimit {
            limit: Arc::clone(&refused.limit),
            dimension: refused.dimension.as_str(),
            retry_after_ms: refused.retry_after.map(|micros| micros.div_ceil(1000)),
        });
    }
}

fn optional_shared_text<S: Serializer>(
    text: &Option<Arc<str>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

fn shared_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn trace_id<S: Serializer>(
    trace: &Option<Arc<RequestTrace>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let id = trace.as_ref().map(|trace| trace.context.trace.to_string());
    id.serialize(serializer)
}

fn outcome<S: Serializer>(outcome: &Outcome, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(outcome.as_str())
}

fn decimal<S: Serializer>(money: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
    money.serialize(serializer)
}
