//! Responses (<https://platform.openai.com/docs/api-reference/responses>).

mod encoder;
mod other_calls;
mod tools;

use engine::{
    AssistantPart, CachedPrefixes, Effort, Format, Labels, Reasoning, Sampling, Stop, TextEvent,
    TextRequest, ToolChoice, ToolResult, Turn, UserPart, Verbosity,
};
use responses::{
    Echo, Encoder, Event, Finish, Fold, Head, IncompleteReason, Item, Message, Offence, Part,
    ReasoningPart, Request, Response, Role, StreamError, TextOptions, ToolChoiceObject, ToolMode,
    Usage, ValidRequest,
};
use serde_json::{Value, json};
use vendor::call_id;
use vendor::envelope::is_envelope;
use wire::{ApiError, Object, TextOr, WordOr};

use self::encoder::{OURS, SEALS, ToolEncoder};
use self::other_calls::{OtherCall, other_call};
use self::tools::{ClientTools, SEARCH, namespace_of};
use super::freeform::INPUT;
use super::shared::ClientPart as _;
use super::{ClientProtocol, Inbound, Stamp, shared};
use crate::in_words;

/// The Responses protocol on the client side.
pub struct Responses;

impl ClientProtocol for Responses {
    type Request = ValidRequest;
    type Encoder = ToolEncoder;
    type Event = Event;
    type Fold = Fold;
    type Reply = Response;

    delegate_to_crate!();

    fn request(request: ValidRequest) -> Result<Inbound, ApiError> {
        let request = request.into_inner();
        let text = request.text.as_ref();
        // Hosted tools are dropped: clients send them alongside their functions.
        let mut tools = ClientTools::of(&request);
        let (turns, mut dropped) = turns(&request, &tools)?;
        dropped.append(&mut tools.dropped);
        let mut functions = std::mem::take(&mut tools.functions);
        let tool_choice = tool_choice(&request, &tools, &mut functions)?;
        let neutral = TextRequest {
            cached: cached(&request),
            turns,
            tools: functions,
            tool_choice,
            parallel_calls: request.parallel_tool_calls,
            format: format(text),
            verbosity: text.and_then(|text| Verbosity::named(text.verbosity.as_ref()?.as_str())),
            max_output_tokens: shared::cap(request.max_output_tokens),
            stop: Vec::new(),
            sampling: Sampling {
                temperature: request.temperature,
                top_p: request.top_p,
                presence_penalty: request.presence_penalty,
                frequency_penalty: request.frequency_penalty,
                ..Sampling::default()
            },
            reasoning: reasoning(&request),
            logprobs: logprobs(&request),
            labels: Labels {
                safety_identifier: request.safety_identifier,
                prompt_cache_key: request.prompt_cache_key,
                service_tier: request.service_tier,
                metadata: request.metadata,
            },
            user: request.user,
            model: request.model,
        };
        Ok(Inbound {
            request: neutral,
            dropped,
        })
    }

    fn encoder(request: &ValidRequest, stamp: &Stamp) -> ToolEncoder {
        let id = wire::id("resp", stamp.bits);
        let head = Head {
            id,
            created_at: stamp.created_at,
            model: request.model.clone(),
        };
        ToolEncoder::new(Encoder::new(head, Echo::of(request)), request)
    }

    fn encode(tools: &mut ToolEncoder, event: TextEvent, now: i64, out: &mut Vec<Event>) {
        let event = match event {
            // The client sends the id back, and a request with an invalid id would be refused.
            TextEvent::Call { id, name } => return tools.call(&call_id::plain(&id), &name, out),
            TextEvent::Arguments(text) => return tools.arguments(&text, out),
            TextEvent::CallSeal { seal, .. } => TextEvent::ReasoningSignature(seal),
            event => event,
        };
        tools.end_call(out);
        tools.keep_seal(&event);
        let encoder = &mut tools.inner;
        match event {
            TextEvent::Reasoning(text) => encoder.reasoning(&text, out),
            TextEvent::Logprobs(tokens) => encoder.logprobs(tokens),
            TextEvent::Text(text) => encoder.text(&text, out),
            TextEvent::Refusal(text) => encoder.refusal(&text, out),
            TextEvent::Finished { stop, usage } => {
                encoder.finish(finish(&stop), usage.map(protocol_usage), now, out);
            }
            // A signature outside of an envelope could not be recognized when the client sends it
            // back.
            TextEvent::ReasoningSignature(sealed) if is_envelope(&sealed) => {
                encoder.seal(&sealed, out);
            }
            TextEvent::RedactedReasoning(sealed) if is_envelope(&sealed) => {
                encoder.redacted_reasoning(&sealed, out);
            }
            _ => {}
        }
    }

