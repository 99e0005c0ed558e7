//! The table of all errors that the gateway sends, with the literals of the vendors and their
//! sources.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use simulator::Protocol;

/// All errors, by their class.
pub static ERRORS: LazyLock<BTreeMap<String, Class>> =
    LazyLock::new(|| toml::from_str(include_str!("errors.toml")).expect("a table of errors"));

/// The errors of one class.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The error response of Responses, Chat Completions and Images.
    pub openai: Option<Literal>,
    /// The error response of Messages.
    pub messages: Option<Literal>,
    /// The error within a stream of Responses, Chat Completions and Images.
    pub openai_stream: Option<Literal>,
    /// The error within a stream of Messages.
    pub messages_stream: Option<Literal>,
}

/// An error as a vendor sends it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Literal {
    /// The status of the response.
    pub status: Option<u16>,
    /// The `type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The `code`, which Messages does not have.
    pub code: Option<String>,
    /// The message. Each `*` stands for any text.
    pub words: String,
    /// The vendor's page, or a public thread that quotes the vendor.
    pub source: Option<String>,
    /// The members that are the gateway's own.
    #[serde(default)]
    pub own: Vec<String>,
    /// The reason for those.
    pub why: Option<String>,
}

impl Class {
    /// The error response for a client of this protocol.
    pub fn response(&self, client: Protocol) -> Option<&Literal> {
        match client {
            Protocol::Messages => self.messages.as_ref(),
            _ => self.openai.as_ref(),
        }
    }

    /// The error within a stream for a client of this protocol.
    pub fn event(&self, client: Protocol) -> Option<&Literal> {
        match client {
            Protocol::Messages => self.messages_stream.as_ref(),
            _ => self.openai_stream.as_ref(),
        }
    }

    /// The errors of all columns.
    pub fn literals(&self) -> impl Iterator<Item = &Literal> {
        let all = [
            &self.openai,
            &self.messages,
            &self.openai_stream,
            &self.messages_stream,
        ];
        all.into_iter().flatten()
    }
}

impl Literal {
    /// Returns true if a message has these words.
    pub fn says(&self, message: &str) -> bool {
        let mut parts = self.words.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = message.strip_prefix(first) else {
            return false;
        };
        let mut parts = parts.peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let at = if is_last && part.is_empty() {
                Some(rest.len())
            } else if is_last {
                rest.len()
                    .checked_sub(part.len())
                    .filter(|_| rest.ends_with(part))
            } else {
                rest.find(part)
            };
            match at {
                Some(at) if at > 0 => rest = &rest[at + part.len()..],
                _ => return false,
            }
        }
        rest.is_empty()
    }
}
