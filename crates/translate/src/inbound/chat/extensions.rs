//! Members of requests of Chat Completions that other vendors have added, and clients send.

use chat::{Message, Request};
use engine::{CacheLifetime, Effort, Turn, UserPart};
use serde_json::Value;

use crate::inbound::shared;

/// Returns the reasoning effort: from OpenAI's own member, from OpenRouter's `reasoning`
/// (<https://openrouter.ai/docs/use-cases/reasoning-tokens>), or from `thinking`, which LiteLLM,
/// DeepSeek and Z.ai have (<https://docs.litellm.ai/docs/reasoning_content>).
pub(super) fn effort(request: &Request) -> Option<Effort> {
    let own = request.reasoning_effort.as_ref();
    let own = own.and_then(|effort| Effort::named(effort.as_str()));
    let member = |name: &str| request.extra.get(name).and_then(Value::as_object);
    own.or_else(|| {
        let reasoning = member("reasoning")?;
        let named = reasoning.get("effort").and_then(Value::as_str);
        let budget = reasoning.get("max_tokens").and_then(Value::as_i64);
        match reasoning.get("enabled").and_then(Value::as_bool) {
            Some(false) => Some(Effort::None),
            is_enabled => named
                .and_then(Effort::named)
                .or(budget.map(shared::effort_of_budget))
                .or(is_enabled.map(|_| Effort::Medium)),
        }
    })
    .or_else(|| {
        let thinking = member("thinking")?;
        let budget = thinking.get("budget_tokens").and_then(Value::as_i64);
        match thinking.get("type").and_then(Value::as_str)? {
            "disabled" => Some(Effort::None),
            "enabled" | "adaptive" => Some(budget.map_or(Effort::Medium, shared::effort_of_budget)),
            _ => None,
        }
    })
}

/// Returns `top_k`, which most servers of open models have.
pub(super) fn top_k(request: &Request) -> Option<u64> {
    request
        .extra
        .get("top_k")?
        .as_u64()
        .filter(|top_k| *top_k > 0)
}

/// Returns the breakpoint of the prompt cache that a message has as a whole, as LiteLLM takes it
/// (<https://docs.litellm.ai/docs/completion/prompt_caching>).
pub(super) fn breakpoint(message: &Message) -> Option<CacheLifetime> {
    let members = match message {
        Message::System(message) | Message::Developer(message) => &message.extra,
        Message::User(message) => &message.extra,
        Message::Tool(message) => &message.extra,
        _ => return None,
    };
    shared::last_breakpoint([members])
}

/// Adds the breakpoint of a message to its turn. The instructions have theirs as a prefix.
pub(super) fn marked(mut turn: Turn, message: &Message) -> Turn {
    let parts = match &mut turn {
        Turn::User(parts) => parts,
        Turn::Tool(result) => &mut result.content,
        _ => return turn,
    };
    parts.extend(breakpoint(message).map(UserPart::CacheBreakpoint));
    turn
}