    fn gather(fold: &mut Fold, event: &Event) -> bool {
        // The grammar has no events of custom calls. Their items are checked without them.
        matches!(
            fold.push(event),
            Ok(()) | Err(StreamError::Offence(Offence::UnknownType))
        )
    }

    fn reply(fold: Fold) -> Option<Response> {
        fold.finish().ok()
    }
}

fn logprobs(request: &Request) -> Option<u64> {
    let most = shared::cap(request.top_logprobs).unwrap_or_default();
    (request.includes(Request::LOGPROBS) || most > 0).then_some(most)
}

fn finish(stop: &Stop) -> Finish {
    match stop {
        Stop::MaxTokens | Stop::ContextFull => {
            Finish::Incomplete(IncompleteReason::MaxOutputTokens)
        }
        Stop::Refused => Finish::Incomplete(IncompleteReason::ContentFilter),
        _ => Finish::Completed,
    }
}

fn protocol_usage(usage: engine::Usage) -> Usage {
    let mut counts = Usage::new(usage.input, usage.output);
    counts.input_tokens_details.cached_tokens = usage.cache_read;
    counts.input_tokens_details.cache_write_tokens = usage.cache_write;
    counts.output_tokens_details.reasoning_tokens = usage.reasoning;
    counts
}

fn turns(request: &Request, tools: &ClientTools) -> Result<(Vec<Turn>, Vec<String>), ApiError> {
    let mut turns: Vec<_> = request
        .instructions
        .iter()
        .cloned()
        .map(Turn::System)
        .collect();
    let mut dropped = Vec::new();
    match &request.input {
        TextOr::Text(text) => turns.push(Turn::User(vec![UserPart::Text(text.clone())])),
        TextOr::List(items) => {
            let last = items.iter().rposition(is_of_user);
            for (i, item) in items.iter().enumerate() {
                let place = Place {
                    path: &format!("input[{i}]"),
                    is_last: last == Some(i),
                };
                add_turn(item, place, tools, &mut turns, &mut dropped)?;
            }
        }
    }
    Ok((turns, dropped))
}

/// Returns true for a message of the user and for the result of a call.
fn is_of_user(item: &Item) -> bool {
    match item {
        Item::Message(message) => message.role == Role::User,
        Item::FunctionCallOutput(_) | Item::CustomToolCallOutput(_) => true,
        other => other.kind().ends_with("_output"),
    }
}

/// The place of an item in the input.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    /// True for the last item that is not the model's.
    is_last: bool,
}

