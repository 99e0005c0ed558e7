//! The upstream side: encodes neutral requests in the upstream's protocol and parses its answers
//! into neutral events.

pub(crate) mod chat_seals;
pub mod encode;
mod parse;
mod stops;
mod stream;

pub use self::parse::{Reader, reply, usage_of_reply};
pub use self::stops::StopFilter;
pub use self::stream::StreamReader;

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
