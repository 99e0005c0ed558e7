//! Encodes the reasoning effort, which models take in different forms and not in every request.

use engine::{Reasoning, TextRequest};
use messages::{
    Effort, InputBlock, InputMessage, Request, Role, Thinking, ThinkingBlock, ThinkingBudget,
    ThinkingDisplay, ThinkingMode, ToolChoice,
};
use wire::TextOr;

use super::super::quirks::ThinkingForm;
use super::{DroppedField, DroppedFields, Settings};

/// Sets the thinking and the effort of a request that is complete otherwise.
pub(super) fn set(
    body: &mut Request,
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) {
    let reasoning = &request.reasoning;
    let form = settings.quirks.thinking();
    if reasoning.effort == Some(engine::Effort::None) {
        if form != ThinkingForm::Off {
            body.thinking = Some(Thinking::Disabled(ThinkingMode::default()));
        }
        return;
    }
    // Models that need a budget do not know the effort:
    // https://docs.anthropic.com/en/docs/build-with-claude/effort
    let effort = reasoning
        .effort
        .and_then(effort)
        .filter(|_| form == ThinkingForm::Adaptive);
    let is_lost = reasoning.effort.is_some() && effort.is_none();
    if effort.is_some() {
        body.output_config.get_or_insert_default().effort = effort;
    }
    if !reasoning.output_only {
        body.thinking = thinking(body, reasoning, request.max_output_tokens, form);
        // A budget within the default limit would leave too little of it for the answer.
        if let (Some(Thinking::Enabled(budget)), None) = (&body.thinking, request.max_output_tokens)
        {
            let cap = body.max_tokens.unwrap_or_default();
            body.max_tokens = Some(cap.saturating_add(budget.budget_tokens));
        }
    }
    // https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#feature-compatibility
    if settings.quirks.thinks && is_forced(body) {
        body.thinking = Some(Thinking::Disabled(ThinkingMode::default()));
    }
    if settings.quirks.echo_reasoning && !matches!(body.thinking, Some(Thinking::Disabled(_))) {
        body.messages.iter_mut().for_each(add_missing_thoughts);
    }
    let is_off = matches!(body.thinking, None | Some(Thinking::Disabled(_)));
    let does_not_think = !reasoning.output_only && is_off;
    if reasoning.effort.is_some() && does_not_think || is_lost && reasoning.output_only {
        dropped.add(DroppedField::Effort);
    }
}

/// Puts an empty thinking block before calls without thoughts, which DeepSeek refuses: "The
/// `content[].thinking` in the thinking mode must be passed back to the API."
/// (<https://github.com/QwenLM/qwen-code/pull/3788>).
fn add_missing_thoughts(message: &mut InputMessage) {
    let Some(TextOr::List(blocks)) = &mut message.content else {
        return;
    };
    let has_call = blocks
        .iter()
        .any(|block| matches!(block, InputBlock::ToolUse(_)));
    if has_call && !blocks.iter().any(is_thought) {
        let unknown = ThinkingBlock::new(String::new(), String::new());
        blocks.insert(0, InputBlock::Thinking(unknown));
    }
}

/// Returns the thinking option, if it can be combined with the rest of the request.
///
/// `cap` is the client's limit on the output.
fn thinking(
    body: &Request,
    reasoning: &Reasoning,
    cap: Option<u64>,
    form: ThinkingForm,
) -> Option<Thinking> {
    let display = reasoning.summary.map(|wanted| match wanted {
        true => ThinkingDisplay::Summarized,
        false => ThinkingDisplay::Omitted,
    });
    let is_set = reasoning.effort.is_some() || display.is_some();
    if !is_set || has_conflict(body) {
        return None;
    }
    match form {
        ThinkingForm::Off => None,
        ThinkingForm::Adaptive => {
            let mut mode = ThinkingMode::default();
            mode.display = display;
            Some(Thinking::Adaptive(mode))
        }
        ThinkingForm::Budget if lacks_thoughts(body) => None,
        ThinkingForm::Budget => {
            let mut thinking = ThinkingBudget::new(budget(reasoning.effort?, cap)?);
            thinking.display = display;
            Some(Thinking::Enabled(thinking))
        }
    }
}

/// Returns true if the API refuses thinking together with the rest of the request: a forced call,
/// other sampling, or the beginning of the answer
/// (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#feature-compatibility>).
fn has_conflict(body: &Request) -> bool {
    let is_sampled = body.temperature.is_some_and(|value| value != 1.0)
        || body.top_k.is_some()
        || body.top_p.is_some_and(|value| value < MIN_TOP_P);
    let is_begun = body
        .messages
        .last()
        .is_some_and(|message| message.role == Role::Assistant);
    is_forced(body) || is_sampled || is_begun
}

/// Returns true if the model has to call a tool.
fn is_forced(body: &Request) -> bool {
    matches!(
        body.tool_choice,
        Some(ToolChoice::Any(_) | ToolChoice::Tool(_))
    )
}

/// Returns true if the last turn of the model has calls without the thinking before them, which
/// the API refuses while a budget is set
/// (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks>).
fn lacks_thoughts(body: &Request) -> bool {
    let last = body
        .messages
        .iter()
        .rfind(|message| message.role == Role::Assistant);
    let blocks = last.map_or(&[][..], InputMessage::blocks);
    let has_call = blocks
        .iter()
        .any(|block| matches!(block, InputBlock::ToolUse(_)));
    has_call && !blocks.first().is_some_and(is_thought)
}

fn is_thought(block: &InputBlock) -> bool {
    matches!(
        block,
        InputBlock::Thinking(_) | InputBlock::RedactedThinking(_)
    )
}

/// Returns the budget for an effort: at least 1024 tokens, and at most half of the client's limit,
/// which includes the thinking.
fn budget(effort: engine::Effort, cap: Option<u64>) -> Option<i64> {
    let wanted = match effort {
        engine::Effort::None => return None,
        engine::Effort::Minimal | engine::Effort::Low => MIN_BUDGET,
        engine::Effort::Medium => 4096,
        engine::Effort::High => 16384,
        engine::Effort::XHigh | engine::Effort::Max => 24576,
    };
    let most = cap.map_or(i64::MAX, |cap| super::super::count(cap) / 2);
    Some(wanted.min(most)).filter(|budget| *budget >= MIN_BUDGET)
}

/// Converts the effort; `None` has no counterpart.
fn effort(effort: engine::Effort) -> Option<Effort> {
    Some(match effort {
        engine::Effort::None => return None,
        engine::Effort::Minimal | engine::Effort::Low => Effort::Low,
        engine::Effort::Medium => Effort::Medium,
        engine::Effort::High => Effort::High,
        engine::Effort::XHigh => Effort::XHigh,
        engine::Effort::Max => Effort::Max,
    })
}

/// The least `top_p` with which a model thinks.
const MIN_TOP_P: f64 = 0.95;
/// The least budget, in tokens.
const MIN_BUDGET: i64 = 1024;
