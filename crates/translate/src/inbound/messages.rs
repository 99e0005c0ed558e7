//! Messages (<https://docs.anthropic.com/en/api/messages>).

mod user_blocks;

use engine::{
    AssistantPart, CachedPrefixes, Effort, Format, Labels, Reasoning, Sampling, Stop, TextEvent,
    TextRequest, ToolChoice, Turn,
};
use messages::{
    Encoder, Event, Fold, Head, InputBlock, InputMessage, Message, OutputFormat, Request, Role,
    Source, StopReason, Thinking, Tool, Usage, ValidCount, ValidRequest,
};
use serde_json::json;
use vendor::call_id;
use wire::{ApiError, TextOr};

use self::user_blocks::{UserBlocks, extra};
use super::{ClientProtocol, Inbound, Stamp, shared};

/// The Messages protocol on the client side.
pub struct Messages;

impl ClientProtocol for Messages {
    type Request = ValidRequest;
    type Encoder = Encoder;
    type Event = Event;
    type Fold = Fold;
    type Reply = Message;

    delegate_to_crate!();

    fn request(request: ValidRequest) -> Result<Inbound, ApiError> {
        neutral(request.into_inner())
    }

    fn encoder(request: &ValidRequest, stamp: &Stamp) -> Encoder {
        Encoder::new(
            Head {
                id: wire::id("msg", stamp.bits),
                model: request.model.clone(),
            },
            None,
        )
    }

    fn encode(encoder: &mut Encoder, event: TextEvent, _now: i64, out: &mut Vec<Event>) {
        match event {
            TextEvent::Reasoning(text) => encoder.reasoning(&text, out),
            TextEvent::ReasoningSignature(signature) => encoder.signature(&signature, out),
            TextEvent::RedactedReasoning(data) => encoder.redacted_thinking(&data, out),
            TextEvent::CallSeal { seal, .. } => encoder.signature(&seal, out),
            TextEvent::Text(text) => encoder.text(&text, out),
            TextEvent::Refusal(text) => encoder.refusal(&text, out),
            // An id of another form would be refused when it comes back.
            TextEvent::Call { id, name } => encoder.call(&call_id::plain(&id), &name, out),
            TextEvent::Arguments(text) => encoder.arguments(&text, out),
            TextEvent::Finished { stop, usage } => {
                let (reason, stop_sequence) = stop_reason(stop);
                encoder.finish(reason, stop_sequence, usage.map(protocol_usage), out);
            }
            _ => {}
        }
    }

    fn keep_alive(encoder: &Encoder, out: &mut Vec<u8>) {
        let mut pings = Vec::new();
        encoder.ping(&mut pings);
        pings.iter().for_each(|ping| ping.write(out));
        if pings.is_empty() {
            sse::comment("keep-alive", out);
        }
    }

    fn gather(fold: &mut Fold, event: &Event) -> bool {
        fold.push(event).is_ok()
    }

    fn reply(fold: Fold) -> Option<Message> {
        fold.finish().ok()
    }
}

impl Messages {
    /// Converts a token-counting request to the neutral form.
    ///
    /// # Errors
    /// As [`ClientProtocol::request`].
    pub fn count(request: ValidCount) -> Result<Inbound, ApiError> {
        neutral(request.into_inner())
    }
}

fn neutral(request: Request) -> Result<Inbound, ApiError> {
    let (tools, mut dropped) =
        shared::tools(request.tools.as_deref().unwrap_or_default(), function);
    dropped.extend(has_titled_text(&request).then(|| TITLE.to_owned()));
    dropped.extend(has_marked_output(&request).then(|| shared::BREAKPOINT.to_owned()));
    let (tool_choice, sequential) = tool_choice(&request);
    let neutral = TextRequest {
        turns: turns(&request, &mut dropped)?,
        tools,
        tool_choice,
        parallel_calls: sequential.map(|sequential| !sequential),
        format: format(&request),
        verbosity: None,
        max_output_tokens: shared::cap(request.max_tokens),
        stop: request.stop_sequences.clone().unwrap_or_default(),
        sampling: Sampling {
            temperature: request.temperature,
            top_p: request.top_p,
            top_k: shared::cap(request.top_k),
            ..Sampling::default()
        },
        reasoning: reasoning(&request),
        logprobs: None,
        user: request.user().map(str::to_owned),
        labels: Labels::default(),
        cached: cached(&request),
        model: request.model,
    };
    Ok(Inbound {
        request: neutral,
        dropped,
    })
}

