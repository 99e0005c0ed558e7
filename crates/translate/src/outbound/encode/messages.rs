//! Encodes requests for Messages (<https://docs.anthropic.com/en/api/messages>).

use engine::{AssistantPart, EngineError, Format, ImageSource, Sampling, TextRequest, ToolResult, Turn, UserPart};
use messages::{
    AnyTool, CustomTool, DataSource, DocumentBlock, Effort, ImageBlock, InputBlock, InputMessage, JsonSchemaFormat,
    Metadata, NamedTool, OutputConfig, OutputFormat, RedactedThinkingBlock, Request, Role, Source, TextBlock, Thinking,
    ThinkingBlock, ThinkingDisplay, ThinkingMode, Tool, ToolChoice, ToolResultBlock, ToolUseBlock, UrlSource,
};
use serde_json::json;
use wire::{DataUrl, Json, Object, TextOr};

use super::{DroppedField, DroppedFields, Settings};
use crate::envelope::is_envelope;

pub(super) fn request(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Request, EngineError> {
    let has_tools = !request.tools.is_empty();
    let Sampling { temperature, top_p, top_k, .. } = sampling(&request.sampling, settings, dropped);
    Ok(Request {
        model: request.model.clone(),
        max_tokens: Some(super::count(request.max_output_tokens.unwrap_or(settings.max_tokens).max(1))),
        system: system(&request.turns).map(TextOr::Text),
        messages: messages(&request.turns, dropped)?,
        stream: settings.stream.then_some(true),
        stop_sequences: (!request.stop.is_empty()).then(|| request.stop.clone()),
        temperature,
        top_p,
        top_k: top_k.map(super::count),
        tools: if has_tools { Some(tools(&request.tools)?) } else { None },
        tool_choice: if has_tools { tool_choice(request) } else { None },
        thinking: thinking(&request.reasoning),
        output_config: output_config(request)?,
        metadata: request.user.clone().map(|user| Metadata { user_id: Some(user), extra: Object::new() }),
        extra: Object::new(),
    })
}

fn sampling(requested: &Sampling, settings: &Settings, dropped: &mut DroppedFields) -> Sampling {
    if requested.temperature.is_some_and(|temperature| temperature > 1.0 || !settings.sampling) {
        dropped.add(DroppedField::Temperature);
    }
    if settings.sampling {
        return Sampling {
            temperature: requested.temperature.map(|temperature| temperature.min(1.0)),
            ..requested.clone()
        };
    }
    for (given, field) in
        [(requested.top_p.is_some(), DroppedField::TopP), (requested.top_k.is_some(), DroppedField::TopK)]
    {
        if given {
            dropped.add(field);
        }
    }
    Sampling::default()
}

/// Joins all system texts.
fn system(turns: &[Turn]) -> Option<String> {
    let texts = turns.iter().filter_map(|turn| match turn {
        Turn::System(text) if !is_blank(text) => Some(text.as_str()),
        _ => None,
    });
    super::join(&texts.collect::<Vec<_>>())
}

fn messages(turns: &[Turn], dropped: &mut DroppedFields) -> Result<Vec<InputMessage>, EngineError> {
    let mut messages = Vec::new();
    for turn in turns {
        match turn {
            Turn::System(text) if is_blank(text) || messages.is_empty() => {}
            Turn::System(_) => dropped.add(DroppedField::SystemPosition),
            Turn::User(parts) => add(&mut messages, Role::User, blocks(parts)?),
            Turn::Tool(result) => add(&mut messages, Role::User, vec![tool_result(result)?]),
            Turn::Assistant(parts) => {
                let blocks = assistant_blocks(parts, dropped)?;
                if !blocks.is_empty() {
                    add(&mut messages, Role::Assistant, blocks);
                }
            }
        }
    }
    match messages.first() {
        None => return Err(super::empty_conversation()),
        Some((Role::Assistant, _)) => {
            return Err(super::unsupported("The conversation has to begin with the user for this model."));
        }
        Some(_) => {}
    }
    messages.into_iter().map(message).collect()
}

/// Adds blocks to the last message if it has the same role, else as a new message.
fn add(messages: &mut Vec<(Role, Vec<InputBlock>)>, role: Role, blocks: Vec<InputBlock>) {
    match messages.last_mut() {
        Some((last, content)) if *last == role => content.extend(blocks),
        _ => messages.push((role, blocks)),
    }
}

fn message((role, mut blocks): (Role, Vec<InputBlock>)) -> Result<InputMessage, EngineError> {
    if blocks.is_empty() {
        return Err(super::unsupported("The user has to say something in each turn for this model."));
    }
    // Tool results have to precede the other blocks of a user message.
    blocks.sort_by_key(|block| !matches!(block, InputBlock::ToolResult(_)));
    Ok(InputMessage { role, content: TextOr::List(blocks), extra: Object::new() })
}

/// Encodes parts of a user message or a tool result. Blank texts are left out, because the API refuses them.
fn blocks(parts: &[UserPart]) -> Result<Vec<InputBlock>, EngineError> {
    let parts = parts.iter().filter(|part| !matches!(part, UserPart::Text(text) if is_blank(text)));
    parts.map(block).collect()
}

fn block(part: &UserPart) -> Result<InputBlock, EngineError> {
    Ok(match part {
        UserPart::Text(content) => text(content),
        UserPart::Image { source, .. } => {
            InputBlock::Image(ImageBlock { source: image_source(source), extra: Object::new() })
        }
        UserPart::File { name, media_type, data } => InputBlock::Document(DocumentBlock {
            source: document(media_type, data)?,
            title: name.clone(),
            context: None,
            extra: Object::new(),
        }),
    })
}

fn text(text: &str) -> InputBlock {
    InputBlock::Text(TextBlock { text: text.to_owned(), extra: Object::new() })
}

fn image_source(source: &ImageSource) -> Source {
    match source {
        ImageSource::Inline { media_type, data } => Source::Base64(DataSource {
            media_type: media_type.to_ascii_lowercase(),
            data: data.clone(),
            extra: Object::new(),
        }),
        ImageSource::Url(url) => Source::Url(UrlSource { url: url.clone(), extra: Object::new() }),
    }
}

/// Encodes a document. This protocol supports PDF and text.
fn document(media_type: &str, data: &str) -> Result<Source, EngineError> {
    super::check_data(media_type, data)?;
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/pdf" {
        return Ok(Source::Base64(DataSource { media_type: essence, data: data.to_owned(), extra: Object::new() }));
    }
    let text = essence.starts_with("text/").then(|| DataUrl { media_type, data }.decode().ok()).flatten();
    match text.map(String::from_utf8) {
        Some(Ok(data)) => {
            Ok(Source::Text(DataSource { media_type: "text/plain".to_owned(), data, extra: Object::new() }))
        }
        _ => {
            let sentence =
                format!("Documents of the type '{essence}' are not supported by this model: send PDF or UTF-8 text.");
            Err(super::unsupported(sentence))
        }
    }
}

