//! Encodes a neutral request as the body of a request to an upstream.
//!
//! Fields that are dropped by name are in the table of `sluicegate-field-map`; fields that are dropped
//! because of their value or the upstream's capabilities are reported here.

mod chat;
mod fit;
mod history;
mod messages;
mod names;
mod parts;
mod quirks;
mod responses;
mod schema;
mod stops;

use engine::{
    CacheLifetime, CachedPrefixes, EngineError, ImageSource, TextRequest, Tool, ToolCall,
    ToolChoice,
};
use serde::Serialize;
use serde_json::{Value, json};
use wire::{Cursor, DataUrl, Json, Object};

pub use self::names::ReplacedNames;
pub use self::quirks::{MaxTokensName, Quirks, ThinkingForm, ToolIds};
use vendor::Protocol;
use vendor::call_id;

/// Settings of a request to an upstream that the gateway decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// True to request a stream.
    pub stream: bool,
    /// The output limit in tokens if the protocol requires one and the request has none.
    pub max_tokens: u64,
    /// True if a Messages upstream accepts `temperature`, `top_p` and `top_k`.
    pub sampling: bool,
    /// True if the client gets the signatures of the reasoning, in envelopes that it sends back.
    pub sealed: bool,
    /// The peculiarities of the upstream.
    pub quirks: Quirks,
}

/// A request encoded for an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRequest {
    /// The body: a JSON object.
    pub body: Vec<u8>,
    /// The fields dropped because of their value or the upstream, each once.
    pub dropped: Vec<DroppedField>,
    /// The names of tools that were replaced.
    pub names: ReplacedNames,
    /// The stop sequences that the upstream does not take. The gateway looks for them in its answer.
    pub stops: Vec<String>,
}

wire::text_enum! {
    /// A field that exists in the upstream's protocol but could not carry the request's value, by
    /// its name for clients.
    #[non_exhaustive]
    pub enum DroppedField {
        /// A temperature that was left out, or lowered to the maximum.
        Temperature = "temperature",
        /// Nucleus sampling.
        TopP = "top_p",
        /// The probabilities of tokens, where a model that reasons has none.
        Logprobs = "logprobs",
        /// Top-k sampling.
        TopK = "top_k",
        /// Earlier reasoning that the upstream would not accept.
        Reasoning = "reasoning",
        /// The reasoning effort, where the model cannot be asked to reason.
        Effort = "reasoning_effort",
        /// An output limit that was raised to the least one that the upstream accepts.
        MaxTokens = "max_tokens",
        /// The limit to one call for each turn.
        ParallelToolCalls = "parallel_tool_calls",
        /// The position of images and documents within the results of tools. They follow in a
        /// message of the user.
        ToolResultPosition = "tool_result_position",
        /// The position of instructions within the conversation. Their text is kept.
        SystemPosition = "system_position",
        /// The position of messages between a call and its result. They follow the result.
        MessagePosition = "message_position",
        /// The call that a result belongs to, where the conversation does not have it.
        CallId = "call_id",
        /// The result of a call that has none, which is added, or several of one call, which become
        /// one.
        ToolResult = "tool_result",
        /// The arguments of an earlier call, where they are not an object. They become the only
        /// member of one.
        Arguments = "arguments",
        /// Breakpoints of the prompt cache, which the model does not know or not in this place.
        CacheBreakpoint = "cache_breakpoint",
        /// The sequence of roles: a message was added that nobody has sent.
        RoleSequence = "role_sequence",
        /// The promise that output matches its schema exactly, where the schema does not permit it.
        Strict = "strict",
        /// Pairs of metadata that the upstream does not take.
        Metadata = "metadata",
        /// A tool with the name of another one.
        Tools = "tools",
        /// Images that became a text.
        Images = "images",
        /// Documents of earlier messages and of results that became a text.
        Documents = "documents",
        /// Parts of a JSON Schema that the upstream does not know.
        Schema = "json_schema",
    }
}

/// Encodes a request in an upstream's protocol. The body passes that protocol's validator.
///
/// # Errors
/// [`EngineError::Unsupported`] when the protocol cannot represent something that cannot be left
/// out.
pub fn request(
    protocol: Protocol,
    request: &TextRequest,
    settings: &Settings,
) -> Result<EncodedRequest, EngineError> {
    check(protocol, request)?;
    let mut dropped = DroppedFields::default();
    let request = history::ordered(request, &mut dropped);
    let request = fit::fitted(protocol, request, settings, &mut dropped);
    let request = names::unique(request, &mut dropped);
    let request = parts::readable(protocol, request, &settings.quirks, &mut dropped);
    let (request, names) = names::fitted(protocol, &request, settings, &mut dropped)?;
    let body = match protocol {
        Protocol::Responses => serialized(&responses::request(&request, settings, &mut dropped)?),
        Protocol::Chat => serialized(&chat::request(&request, settings, &mut dropped)?),
        Protocol::Messages => serialized(&messages::request(&request, settings, &mut dropped)?),
    };
    Ok(EncodedRequest {
        body: body?,
        dropped: dropped.0,
        names,
        stops: stops::applied(protocol, &request, settings)?,
    })
}

