//! Reasons for failures, and how the client and the metrics report them.

use serde_json::Value;
use simulator::Protocol;
use testkit::Response;
use testkit::reading::End;

use super::Case;
use crate::fault::{Kind, Upload};

/// A reason for which there is no response, or an incomplete one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The request is invalid or truncated.
    Invalid,
    /// The request is against the upstream's policy for content.
    AgainstPolicy,
    /// The request timed out during its upload.
    SlowRequest,
    /// The request is too large for the upstream.
    TooLarge,
    /// The upstream limits the rate of requests.
    RateLimited,
    /// The upstream is overloaded.
    Overloaded,
    /// The upstream failed, or its response is invalid.
    Failed,
    /// The upstream's response is truncated.
    Truncated,
    /// The upstream timed out.
    Late,
    /// The request deadline has passed.
    Expired,
    /// The gateway shuts down.
    Shutdown,
}

impl Reason {
    /// The status that reports it before a response has started, with the code in the body; in
    /// Messages the type.
    pub(super) fn refusal(self, client: Protocol) -> (u16, &'static str) {
        let (status, code, kind) = match self {
            Self::Invalid => (400, "invalid_value", "invalid_request_error"),
            Self::AgainstPolicy => (400, "content_policy_violation", "invalid_request_error"),
            Self::SlowRequest => (408, "request_timeout", "timeout_error"),
            Self::TooLarge => (413, "request_too_large", "request_too_large"),
            Self::RateLimited => (429, "rate_limit_exceeded", "rate_limit_error"),
            Self::Overloaded if client == Protocol::Messages => (529, "", "overloaded_error"),
            Self::Overloaded | Self::Shutdown => (503, "service_unavailable", "overloaded_error"),
            Self::Failed | Self::Truncated => (502, "upstream_error", "api_error"),
            Self::Late | Self::Expired => (504, "upstream_timeout", "timeout_error"),
        };
        (
            status,
            if client == Protocol::Messages {
                kind
            } else {
                code
            },
        )
    }

    /// The code, or type, of the event that reports it within a stream.
    fn event(self, client: Protocol) -> &'static str {
        match (self, client) {
            (Self::RateLimited, Protocol::Messages) => "rate_limit_error",
            (Self::RateLimited, _) => "rate_limit_exceeded",
            (Self::Overloaded, Protocol::Messages) => "overloaded_error",
            (_, Protocol::Messages) => "api_error",
            _ => "server_error",
        }
    }

    /// The code in metrics; for a stream that had started it differs where the gateway itself ends
    /// it.
    pub(super) fn code(self, has_begun: bool) -> &'static str {
        match self {
            Self::Expired | Self::Shutdown if has_begun => "server_error",
            Self::Overloaded => "service_unavailable",
            _ => self.refusal(Protocol::Chat).1,
        }
    }

    /// The outcome in metrics of a stream that was requested.
    pub(super) fn outcome(self, has_begun: bool) -> &'static str {
        match self {
            Self::Invalid | Self::AgainstPolicy | Self::TooLarge => "refused",
            Self::RateLimited | Self::Overloaded => "shed",
            Self::Truncated if has_begun => "upstream_truncated",
            Self::Failed | Self::Truncated => "upstream_error",
            Self::Late | Self::Expired | Self::SlowRequest => "timeout",
            Self::Shutdown => "shutdown",
        }
    }
}

/// The possible reasons, by the fault and by the upstream's response.
pub(super) fn reasons(case: &Case<'_>) -> Vec<Reason> {
    if let Some(reason) = of_coding(case) {
        return vec![reason];
    }
    match case.fault.kind {
        Kind::Refused => vec![Reason::Failed],
        Kind::Unreachable => vec![Reason::Late],
        Kind::Upload(..) if !case.observed.client.sent_whole => {
            vec![Reason::Invalid, Reason::SlowRequest]
        }
        Kind::Shutdown(_) => vec![Reason::Shutdown],
        _ if case.may_be_late() => [of_answer(case), vec![Reason::Late, Reason::Expired]].concat(),
        _ => of_answer(case),
    }
}

/// The reason for which a request in a content coding is refused. A bomb is too large, and one that
/// its coding does not describe is invalid.
fn of_coding(case: &Case<'_>) -> Option<Reason> {
    match case.fault.upload()? {
        Upload::Whole => None,
        Upload::Bomb => Some(Reason::TooLarge),
        Upload::Cut(_) | Upload::Mislabelled => Some(Reason::Invalid),
    }
}

