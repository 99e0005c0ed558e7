//! Encodes requests for Chat Completions (<https://platform.openai.com/docs/api-reference/chat/create>).

use chat::{
    AssistantMessage, Effort, FilePart, FileSource, FunctionCall, FunctionChoice, FunctionName, FunctionTool,
    FunctionToolCall, ImagePart, ImageUrl, JsonSchemaFormat, Message, NamedSchema, Part, PlainFormat, Request,
    ResponseFormat, StreamOptions, SystemMessage, TextPart, Tool, ToolCall, ToolChoice, ToolChoiceObject, ToolFunction,
    ToolMessage, ToolMode, UserMessage,
};
use engine::{AssistantPart, EngineError, Format, ImageSource, TextRequest, ToolResult, Turn, UserPart, Verbosity};
use wire::{Object, TextOr};

use super::{DroppedField, DroppedFields, ERROR_PREFIX, SCHEMA_NAME, Settings};

pub(super) fn request(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Request, EngineError> {
    // Some servers refuse `tool_choice` and `parallel_tool_calls` without `tools`.
    let has_tools = !request.tools.is_empty();
    Ok(Request {
        model: request.model.clone(),
        messages: messages(&request.turns, dropped)?,
        max_tokens: request.max_output_tokens.map(super::count),
        stream: settings.stream.then_some(true),
        stream_options: settings.stream.then(with_usage),
        response_format: format(&request.format)?,
        tools: if has_tools { Some(tools(&request.tools)?) } else { None },
        tool_choice: has_tools.then(|| tool_choice(&request.tool_choice)),
        parallel_tool_calls: request.parallel_calls.filter(|_| has_tools),
        temperature: request.sampling.temperature,
        top_p: request.sampling.top_p,
        presence_penalty: request.sampling.presence_penalty,
        frequency_penalty: request.sampling.frequency_penalty,
        seed: request.sampling.seed,
        stop: stop(&request.stop)?,
        reasoning_effort: request.reasoning.effort.map(super::effort).map(Effort::from),
        user: request.user.clone(),
        extra: request.verbosity.map(verbosity).into_iter().collect(),
        ..Request::default()
    })
}

/// Requests the usage, which the gateway records even if the client did not request it.
fn with_usage() -> StreamOptions {
    StreamOptions { include_usage: Some(true), extra: Object::new() }
}

fn messages(turns: &[Turn], dropped: &mut DroppedFields) -> Result<Vec<Message>, EngineError> {
    let mut messages = Vec::new();
    let both_assistant = |one: &Turn, next: &Turn| matches!((one, next), (Turn::Assistant(_), Turn::Assistant(_)));
    for turns in turns.chunk_by(both_assistant) {
        match turns {
            [Turn::System(text)] => messages.push(system(text)),
            [Turn::User(parts)] => messages.push(user(parts)),
            [Turn::Tool(result)] => messages.push(tool(result)?),
            turns => messages.extend(assistant(turns, dropped)),
        }
    }
    if messages.is_empty() { Err(super::empty_conversation()) } else { Ok(messages) }
}

fn system(text: &str) -> Message {
    Message::System(SystemMessage { content: text.into(), extra: Object::new() })
}

fn user(parts: &[UserPart]) -> Message {
    let content = match parts {
        [UserPart::Text(text)] => text.as_str().into(),
        parts => TextOr::List(parts.iter().map(part).collect()),
    };
    Message::User(UserMessage { content, extra: Object::new() })
}

fn part(part: &UserPart) -> Part {
    match part {
        UserPart::Text(text) => Part::Text(TextPart { text: text.clone(), extra: Object::new() }),
        UserPart::Image { source, detail } => Part::Image(ImagePart {
            image_url: ImageUrl {
                url: match source {
                    ImageSource::Inline { media_type, data } => super::data_url(media_type, data),
                    ImageSource::Url(url) => url.clone(),
                },
                detail: detail.as_deref().map(known_detail),
                extra: Object::new(),
            },
            extra: Object::new(),
        }),
        UserPart::File { name, media_type, data } => Part::File(FilePart {
            file: FileSource {
                filename: name.clone(),
                file_data: Some(super::data_url(media_type, data)),
                ..FileSource::default()
            },
            extra: Object::new(),
        }),
    }
}

/// Replaces `original`, which only Responses supports.
fn known_detail(detail: &str) -> String {
    if detail == "original" { "high".to_owned() } else { detail.to_owned() }
}

/// Encodes a tool result, which has to be text in this protocol.
fn tool(result: &ToolResult) -> Result<Message, EngineError> {
    let texts = result.content.iter().map(|part| match part {
        UserPart::Text(text) => Ok(text.as_str()),
        _ => Err(super::unsupported("This model takes nothing but text as the result of a tool.")),
    });
    let text = super::join(&texts.collect::<Result<Vec<_>, _>>()?).unwrap_or_default();
    let content = if result.is_error { format!("{ERROR_PREFIX}{text}") } else { text };
    let tool_call_id = super::call_id(&result.call_id);
    Ok(Message::Tool(ToolMessage { tool_call_id, content: content.into(), extra: Object::new() }))
}

/// Merges consecutive assistant turns into one message; `None` if nothing of them can be represented.
fn assistant(turns: &[Turn], dropped: &mut DroppedFields) -> Option<Message> {
    let (mut texts, mut refusals, mut reasoning, mut calls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for turn in turns {
        let Turn::Assistant(parts) = turn else { continue };
        for part in parts {
            match part {
                AssistantPart::Text(text) => texts.push(text.as_str()),
                AssistantPart::Refusal(text) => refusals.push(text.as_str()),
                AssistantPart::Reasoning { text, .. } => reasoning.push(text.as_str()),
                // Another model cannot decrypt it. The field map reports the drop.
                AssistantPart::RedactedReasoning(_) => {}
                AssistantPart::Call(tool_call) => calls.push(call(tool_call)),
            }
        }
    }
    if !reasoning.is_empty() && calls.is_empty() {
        dropped.add(DroppedField::Reasoning);
        reasoning.clear();
    }
    // Reasoning of which only the signature is known has an empty text.
    reasoning.retain(|text| !text.is_empty());
    if texts.is_empty() && refusals.is_empty() && calls.is_empty() {
        return None;
    }
    Some(Message::Assistant(AssistantMessage {
        content: super::join(&texts).map(TextOr::Text),
        refusal: super::join(&refusals),
        reasoning_content: super::join(&reasoning),
        reasoning: None,
        tool_calls: (!calls.is_empty()).then_some(calls),
        extra: Object::new(),
    }))
}

fn call(call: &engine::ToolCall) -> ToolCall {
    ToolCall::Function(FunctionToolCall {
        id: super::call_id(&call.id),
        function: FunctionCall { name: call.name.clone(), arguments: call.arguments.clone() },
        extra: Object::new(),
    })
}

fn format(format: &Format) -> Result<Option<ResponseFormat>, EngineError> {
    Ok(match format {
        Format::Text => None,
        Format::JsonObject => Some(ResponseFormat::JsonObject(PlainFormat::default())),
        Format::JsonSchema { name, description, schema, strict } => {
            Some(ResponseFormat::JsonSchema(JsonSchemaFormat {
                json_schema: NamedSchema {
                    name: name.as_deref().unwrap_or(SCHEMA_NAME).to_owned(),
                    description: description.clone(),
                    schema: Some(super::embed(schema)?),
                    strict: *strict,
                    extra: Object::new(),
                },
                extra: Object::new(),
            }))
        }
    })
}

fn tools(tools: &[engine::Tool]) -> Result<Vec<Tool>, EngineError> {
    super::check_tools(tools)?;
    tools.iter().map(function_tool).collect()
}

fn function_tool(tool: &engine::Tool) -> Result<Tool, EngineError> {
    let function = ToolFunction {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.as_ref().map(super::embed).transpose()?,
        strict: tool.strict,
        extra: Object::new(),
    };
    Ok(Tool::Function(FunctionTool { function, extra: Object::new() }))
}

fn tool_choice(choice: &engine::ToolChoice) -> ToolChoice {
    match choice {
        engine::ToolChoice::Auto => ToolChoice::Word(ToolMode::Auto),
        engine::ToolChoice::None => ToolChoice::Word(ToolMode::None),
        engine::ToolChoice::Required => ToolChoice::Word(ToolMode::Required),
        engine::ToolChoice::Named(name) => {
            let function = FunctionName { name: name.clone() };
            ToolChoice::Object(ToolChoiceObject::Function(FunctionChoice { function }))
        }
    }
}

fn stop(stops: &[String]) -> Result<Option<TextOr<String>>, EngineError> {
    match stops.len() {
        0 => Ok(None),
        1..=MAX_STOPS => Ok(Some(TextOr::List(stops.to_vec()))),
        more => Err(super::unsupported(format!("This model takes at most {MAX_STOPS} stop texts, but got {more}."))),
    }
}

fn verbosity(verbosity: Verbosity) -> (String, serde_json::Value) {
    let word = match verbosity {
        Verbosity::Low => "low",
        Verbosity::Medium => "medium",
        Verbosity::High => "high",
    };
    ("verbosity".to_owned(), word.into())
}

const MAX_STOPS: usize = 4;