/// The fields dropped so far, without duplicates.
#[derive(Default)]
struct DroppedFields(Vec<DroppedField>);

impl DroppedFields {
    fn add(&mut self, field: DroppedField) {
        if !self.0.contains(&field) {
            self.0.push(field);
        }
    }
}

fn serialized<T: Serialize>(request: &T) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(request)
        .map_err(|error| EngineError::Internal(format!("failed to serialize the request: {error}")))
}

/// Checks the number of tools, and the rules that all three protocols share.
fn check(protocol: Protocol, request: &TextRequest) -> Result<(), EngineError> {
    check_count(protocol, request.tools.len())?;
    if request.max_output_tokens == Some(0) {
        return Err(unsupported(
            "A cap of 0 tokens is not supported by this model.",
        ));
    }
    let is_declared = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    match &request.tool_choice {
        ToolChoice::Required if request.tools.is_empty() => Err(refusal(
            "tool_choice",
            "Only functions can be called by this model, and there is none.",
        )),
        ToolChoice::Named(name) if !is_declared(name) => Err(refusal(
            "tool_choice",
            "'tool_choice' names a tool that this model cannot call.",
        )),
        _ => Ok(()),
    }
}

/// The refusal of a parameter that has the same name in all protocols.
fn refusal(param: &str, sentence: impl Into<String>) -> EngineError {
    EngineError::Unsupported {
        param: Some(param.to_owned()),
        reason: sentence.into(),
    }
}

/// The refusal of a parameter whose name in the client's protocol is not known here.
fn unsupported(sentence: impl Into<String>) -> EngineError {
    EngineError::Unsupported {
        param: None,
        reason: sentence.into(),
    }
}

fn empty_conversation() -> EngineError {
    unsupported("There is nothing in the conversation that this model could answer.")
}

/// Converts a count to the integer type of the protocols.
fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the number of alternatives to report with each output token, if any are requested.
fn alternatives(request: &TextRequest) -> Option<i64> {
    request.logprobs.filter(|most| *most > 0).map(count)
}

/// Checks that there are no more tools than OpenAI accepts
/// (<https://platform.openai.com/docs/api-reference/chat/create>). Anthropic states no number.
fn check_count(protocol: Protocol, tools: usize) -> Result<(), EngineError> {
    if protocol == Protocol::Messages || tools <= MAX_TOOLS {
        return Ok(());
    }
    let sentence = format!("This model takes at most {MAX_TOOLS} tools, but got {tools}.");
    Err(refusal("tools", sentence))
}

/// Converts the tools, if there are any.
fn tools<T>(
    tools: &[Tool],
    convert: impl FnMut(&Tool) -> Result<T, EngineError>,
) -> Result<Option<Vec<T>>, EngineError> {
    let converted = tools.iter().map(convert).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(converted).filter(|tools| !tools.is_empty()))
}

