//! Envelopes that carry the reasoning signatures of an upstream through a client of another
//! protocol.
//!
//! A Messages model verifies earlier reasoning by a signature, or emits redacted reasoning that
//! only it can decrypt (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>).
//! A Responses model needs the encrypted content of its reasoning
//! (<https://platform.openai.com/docs/guides/reasoning>), and servers of Chat Completions have opaque
//! data in `reasoning_details` (<https://openrouter.ai/docs/use-cases/reasoning-tokens>) and in
//! `extra_content` (<https://ai.google.dev/gemini-api/docs/thought-signatures>). Clients of another
//! protocol have one field for such data, `encrypted_content` or `signature`, and return it unchanged.
//! The signature is therefore sent in that field, together with the reasoning that it signs, as
//! `sg1.<base64url>.<HMAC>`; the HMAC distinguishes the gateway's envelopes from forged ones.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::{AssistantPart, TextEvent, TextRequest, Turn};
use hmac::{Hmac, KeyInit, Mac};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::call_id;

/// Seals and opens the envelopes of one upstream.
#[derive(Clone)]
pub struct Envelope {
    mac: Hmac<Sha256>,
    group: SealGroup,
    /// The mark of the group.
    mark: Arc<str>,
}

/// The account at a vendor that can open a seal. Targets with the same secret are of the same group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealGroup([u8; 32]);

/// Seals the signatures of one answer.
#[derive(Clone, Debug)]
pub struct Sealer {
    envelope: Envelope,
    /// The reasoning text since the last signature.
    reasoning: String,
}

/// The content of an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Sealed {
    /// Reasoning text with the model's signature.
    Thinking {
        /// The signature.
        signature: String,
        /// The signed reasoning text.
        text: String,
    },
    /// Reasoning that only the model can decrypt.
    RedactedThinking {
        /// The encrypted reasoning.
        data: String,
    },
    /// Opaque data of a call.
    Call {
        /// The id of the call.
        id: String,
        /// The data.
        seal: String,
    },
}

impl Envelope {
    /// Returns the envelopes authenticated with `secret`. Each upstream has its own secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        // HMAC accepts keys of any length, so this never fails; the fallback only avoids an
        // `unwrap`.
        let mac = Hmac::new_from_slice(secret)
            .unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
        let group = mac.clone().chain_update("group").finalize();
        let group: [u8; 32] = group.into_bytes().into();
        let name: String = URL_SAFE_NO_PAD.encode(group).chars().take(12).collect();
        Self {
            mac,
            group: SealGroup(group),
            mark: format!("{MARK}{name}.").into(),
        }
    }

    /// Returns the group of the upstream.
    #[must_use]
    pub fn group(&self) -> SealGroup {
        self.group
    }

    /// Returns the mark of the upstream's seals, which is put before them where the client has the
    /// upstream's protocol. It is not authenticated: such clients can have seals of their own as well.
    #[must_use]
    pub fn mark(&self) -> Arc<str> {
        Arc::clone(&self.mark)
    }

    /// Serializes and authenticates `sealed` as one string.
    #[must_use]
    pub fn seal(&self, sealed: &Sealed) -> String {
        // Serializing strings cannot fail.
        let content = URL_SAFE_NO_PAD.encode(serde_json::to_vec(sealed).unwrap_or_default());
        let code = self
            .mac
            .clone()
            .chain_update(&content)
            .finalize()
            .into_bytes();
        format!("{PREFIX}{content}.{}", URL_SAFE_NO_PAD.encode(code))
    }

    /// Returns the content of `envelope`, or `None` if it was not sealed with this secret.
    #[must_use]
    pub fn open(&self, envelope: &str) -> Option<Sealed> {
        let (content, code) = envelope.strip_prefix(PREFIX)?.split_once('.')?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        self.mac
            .clone()
            .chain_update(content)
            .verify_slice(&code)
            .ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(content).ok()?).ok()
    }

    /// Opens every envelope in a request. Signatures that are not envelopes of this secret are
    /// removed. Returns true if there are any.
    pub fn unseal(&self, request: &mut TextRequest) -> bool {
        let mut is_lost = false;
        for turn in &mut request.turns {
            if let Turn::Assistant(parts) = turn {
                is_lost |= self.unseal_turn(parts);
            }
        }
        is_lost
    }

    fn unseal_turn(&self, parts: &mut Vec<AssistantPart>) -> bool {
        let (mut is_lost, mut seals, mut texts) = (false, Vec::new(), Vec::new());
        let mut opened = Vec::with_capacity(parts.len());
        for part in parts.drain(..) {
            let AssistantPart::Reasoning {
                text,
                signature: Some(envelope),
            } = part
            else {
                opened.push(part);
                continue;
            };
            let bare = |text: String| AssistantPart::Reasoning {
                text,
                signature: None,
            };
            match self.open(&envelope) {
                Some(Sealed::Thinking {
                    signature,
                    text: whole,
                }) => {
                    texts.push(whole.clone());
                    opened.push(AssistantPart::Reasoning {
                        text: whole,
                        signature: Some(signature),
                    });
                }
                Some(Sealed::RedactedThinking { data }) => {
                    opened.push(AssistantPart::RedactedReasoning(data));
                }
                Some(Sealed::Call { id, seal }) => {
                    seals.push((call_id::plain(&id), seal));
                    opened.extend((!text.is_empty()).then(|| bare(text)));
                }
                None => {
                    is_lost = true;
                    opened.push(bare(text));
                }
            }
        }
        // Some clients have the texts beside their envelopes, together or one by one.
        // Together they are paragraphs, or run on.
        texts.extend([texts.concat(), texts.join("\n\n")]);
        let is_repeated = |part: &AssistantPart| matches!(part, AssistantPart::Reasoning { text, signature: None } if texts.contains(text));
        opened.retain(|part| !is_repeated(part));
        *parts = opened;
        give_seals(&seals, parts);
        is_lost
    }

    /// Returns a sealer for the signatures of one answer.
    #[must_use]
    pub fn sealer(&self) -> Sealer {
        Sealer {
            envelope: self.clone(),
            reasoning: String::new(),
        }
    }
}

