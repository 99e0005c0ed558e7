//! A seal on thoughts that a client keeps for another protocol than the one it came by.
//!
//! A Messages model knows its own thoughts again by a signature, or tells thoughts that nobody else can read at all. A
//! client of Responses has one place for such a thing, `encrypted_content`, and sends it back untouched. So the signature
//! travels there, together with the thoughts it belongs to, as `sg1.` and base64url; a code of authentication tells ours
//! from what anybody made up. See wire-reference §9.2.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::{AssistantPart, TextEvent, TextRequest, Turn};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Makes and opens the envelopes of one upstream.
#[derive(Clone)]
pub struct Envelope {
    mac: Hmac<Sha256>,
}

/// Puts the signatures of one answer into envelopes.
#[derive(Clone, Debug)]
pub struct Sealer {
    envelope: Envelope,
    /// The thoughts that were told since the last signature.
    thoughts: String,
}

/// What an envelope holds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Sealed {
    /// Thoughts, and the model's own seal on them.
    Thinking {
        /// The seal.
        signature: String,
        /// The thoughts.
        text: String,
    },
    /// Thoughts that only the model can read.
    RedactedThinking {
        /// These.
        data: String,
    },
}

impl Envelope {
    /// The envelopes that only who knows `secret` can make. What has another secret is another upstream.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        // A key of any length is one: this cannot fail, and without a key there would be no envelopes.
        let mac =
            Hmac::new_from_slice(secret).unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
        Self { mac }
    }

    /// All of it as one text.
    #[must_use]
    pub fn seal(&self, sealed: &Sealed) -> String {
        // Texts always have a JSON form.
        let content = URL_SAFE_NO_PAD.encode(serde_json::to_vec(sealed).unwrap_or_default());
        let code = self.mac.clone().chain_update(&content).finalize().into_bytes();
        format!("{PREFIX}{content}.{}", URL_SAFE_NO_PAD.encode(code))
    }

    /// What is in an envelope that is ours.
    #[must_use]
    pub fn open(&self, envelope: &str) -> Option<Sealed> {
        let (content, code) = envelope.strip_prefix(PREFIX)?.split_once('.')?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        self.mac.clone().chain_update(content).verify_slice(&code).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(content).ok()?).ok()
    }

    /// Opens every envelope in a request. What is not ours is no signature.
    pub fn unseal(&self, request: &mut TextRequest) {
        let said = request.turns.iter_mut().filter_map(|turn| match turn {
            Turn::Assistant(parts) => Some(parts),
            _ => None,
        });
        for part in said.flatten() {
            let AssistantPart::Reasoning { text, signature } = part else { continue };
            match signature.take().and_then(|envelope| self.open(&envelope)) {
                Some(Sealed::Thinking { signature: seal, text: thoughts }) => {
                    (*text, *signature) = (thoughts, Some(seal));
                }
                Some(Sealed::RedactedThinking { data }) => *part = AssistantPart::RedactedReasoning(data),
                None => *signature = None,
            }
        }
    }

    /// What puts the signatures of one answer into envelopes.
    #[must_use]
    pub fn sealer(&self) -> Sealer {
        Sealer { envelope: self.clone(), thoughts: String::new() }
    }
}

/// Shows nothing of the secret.
impl std::fmt::Debug for Envelope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Envelope")
    }
}

impl Sealer {
    /// The same event, with what is sealed in an envelope.
    #[must_use]
    pub fn event(&mut self, event: TextEvent) -> TextEvent {
        match event {
            TextEvent::Reasoning(text) => {
                self.thoughts.push_str(&text);
                TextEvent::Reasoning(text)
            }
            TextEvent::ReasoningSignature(signature) => {
                let text = std::mem::take(&mut self.thoughts);
                TextEvent::ReasoningSignature(self.envelope.seal(&Sealed::Thinking { signature, text }))
            }
            TextEvent::RedactedReasoning(data) => {
                TextEvent::RedactedReasoning(self.envelope.seal(&Sealed::RedactedThinking { data }))
            }
            other => other,
        }
    }
}

/// Whether a text is an envelope, ours or not.
#[must_use]
pub fn is_envelope(text: &str) -> bool {
    text.starts_with(PREFIX)
}

const PREFIX: &str = "sg1.";

#[cfg(test)]
mod tests {
    use super::*;

    fn thoughts(text: &str, signature: &str) -> Sealed {
        Sealed::Thinking { signature: signature.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn what_was_sealed_is_opened_by_who_sealed_it_alone() {
        let (ours, theirs) = (Envelope::new(b"ours"), Envelope::new(b"theirs"));
        for thoughts in [thoughts("Hm.", "seal/+="), Sealed::RedactedThinking { data: "dGhl/+=".to_owned() }] {
            let sealed = ours.seal(&thoughts);
            assert!(is_envelope(&sealed));
            assert_eq!(ours.open(&sealed), Some(thoughts));
            assert_eq!(theirs.open(&sealed), None);
        }
    }

    #[test]
    fn a_forged_envelope_is_ignored() {
        let envelope = Envelope::new(b"secret");
        let sealed = envelope.seal(&thoughts("Hm.", "seal"));
        for at in PREFIX.len()..sealed.len() {
            let mut forged = sealed.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            // The last character of a code holds bits that mean nothing.
            assert!(envelope.open(&forged).is_none() || at + 1 == sealed.len(), "{at}");
        }
        for nonsense in ["", "sg1.", "sg1..", "sg1.a.b", "gAAAA"] {
            assert_eq!(envelope.open(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn the_thoughts_of_a_request_get_their_signature_back() {
        let envelope = Envelope::new(b"secret");
        let mut sealer = envelope.sealer();
        let _ = sealer.event(TextEvent::Reasoning("Let me ".to_owned()));
        let _ = sealer.event(TextEvent::Reasoning("see.".to_owned()));
        let TextEvent::ReasoningSignature(sealed) = sealer.event(TextEvent::ReasoningSignature("S".to_owned())) else {
            panic!("a signature stays one")
        };
        let TextEvent::RedactedReasoning(hidden) = sealer.event(TextEvent::RedactedReasoning("D".to_owned())) else {
            panic!("hidden thoughts stay such")
        };
        let thoughts = |signature: &str| AssistantPart::Reasoning {
            text: "A summary.".to_owned(),
            signature: Some(signature.to_owned()),
        };
        let turns = vec![Turn::Assistant([&*sealed, "sg1.made.up", &hidden].map(thoughts).into())];
        let mut request = TextRequest { turns, ..TextRequest::default() };
        envelope.unseal(&mut request);
        let whole = AssistantPart::Reasoning { text: "Let me see.".to_owned(), signature: Some("S".to_owned()) };
        let bare = AssistantPart::Reasoning { text: "A summary.".to_owned(), signature: None };
        let hidden = AssistantPart::RedactedReasoning("D".to_owned());
        assert_eq!(request.turns, [Turn::Assistant(vec![whole, bare, hidden])]);
    }
}
