//! The seals of thoughts, by which a vendor recognizes its own: the signature of Messages and the
//! encrypted content of Responses. In Chat Completions, the thought itself has to come back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::error::Failure;
use super::parsed_request::{ParsedRequest, Thought};
use crate::request::{Protocol, Request};

/// Seals a thought for the account of the request. Not a secret: it is for tests.
pub(super) fn of(request: &Request, thought: &str) -> String {
    STANDARD.encode(format!("{} {thought}", account(request)))
}

/// Refuses thoughts that the account of the request did not make, and calls without their thought,
/// as vendors do.
pub(super) fn check(request: &Request, parsed: &ParsedRequest) -> Result<(), Failure> {
    let foreign = parsed
        .thoughts
        .iter()
        .find(|thought| !is_own(request, thought));
    match (request.protocol(), foreign) {
        // https://api-docs.deepseek.com/guides/thinking_mode
        (Some(Protocol::Chat), _) if parsed.lacks_thoughts => {
            let message =
                "The `reasoning_content` in the thinking mode must be passed back to the API.";
            Err(Failure::invalid("messages", message))
        }
        (Some(Protocol::Chat), _) => Ok(()),
        // https://docs.claude.com/en/docs/build-with-claude/extended-thinking
        (Some(Protocol::Messages), Some(Thought { place, .. })) => {
            let message = format!("{place}: Invalid `signature` in `thinking` block");
            Err(Failure::invalid("messages", message))
        }
        // https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items
        (_, Some(Thought { seal, .. })) => {
            let start: String = seal.chars().take(8).collect();
            let message = format!(
                "The encrypted content {start}... could not be verified. Reason: Encrypted content \
                 could not be decrypted or parsed."
            );
            Err(Failure {
                code: "invalid_encrypted_content",
                ..Failure::of_status(400, message)
            })
        }
        _ => Ok(()),
    }
}

fn is_own(request: &Request, thought: &Thought) -> bool {
    match &thought.text {
        Some(text) => thought.seal == of(request, text),
        None => STANDARD
            .decode(&thought.seal)
            .is_ok_and(|bytes| bytes.starts_with(format!("{} ", account(request)).as_bytes())),
    }
}

/// A number for the protocol and the key of a request: the FNV-1a hash of both.
fn account(request: &Request) -> String {
    let key = request
        .header("x-api-key")
        .or(request.header("authorization"))
        .unwrap_or_default();
    let name = format!("{:?} {key}", request.protocol());
    let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{hash:016x}")
}
