//! Chat Completions (<https://platform.openai.com/docs/api-reference/chat>).

mod custom;
mod extensions;

use chat::{
    AssistantMessage, Completion, Encoder, Event, FinishReason, Fold, Head, Message, Part, Request,
    ResponseFormat, Tool, ToolCall, ToolChoiceObject, ToolMode, Usage, ValidRequest,
};
use engine::{
    AssistantPart, CachedPrefixes, Format, Labels, Reasoning, Sampling, Stop, TextEvent,
    TextRequest, ToolChoice, ToolResult, Turn, UserPart, Verbosity,
};
use serde_json::Value;
use vendor::envelope::DETAILS;
use vendor::envelope::is_envelope;
use wire::{ApiError, Object, TextOr, WordOr};

use self::custom::ToolEncoder;
use super::shared::ClientPart as _;
use super::{ClientProtocol, Inbound, Stamp, shared};
use crate::in_words;

/// The Chat Completions protocol on the client side.
pub struct Chat;

impl ClientProtocol for Chat {
    type Request = ValidRequest;
    type Encoder = ToolEncoder;
    type Event = Event;
    type Fold = Fold;
    type Reply = Completion;

    delegate_to_crate!();

    fn request(request: ValidRequest) -> Result<Inbound, ApiError> {
        let request = request.into_inner();
        let (mut tools, mut dropped) =
            shared::tools(request.tools.as_deref().unwrap_or_default(), function);
        let last = request.messages.iter().rposition(is_of_user);
        let messages = request.messages.iter().enumerate();
        let turns = messages
            .map(|(i, message)| {
                let path = format!("messages[{i}]");
                turn(message, &path, last == Some(i), &mut dropped)
                    .map(|turn| extensions::marked(turn, message))
            })
            .collect::<Result<Vec<_>, _>>()?;
        dropped.extend(has_grammar(&request).then(|| GRAMMAR.to_owned()));
        dropped.extend(has_marked_output(&request).then(|| shared::BREAKPOINT.to_owned()));
        let tool_choice = tool_choice(&request, &mut tools)?;
        let request = TextRequest {
            turns,
            tools,
            tool_choice,
            parallel_calls: request.parallel_tool_calls,
            format: format(request.response_format.as_ref()),
            verbosity: extra_str(&request, "verbosity").and_then(Verbosity::named),
            max_output_tokens: shared::cap(request.output_cap()),
            stop: stops(request.stop.as_ref()),
            sampling: Sampling {
                temperature: request.temperature,
                top_p: request.top_p,
                top_k: extensions::top_k(&request),
                presence_penalty: request.presence_penalty,
                frequency_penalty: request.frequency_penalty,
                seed: request.seed,
            },
            reasoning: Reasoning {
                effort: extensions::effort(&request),
                ..Reasoning::default()
            },
            logprobs: (request.logprobs == Some(true))
                .then(|| shared::cap(request.top_logprobs).unwrap_or_default()),
            labels: labels(&request),
            cached: cached(&request),
            user: request.user,
            model: request.model,
        };
        Ok(Inbound { request, dropped })
    }

    fn encoder(request: &ValidRequest, stamp: &Stamp) -> ToolEncoder {
        let head = Head {
            id: wire::id_with_separator("chatcmpl", '-', stamp.bits),
            created: stamp.created_at,
            model: request.model.clone(),
        };
        // A plain reply always includes the usage.
        let inner = Encoder::new(head, request.includes_usage() || !request.streams());
        ToolEncoder::new(inner, request)
    }