fn add_turn(
    item: &Item,
    Place { path, is_last }: Place<'_>,
    tools: &ClientTools,
    turns: &mut Vec<Turn>,
    dropped: &mut Vec<String>,
) -> Result<(), ApiError> {
    match item {
        Item::Message(Message {
            role: Role::Assistant,
            content,
            ..
        }) => {
            assistant_parts(content, dropped)
                .into_iter()
                .for_each(|part| add_assistant_part(turns, part));
        }
        Item::Message(Message {
            role: Role::System | Role::Developer,
            content,
            ..
        }) => {
            turns.push(Turn::System(plain(content)));
        }
        Item::Message(message) => {
            turns.push(Turn::User(shared::parts(
                &message.content,
                &format!("{path}.content"),
                is_last,
                dropped,
            )?));
        }
        Item::FunctionCall(call) => {
            add_seals(&call.extra, turns);
            add_assistant_part(
                turns,
                AssistantPart::Call(engine::ToolCall {
                    id: call.call_id.clone(),
                    name: tools.function_name(namespace_of(call), &call.name),
                    arguments: call.arguments.clone(),
                    seal: None,
                }),
            );
        }
        Item::CustomToolCall(call) => {
            let namespace = call.extra.get("namespace").and_then(Value::as_str);
            add_seals(&call.extra, turns);
            add_assistant_part(
                turns,
                AssistantPart::Call(engine::ToolCall {
                    id: call.call_id.clone(),
                    name: tools.function_name(namespace, &call.name),
                    arguments: json!({ INPUT: call.input }).to_string(),
                    seal: None,
                }),
            );
        }
        Item::CustomToolCallOutput(result) => turns.push(Turn::Tool(ToolResult {
            call_id: result.call_id.clone(),
            content: shared::parts(&result.output, &format!("{path}.output"), false, dropped)?,
            is_error: false,
        })),
        Item::FunctionCallOutput(result) => {
            let content = shared::parts(&result.output, &format!("{path}.output"), false, dropped)?;
            turns.push(match result.call_id.clone() {
                Some(call_id) => Turn::Tool(ToolResult {
                    call_id,
                    content,
                    is_error: false,
                }),
                None => Turn::User(content),
            });
        }
        Item::Reasoning(reasoning) => {
            let texts: Vec<_> = reasoning
                .summary
                .iter()
                .filter_map(reasoning_text)
                .collect();
            let sealed = reasoning.encrypted_content.clone();
            let signature = sealed.clone().filter(|sealed| is_envelope(sealed));
            if sealed != signature {
                dropped.push(REASONING.to_owned());
            }
            if !texts.is_empty() || signature.is_some() {
                add_assistant_part(
                    turns,
                    AssistantPart::Reasoning {
                        text: texts.join("\n\n"),
                        signature,
                    },
                );
            }
        }
        Item::Other(members) => match other_call(item.kind(), members) {
            Some(OtherCall::Call(call)) => add_assistant_part(turns, AssistantPart::Call(call)),
            Some(OtherCall::Result(result)) => turns.push(Turn::Tool(result)),
            None => dropped.push(path.to_owned()),
        },
        _ => dropped.push(path.to_owned()),
    }
    Ok(())
}

/// Adds the reasoning whose envelopes a call brings back.
fn add_seals(of_call: &Object, turns: &mut Vec<Turn>) {
    let seals = of_call.get(SEALS).and_then(|extra| extra.get(OURS));
    let seals = seals.and_then(Value::as_array).into_iter().flatten();
    for seal in seals.filter_map(Value::as_str) {
        let part = AssistantPart::Reasoning {
            text: String::new(),
            signature: Some(seal.to_owned()).filter(|seal| is_envelope(seal)),
        };
        add_assistant_part(turns, part);
    }
}

fn reasoning_text(part: &ReasoningPart) -> Option<&str> {
    match part {
        ReasoningPart::Summary(part) | ReasoningPart::Text(part) => Some(&part.text),
        _ => None,
    }
}

/// Adds to the last assistant turn: a message, its calls and its reasoning form one turn.
fn add_assistant_part(turns: &mut Vec<Turn>, part: AssistantPart) {
    match turns.last_mut() {
        Some(Turn::Assistant(parts)) => parts.push(part),
        _ => turns.push(Turn::Assistant(vec![part])),
    }
}

fn plain(content: &TextOr<Part>) -> String {
    shared::joined(content, |part| match part {
        Part::InputText(part) | Part::OutputText(part) | Part::Text(part) => {
            Some(part.text.as_str())
        }
        _ => None,
    })
}

fn assistant_parts(content: &TextOr<Part>, dropped: &mut Vec<String>) -> Vec<AssistantPart> {
    match content {
        TextOr::Text(text) => vec![AssistantPart::Text(text.clone())],
        TextOr::List(parts) => {
            let output = parts.iter().filter_map(|part| match part {
                Part::InputText(part) | Part::OutputText(part) | Part::Text(part) => {
                    Some(AssistantPart::Text(part.text.clone()))
                }
                Part::Refusal(part) => Some(AssistantPart::Refusal(part.refusal.clone())),
                _ => {
                    shared::add_once(dropped, Part::FIELD);
                    None
                }
            });
            output.collect()
        }
    }
}

/// Returns the prefix that ends with the leading instructions. Tools have no breakpoints.
fn cached(request: &Request) -> CachedPrefixes {
    let items = match &request.input {
        TextOr::Text(_) => &[],
        TextOr::List(items) => items.as_slice(),
    };
    let system = items.iter().map_while(|item| match item {
        Item::Message(message) if matches!(message.role, Role::System | Role::Developer) => {
            Some(message.content.parts())
        }
        _ => None,
    });
    CachedPrefixes {
        tools: None,
        system: shared::last_breakpoint(system.flatten().filter_map(extra)),
    }
}

