//! Messages (<https://docs.anthropic.com/en/api/messages>).

use engine::{
    AssistantPart, Effort, Format, ImageSource, Labels, Reasoning, Sampling, Stop, TextEvent,
    TextRequest, ToolChoice, ToolResult, Turn, UserPart,
};
use messages::{
    Encoder, Event, Fold, Head, InputBlock, InputMessage, Message, OutputFormat, Request, Role,
    Source, StopReason, Thinking, Tool, Usage, ValidCount, ValidRequest,
};
use serde_json::json;
use wire::{ApiError, TextOr};

use super::{ClientProtocol, Inbound, Stamp, shared};
use crate::call_id;

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
    let (tool_choice, sequential) = tool_choice(&request);
    let neutral = TextRequest {
        turns: turns(&request)?,
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

fn turns(request: &Request) -> Result<Vec<Turn>, ApiError> {
    let mut turns = Vec::new();
    if let Some(system) = &request.system {
        turns.push(Turn::System(plain(system)));
    }
    for (i, InputMessage { role, content, .. }) in request.messages.iter().enumerate() {
        let Some(content) = content else { continue };
        let path = format!("messages[{i}]");
        match role {
            Role::System => turns.push(Turn::System(plain(content))),
            Role::Assistant => turns.push(Turn::Assistant(assistant_parts(content, &path)?)),
            _ => add_user_turns(content, &path, &mut turns)?,
        }
    }
    Ok(turns)
}

/// Adds the turns of a user message. Tool results become separate turns.
fn add_user_turns(
    content: &TextOr<InputBlock>,
    path: &str,
    turns: &mut Vec<Turn>,
) -> Result<(), ApiError> {
    let blocks = match content {
        TextOr::Text(text) => {
            turns.push(Turn::User(vec![UserPart::Text(text.clone())]));
            return Ok(());
        }
        TextOr::List(blocks) => blocks,
    };
    let mut parts = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        let path = format!("{path}.content[{i}]");
        let InputBlock::ToolResult(result) = block else {
            add_part(block, &path, &mut parts)?;
            continue;
        };
        if !parts.is_empty() {
            turns.push(Turn::User(std::mem::take(&mut parts)));
        }
        let mut content = Vec::new();
        add_parts(result.content.as_ref(), &path, &mut content)?;
        let is_error = result.is_error == Some(true);
        turns.push(Turn::Tool(ToolResult {
            call_id: result.tool_use_id.clone(),
            content,
            is_error,
        }));
    }
    if !parts.is_empty() {
        turns.push(Turn::User(parts));
    }
    Ok(())
}

fn add_parts(
    content: Option<&TextOr<InputBlock>>,
    path: &str,
    parts: &mut Vec<UserPart>,
) -> Result<(), ApiError> {
    match content {
        None => Ok(()),
        Some(TextOr::Text(text)) => {
            parts.push(UserPart::Text(text.clone()));
            Ok(())
        }
        Some(TextOr::List(blocks)) => {
            let mut blocks = blocks.iter().enumerate();
            blocks
                .try_for_each(|(i, block)| add_part(block, &format!("{path}.content[{i}]"), parts))
        }
    }
}

fn add_part(block: &InputBlock, path: &str, parts: &mut Vec<UserPart>) -> Result<(), ApiError> {
    match block {
        InputBlock::Text(text) => parts.push(UserPart::Text(text.text.clone())),
        InputBlock::Image(image) => {
            parts.push(UserPart::Image {
                source: image_source(&image.source, path)?,
                detail: None,
            });
        }
        InputBlock::Document(document) => match &document.source {
            Source::Text(source) => parts.push(UserPart::Text(source.data.clone())),
            Source::Content(source) => add_parts(Some(&source.content), path, parts)?,
            Source::Base64(source) => parts.push(UserPart::File {
                name: document.title.clone(),
                media_type: source.media_type.clone(),
                data: source.data.clone(),
            }),
            Source::Url(source) => parts.push(UserPart::FileUrl {
                name: document.title.clone(),
                url: source.url.clone(),
            }),
            other => return Err(unknown(other.kind(), &format!("{path}.source.type"))),
        },
        other => return Err(unknown(other.kind(), &format!("{path}.type"))),
    }
    Ok(())
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

fn image_source(source: &Source, path: &str) -> Result<ImageSource, ApiError> {
    match source {
        Source::Base64(source) => Ok(ImageSource::Inline {
            media_type: wire::image_type(&source.media_type)
                .unwrap_or(&source.media_type)
                .to_owned(),
            data: source.data.clone(),
        }),
        Source::Url(source) => Ok(ImageSource::Url(source.url.clone())),
        other => Err(unknown(other.kind(), &format!("{path}.source.type"))),
    }
}

fn assistant_parts(
    content: &TextOr<InputBlock>,
    path: &str,
) -> Result<Vec<AssistantPart>, ApiError> {
    let blocks = match content {
        TextOr::Text(text) => return Ok(vec![AssistantPart::Text(text.clone())]),
        TextOr::List(blocks) => blocks.iter().enumerate(),
    };
    let mut output = Vec::new();
    for (i, block) in blocks {
        output.push(match block {
            InputBlock::Text(text) => AssistantPart::Text(text.text.clone()),
            InputBlock::Thinking(block) => AssistantPart::Reasoning {
                text: block.thinking.clone(),
                signature: Some(block.signature.clone()).filter(|signature| !signature.is_empty()),
            },
            InputBlock::ToolUse(call) => AssistantPart::Call(engine::ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.input.text().to_owned(),
            }),
            InputBlock::RedactedThinking(block) => {
                AssistantPart::RedactedReasoning(block.data.clone())
            }
            other => return Err(unknown(other.kind(), &format!("{path}.content[{i}].type"))),
        });
    }
    Ok(output)
}

/// Concatenates the text blocks of content, and ignores other blocks.
fn plain(content: &TextOr<InputBlock>) -> String {
    shared::joined(content, |block| match block {
        InputBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    })
}

fn unknown(kind: &str, path: &str) -> ApiError {
    shared::unsupported(
        path,
        &format!("{path}: '{kind}' is not supported by this model"),
    )
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
        Some(Thinking::Enabled(budget)) => effort.or(Some(match budget.budget_tokens {
            ..4096 => Effort::Low,
            4096..16384 => Effort::Medium,
            _ => Effort::High,
        })),
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

/// The title of a document, as in the field map.
const TITLE: &str = "messages[].content[].title";