fn of_answer(case: &Case<'_>) -> Vec<Reason> {
    let sent = case.sent;
    if sent.status != 0 && !sent.is_ok() {
        return vec![of_status(sent.status)];
    }
    match &case.theirs.end {
        End::Failure(Some(code)) => vec![of_code(code)],
        // Two targets that stall may take all the time of the request.
        End::Missing if sent.is_silent() && case.fault.kind.stalls() && case.fell_back() => {
            vec![Reason::Late, Reason::Expired]
        }
        End::Missing if sent.is_silent() && case.fault.kind.stalls() => vec![Reason::Late],
        // The gateway itself may have aborted, at a head or an event that it rejects.
        End::Missing if sent.is_silent() => vec![
            Reason::Late,
            Reason::Expired,
            Reason::Truncated,
            Reason::Failed,
        ],
        _ => vec![Reason::Truncated, Reason::Failed],
    }
}

/// The meaning of an upstream's status for a client: a refused request is the client's fault, an
/// unknown key or model is the operator's. Some vendors have statuses of their own: 446 is
/// Portkey's refusal by a guardrail, 498 is Groq's lack of capacity, 522 and 524 are Cloudflare's
/// timeouts.
fn of_status(status: u16) -> Reason {
    match status {
        400 | 422 => Reason::Invalid,
        446 | 451 => Reason::AgainstPolicy,
        413 => Reason::TooLarge,
        429 => Reason::RateLimited,
        498 | 503 | 529 => Reason::Overloaded,
        408 | 504 | 522 | 524 => Reason::Late,
        _ => Reason::Failed,
    }
}

/// The meaning of an error that an upstream reports with a status of success.
fn of_code(code: &str) -> Reason {
    match code {
        "rate_limit_exceeded" | "rate_limit_error" => Reason::RateLimited,
        "overloaded_error" => Reason::Overloaded,
        _ => Reason::Failed,
    }
}

/// A status reports the reason, in the error format of the client's protocol.
pub(super) fn check_refusal(case: &Case<'_>, response: &Response) {
    let client = case.fault.client;
    // A truncated request has separate errors.
    if case.observed.client.sent_whole {
        testkit::check_relayed_refusal(client, response, case.words());
    }
    assert!(response.is_complete(), "a refusal breaks off");
    let body: Value = serde_json::from_slice(&response.body).expect("a refusal is JSON");
    let error = &body["error"];
    let member = if client == Protocol::Messages {
        "type"
    } else {
        "code"
    };
    let found = (response.status, error[member].as_str().unwrap_or_default());
    let reasons = reasons(case);
    let owed: Vec<_> = reasons
        .iter()
        .map(|reason| reason.refusal(client))
        .collect();
    let is_word = testkit::has_word(case.words(), found.1);
    let is_owed = |owed: &(u16, &str)| owed.0 == found.0 && (is_word || owed.1 == found.1);
    assert!(
        owed.iter().any(is_owed),
        "{found:?} is reported, and not one of {owed:?}, which are for {reasons:?}"
    );
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "no message: {body}"
    );
    let is_of_messages = body["type"] == "error";
    assert_eq!(
        is_of_messages,
        client == Protocol::Messages,
        "the error of another protocol: {body}"
    );
    if case.fault.transport.has_headers() {
        check_wait(response);
    }
    assert_eq!(
        response.header("x-sluicegate-dropped"),
        None,
        "something is dropped of no answer"
    );
}

/// Clients get a Retry-After where that helps, of an hour at most.
fn check_wait(response: &Response) {
    let wait = response
        .header("retry-after")
        .map(|wait| wait.parse::<u32>().expect("seconds"));
    let is_owed = matches!(response.status, 429 | 503 | 529);
    assert_eq!(
        wait.is_some(),
        is_owed,
        "retry-after of status {}: {wait:?}",
        response.status
    );
    assert!(
        wait.is_none_or(|wait| (1..=3600).contains(&wait)),
        "retry-after: {wait:?}"
    );
}

/// The event that ends a stream reports the reason, with a code that its clients know.
pub(super) fn check_event(case: &Case<'_>, code: Option<&str>) {
    let reasons = reasons(case);
    let owed: Vec<_> = reasons
        .iter()
        .map(|reason| reason.event(case.fault.client))
        .collect();
    let is_owed = code.is_some_and(|code| owed.contains(&code));
    assert!(
        is_owed,
        "the stream fails with {code:?}, and not with one of {owed:?}, which are for {reasons:?}"
    );
}