    fn encode(tools: &mut ToolEncoder, event: TextEvent, _now: i64, out: &mut Vec<Event>) {
        match event {
            TextEvent::Call { id, name } => return tools.call(&id, &name, out),
            TextEvent::Arguments(text) => return tools.arguments(&text, out),
            TextEvent::CallSeal { .. } => {}
            _ => tools.end_call(out),
        }
        let encoder = &mut tools.inner;
        match event {
            TextEvent::Reasoning(text) => encoder.reasoning(&text, out),
            TextEvent::Logprobs(tokens) => encoder.logprobs(tokens),
            TextEvent::Text(text) => encoder.text(&text, out),
            TextEvent::Refusal(text) => encoder.refusal(&text, out),
            TextEvent::Finished { stop, usage } => {
                let usage = usage.map(|usage| Usage::new(usage.input, usage.output));
                encoder.finish(finish_reason(&stop), usage, out);
            }
            TextEvent::ReasoningSignature(seal) | TextEvent::RedactedReasoning(seal) => {
                encoder.end_reasoning();
                seal_reasoning(encoder, &seal, out);
            }
            TextEvent::CallSeal { seal, .. } => seal_reasoning(encoder, &seal, out),
            _ => {}
        }
    }

    fn gather(fold: &mut Fold, event: &Event) -> bool {
        fold.push(event).is_ok()
    }

    fn reply(fold: Fold) -> Option<Completion> {
        // A plain reply has a usage even if the upstream sent none.
        let mut reply = fold.finish().ok()?;
        reply.usage.get_or_insert_with(|| Usage::new(0, 0));
        Some(reply)
    }
}

/// Adds a seal. Only an envelope is recognized when the client sends it back.
fn seal_reasoning(encoder: &mut Encoder, seal: &str, out: &mut Vec<Event>) {
    if is_envelope(seal) {
        encoder.encrypted_reasoning(seal, out);
    }
}

/// Returns a string field that the protocol's types do not declare.
fn extra_str<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.extra.get(name)?.as_str()
}

fn labels(request: &Request) -> Labels {
    let text = |name| extra_str(request, name).map(str::to_owned);
    let metadata = request.extra.get("metadata").and_then(Value::as_object);
    Labels {
        safety_identifier: text("safety_identifier"),
        prompt_cache_key: text("prompt_cache_key"),
        service_tier: text("service_tier"),
        metadata: metadata.filter(|pairs| !pairs.is_empty()).cloned(),
    }
}

fn finish_reason(stop: &Stop) -> FinishReason {
    match stop {
        Stop::MaxTokens | Stop::ContextFull => FinishReason::Length,
        Stop::ToolCalls => FinishReason::ToolCalls,
        Stop::Refused => FinishReason::ContentFilter,
        _ => FinishReason::Stop,
    }
}

/// Returns true for a message of the user and for the result of a call.
fn is_of_user(message: &Message) -> bool {
    matches!(
        message,
        Message::User(_) | Message::Tool(_) | Message::Function(_)
    )
}

fn turn(
    message: &Message,
    path: &str,
    is_last: bool,
    dropped: &mut Vec<String>,
) -> Result<Turn, ApiError> {
    Ok(match message {
        Message::System(message) | Message::Developer(message) => {
            Turn::System(plain(&message.content))
        }
        Message::User(message) => Turn::User(shared::parts(
            &message.content,
            &format!("{path}.content"),
            is_last,
            dropped,
        )?),
        Message::Assistant(message) => Turn::Assistant(assistant_parts(message, dropped)),
        Message::Tool(message) => Turn::Tool(ToolResult {
            call_id: message.tool_call_id.clone(),
            content: shared::parts(&message.content, &format!("{path}.content"), false, dropped)?,
            is_error: false,
        }),
        Message::Function(message) => Turn::Tool(ToolResult {
            call_id: message.name.clone(),
            content: message
                .content
                .iter()
                .cloned()
                .map(UserPart::Text)
                .collect(),
            is_error: false,
        }),
        other => {
            let role = format!("'{}'", other.kind());
            return Err(ApiError::unsupported_value(&format!("{path}.role"), &role));
        }
    })
}

/// Concatenates the text parts of content that allows only text.
fn plain(content: &TextOr<Part>) -> String {
    shared::joined(content, |part| match part {
        Part::Text(part) => Some(part.text.as_str()),
        _ => None,
    })
}

/// Returns true if earlier output has a cache breakpoint, which is not translated.
fn has_marked_output(request: &Request) -> bool {
    let contents = request.messages.iter().filter_map(|message| match message {
        Message::Assistant(message) => message.content.as_ref(),
        _ => None,
    });
    shared::last_breakpoint(contents.flat_map(TextOr::parts).filter_map(extra)).is_some()
}