fn tool_result(result: &ToolResult) -> Result<InputBlock, EngineError> {
    let content = match result.content.as_slice() {
        [UserPart::Text(text)] if !is_blank(text) => Some(TextOr::Text(text.clone())),
        content => Some(blocks(content)?).filter(|blocks| !blocks.is_empty()).map(TextOr::List),
    };
    Ok(InputBlock::ToolResult(ToolResultBlock {
        tool_use_id: super::call_id(&result.call_id),
        content,
        is_error: result.is_error.then_some(true),
        extra: Object::new(),
    }))
}

fn assistant_blocks(parts: &[AssistantPart], dropped: &mut DroppedFields) -> Result<Vec<InputBlock>, EngineError> {
    let mut blocks = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text(content) | AssistantPart::Refusal(content) if is_blank(content) => {}
            AssistantPart::Text(content) | AssistantPart::Refusal(content) => blocks.push(text(content)),
            AssistantPart::Reasoning { text, signature: Some(signature) } if !is_envelope(signature) => {
                let (thinking, signature) = (text.clone(), signature.clone());
                blocks.push(InputBlock::Thinking(ThinkingBlock { thinking, signature, extra: Object::new() }));
            }
            // The API refuses thinking blocks without a signature.
            AssistantPart::Reasoning { .. } => dropped.add(DroppedField::Reasoning),
            AssistantPart::RedactedReasoning(data) => {
                let block = RedactedThinkingBlock { data: data.clone(), extra: Object::new() };
                blocks.push(InputBlock::RedactedThinking(block));
            }
            AssistantPart::Call(call) => blocks.push(InputBlock::ToolUse(ToolUseBlock {
                id: super::call_id(&call.id),
                name: call.name.clone(),
                input: input(call)?,
                extra: Object::new(),
            })),
        }
    }
    Ok(blocks)
}