fn extra(part: &Part) -> Option<&Object> {
    match part {
        Part::InputText(part) | Part::OutputText(part) | Part::Text(part) => Some(&part.extra),
        Part::Image(part) => Some(&part.extra),
        Part::File(part) => Some(&part.extra),
        _ => None,
    }
}

impl shared::ClientPart for Part {
    const FIELD: &str = "input[].content[]";

    fn neutral(&self, path: &str) -> Result<UserPart, ApiError> {
        match self {
            Self::InputText(part) | Self::OutputText(part) | Self::Text(part) => {
                Ok(UserPart::Text(part.text.clone()))
            }
            Self::Image(part) => match &part.image_url {
                Some(url) => Ok(shared::image(url, part.detail.clone())),
                None => {
                    let param = format!("{path}.file_id");
                    Err(ApiError::unsupported_parameter(&param, "image_url"))
                }
            },
            Self::File(part) => match (&part.file_url, part.file_data.as_deref()) {
                (Some(url), None) => Ok(UserPart::FileUrl {
                    name: part.filename.clone(),
                    url: url.clone(),
                }),
                (_, data) => {
                    shared::file(data, part.filename.clone(), &format!("{path}.file_data"))
                }
            },
            other => Err(shared::unknown_part(other.kind(), path)),
        }
    }

    fn extra(&self) -> Option<&Object> {
        extra(self)
    }

    fn in_words(&self) -> String {
        match self {
            Self::Image(_) => in_words::IMAGE.to_owned(),
            Self::File(part) => in_words::document(part.filename.as_deref()),
            other => in_words::other(other.kind()),
        }
    }
}

fn tool_choice(
    request: &Request,
    tools: &ClientTools,
    functions: &mut Vec<engine::Tool>,
) -> Result<ToolChoice, ApiError> {
    Ok(match &request.tool_choice {
        None => ToolChoice::Auto,
        Some(WordOr::Word(ToolMode::None)) => ToolChoice::None,
        Some(WordOr::Word(ToolMode::Required)) if functions.is_empty() => {
            return Err(ApiError::unsupported_value("tool_choice", "'required'"));
        }
        Some(WordOr::Word(ToolMode::Required)) => ToolChoice::Required,
        Some(WordOr::Word(_)) => ToolChoice::Auto,
        Some(WordOr::Object(ToolChoiceObject::AllowedTools(allowed))) => {
            let names = allowed.tools.iter();
            let names: Vec<_> = names.filter_map(|tool| chosen(tool, tools)).collect();
            shared::allow(
                functions,
                &names.iter().map(String::as_str).collect(),
                allowed.mode == Some(ToolMode::Required),
            )
        }
        Some(WordOr::Object(choice)) => match chosen(choice, tools) {
            Some(name) => ToolChoice::Named(name),
            None => {
                let kind = format!("'{}'", choice.kind());
                return Err(ApiError::unsupported_value("tool_choice", &kind));
            }
        },
    })
}

/// Returns the name of the function for a chosen tool, unless it runs at the vendor.
fn chosen(choice: &ToolChoiceObject, tools: &ClientTools) -> Option<String> {
    let (name, members) = match choice {
        ToolChoiceObject::Function(choice) => (choice.name.as_str(), &choice.extra),
        ToolChoiceObject::Other(members) => match choice.kind() {
            "custom" => (members.get("name")?.as_str()?, members),
            SEARCH => (SEARCH, members),
            _ => return None,
        },
        _ => return None,
    };
    let namespace = members.get("namespace").and_then(Value::as_str);
    Some(tools.function_name(namespace, name))
}

fn format(text: Option<&TextOptions>) -> Format {
    match text.and_then(|text| text.format.as_ref()) {
        Some(responses::Format::JsonObject(_)) => Format::JsonObject,
        Some(responses::Format::JsonSchema(format)) => Format::JsonSchema {
            name: Some(format.name.clone()),
            description: format.description.clone(),
            schema: format.schema.clone(),
            strict: format.strict,
        },
        _ => Format::Text,
    }
}

fn reasoning(request: &Request) -> Reasoning {
    let options = request.reasoning.as_ref();
    let effort = options.and_then(|options| Effort::named(options.effort.as_ref()?.as_str()));
    Reasoning {
        effort,
        summary: options.and_then(|options| options.summary()).map(|_| true),
        encrypted: request.includes(Request::ENCRYPTED_REASONING),
        ..Reasoning::default()
    }
}

/// The name of a seal that only another server can read.
const REASONING: &str = "reasoning";
