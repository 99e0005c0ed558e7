//! Encodes requests for Chat Completions
//! (<https://platform.openai.com/docs/api-reference/chat/create>).

use chat::{
    AssistantMessage, Effort, FilePart, FileSource, FunctionCall, FunctionChoice, FunctionName,
    FunctionTool, FunctionToolCall, ImagePart, ImageUrl, JsonSchemaFormat, Message, NamedSchema,
    Part, PlainFormat, Request, ResponseFormat, SystemMessage, TextPart, Tool, ToolCall,
    ToolChoice, ToolChoiceObject, ToolFunction, ToolMessage, ToolMode, UserMessage,
};
use engine::{AssistantPart, EngineError, Format, TextRequest, ToolResult, Turn, UserPart};
use serde_json::Value;
use wire::TextOr;

use super::{DroppedField, DroppedFields, ERROR_PREFIX, SCHEMA_NAME, Settings};

pub(super) fn request(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Request, EngineError> {
    // Some servers refuse `tool_choice` and `parallel_tool_calls` without `tools`.
    let has_tools = !request.tools.is_empty();
    let mut body = Request::new(request.model.clone(), messages(&request.turns, dropped)?);
    body.max_tokens = request.max_output_tokens.map(super::count);
    if settings.stream {
        body.stream = Some(true);
        // The gateway records the usage even if the client did not request it.
        body.stream_options.get_or_insert_default().include_usage = Some(true);
    }
    body.response_format = format(&request.format)?;
    body.tools = super::tools(&request.tools, function_tool)?;
    body.tool_choice = has_tools.then(|| tool_choice(&request.tool_choice));
    body.parallel_tool_calls = request.parallel_calls.filter(|_| has_tools);
    body.temperature = request.sampling.temperature;
    body.top_p = request.sampling.top_p;
    body.presence_penalty = request.sampling.presence_penalty;
    body.frequency_penalty = request.sampling.frequency_penalty;
    body.seed = request.sampling.seed;
    body.stop = stop(&request.stop)?;
    body.reasoning_effort = request
        .reasoning
        .effort
        .map(|effort| Effort::from(effort.as_str()));
    body.user.clone_from(&request.user);
    let verbosity = request
        .verbosity
        .map(|verbosity| ("verbosity".to_owned(), Value::from(verbosity.as_str())));
    body.extra = verbosity.into_iter().collect();
    Ok(body)
}

fn messages(turns: &[Turn], dropped: &mut DroppedFields) -> Result<Vec<Message>, EngineError> {
    let mut messages = Vec::new();
    let both_assistant =
        |one: &Turn, next: &Turn| matches!((one, next), (Turn::Assistant(_), Turn::Assistant(_)));
    for turns in turns.chunk_by(both_assistant) {
        match turns {
            [Turn::System(text)] => {
                messages.push(Message::System(SystemMessage::new(text.as_str().into())));
            }
            [Turn::User(parts)] => messages.push(user(parts)),
            [Turn::Tool(result)] => messages.push(tool(result)?),
            turns => messages.extend(assistant(turns, dropped)),
        }
    }
    if messages.is_empty() {
        Err(super::empty_conversation())
    } else {
        Ok(messages)
    }
}

fn user(parts: &[UserPart]) -> Message {
    let content = match parts {
        [UserPart::Text(text)] => text.as_str().into(),
        parts => TextOr::List(parts.iter().map(part).collect()),
    };
    Message::User(UserMessage::new(content))
}

fn part(part: &UserPart) -> Part {
    match part {
        UserPart::Text(text) => Part::Text(TextPart::new(text.clone())),
        UserPart::Image { source, detail } => {
            let mut url = ImageUrl::new(super::image_url(source));
            url.detail = detail.as_deref().map(known_detail);
            Part::Image(ImagePart::new(url))
        }
        UserPart::File {
            name,
            media_type,
            data,
        } => {
            let mut file = FileSource::default();
            file.filename.clone_from(name);
            file.file_data = Some(super::data_url(media_type, data));
            Part::File(FilePart::new(file))
        }
    }
}

/// Replaces `original`, which only Responses supports.
fn known_detail(detail: &str) -> String {
    if detail == "original" {
        "high".to_owned()
    } else {
        detail.to_owned()
    }
}

/// Encodes a tool result, which has to be text in this protocol.
fn tool(result: &ToolResult) -> Result<Message, EngineError> {
    let texts = result.content.iter().map(|part| match part {
        UserPart::Text(text) => Ok(text.as_str()),
        _ => Err(super::unsupported(
            "This model takes nothing but text as the result of a tool.",
        )),
    });
    let text = super::join(&texts.collect::<Result<Vec<_>, _>>()?).unwrap_or_default();
    let content = if result.is_error {
        format!("{ERROR_PREFIX}{text}")
    } else {
        text
    };
    Ok(Message::Tool(ToolMessage::new(
        super::call_id(&result.call_id),
        content.into(),
    )))
}

/// Merges consecutive assistant turns into one message; `None` if nothing of them can be
/// represented.
fn assistant(turns: &[Turn], dropped: &mut DroppedFields) -> Option<Message> {
    let mut texts = Vec::new();
    let mut refusals = Vec::new();
    let mut reasoning = Vec::new();
    let mut calls = Vec::new();
    for turn in turns {
        let Turn::Assistant(parts) = turn else {
            continue;
        };
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
    let mut message = AssistantMessage::default();
    message.content = super::join(&texts).map(TextOr::Text);
    message.refusal = super::join(&refusals);
    message.reasoning_content = super::join(&reasoning);
    message.tool_calls = (!calls.is_empty()).then_some(calls);
    Some(Message::Assistant(message))
}

fn call(call: &engine::ToolCall) -> ToolCall {
    let function = FunctionCall::new(call.name.clone(), call.arguments.clone());
    ToolCall::Function(FunctionToolCall::new(super::call_id(&call.id), function))
}

fn format(format: &Format) -> Result<Option<ResponseFormat>, EngineError> {
    Ok(match format {
        Format::Text => None,
        Format::JsonObject => Some(ResponseFormat::JsonObject(PlainFormat::default())),
        Format::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => {
            let mut named = NamedSchema::new(name.as_deref().unwrap_or(SCHEMA_NAME).to_owned());
            named.description.clone_from(description);
            named.schema = Some(super::embed(schema)?);
            named.strict = *strict;
            Some(ResponseFormat::JsonSchema(JsonSchemaFormat::new(named)))
        }
    })
}

fn function_tool(tool: &engine::Tool) -> Result<Tool, EngineError> {
    let mut function = ToolFunction::new(tool.name.clone());
    function.description.clone_from(&tool.description);
    function.parameters = tool.parameters.as_ref().map(super::embed).transpose()?;
    function.strict = tool.strict;
    Ok(Tool::Function(FunctionTool::new(function)))
}

fn tool_choice(choice: &engine::ToolChoice) -> ToolChoice {
    match choice {
        engine::ToolChoice::Auto => ToolChoice::Word(ToolMode::Auto),
        engine::ToolChoice::None => ToolChoice::Word(ToolMode::None),
        engine::ToolChoice::Required => ToolChoice::Word(ToolMode::Required),
        engine::ToolChoice::Named(name) => {
            let choice = FunctionChoice::new(FunctionName::new(name.clone()));
            ToolChoice::Object(ToolChoiceObject::Function(choice))
        }
    }
}

fn stop(stops: &[String]) -> Result<Option<TextOr<String>>, EngineError> {
    match stops.len() {
        0 => Ok(None),
        1..=MAX_STOPS => Ok(Some(TextOr::List(stops.to_vec()))),
        more => Err(super::unsupported(format!(
            "This model takes at most {MAX_STOPS} stop texts, but got {more}."
        ))),
    }
}

const MAX_STOPS: usize = 4;