fn stop_reason(stop: Stop) -> (StopReason, Option<String>) {
    match stop {
        Stop::StopText(text) => (StopReason::StopSequence, Some(text)),
        Stop::MaxTokens => (StopReason::MaxTokens, None),
        Stop::ContextFull => (StopReason::ContextWindowExceeded, None),
        Stop::ToolCalls => (StopReason::ToolUse, None),
        Stop::Refused => (StopReason::Refusal, None),
        Stop::Paused => (StopReason::PauseTurn, None),
        _ => (StopReason::EndTurn, None),
    }
}

/// Converts the usage. In this protocol `input_tokens` excludes cached tokens.
fn protocol_usage(usage: engine::Usage) -> Usage {
    let uncached = usage
        .input
        .saturating_sub(usage.cache_read)
        .saturating_sub(usage.cache_write);
    let mut counts = Usage::new(uncached, usage.output);
    counts.cache_read_input_tokens = usage.cache_read;
    counts.cache_creation_input_tokens = usage.cache_write;
    if usage.cache_write_1h > 0 {
        let details = json!({
            "ephemeral_5m_input_tokens": usage.cache_write.saturating_sub(usage.cache_write_1h),
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        });
        counts.extra.insert("cache_creation".to_owned(), details);
    }
    if usage.reasoning > 0 {
        let details = json!({ "thinking_tokens": usage.reasoning });
        counts
            .extra
            .insert("output_tokens_details".to_owned(), details);
    }
    counts
}

fn turns(request: &Request, dropped: &mut Vec<String>) -> Result<Vec<Turn>, ApiError> {
    let mut turns = Vec::new();
    if let Some(system) = &request.system {
        let text = shared::joined(system, |block| match block {
            InputBlock::Text(text) => Some(without_billing_line(&text.text)),
            _ => None,
        });
        let text = without_billing_line(&text);
        if has_billing_line(system) {
            dropped.push(BILLING_LINE.to_owned());
        }
        if !text.is_empty() {
            turns.push(Turn::System(text.to_owned()));
        }
    }
    let last = request.messages.len().saturating_sub(1);
    for (i, InputMessage { role, content, .. }) in request.messages.iter().enumerate() {
        let Some(content) = content else { continue };
        let path = format!("messages[{i}]");
        match role {
            Role::System => turns.push(Turn::System(plain(content))),
            Role::Assistant => turns.push(Turn::Assistant(assistant_parts(content))),
            _ => {
                let mut blocks = UserBlocks {
                    is_history: i < last,
                    dropped,
                };
                blocks.add_turns(content, &path, &mut turns)?;
            }
        }
    }
    Ok(turns)
}

/// Returns a system text without the line of Claude Code that changes with each request. It means
/// nothing to another server, and no prefix of the prompt would be found in a cache.
fn without_billing_line(text: &str) -> &str {
    if !text.starts_with(BILLING_LINE) {
        return text;
    }
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

fn has_billing_line(system: &TextOr<InputBlock>) -> bool {
    match system {
        TextOr::Text(text) => text.starts_with(BILLING_LINE),
        TextOr::List(blocks) => blocks.iter().any(
            |block| matches!(block, InputBlock::Text(text) if text.text.starts_with(BILLING_LINE)),
        ),
    }
}

/// Returns the prefixes that end with the tools and with the system text.
fn cached(request: &Request) -> CachedPrefixes {
    let system = request.system.iter().flat_map(TextOr::parts);
    let tools = request
        .tools
        .iter()
        .flatten()
        .filter_map(|tool| match tool {
            Tool::Custom(tool) => Some(&tool.extra),
            _ => None,
        });
    CachedPrefixes {
        tools: shared::last_breakpoint(tools),
        system: shared::last_breakpoint(system.filter_map(extra)),
    }
}

/// Returns true if earlier output has a cache breakpoint, which has no place in other protocols.
fn has_marked_output(request: &Request) -> bool {
    let answers = request.messages.iter();
    let answers = answers.filter(|message| message.role == Role::Assistant);
    let blocks = answers.flat_map(InputMessage::blocks);
    let members = blocks.filter_map(|block| match block {
        InputBlock::ToolUse(call) => Some(&call.extra),
        block => extra(block),
    });
    shared::last_breakpoint(members).is_some()
}

/// Returns true if the text of any document has a title, which the text cannot carry.
fn has_titled_text(request: &Request) -> bool {
    fn is_titled(block: &InputBlock) -> bool {
        match block {
            InputBlock::Document(document) => {
                document.title.is_some()
                    && matches!(document.source, Source::Text(_) | Source::Content(_))
            }
            InputBlock::ToolResult(result) => {
                let content = result.content.iter();
                content.flat_map(TextOr::parts).any(is_titled)
            }
            _ => false,
        }
    }
    let messages = request.messages.iter();
    messages.flat_map(InputMessage::blocks).any(is_titled)
}

/// Converts earlier output. The records of tools that ran at the vendor mean nothing to another
/// server; the field map reports the drop.
fn assistant_parts(content: &TextOr<InputBlock>) -> Vec<AssistantPart> {
    let blocks = match content {
        TextOr::Text(text) => return vec![AssistantPart::Text(text.clone())],
        TextOr::List(blocks) => blocks.iter(),
    };
    let part = |block: &InputBlock| {
        Some(match block {
            InputBlock::Text(text) => AssistantPart::Text(text.text.clone()),
            InputBlock::Thinking(block) => AssistantPart::Reasoning {
                text: block.thinking.clone(),
                signature: Some(block.signature.clone()).filter(|signature| !signature.is_empty()),
            },
            InputBlock::ToolUse(call) => AssistantPart::Call(engine::ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.input.text().to_owned(),
                seal: None,
            }),
            InputBlock::RedactedThinking(block) => {
                AssistantPart::RedactedReasoning(block.data.clone())
            }
            other => AssistantPart::Text(summary(other)?),
        })
    };
    blocks.filter_map(part).collect()
}