/// Does not print the secret.
impl std::fmt::Debug for Envelope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Envelope")
    }
}

impl Sealer {
    /// Returns the event with its signature or redacted reasoning replaced by an envelope.
    #[must_use]
    pub fn event(&mut self, event: TextEvent) -> TextEvent {
        match event {
            TextEvent::Reasoning(text) => {
                self.reasoning.push_str(&text);
                TextEvent::Reasoning(text)
            }
            TextEvent::ReasoningSignature(signature) => {
                let text = std::mem::take(&mut self.reasoning);
                TextEvent::ReasoningSignature(
                    self.envelope.seal(&Sealed::Thinking { signature, text }),
                )
            }
            TextEvent::RedactedReasoning(data) => {
                TextEvent::RedactedReasoning(self.envelope.seal(&Sealed::RedactedThinking { data }))
            }
            TextEvent::CallSeal { id, seal } => {
                let call = id.clone();
                let seal = self.envelope.seal(&Sealed::Call { id: call, seal });
                TextEvent::CallSeal { id, seal }
            }
            other => other,
        }
    }
}

/// Removes all seals from a request that a server has refused for one of them. Readable reasoning stays.
pub fn remove_seals(request: &mut TextRequest) {
    for turn in &mut request.turns {
        let Turn::Assistant(parts) = turn else {
            continue;
        };
        parts.retain(|part| !matches!(part, AssistantPart::RedactedReasoning(_)));
        for part in parts {
            match part {
                AssistantPart::Reasoning { signature, .. } => *signature = None,
                AssistantPart::Call(call) => call.seal = None,
                _ => {}
            }
        }
    }
}

/// Gives each call of a turn its seal. The seals are by the ids of the calls as clients have them.
fn give_seals(seals: &[(String, String)], parts: &mut [AssistantPart]) {
    for part in parts {
        if let AssistantPart::Call(call) = part {
            let id = call_id::plain(&call_id::original(&call.id));
            let seal = seals.iter().find(|(known, _)| *known == id);
            call.seal = seal.map(|(_, seal)| seal.clone());
        }
    }
}

/// Returns true if `text` has the form of an envelope or of a marked seal. It is not authenticated.
#[must_use]
pub fn is_envelope(text: &str) -> bool {
    text.starts_with(PREFIX) || text.starts_with(MARK)
}

/// Returns true if any text in a JSON document has the form of an envelope.
#[must_use]
pub fn contains_envelope(json: &[u8]) -> bool {
    let mut found = BEGINNING.find_iter(json);
    found.any(|at| {
        let text = json.get(at + 1..).unwrap_or_default();
        text.starts_with(PREFIX.as_bytes()) || text.starts_with(MARK.as_bytes())
    })
}

