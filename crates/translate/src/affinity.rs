//! The identity of a conversation, by which its requests can be sent to the server that has its
//! prompt in the cache.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// Returns an identifier of the conversation that a request belongs to: 32 hexadecimal digits, the
/// same for each of its requests with this name of an API key, on every machine. `body` is a request
/// in any text protocol.
///
/// It is derived from what the client has sent for this purpose, or else from the beginning of the
/// conversation, which later requests repeat.
#[must_use]
pub fn conversation(body: &[u8], key: &str) -> String {
    let asked: Asked<'_> = serde_json::from_slice(body).unwrap_or_default();
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        // With its length, so that no two lists of parts are the same text.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(key);
    let user = || asked.metadata.as_ref()?.user_id.as_ref();
    match asked.prompt_cache_key.as_ref().or_else(user) {
        Some(name) => add(name),
        None => asked.beginning().for_each(add),
    }
    let digest = hash.finalize();
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The members that identify a conversation. If one of them has another type, none counts.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked<'a> {
    #[serde(borrow)]
    prompt_cache_key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    user_id: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Turn<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
}

impl<'a> Asked<'a> {
    /// The texts of the system, and the messages up to the first one of the user.
    fn beginning(&self) -> impl Iterator<Item = &'a str> {
        let system = self.system.into_iter().chain(self.instructions);
        let messages = self.messages.or(self.input).into_iter();
        let messages = messages.flat_map(|messages| {
            let mut list = serde_json::from_str::<Vec<&RawValue>>(messages.get())
                .unwrap_or_else(|_| vec![messages]);
            let is_user = |message: &&RawValue| {
                serde_json::from_str::<Turn<'_>>(message.get())
                    .is_ok_and(|turn| turn.role == "user")
            };
            let count = list.iter().position(is_user);
            list.truncate(count.map_or(1, |at| at + 1));
            list
        });
        system.chain(messages).map(RawValue::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> String {
        conversation(body.as_bytes(), "team-a")
    }

    #[test]
    fn later_requests_of_a_conversation_have_its_identifier() {
        for (first, later, another) in [
            (
                r#"{"messages":[{"role":"user","content":"Hi."}]}"#,
                r#"{"n":1,"messages":[{"role":"user","content":"Hi."},{"role":"assistant","content":"Yes?"}]}"#,
                r#"{"messages":[{"role":"user","content":"Ho."}]}"#,
            ),
            (
                r#"{"messages":[{"role":"system","content":"S"},{"role":"user","content":"Hi."}]}"#,
                r#"{"messages":[{"role":"system","content":"S"},{"role":"user","content":"Hi."},{"role":"user","content":"?"}]}"#,
                r#"{"messages":[{"role":"system","content":"S"},{"role":"user","content":"Ho."}]}"#,
            ),
            (
                r#"{"system":"A","messages":[{"role":"user","content":"Hi."}]}"#,
                r#"{"system":"A","messages":[{"role":"user","content":"Hi."},{"role":"user","content":"?"}]}"#,
                r#"{"system":"B","messages":[{"role":"user","content":"Hi."}]}"#,
            ),
            (
                r#"{"input":"Hi."}"#,
                r#"{"input":"Hi.","stream":true}"#,
                r#"{"input":"Ho."}"#,
            ),
            (
                r#"{"prompt_cache_key":"a\n","input":"Hi."}"#,
                r#"{"prompt_cache_key":"a\n","input":"Ho."}"#,
                r#"{"prompt_cache_key":"b","input":"Hi."}"#,
            ),
            (
                r#"{"metadata":{"user_id":"u"},"messages":[]}"#,
                r#"{"metadata":{"user_id":"u"},"messages":[1]}"#,
                r#"{"metadata":{"user_id":"v"},"messages":[]}"#,
            ),
        ] {
            assert_eq!(of(first), of(later), "{first}");
            assert_ne!(of(first), of(another), "{first}");
            assert_ne!(of(first), conversation(first.as_bytes(), "team-b"));
        }
        // The first 16 bytes of the SHA-256 of the length and text of `team-a`, and of `a`.
        assert_eq!(
            of(r#"{"prompt_cache_key":"a"}"#),
            "877cb9748c0334fa3c9fc4c3a91c3213"
        );
    }
}
