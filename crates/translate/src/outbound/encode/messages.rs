//! A request in Messages (wire-reference §3.1, §3.2).

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
    losses: &mut DroppedFields,
) -> Result<Request, EngineError> {
    let has_tools = !request.tools.is_empty();
    let Sampling { temperature, top_p, top_k, .. } = sampling(&request.sampling, settings, losses);
    Ok(Request {
        model: request.model.clone(),
        max_tokens: Some(super::count(request.max_output_tokens.unwrap_or(settings.max_tokens).max(1))),
        system: system(&request.turns).map(TextOr::Text),
        messages: messages(&request.turns, losses)?,
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

fn sampling(asked: &Sampling, settings: &Settings, losses: &mut DroppedFields) -> Sampling {
    if asked.temperature.is_some_and(|temperature| temperature > 1.0 || !settings.sampling) {
        losses.add(DroppedField::Temperature);
    }
    if settings.sampling {
        return Sampling { temperature: asked.temperature.map(|temperature| temperature.min(1.0)), ..asked.clone() };
    }
    for (given, lost) in [(asked.top_p.is_some(), DroppedField::TopP), (asked.top_k.is_some(), DroppedField::TopK)] {
        if given {
            losses.add(lost);
        }
    }
    Sampling::default()
}

/// All system texts as one.
fn system(turns: &[Turn]) -> Option<String> {
    let texts = turns.iter().filter_map(|turn| match turn {
        Turn::System(text) if !is_blank(text) => Some(text.as_str()),
        _ => None,
    });
    super::join(&texts.collect::<Vec<_>>())
}

fn messages(turns: &[Turn], losses: &mut DroppedFields) -> Result<Vec<InputMessage>, EngineError> {
    let mut messages = Vec::new();
    for turn in turns {
        match turn {
            Turn::System(text) if is_blank(text) || messages.is_empty() => {}
            Turn::System(_) => losses.add(DroppedField::SystemPosition),
            Turn::User(parts) => add(&mut messages, Role::User, blocks(parts)?),
            Turn::Tool(result) => add(&mut messages, Role::User, vec![tool_result(result)?]),
            Turn::Assistant(parts) => {
                let said = said(parts, losses)?;
                if !said.is_empty() {
                    add(&mut messages, Role::Assistant, said);
                }
            }
        }
    }
    match messages.first() {
        None => return Err(super::nothing_to_answer()),
        Some((Role::Assistant, _)) => {
            return Err(super::unsupported("The conversation has to begin with the user for this model."));
        }
        Some(_) => {}
    }
    messages.into_iter().map(message).collect()
}

/// Adds to the last message when it is of the same side.
fn add(messages: &mut Vec<(Role, Vec<InputBlock>)>, role: Role, blocks: Vec<InputBlock>) {
    match messages.last_mut() {
        Some((last, said)) if *last == role => said.extend(blocks),
        _ => messages.push((role, blocks)),
    }
}

fn message((role, mut blocks): (Role, Vec<InputBlock>)) -> Result<InputMessage, EngineError> {
    if blocks.is_empty() {
        return Err(super::unsupported("The user has to say something in each turn for this model."));
    }
    // What came of calls goes before what the user says about it.
    blocks.sort_by_key(|block| !matches!(block, InputBlock::ToolResult(_)));
    Ok(InputMessage { role, content: TextOr::List(blocks), extra: Object::new() })
}

/// What is not blank of what a user or a tool says: blank texts are refused.
fn blocks(parts: &[UserPart]) -> Result<Vec<InputBlock>, EngineError> {
    let said = parts.iter().filter(|part| !matches!(part, UserPart::Text(text) if is_blank(text)));
    said.map(block).collect()
}

fn block(part: &UserPart) -> Result<InputBlock, EngineError> {
    Ok(match part {
        UserPart::Text(said) => text(said),
        UserPart::Image { source, .. } => {
            InputBlock::Image(ImageBlock { source: picture(source), extra: Object::new() })
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

fn picture(source: &ImageSource) -> Source {
    match source {
        ImageSource::Inline { media_type, data } => Source::Base64(DataSource {
            media_type: media_type.to_ascii_lowercase(),
            data: data.clone(),
            extra: Object::new(),
        }),
        ImageSource::Url(url) => Source::Url(UrlSource { url: url.clone(), extra: Object::new() }),
    }
}

/// A document: here they are PDF or text.
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

fn said(parts: &[AssistantPart], losses: &mut DroppedFields) -> Result<Vec<InputBlock>, EngineError> {
    let mut said = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text(words) | AssistantPart::Refusal(words) if is_blank(words) => {}
            AssistantPart::Text(words) | AssistantPart::Refusal(words) => said.push(text(words)),
            AssistantPart::Reasoning { text, signature: Some(signature) } if !is_envelope(signature) => {
                let (thinking, signature) = (text.clone(), signature.clone());
                said.push(InputBlock::Thinking(ThinkingBlock { thinking, signature, extra: Object::new() }));
            }
            // Thoughts without a seal are refused.
            AssistantPart::Reasoning { .. } => losses.add(DroppedField::Reasoning),
            AssistantPart::RedactedReasoning(data) => {
                let thoughts = RedactedThinkingBlock { data: data.clone(), extra: Object::new() };
                said.push(InputBlock::RedactedThinking(thoughts));
            }
            AssistantPart::Call(call) => said.push(InputBlock::ToolUse(ToolUseBlock {
                id: super::call_id(&call.id),
                name: call.name.clone(),
                input: input(call)?,
                extra: Object::new(),
            })),
        }
    }
    Ok(said)
}

/// The arguments as an object, which they have to be here.
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
            // Not every version of the protocol knows it.
            strict: None,
            extra: Object::new(),
        }))
    };
    tools.iter().map(tool).collect()
}

/// The choice among the tools, which also says whether calls are to come one at a time.
fn tool_choice(request: &TextRequest) -> Option<ToolChoice> {
    let alone = (request.parallel_calls == Some(false)).then_some(true);
    let any = AnyTool { disable_parallel_tool_use: alone, extra: Object::new() };
    match &request.tool_choice {
        engine::ToolChoice::Auto => alone.map(|_| ToolChoice::Auto(any)),
        engine::ToolChoice::None => Some(ToolChoice::None(AnyTool::default())),
        engine::ToolChoice::Required => Some(ToolChoice::Any(any)),
        engine::ToolChoice::Named(name) => Some(ToolChoice::Tool(NamedTool {
            name: name.clone(),
            disable_parallel_tool_use: alone,
            extra: Object::new(),
        })),
    }
}

/// An effort is an order to think: alone, `output_config.effort` is not.
fn thinking(reasoning: &engine::Reasoning) -> Option<Thinking> {
    if reasoning.effort == Some(engine::Effort::None) {
        return Some(Thinking::Disabled(ThinkingMode::default()));
    }
    let display = reasoning.summary.map(|wanted| match wanted {
        true => ThinkingDisplay::Summarized,
        false => ThinkingDisplay::Omitted,
    });
    let said = reasoning.effort.is_some() || display.is_some();
    said.then(|| Thinking::Adaptive(ThinkingMode { display, extra: Object::new() }))
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
    let said = effort.is_some() || format.is_some();
    Ok(said.then(|| OutputConfig { effort, format, extra: Object::new() }))
}

/// The effort, where there is one.
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