/// Returns whether the model may make several calls in one turn, if the upstream accepts that.
fn parallel_calls(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Option<bool> {
    let parallel = request
        .parallel_calls
        .filter(|_| !request.tools.is_empty())?;
    if !settings.quirks.no_parallel_tools {
        return Some(parallel);
    }
    if !parallel {
        dropped.add(DroppedField::ParallelToolCalls);
    }
    None
}

/// Returns JSON of the caller, if it can be nested in the request within the depth limit.
fn embed(json: &Json) -> Result<Json, EngineError> {
    if wire::depth(json.text().as_bytes()) > MAX_DEPTH {
        return Err(unsupported(format!(
            "A JSON Schema nests more than {MAX_DEPTH} deep."
        )));
    }
    Ok(json.clone())
}

/// Parses the arguments of an earlier call, which have to be an object. Others, such as those that the
/// model did not end or that nest too deep, become its only member.
fn arguments(call: &ToolCall, dropped: &mut DroppedFields) -> Json {
    if call.arguments.trim().is_empty() {
        return json!({}).into();
    }
    let is_shallow = |input: &Json| wire::depth(input.text().as_bytes()) <= MAX_DEPTH;
    match serde_json::from_str::<Json>(&call.arguments) {
        Ok(input) if input.is_object() && is_shallow(&input) => input,
        _ => {
            dropped.add(DroppedField::Arguments);
            json!({ "arguments": call.arguments }).into()
        }
    }
}

/// Returns the arguments of an earlier call as the text of an object. Templates of open models read
/// them as JSON (<https://github.com/vllm-project/vllm/issues/19419>), over Responses too
/// (<https://github.com/meituan-longcat/LongCat-2.0/issues/14>).
fn argument_text(call: &ToolCall, dropped: &mut DroppedFields) -> String {
    match is_object(&call.arguments) {
        true => call.arguments.clone(),
        false => arguments(call, dropped).text().to_owned(),
    }
}

/// Returns true if arguments are an object, without reading its values.
fn is_object(arguments: &str) -> bool {
    let read = || {
        let mut cursor = Cursor::new(arguments.as_bytes())?;
        let is_object = cursor.peek()? == b'{';
        cursor.skip(DEPTH)?;
        cursor.end()?;
        Some(is_object)
    };
    read().unwrap_or_default()
}

/// Returns the id of a call in the form that an upstream of OpenAI's protocols accepts, of at most
/// `longest` characters.
fn call_id(id: &str, longest: usize, settings: &Settings) -> String {
    let id = match settings.quirks.tool_ids {
        ToolIds::Any => call_id::own(id),
        ToolIds::Plain => call_id::plain(&call_id::original(id)),
        ToolIds::Alnum9 => return call_id::nine(id),
    };
    if id.len() <= longest {
        id
    } else {
        call_id::digest(&id)
    }
}

/// Returns the URL of an image. For an inline image it is a data URL.
fn image_url(source: &ImageSource) -> String {
    match source {
        ImageSource::Inline { media_type, data } => data_url(media_type, data),
        ImageSource::Url(url) => url.clone(),
    }
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Checks that the content of a document is base64.
fn check_data(media_type: &str, data: &str) -> Result<(), EngineError> {
    match (DataUrl { media_type, data }).check() {
        Ok(()) => Ok(()),
        Err(why) => Err(unsupported(format!(
            "The content of a document is not usable: {why}."
        ))),
    }
}

/// Returns the name of a document, or one made from its type, because OpenAI needs a name
/// (<https://platform.openai.com/docs/guides/pdf-files>).
fn file_name(name: Option<&str>, media_type: &str) -> String {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let is_meant = |(known, _): &&(&str, &str)| known.eq_ignore_ascii_case(essence);
    let ending = FILE_ENDINGS.iter().find(is_meant);
    format!("document.{}", ending.map_or("txt", |(_, ending)| *ending))
}

/// Adds a breakpoint of the prompt cache to the members of a part, if the upstream knows it
/// (<https://platform.openai.com/docs/guides/prompt-caching>).
fn add_breakpoint(
    part: Option<&mut Object>,
    lifetime: CacheLifetime,
    settings: &Settings,
    dropped: &mut DroppedFields,
) {
    match part {
        Some(members) if settings.quirks.cache_control => {
            members.insert("cache_control".to_owned(), cache_control(lifetime));
        }
        Some(members) if settings.quirks.cache_breakpoints => {
            let ttl = match lifetime {
                CacheLifetime::Short => "30m",
                CacheLifetime::Long => "12h",
            };
            let mark = json!({ "mode": "explicit", "ttl": ttl });
            members.insert("prompt_cache_breakpoint".to_owned(), mark);
        }
        _ => dropped.add(DroppedField::CacheBreakpoint),
    }
}

/// The breakpoint of the prompt cache of Messages
/// (<https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching>).
fn cache_control(lifetime: CacheLifetime) -> Value {
    match lifetime {
        CacheLifetime::Short => json!({ "type": "ephemeral" }),
        CacheLifetime::Long => json!({ "type": "ephemeral", "ttl": "1h" }),
    }
}

/// Names the breakpoints behind the tools and the instructions, which OpenAI's protocols have no
/// place for.
fn drop_cached_prefixes(request: &TextRequest, dropped: &mut DroppedFields) {
    if request.cached != CachedPrefixes::default() {
        dropped.add(DroppedField::CacheBreakpoint);
    }
}

/// Joins the texts of one message as they are. Returns `None` for an empty list.
fn join(texts: &[&str]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.concat())
}

/// The prefix of a failed call's result, for protocols without an error flag.
const ERROR_PREFIX: &str = "[error] ";
/// The name of an unnamed schema, for protocols that require one.
const SCHEMA_NAME: &str = "answer";
/// The endings of the names of documents, by their media types.
const FILE_ENDINGS: [(&str, &str); 8] = [
    ("application/pdf", "pdf"),
    ("application/json", "json"),
    ("text/markdown", "md"),
    ("text/html", "html"),
    ("text/csv", "csv"),
    ("text/xml", "xml"),
    ("application/xml", "xml"),
    ("application/rtf", "rtf"),
];
const MAX_TOOLS: usize = 128;
/// The deepest nesting of arguments that are not read.
const DEPTH: u8 = wire::MAX_DEPTH as u8;
/// The maximum depth of the caller's JSON: the request adds at most five levels around it.
const MAX_DEPTH: usize = wire::MAX_DEPTH - 5;
