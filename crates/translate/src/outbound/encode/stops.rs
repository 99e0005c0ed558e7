//! Stop sequences: those that an upstream takes, and those that the gateway applies to its answer.

use engine::{EngineError, TextRequest};
use vendor::Protocol;

use super::Settings;

/// Returns the stop sequences that the upstream gets.
pub(super) fn sent(
    protocol: Protocol,
    request: &TextRequest,
    settings: &Settings,
) -> Option<Vec<String>> {
    let taken = |stop: &&String| takes(protocol, request, settings, stop);
    let sent: Vec<_> = request.stop.iter().filter(taken).cloned().collect();
    (!sent.is_empty()).then_some(sent)
}

/// Returns the stop sequences that the gateway applies, because the upstream does not take them.
pub(super) fn applied(
    protocol: Protocol,
    request: &TextRequest,
    settings: &Settings,
) -> Result<Vec<String>, EngineError> {
    let is_applied = |stop: &&String| !stop.is_empty() && !takes(protocol, request, settings, stop);
    let applied: Vec<_> = request.stop.iter().filter(is_applied).cloned().collect();
    match applied.len() {
        0..=MAX_APPLIED => Ok(applied),
        more => Err(super::unsupported(format!(
            "This model takes at most {MAX_APPLIED} stop sequences, but got {more}."
        ))),
    }
}

/// Returns true if the upstream takes a stop sequence. Responses has none
/// (<https://platform.openai.com/docs/api-reference/responses/create>), Chat Completions takes four,
/// but some models none (<https://platform.openai.com/docs/api-reference/chat/create>) or one
/// (<https://docs.z.ai/api-reference/llm/chat-completion>), and Anthropic refuses white space
/// (<https://github.com/BerriAI/litellm/issues/3286>).
fn takes(protocol: Protocol, request: &TextRequest, settings: &Settings, stop: &str) -> bool {
    match protocol {
        Protocol::Responses => false,
        Protocol::Chat => request.stop.len() <= settings.quirks.most_stops.unwrap_or(MAX_SENT),
        Protocol::Messages => !stop.trim().is_empty(),
    }
}

/// The most stop sequences of Chat Completions at OpenAI.
const MAX_SENT: usize = 4;
/// The most stop sequences that the gateway looks for, because each of them takes time for each byte.
const MAX_APPLIED: usize = 64;
