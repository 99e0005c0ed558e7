//! What the failure of an upstream means, and what of its words may be told.

mod complaint;
mod sanitise;

use engine::{EngineError, Rejection};
use wire::StreamCode;

pub(super) use self::complaint::Complaint;
use self::sanitise::sanitised;
use crate::error::PROMPT_TOO_LONG;

/// What an answer with this error status means. The body is read in the shape of any protocol; it may as well be
/// HTML, or nothing. `retry_after` is in seconds.
///
/// A request that the upstream refuses is the caller's fault; a key that it does not take, or a model that it does
/// not know, is the operator's.
#[must_use]
pub fn failure(status: u16, body: &[u8], retry_after: Option<u32>) -> EngineError {
    Complaint::read(body).with_status(status, retry_after)
}

/// What an error means that is told within an answer that had begun as a success.
pub(crate) fn told(code: &str, message: &str) -> EngineError {
    let word = |word: &str| (!word.is_empty()).then(|| word.to_owned());
    Complaint { code: word(code), message: word(message), ..Complaint::default() }.in_success()
}

impl Complaint {
    /// What it means within an answer that had begun as a success. The code names the status, when it is known.
    pub(super) fn in_success(&self) -> EngineError {
        if let Some(code) = self.code.as_deref().and_then(StreamCode::named) {
            return EngineError::Named(code);
        }
        match self.status() {
            Some(status) => self.with_status(status, None),
            None => EngineError::Upstream(self.for_log("in a reply with status 200")),
        }
    }

    fn with_status(&self, status: u16, retry_after: Option<u32>) -> EngineError {
        match status {
            400 | 422 => self.rejected(self.rejection()),
            413 => self.rejected(Rejection::TooLarge),
            408 | 504 => EngineError::Timeout(self.for_log(&format!("status {status}"))),
            429 => EngineError::RateLimited { retry_after },
            503 | 529 => EngineError::Overloaded { retry_after },
            401 | 403 => EngineError::Upstream(self.for_log(&format!("it does not take our key, status {status}"))),
            404 => EngineError::Upstream(self.for_log("it does not know the model or the path, status 404")),
            _ => EngineError::Upstream(self.for_log(&format!("status {status}"))),
        }
    }

    fn rejected(&self, why: Rejection) -> EngineError {
        let message = self.message.as_deref().map(sanitised).filter(|message| !message.is_empty());
        EngineError::Rejected {
            why,
            param: self.param.as_deref().map(sanitised).filter(|param| !param.is_empty()),
            message: message.unwrap_or_else(|| fallback(why).to_owned()),
        }
    }

    /// Its message stays out: it may hold keys, accounts and hosts of the operator's in any form.
    fn for_log(&self, head: &str) -> String {
        let told = [&self.code, &self.kind].into_iter().flatten();
        let told: Vec<_> = told.map(|word| sanitised(word)).filter(|word| !word.is_empty()).collect();
        if told.is_empty() { format!("{head}, no code given") } else { format!("{head}: {}", told.join(", ")) }
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