/// Returns the text of a block that stands for the messages before it
/// (<https://platform.claude.com/docs/en/build-with-claude/compaction>).
fn summary(block: &InputBlock) -> Option<String> {
    let InputBlock::Other(members) = block else {
        return None;
    };
    let text = members.get("content")?.as_str()?;
    (block.kind() == "compaction").then(|| text.to_owned())
}

/// Concatenates the text blocks of content, and ignores other blocks.
fn plain(content: &TextOr<InputBlock>) -> String {
    shared::joined(content, |block| match block {
        InputBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    })
}

fn function(tool: &Tool) -> Option<engine::Tool> {
    let Tool::Custom(tool) = tool else {
        return None;
    };
    Some(engine::Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: Some(tool.input_schema.clone()),
        strict: Some(tool.strict == Some(true)),
    })
}

/// Returns the tool choice, and whether parallel calls are disabled.
fn tool_choice(request: &Request) -> (ToolChoice, Option<bool>) {
    use messages::ToolChoice as Requested;
    let sequential = request
        .tool_choice
        .as_ref()
        .and_then(Requested::disables_parallel_use);
    let choice = match &request.tool_choice {
        Some(Requested::Any(_)) => ToolChoice::Required,
        Some(Requested::None(_)) => ToolChoice::None,
        Some(Requested::Tool(choice)) => ToolChoice::Named(choice.name.clone()),
        _ => ToolChoice::Auto,
    };
    (choice, sequential)
}

fn format(request: &Request) -> Format {
    match request
        .output_config
        .as_ref()
        .and_then(|config| config.format.as_ref())
    {
        Some(OutputFormat::JsonSchema(format)) => Format::JsonSchema {
            name: None,
            description: None,
            schema: format.schema.clone(),
            strict: Some(true),
        },
        _ => Format::Text,
    }
}

/// Converts the requested thinking. The effort counts before a budget.
fn reasoning(request: &Request) -> Reasoning {
    let effort = request
        .output_config
        .as_ref()
        .and_then(|config| Effort::named(config.effort.as_ref()?.as_str()));
    let thinking = match &request.thinking {
        Some(Thinking::Enabled(budget)) => {
            effort.or_else(|| Some(shared::effort_of_budget(budget.budget_tokens)))
        }
        Some(Thinking::Disabled(_)) => Some(Effort::None),
        _ => effort,
    };
    let summary = request
        .thinking
        .as_ref()
        .and_then(Thinking::display)
        .map(|display| display.as_str() != "omitted");
    Reasoning {
        effort: thinking,
        summary,
        // Without `thinking` the effort is about the output alone:
        // https://docs.anthropic.com/en/docs/build-with-claude/effort
        output_only: request.thinking.is_none() && effort.is_some(),
        ..Reasoning::default()
    }
}

/// The beginning of a line of Claude Code in the system text.
const BILLING_LINE: &str = "x-anthropic-billing-header";
/// The title of a document, as in the field map.
const TITLE: &str = "messages[].content[].title";
