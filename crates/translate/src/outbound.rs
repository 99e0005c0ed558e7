//! The upstream side: encodes neutral requests in the upstream's protocol and parses its answers
//! into neutral events.

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) mod chat_seals;
pub mod encode;
mod failure;
mod parse;
mod stops;
mod stream;

pub use self::failure::{failure, message};
pub use self::parse::{Reader, reply, usage_of_reply};
pub(crate) use self::parse::{engine_error, unreadable, usage};
pub use self::stops::StopFilter;
pub(crate) use self::stream::MAX_EVENT;
pub use self::stream::StreamReader;

wire::text_enum! {
    /// A text generation protocol of an upstream, by its display name.
    #[derive(PartialOrd, Ord, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Protocol {
        Responses = "Responses",
        Chat = "Chat Completions",
        Messages = "Messages",
    }
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];
}

/// Returns the signature of a reasoning item of Responses: its id and its encrypted content, which
/// OpenAI accepts only together.
pub(crate) fn signature(id: &str, encrypted_content: &str) -> String {
    format!("{id} {encrypted_content}")
}

/// Returns the id and the encrypted content of a reasoning item from its [`signature`].
pub(crate) fn signed(signature: &str) -> (Option<&str>, &str) {
    match signature.split_once(' ') {
        Some((id, content)) => (Some(id).filter(|id| !id.is_empty()), content),
        None => (None, signature),
    }
}