/// The members of messages of Chat Completions that servers put opaque data in.
pub const DETAILS: &str = "reasoning_details";
/// See [`DETAILS`].
pub const EXTRA: &str = "extra_content";
/// The thinking blocks of Claude behind LiteLLM (<https://docs.litellm.ai/docs/reasoning_content>).
pub const THINKING_BLOCKS: &str = "thinking_blocks";
/// The seal of the reasoning of GitHub Copilot (<https://github.com/anomalyco/opencode/pull/8900>).
pub const REASONING_OPAQUE: &str = "reasoning_opaque";
/// The seal of the reasoning of Bedrock behind agentgateway
/// (<https://github.com/agentgateway/agentgateway/pull/2018>).
pub const REASONING_SIGNATURE: &str = "reasoning_signature";
/// The thought signature of a call of Gemini behind LiteLLM (<https://docs.litellm.ai/blog/gemini_3>).
pub const PROVIDER_FIELDS: &str = "provider_specific_fields";
/// Searches for the beginning of a text that may be one.
static BEGINNING: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(b"\"sg"));
const PREFIX: &str = "sg1.";
const MARK: &str = "sg2.";

#[cfg(test)]
mod tests {
    use super::*;

    fn thinking(text: &str, signature: &str) -> Sealed {
        Sealed::Thinking {
            signature: signature.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn envelope_opens_only_with_the_sealing_key() {
        let (ours, theirs) = (Envelope::new(b"ours"), Envelope::new(b"theirs"));
        for content in [
            thinking("Hm.", "seal/+="),
            Sealed::RedactedThinking {
                data: "dGhl/+=".to_owned(),
            },
        ] {
            let sealed = ours.seal(&content);
            assert!(is_envelope(&sealed));
            assert_eq!(ours.open(&sealed), Some(content));
            assert_eq!(theirs.open(&sealed), None);
        }
    }

    #[test]
    fn a_forged_envelope_is_ignored() {
        let envelope = Envelope::new(b"secret");
        let sealed = envelope.seal(&thinking("Hm.", "seal"));
        for at in PREFIX.len()..sealed.len() {
            let mut forged = sealed.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            // The last character of the HMAC has unused padding bits.
            assert!(
                envelope.open(&forged).is_none() || at + 1 == sealed.len(),
                "{at}"
            );
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
        let TextEvent::ReasoningSignature(sealed) =
            sealer.event(TextEvent::ReasoningSignature("S".to_owned()))
        else {
            panic!("a signature stays a signature")
        };
        let TextEvent::RedactedReasoning(hidden) =
            sealer.event(TextEvent::RedactedReasoning("D".to_owned()))
        else {
            panic!("redacted reasoning stays redacted")
        };
        let reasoning = |signature: &str| AssistantPart::Reasoning {
            text: "A summary.".to_owned(),
            signature: Some(signature.to_owned()),
        };
        let turns = vec![Turn::Assistant(
            [&*sealed, "sg1.made.up", &hidden].map(reasoning).into(),
        )];
        let mut request = TextRequest {
            turns,
            ..TextRequest::default()
        };
        envelope.unseal(&mut request);
        let whole = AssistantPart::Reasoning {
            text: "Let me see.".to_owned(),
            signature: Some("S".to_owned()),
        };
        let bare = AssistantPart::Reasoning {
            text: "A summary.".to_owned(),
            signature: None,
        };
        let hidden = AssistantPart::RedactedReasoning("D".to_owned());
        assert_eq!(request.turns, [Turn::Assistant(vec![whole, bare, hidden])]);
    }

    /// Chat clients have the text of all reasoning in one member, and the envelopes in another.
    #[test]
    fn the_text_beside_envelopes_is_not_repeated() {
        let envelope = Envelope::new(b"secret");
        let part = |text: &str, signature: Option<String>| AssistantPart::Reasoning {
            text: text.to_owned(),
            signature,
        };
        let sealed = |text: &str| envelope.seal(&thinking(text, "S"));
        let parts = [
            part("**A**\n\n**B**", None),
            part("", Some(sealed("**A**"))),
            part("", Some(sealed("**B**"))),
        ];
        let mut request = TextRequest {
            turns: vec![Turn::Assistant(parts.into())],
            ..TextRequest::default()
        };
        envelope.unseal(&mut request);
        let owed = ["**A**", "**B**"].map(|text| part(text, Some("S".to_owned())));
        assert_eq!(request.turns, [Turn::Assistant(owed.into())]);
    }
}
