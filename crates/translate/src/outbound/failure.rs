//! Classifies failures of upstreams, and limits what of their messages reaches clients and logs.

mod complaint;
mod sanitise;

use engine::{EngineError, Rejection};
use wire::StreamCode;

pub(super) use self::complaint::Complaint;
use self::sanitise::sanitised;
use crate::error::PROMPT_TOO_LONG;

/// Classifies a response with an error status. The body is parsed in the format of any protocol; it
/// may also be HTML or empty. `retry_after` is in seconds.
///
/// A refused request is the caller's fault; a rejected API key or an unknown model is the
/// operator's.
#[must_use]
pub fn failure(status: u16, body: &[u8], retry_after: Option<u32>) -> EngineError {
    Complaint::read(body).with_status(status, retry_after)
}

/// Returns the message of an error response, in the format of any protocol, without anything
/// private to the operator. `None` if there is none.
#[must_use]
pub fn message(body: &[u8]) -> Option<String> {
    Complaint::read(body).shown_message()
}

impl Complaint {
    /// Classifies an error within a response with a success status. The status is derived from a
    /// known code.
    pub(super) fn in_success(&self) -> EngineError {
        if let Some(code) = self.code.as_deref().and_then(StreamCode::named) {
            return EngineError::Named(code);
        }
        match self.status() {
            Some(status) => self.with_status(status, None),
            None => EngineError::Upstream(self.for_log("error in a reply with status 200")),
        }
    }

    fn with_status(&self, status: u16, retry_after: Option<u32>) -> EngineError {
        match status {
            400 | 422 => self.rejected(self.rejection()),
            413 => self.rejected(Rejection::TooLarge),
            408 | 504 => EngineError::Timeout(self.for_log(&format!("status {status}"))),
            429 => EngineError::RateLimited { retry_after },
            503 | 529 => EngineError::Overloaded { retry_after },
            401 | 403 => EngineError::Misconfigured(
                self.for_log(&format!("authentication failed, status {status}")),
            ),
            404 => EngineError::Misconfigured(self.for_log("model or path not found, status 404")),
            _ => EngineError::Upstream(self.for_log(&format!("status {status}"))),
        }
    }

    fn rejected(&self, why: Rejection) -> EngineError {
        let message = self.shown_message();
        EngineError::Rejected {
            why,
            param: self
                .param
                .as_deref()
                .map(sanitised)
                .filter(|param| !param.is_empty()),
            message: message.unwrap_or_else(|| fallback(why).to_owned()),
        }
    }

    /// Returns its message as others may see it.
    fn shown_message(&self) -> Option<String> {
        self.message
            .as_deref()
            .map(sanitised)
            .filter(|message| !message.is_empty())
    }

    /// Describes the error for the log. The message is left out: it may contain the operator's
    /// keys, accounts and hosts in any form.
    fn for_log(&self, head: &str) -> String {
        let codes = [&self.code, &self.kind].into_iter().flatten();
        let codes: Vec<_> = codes
            .map(|code| sanitised(code))
            .filter(|code| !code.is_empty())
            .collect();
        if codes.is_empty() {
            format!("{head}, no code given")
        } else {
            format!("{head}: {}", codes.join(", "))
        }
    }
}

fn fallback(why: Rejection) -> &'static str {
    match why {
        Rejection::Invalid => "The upstream refused the request.",
        Rejection::ContextLength => PROMPT_TOO_LONG,
        Rejection::ContentPolicy => "The request is against the upstream's content policy.",
        Rejection::TooLarge => "The request is larger than the upstream takes.",
    }
}