/// Parses the arguments of a call, which have to be an object in this protocol.
fn input(call: &engine::ToolCall) -> Result<Json, EngineError> {
    if is_blank(&call.arguments) {
        return Ok(json!({}).into());
    }
    match serde_json::from_str::<Json>(&call.arguments) {
        Ok(input) if input.is_object() => super::embed(&input),
        _ => {
            let sentence =
                format!("The arguments of the call of '{}' are not a JSON object, as this model needs it.", call.name);
            Err(super::unsupported(sentence))
        }
    }
}

fn tools(tools: &[engine::Tool]) -> Result<Vec<Tool>, EngineError> {
    let tool = |tool: &engine::Tool| {
        Ok(Tool::Custom(CustomTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: match &tool.parameters {
                Some(schema) => super::embed(schema)?,
                None => json!({ "type": "object", "properties": {} }).into(),
            },
            // Not every version of the protocol supports it.
            strict: None,
            extra: Object::new(),
        }))
    };
    tools.iter().map(tool).collect()
}

/// Encodes the tool choice, which also carries `disable_parallel_tool_use`.
fn tool_choice(request: &TextRequest) -> Option<ToolChoice> {
    let sequential = (request.parallel_calls == Some(false)).then_some(true);
    let any = AnyTool { disable_parallel_tool_use: sequential, extra: Object::new() };
    match &request.tool_choice {
        engine::ToolChoice::Auto => sequential.map(|_| ToolChoice::Auto(any)),
        engine::ToolChoice::None => Some(ToolChoice::None(AnyTool::default())),
        engine::ToolChoice::Required => Some(ToolChoice::Any(any)),
        engine::ToolChoice::Named(name) => Some(ToolChoice::Tool(NamedTool {
            name: name.clone(),
            disable_parallel_tool_use: sequential,
            extra: Object::new(),
        })),
    }
}

/// Encodes the thinking option. An effort enables thinking, which `output_config.effort` alone would not do.
fn thinking(reasoning: &engine::Reasoning) -> Option<Thinking> {
    if reasoning.effort == Some(engine::Effort::None) {
        return Some(Thinking::Disabled(ThinkingMode::default()));
    }
    let display = reasoning.summary.map(|wanted| match wanted {
        true => ThinkingDisplay::Summarized,
        false => ThinkingDisplay::Omitted,
    });
    let is_set = reasoning.effort.is_some() || display.is_some();
    is_set.then(|| Thinking::Adaptive(ThinkingMode { display, extra: Object::new() }))
}

fn output_config(request: &TextRequest) -> Result<Option<OutputConfig>, EngineError> {
    let effort = request.reasoning.effort.and_then(effort);
    let format = match &request.format {
        Format::Text => None,
        Format::JsonSchema { schema, .. } => {
            Some(OutputFormat::JsonSchema(JsonSchemaFormat { schema: super::embed(schema)?, extra: Object::new() }))
        }
        Format::JsonObject => {
            let sentence = "JSON without a schema is not supported by this model: send a JSON Schema.";
            return Err(super::unsupported(sentence));
        }
    };
    let is_set = effort.is_some() || format.is_some();
    Ok(is_set.then(|| OutputConfig { effort, format, extra: Object::new() }))
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

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