/// Returns the prefixes that end with the tools and with the leading instructions.
fn cached(request: &Request) -> CachedPrefixes {
    let is_leading =
        |message: &&Message| matches!(message, Message::System(_) | Message::Developer(_));
    let leading = || request.messages.iter().take_while(is_leading);
    let system = leading().map(|message| match message {
        Message::System(message) | Message::Developer(message) => message.content.parts(),
        _ => &[],
    });
    let tools = request.tools.iter().flatten().flat_map(|tool| match tool {
        Tool::Function(tool) => vec![&tool.extra, &tool.function.extra],
        _ => vec![],
    });
    CachedPrefixes {
        tools: shared::last_breakpoint(tools),
        system: shared::last_breakpoint(system.flatten().filter_map(extra))
            .or_else(|| leading().filter_map(extensions::breakpoint).last()),
    }
}

fn extra(part: &Part) -> Option<&Object> {
    match part {
        Part::Text(part) => Some(&part.extra),
        Part::Image(part) => Some(&part.extra),
        Part::File(part) => Some(&part.extra),
        _ => None,
    }
}

impl shared::ClientPart for Part {
    const FIELD: &str = "messages[].content[]";

    fn neutral(&self, path: &str) -> Result<UserPart, ApiError> {
        match self {
            Self::Text(part) => Ok(UserPart::Text(part.text.clone())),
            Self::Image(part) => Ok(shared::image(
                &part.image_url.url,
                part.image_url.detail.clone(),
            )),
            Self::File(part) => shared::file(
                part.file.file_data.as_deref(),
                part.file.filename.clone(),
                &format!("{path}.file.file_data"),
            ),
            other => Err(shared::unknown_part(other.kind(), path)),
        }
    }

    fn extra(&self) -> Option<&Object> {
        extra(self)
    }

    fn in_words(&self) -> String {
        match self {
            Self::File(part) => in_words::document(part.file.filename.as_deref()),
            other => in_words::other(other.kind()),
        }
    }
}

fn assistant_parts(message: &AssistantMessage, dropped: &mut Vec<String>) -> Vec<AssistantPart> {
    let mut output = Vec::new();
    if let Some(text) = message
        .reasoning_content
        .as_ref()
        .or(message.reasoning.as_ref())
    {
        output.push(AssistantPart::Reasoning {
            text: text.clone(),
            signature: None,
        });
    }
    output.extend(sealed_reasoning(&message.extra));
    match &message.content {
        Some(TextOr::Text(text)) => output.push(AssistantPart::Text(text.clone())),
        Some(TextOr::List(parts)) => output.extend(parts.iter().filter_map(|part| match part {
            Part::Text(part) => Some(AssistantPart::Text(part.text.clone())),
            Part::Refusal(part) => Some(AssistantPart::Refusal(part.refusal.clone())),
            _ => {
                shared::add_once(dropped, Part::FIELD);
                None
            }
        })),
        None => {}
    }
    output.extend(message.refusal.iter().cloned().map(AssistantPart::Refusal));
    for call in message.tool_calls.iter().flatten() {
        match neutral_call(call) {
            Some(call) => output.push(AssistantPart::Call(call)),
            None => shared::add_once(dropped, CALLS),
        }
    }
    output.extend(call_of_function(&message.extra).map(AssistantPart::Call));
    output
}

fn neutral_call(call: &ToolCall) -> Option<engine::ToolCall> {
    match call {
        ToolCall::Function(call) => Some(engine::ToolCall {
            id: call.id.clone(),
            name: call.function.name.clone(),
            arguments: call.function.arguments.clone(),
            seal: None,
        }),
        ToolCall::Custom(call) => custom::call(call),
        _ => None,
    }
}

/// Returns the call in the predecessor of `tool_calls`. It has the name of its function in place of
/// an id, as its result does.
fn call_of_function(of_message: &Object) -> Option<engine::ToolCall> {
    let call = of_message.get("function_call")?;
    let name = call.get("name")?.as_str()?;
    let arguments = call.get("arguments").and_then(Value::as_str);
    Some(engine::ToolCall {
        id: name.to_owned(),
        name: name.to_owned(),
        arguments: arguments.unwrap_or_default().to_owned(),
        seal: None,
    })
}

