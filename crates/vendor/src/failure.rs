//! Classifies failures of upstreams, and limits the parts of messages that reach clients and logs.

mod complaint;
mod delay;
mod phrase;
mod rows;
mod sanitise;
mod sizes;
mod table;

use engine::{EngineError, Rejection};
use wire::{Reported, StreamCode};

pub(crate) use self::complaint::Complaint;
use self::sanitise::sanitised;
use self::table::Meaning;

/// Classifies a response with an error status. The body is parsed in the format of any protocol; it
/// may also be text, HTML or empty. `retry_after` is the value of the header, in seconds; without one, the
/// body may state it.
///
/// A refused request is the caller's fault; a rejected API key, an unknown model and an account
/// without credit are the operator's.
#[must_use]
pub fn failure(status: u16, body: &[u8], retry_after: Option<u32>) -> EngineError {
    let complaint = Complaint::read(body);
    let meaning = table::meaning(&complaint, Some(status)).unwrap_or(Meaning::of_status(status));
    complaint.with_meaning(meaning, Some(status), retry_after)
}

/// Returns the message of an error response, in the format of any protocol, without anything
/// private to the operator. Returns `None` for a response without a message.
#[must_use]
pub fn message(body: &[u8]) -> Option<String> {
    Complaint::read(body).shown_message()
}

impl Complaint {
    /// Classifies an error within a response with a success status. Without a known meaning, the
    /// status that its code stands for decides.
    pub(crate) fn in_success(&self) -> EngineError {
        let status = table::status(self);
        let meaning = table::meaning(self, status).or_else(|| status.map(Meaning::of_status));
        self.with_meaning(meaning.unwrap_or(Meaning::Failure), None, None)
    }

    /// Classifies a response with a success status that is not a reply and may be an error. Returns
    /// `None` if it has no message, or if no row of the table applies to it.
    pub(crate) fn in_unreadable(&self) -> Option<EngineError> {
        let meaning = table::meaning(self, table::status(self))?;
        let is_error = self.message.is_some();
        is_error.then(|| self.with_meaning(meaning, None, None))
    }

    /// Returns the failure for an error with this meaning. `status` is the status of the response,
    /// or `None` for a success.
    fn with_meaning(
        &self,
        meaning: Meaning,
        status: Option<u16>,
        retry_after: Option<u32>,
    ) -> EngineError {
        let cause = || self.for_log(meaning, status);
        let delay = || retry_after.or_else(|| self.delay());
        match meaning {
            Meaning::Invalid => self.rejected(Rejection::Invalid),
            Meaning::LongPrompt => self.rejected(Rejection::ContextLength(sizes::sizes(self))),
            Meaning::AgainstPolicy => self.rejected(Rejection::ContentPolicy),
            Meaning::Signature => self.rejected(Rejection::Signature),
            Meaning::TooLarge => self.rejected(Rejection::TooLarge),
            Meaning::Rate => EngineError::RateLimited {
                retry_after: delay(),
                reported: self.reported(),
            },
            Meaning::Overload => EngineError::Overloaded {
                retry_after: delay(),
                reported: self.reported(),
            },
            Meaning::Account => EngineError::Account {
                quota: self.quota(status),
                cause: cause(),
            },
            Meaning::Configuration => EngineError::Misconfigured(cause()),
            Meaning::Timeout => EngineError::Timeout(cause()),
            // A status that accuses the client is not passed on, and neither are the words for it.
            Meaning::Failure if status.is_some_and(|status| status < 500) => {
                EngineError::Upstream(cause())
            }
            Meaning::Failure => match self.reported() {
                None => EngineError::Upstream(cause()),
                reported => EngineError::Failed {
                    cause: cause(),
                    reported,
                },
            },
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
            reported: self.reported(),
        }
    }

    /// The seconds to wait before a retry, as its members or its messages state them.
    fn delay(&self) -> Option<u32> {
        let mut texts = self.texts.iter();
        self.delay
            .or_else(|| texts.find_map(|text| delay::in_sentence(text)))
    }

    /// The code of a used-up quota, if the upstream has reported the state of the account as one:
    /// with status 429, or within a success by a word that clients know.
    fn quota(&self, status: Option<u16>) -> Option<StreamCode> {
        let quotas = [StreamCode::InsufficientQuota, StreamCode::UsageNotIncluded];
        let named = quotas.into_iter().find(|code| self.has_word(code.as_str()));
        match status {
            Some(429) => named.or(Some(StreamCode::InsufficientQuota)),
            Some(_) => None,
            None => named,
        }
    }

    /// Returns its message as others may see it.
    fn shown_message(&self) -> Option<String> {
        self.message
            .as_deref()
            .map(sanitised)
            .filter(|message| !message.is_empty())
    }

    /// Returns its code and type as clients may see them. A word that only repeats the status does not
    /// count, and neither does the type of an object without a message, which is a reply.
    fn reported(&self) -> Option<Box<Reported>> {
        self.message.as_ref()?;
        let shown = |word: &Option<String>| {
            let word = word.as_deref().filter(|word| is_word(word))?;
            (sanitised(word) == word).then(|| word.to_owned())
        };
        let reported = Reported {
            code: shown(&self.code),
            kind: shown(&self.kind),
            message: None,
        };
        (reported != Reported::default()).then(|| Box::new(reported))
    }

    /// Describes the error for the log. The message is left out: it may contain the operator's
    /// keys, accounts and hosts in any form.
    fn for_log(&self, meaning: Meaning, status: Option<u16>) -> String {
        let codes = [&self.code, &self.kind].into_iter().flatten();
        let codes: Vec<_> = codes
            .map(|code| sanitised(code))
            .filter(|code| !code.is_empty())
            .collect();
        let head = match (meaning, status) {
            (Meaning::Account, _) => "account disabled or without credit, ",
            (Meaning::Configuration, Some(404)) => "model or path not found, ",
            (Meaning::Configuration, Some(401 | 403)) => "authentication failed, ",
            (Meaning::Configuration, _) => "key, model or path refused, ",
            _ => "",
        };
        let status = match status {
            Some(status) => format!("status {status}"),
            None => "error in a reply with status 200".to_owned(),
        };
        if codes.is_empty() {
            format!("{head}{status}, no code given")
        } else {
            format!("{head}{status}: {}", codes.join(", "))
        }
    }
}

/// Returns true if a code or type has the form of one, and says more than the status does.
fn is_word(word: &str) -> bool {
    let is_number = |word: &str| word.parse().is_ok_and(|n: u16| (400..600).contains(&n));
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_status = is_number(word) || word == "server_error";
    !is_status && (1..=MAX_WORD).contains(&word.len()) && word.chars().all(is_part)
}

fn fallback(why: Rejection) -> &'static str {
    match why {
        Rejection::Invalid => "The upstream refused the request.",
        Rejection::ContextLength(_) => "The prompt is too long.",
        Rejection::Signature => "The upstream refused the reasoning in the request.",
        Rejection::ContentPolicy => "The request is against the upstream's content policy.",
        Rejection::TooLarge => "The request is larger than the upstream takes.",
    }
}

/// The longest code or type that clients see, in bytes.
const MAX_WORD: usize = 64;
