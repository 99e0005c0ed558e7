//! Encodes requests for Chat Completions
//! (<https://platform.openai.com/docs/api-reference/chat/create>).

mod members;

use std::collections::HashMap;

use chat::{
    AssistantMessage, FilePart, FileSource, FunctionCall, FunctionChoice, FunctionName,
    FunctionTool, FunctionToolCall, ImagePart, ImageUrl, JsonSchemaFormat, Message, NamedSchema,
    Part, PlainFormat, Request, ResponseFormat, SystemMessage, TextPart, Tool, ToolCall,
    ToolChoice, ToolChoiceObject, ToolFunction, ToolMessage, ToolMode, UserMessage,
};
use engine::{
    AssistantPart, EngineError, Format, TextRequest, ToolResult, Turn, UserPart, Verbosity,
};
use vendor::Protocol;
use wire::{Object, TextOr};

use super::quirks::MaxTokensName;
use super::{DroppedField, DroppedFields, ERROR_PREFIX, SCHEMA_NAME, Settings, schema, stops};
use crate::outbound::chat_seals::{self, ChatSeals};

pub(super) fn request(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Request, EngineError> {
    // Some servers refuse `tool_choice` and `parallel_tool_calls` without `tools`.
    let has_tools = !request.tools.is_empty();
    let mut body = Request::new(
        request.model.clone(),
        messages(&request.turns, settings, dropped)?,
    );
    let cap = request.max_output_tokens.map(super::count);
    match settings.quirks.max_tokens_name() {
        MaxTokensName::MaxTokens => body.max_tokens = cap,
        MaxTokensName::MaxCompletionTokens => body.max_completion_tokens = cap,
    }
    if settings.stream {
        body.stream = Some(true);
        // The gateway records the usage even if the client did not request it.
        body.stream_options.get_or_insert_default().include_usage = Some(true);
    }
    body.response_format = format(&request.format, dropped)?;
    body.tools = super::tools(&request.tools, |tool| function_tool(tool, dropped))?;
    body.tool_choice = has_tools.then(|| tool_choice(&request.tool_choice));
    body.parallel_tool_calls = super::parallel_calls(request, settings, dropped);
    body.temperature = request.sampling.temperature;
    body.top_p = request.sampling.top_p;
    body.presence_penalty = request.sampling.presence_penalty;
    body.frequency_penalty = request.sampling.frequency_penalty;
    body.seed = request.sampling.seed;
    body.stop = stops::sent(Protocol::Chat, request, settings).map(TextOr::List);
    body.logprobs = request.logprobs.map(|_| true);
    body.top_logprobs = super::alternatives(request);
    body.user.clone_from(&request.user);
    body.extra = extra(request);
    members::set_effort(&mut body, request, settings);
    members::mark_prefixes(&mut body.messages, request, settings, dropped);
    Ok(body)
}

/// Returns the fields that the protocol's types do not declare. The metadata stays behind, because
/// OpenAI refuses it unless it stores the answer.
fn extra(request: &TextRequest) -> Object {
    let labels = &request.labels;
    let verbosity = request.verbosity.map(Verbosity::as_str);
    let fields = [
        ("verbosity", verbosity),
        ("safety_identifier", labels.safety_identifier.as_deref()),
        ("prompt_cache_key", labels.prompt_cache_key.as_deref()),
        ("service_tier", labels.service_tier.as_deref()),
    ];
    let set = |(name, value): (&str, Option<&str>)| Some((name.to_owned(), value?.into()));
    fields.into_iter().filter_map(set).collect()
}

fn messages(
    turns: &[Turn],
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Vec<Message>, EngineError> {
    let mut messages = Vec::new();
    // The images and documents of tool results, which the next message of the user carries.
    let mut held = Vec::new();
    let both_assistant =
        |one: &Turn, next: &Turn| matches!((one, next), (Turn::Assistant(_), Turn::Assistant(_)));
    for turns in turns.chunk_by(both_assistant) {
        match turns {
            [Turn::Tool(result)] => messages.push(tool(result, settings, &mut held, dropped)?),
            [Turn::User(parts)] if parts.is_empty() => {}
            [Turn::User(parts)] if held.is_empty() => {
                messages.push(user(parts, settings, dropped)?);
            }
            [Turn::User(parts)] => {
                let parts = [std::mem::take(&mut held), parts.clone()].concat();
                messages.push(user(&parts, settings, dropped)?);
                dropped.add(DroppedField::ToolResultPosition);
            }
            turns => {
                flush(&mut held, &mut messages, settings, dropped)?;
                match turns {
                    [Turn::System(text)] => messages.push(system(text)),
                    turns => messages.extend(assistant(turns, settings, dropped)),
                }
            }
        }
    }
    flush(&mut held, &mut messages, settings, dropped)?;
    if messages.is_empty() {
        return Err(super::empty_conversation());
    }
    let quirks = &settings.quirks;
    if quirks.answer_results {
        messages = with_answered_results(messages, dropped);
    }
    if quirks.merge_system && messages.windows(2).any(are_both_users) {
        messages = with_joined_users(messages);
    }
    if quirks.tool_names {
        name_results(&mut messages);
    }
    if quirks.mark_prefill
        && let Some(Message::Assistant(last)) = messages.last_mut()
        && last.tool_calls.is_none()
    {
        last.extra.insert("prefix".to_owned(), true.into());
    }
    Ok(messages)
}

fn are_both_users(messages: &[Message]) -> bool {
    let is_users = |message: &Message| matches!(message, Message::User(_));
    messages.iter().all(is_users)
}

/// Joins messages of the user that follow each other, which the templates of some models refuse:
/// "Conversation roles must alternate user/assistant/user/assistant/..."
/// (<https://github.com/google/adk-python/issues/1373>).
fn with_joined_users(messages: Vec<Message>) -> Vec<Message> {
    let mut joined: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match (joined.last_mut(), message) {
            (Some(Message::User(last)), Message::User(next)) => {
                let content = std::mem::replace(&mut last.content, TextOr::List(Vec::new()));
                last.content = join_contents(content, next.content);
            }
            (_, message) => joined.push(message),
        }
    }
    joined
}

fn join_contents(one: TextOr<Part>, other: TextOr<Part>) -> TextOr<Part> {
    let parts = |content| match content {
        TextOr::Text(text) => vec![Part::Text(TextPart::new(text))],
        TextOr::List(parts) => parts,
    };
    match (one, other) {
        (TextOr::Text(one), TextOr::Text(other)) => TextOr::Text(format!("{one}\n\n{other}")),
        (one, other) => TextOr::List([parts(one), parts(other)].concat()),
    }
}

/// Adds the name of its function to each result of a call.
fn name_results(messages: &mut [Message]) {
    let mut names = HashMap::new();
    for message in messages {
        match message {
            Message::Assistant(message) => {
                for call in message.tool_calls.iter().flatten() {
                    if let ToolCall::Function(call) = call {
                        names.insert(call.id.clone(), call.function.name.clone());
                    }
                }
            }
            Message::Tool(result) => {
                let name = names.get(&result.tool_call_id);
                let name = name.map(|name| ("name".to_owned(), name.clone().into()));
                result.extra.extend(name);
            }
            _ => {}
        }
    }
}

/// Adds a message of the assistant between each result of a call and a message of the user.
fn with_answered_results(messages: Vec<Message>, dropped: &mut DroppedFields) -> Vec<Message> {
    let mut answered: Vec<Message> = Vec::with_capacity(messages.len() + 1);
    for message in messages {
        if let (Some(Message::Tool(_)), Message::User(_)) = (answered.last(), &message) {
            let mut answer = AssistantMessage::default();
            answer.content = Some(TextOr::Text(ANSWER_TO_RESULTS.to_owned()));
            answered.push(Message::Assistant(answer));
            dropped.add(DroppedField::RoleSequence);
        }
        answered.push(message);
    }
    answered
}

/// Adds a message of the user with the images and documents of tool results, if there are any.
fn flush(
    held: &mut Vec<UserPart>,
    messages: &mut Vec<Message>,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<(), EngineError> {
    if !held.is_empty() {
        dropped.add(DroppedField::ToolResultPosition);
        messages.push(user(&std::mem::take(held), settings, dropped)?);
    }
    Ok(())
}

fn system(text: &str) -> Message {
    Message::System(SystemMessage::new(text.into()))
}

fn user(
    parts: &[UserPart],
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Message, EngineError> {
    let mut encoded = Vec::with_capacity(parts.len());
    for part in parts {
        add_part(&mut encoded, part, settings, dropped)?;
    }
    let content = match encoded.as_slice() {
        [Part::Text(text)] if text.extra.is_empty() => text.text.as_str().into(),
        parts if settings.quirks.text_content => match plain_texts(parts) {
            Some(texts) => TextOr::Text(texts.join("\n\n")),
            None => TextOr::List(encoded),
        },
        _ => TextOr::List(encoded),
    };
    Ok(Message::User(UserMessage::new(content)))
}

/// Returns the texts of content that has nothing else.
fn plain_texts(parts: &[Part]) -> Option<Vec<&str>> {
    let texts = parts.iter().map(|part| match part {
        Part::Text(part) if part.extra.is_empty() => Some(part.text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn add_part(
    parts: &mut Vec<Part>,
    part: &UserPart,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<(), EngineError> {
    parts.push(match part {
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
            file.filename = Some(super::file_name(name.as_deref(), media_type));
            file.file_data = Some(super::data_url(media_type, data));
            Part::File(FilePart::new(file))
        }
        UserPart::FileUrl { .. } => {
            return Err(super::unsupported(
                "This model takes no documents by their address: send their data.",
            ));
        }
        UserPart::CacheBreakpoint(lifetime) => {
            let members = match parts.last_mut() {
                Some(Part::Text(part)) => Some(&mut part.extra),
                Some(Part::Image(part)) => Some(&mut part.extra),
                Some(Part::File(part)) => Some(&mut part.extra),
                _ => None,
            };
            super::add_breakpoint(members, *lifetime, settings, dropped);
            return Ok(());
        }
    });
    Ok(())
}

/// Replaces `original`, which only Responses supports.
fn known_detail(detail: &str) -> String {
    if detail == "original" {
        "high".to_owned()
    } else {
        detail.to_owned()
    }
}

/// Encodes the text of a tool result, the only content that this protocol has there, and holds the
/// rest.
fn tool(
    result: &ToolResult,
    settings: &Settings,
    held: &mut Vec<UserPart>,
    dropped: &mut DroppedFields,
) -> Result<Message, EngineError> {
    let mut content = String::new();
    if result.is_error {
        content.push_str(ERROR_PREFIX);
    }
    for part in &result.content {
        match part {
            UserPart::Text(text) => content.push_str(text),
            UserPart::CacheBreakpoint(_) => dropped.add(DroppedField::CacheBreakpoint),
            other => held.push(other.clone()),
        }
    }
    Ok(Message::Tool(ToolMessage::new(
        super::call_id(&result.call_id, MAX_ID, settings),
        content.into(),
    )))
}

/// Merges consecutive assistant turns into one message; `None` if nothing of them can be
/// represented.
fn assistant(turns: &[Turn], settings: &Settings, dropped: &mut DroppedFields) -> Option<Message> {
    let mut texts = Vec::new();
    let mut refusals = Vec::new();
    let mut reasoning = Vec::new();
    let mut calls = Vec::new();
    let mut seals = ChatSeals::default();
    for turn in turns {
        let Turn::Assistant(parts) = turn else {
            continue;
        };
        for part in parts {
            match part {
                AssistantPart::Text(text) | AssistantPart::Refusal(text) if text.is_empty() => {}
                AssistantPart::Text(text) => texts.push(text.as_str()),
                AssistantPart::Refusal(text) => refusals.push(text.as_str()),
                AssistantPart::Reasoning { text, signature } => {
                    let own = signature.as_deref().and_then(ChatSeals::read);
                    let is_said = |own: &ChatSeals| text.is_empty() || !own.lacks_text();
                    if !own.as_ref().is_some_and(is_said) {
                        reasoning.push(text.as_str());
                    }
                    seals.add(own.unwrap_or_default());
                }
                // Another model cannot decrypt it. The field map reports the drop.
                AssistantPart::RedactedReasoning(_) => {}
                AssistantPart::Call(tool_call) => calls.push(call(tool_call, settings, dropped)),
            }
        }
    }
    if !reasoning.is_empty() && calls.is_empty() && !seals.needs_text() {
        dropped.add(DroppedField::Reasoning);
        reasoning.clear();
    }
    // The text of reasoning is empty if only its signature is known.
    reasoning.retain(|text| !text.is_empty());
    if texts.is_empty() && refusals.is_empty() && calls.is_empty() {
        return None;
    }
    if settings.quirks.refusal_as_text && !refusals.is_empty() {
        texts.extend((!texts.is_empty()).then_some("\n\n"));
        texts.append(&mut refusals);
    }
    let mut message = AssistantMessage::default();
    message.content = super::join(&texts).map(TextOr::Text);
    if settings.quirks.text_content {
        message.content.get_or_insert_with(|| "".into());
    }
    message.refusal = super::join(&refusals);
    message.reasoning_content = super::join(&reasoning);
    if settings.quirks.echo_reasoning && !calls.is_empty() {
        message.reasoning_content.get_or_insert_default();
    }
    if settings.quirks.signed_calls {
        chat_seals::sign(&mut calls);
    }
    message.tool_calls = (!calls.is_empty()).then_some(calls);
    seals.add_to(&mut message.reasoning_content, &mut message.extra);
    Some(Message::Assistant(message))
}

fn call(call: &engine::ToolCall, settings: &Settings, dropped: &mut DroppedFields) -> ToolCall {
    let arguments = super::argument_text(call, dropped);
    let function = FunctionCall::new(call.name.clone(), arguments);
    let mut encoded = FunctionToolCall::new(super::call_id(&call.id, MAX_ID, settings), function);
    encoded
        .extra
        .extend(call.seal.as_deref().and_then(chat_seals::of_call));
    ToolCall::Function(encoded)
}

fn format(
    format: &Format,
    dropped: &mut DroppedFields,
) -> Result<Option<ResponseFormat>, EngineError> {
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
            let sent = schema::of_answer(schema, dropped)?;
            named.strict = schema::permitted(*strict, &sent, dropped);
            named.schema = Some(sent);
            Some(ResponseFormat::JsonSchema(JsonSchemaFormat::new(named)))
        }
    })
}

fn function_tool(tool: &engine::Tool, dropped: &mut DroppedFields) -> Result<Tool, EngineError> {
    let mut function = ToolFunction::new(tool.name.clone());
    function.description.clone_from(&tool.description);
    function.parameters = schema::of_tool(tool, dropped)?;
    // Absent means false here, and that objects are made exact in Responses.
    let strict = match (tool.strict, &function.parameters) {
        (None, Some(parameters)) => Some(schema::permits_strict(parameters)),
        (strict, Some(parameters)) => schema::permitted(strict, parameters, dropped),
        (strict, None) => strict,
    };
    function.strict = strict.filter(|strict| *strict);
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

/// The message of the assistant between the results of calls and a message of the user, for servers that
/// need it. An empty message would be refused.
const ANSWER_TO_RESULTS: &str = "Understood.";
/// The longest id of a call, in characters: "string too long. Expected a string with maximum length
/// 40" (<https://github.com/langgenius/dify/issues/28987>,
/// <https://github.com/Portkey-AI/gateway/issues/1062>).
const MAX_ID: usize = 40;