/// Returns the reasoning whose envelopes, or seals of another server, a message brings back.
fn sealed_reasoning(of_message: &Object) -> impl Iterator<Item = AssistantPart> {
    let details = of_message.get(DETAILS).and_then(Value::as_array);
    let seal = |detail: &Value| {
        let seal = detail.get("data").or_else(|| detail.get("signature"))?;
        seal.as_str().map(str::to_owned)
    };
    let seals = details.into_iter().flatten().filter_map(seal);
    seals.map(|seal| AssistantPart::Reasoning {
        text: String::new(),
        signature: Some(seal),
    })
}

fn function(tool: &Tool) -> Option<engine::Tool> {
    let tool = match tool {
        Tool::Function(tool) => tool,
        Tool::Custom(tool) => return custom::function(tool).map(|(function, _)| function),
        _ => return None,
    };
    Some(engine::Tool {
        name: tool.function.name.clone(),
        description: tool.function.description.clone(),
        parameters: tool.function.parameters.clone(),
        // Unlike in Responses, functions without `strict` are not strict:
        // https://platform.openai.com/docs/guides/function-calling#strict-mode
        strict: Some(tool.function.strict == Some(true)),
    })
}

/// Returns true if the input of any custom tool follows a grammar, which is not enforced.
fn has_grammar(request: &Request) -> bool {
    let mut tools = request.tools.iter().flatten();
    tools.any(|tool| match tool {
        Tool::Custom(tool) => custom::function(tool).is_some_and(|(_, has_grammar)| has_grammar),
        _ => false,
    })
}

fn tool_choice(request: &Request, tools: &mut Vec<engine::Tool>) -> Result<ToolChoice, ApiError> {
    Ok(match &request.tool_choice {
        None => ToolChoice::Auto,
        Some(WordOr::Word(ToolMode::None)) => ToolChoice::None,
        Some(WordOr::Word(ToolMode::Required)) => ToolChoice::Required,
        Some(WordOr::Word(_)) => ToolChoice::Auto,
        Some(WordOr::Object(ToolChoiceObject::Function(choice))) => {
            ToolChoice::Named(choice.function.name.clone())
        }
        Some(WordOr::Object(ToolChoiceObject::Custom(choice))) => {
            ToolChoice::Named(choice.custom.name.clone())
        }
        Some(WordOr::Object(ToolChoiceObject::AllowedTools(choice))) => {
            let allowed = &choice.allowed_tools;
            let names = allowed.tools.iter().filter_map(|tool| match tool {
                ToolChoiceObject::Function(choice) => Some(choice.function.name.as_str()),
                ToolChoiceObject::Custom(choice) => Some(choice.custom.name.as_str()),
                _ => None,
            });
            shared::allow(
                tools,
                &names.collect(),
                allowed.mode == Some(ToolMode::Required),
            )
        }
        Some(WordOr::Object(choice)) => {
            let kind = format!("'{}'", choice.kind());
            return Err(ApiError::unsupported_value("tool_choice", &kind));
        }
    })
}

fn format(format: Option<&ResponseFormat>) -> Format {
    match format {
        Some(ResponseFormat::JsonObject(_)) => Format::JsonObject,
        Some(ResponseFormat::JsonSchema(format)) => match &format.json_schema.schema {
            None => Format::JsonObject,
            Some(schema) => Format::JsonSchema {
                name: Some(format.json_schema.name.clone()),
                description: format.json_schema.description.clone(),
                schema: schema.clone(),
                strict: format.json_schema.strict,
            },
        },
        _ => Format::Text,
    }
}

fn stops(stop: Option<&TextOr<String>>) -> Vec<String> {
    match stop {
        None => Vec::new(),
        Some(TextOr::Text(stop)) => vec![stop.clone()],
        Some(TextOr::List(stops)) => stops.clone(),
    }
}

/// The calls of a message, as in the field map.
const CALLS: &str = "messages[].tool_calls[]";
/// The grammar of a custom tool.
const GRAMMAR: &str = "tools[].custom.format";
