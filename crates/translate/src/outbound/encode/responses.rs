//! Encodes requests for Responses
//! (<https://platform.openai.com/docs/api-reference/responses/create>).

use engine::{AssistantPart, EngineError, TextRequest, ToolResult, Turn, UserPart};
use responses::{
    Effort, FilePart, Format, FunctionCall, FunctionCallOutput, FunctionChoice, FunctionTool,
    ImagePart, Item, JsonSchemaFormat, Message, Part, PlainFormat, Reasoning, ReasoningOptions,
    ReasoningPart, RefusalPart, Request, Role, Status, Summary, TextOptions, TextPart, Tool,
    ToolChoice, ToolChoiceObject, ToolMode, Verbosity,
};
use serde_json::json;
use vendor::envelope::is_envelope;
use wire::TextOr;

use super::{DroppedField, DroppedFields, ERROR_PREFIX, SCHEMA_NAME, Settings, schema};
use crate::outbound::signed;

pub(super) fn request(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Request, EngineError> {
    let (instructions, turns) = instructions(request);
    let has_tools = !request.tools.is_empty();
    let mut body = Request::new(
        request.model.clone(),
        TextOr::List(input(turns, settings, dropped)?),
    );
    body.instructions = instructions;
    body.max_output_tokens = cap(request, dropped);
    body.stream = settings.stream.then_some(true);
    body.tools = super::tools(&request.tools, |tool| function_tool(tool, dropped))?;
    body.tool_choice = has_tools.then(|| tool_choice(&request.tool_choice));
    body.parallel_tool_calls = super::parallel_calls(request, settings, dropped);
    body.temperature = request.sampling.temperature;
    body.top_p = request.sampling.top_p;
    body.presence_penalty = request.sampling.presence_penalty;
    body.frequency_penalty = request.sampling.frequency_penalty;
    body.text = text(request, dropped)?;
    body.reasoning = reasoning(&request.reasoning);
    // The gateway stores nothing, so the upstream must not store anything either.
    body.store = Some(false);
    body.include = include(request, settings, dropped);
    body.top_logprobs = super::alternatives(request);
    body.user.clone_from(&request.user);
    let labels = &request.labels;
    body.safety_identifier.clone_from(&labels.safety_identifier);
    body.prompt_cache_key.clone_from(&labels.prompt_cache_key);
    body.service_tier.clone_from(&labels.service_tier);
    body.metadata.clone_from(&labels.metadata);
    super::drop_cached_prefixes(request, dropped);
    Ok(body)
}

/// Returns the output limit, which OpenAI refuses below 16
/// (<https://platform.openai.com/docs/api-reference/responses/create>).
fn cap(request: &TextRequest, dropped: &mut DroppedFields) -> Option<i64> {
    let cap = super::count(request.max_output_tokens?);
    if cap < MIN_CAP {
        dropped.add(DroppedField::MaxTokens);
    }
    Some(cap.max(MIN_CAP))
}

/// Requests log probabilities, and the reasoning in encrypted form, in which it can be sent back, since nothing is stored
/// (<https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items>). Models that do
/// not reason refuse it.
fn include(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Option<Vec<String>> {
    let reasoning = &request.reasoning;
    let reasons = match reasoning.effort {
        Some(effort) => effort != engine::Effort::None,
        None => reasoning.encrypted || settings.quirks.reasons,
    };
    let sealed = (settings.sealed && reasons).then_some(Request::ENCRYPTED_REASONING);
    // A model that reasons has none (<https://developers.openai.com/api/docs/guides/deployment-checklist>).
    let has_logprobs = !(settings.quirks.reasons && reasons);
    if request.logprobs.is_some() && !has_logprobs {
        dropped.add(DroppedField::Logprobs);
    }
    let logprobs = request.logprobs.filter(|_| has_logprobs);
    let logprobs = logprobs.map(|_| Request::LOGPROBS);
    let included: Vec<_> = sealed
        .into_iter()
        .chain(logprobs)
        .map(str::to_owned)
        .collect();
    (!included.is_empty()).then_some(included)
}

/// Splits off a leading system text, unless no other turns would remain as items.
///
/// The text stays an item where any JSON object is requested, because it asks for JSON: "Response
/// input messages must contain the word 'json' in some form", and instructions are no input
/// (<https://github.com/Soju06/codex-lb/issues/730>).
fn instructions(request: &TextRequest) -> (Option<String>, &[Turn]) {
    let is_json_mode = matches!(request.format, engine::Format::JsonObject);
    match request.turns.as_slice() {
        [Turn::System(text), rest @ ..]
            if !is_json_mode && rest.iter().any(|turn| !matches!(turn, Turn::System(_))) =>
        {
            (Some(text.clone()), rest)
        }
        turns => (None, turns),
    }
}

fn input(
    turns: &[Turn],
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Vec<Item>, EngineError> {
    let mut items = Vec::new();
    for turn in turns {
        if !matches!(turn, Turn::Assistant(_)) {
            drop_cut_reasoning(&mut items, dropped);
        }
        match turn {
            Turn::System(text) => items.push(message(
                Role::System,
                vec![Part::InputText(text_part(text))],
            )),
            Turn::User(parts) if parts.is_empty() => {}
            Turn::User(parts) => {
                items.push(message(Role::User, self::parts(parts, settings, dropped)?));
            }
            Turn::Assistant(parts) => {
                for part in parts {
                    add_assistant_part(&mut items, part, settings, dropped);
                }
            }
            Turn::Tool(result) => items.push(output(result, settings, dropped)?),
        }
    }
    drop_cut_reasoning(&mut items, dropped);
    if items.is_empty() {
        Err(super::empty_conversation())
    } else {
        Ok(items)
    }
}

/// Leaves out reasoning at the end that no other item of the turn follows: "Item of type 'reasoning'
/// was provided without its required following item".
fn drop_cut_reasoning(items: &mut Vec<Item>, dropped: &mut DroppedFields) {
    while let Some(Item::Reasoning(_)) = items.last() {
        items.pop();
        dropped.add(DroppedField::Reasoning);
    }
}

fn message(role: Role, parts: Vec<Part>) -> Item {
    Item::Message(Message::new(role, TextOr::List(parts)))
}

fn text_part(text: &str) -> TextPart {
    TextPart::new(text.to_owned())
}

/// Adds a part of an assistant turn. Consecutive texts and refusals form one message.
fn add_assistant_part(
    items: &mut Vec<Item>,
    part: &AssistantPart,
    settings: &Settings,
    dropped: &mut DroppedFields,
) {
    match part {
        AssistantPart::Text(text) => add_text(items, text),
        AssistantPart::Refusal(text) => add_refusal(items, text),
        AssistantPart::Reasoning {
            text,
            signature: Some(signature),
        } if !is_envelope(signature) => {
            items.push(Item::Reasoning(reasoning_item(text, signature)));
        }
        // An item that is not stored is only known by its encrypted content.
        AssistantPart::Reasoning { .. } => dropped.add(DroppedField::Reasoning),
        // Another model cannot decrypt it. The field map reports the drop.
        AssistantPart::RedactedReasoning(_) => {}
        AssistantPart::Call(call) => {
            let id = super::call_id(&call.id, MAX_ID, settings);
            let arguments = super::argument_text(call, dropped);
            let call = FunctionCall::new(id, call.name.clone(), arguments);
            items.push(Item::FunctionCall(call));
        }
    }
}

/// Adds a text of an earlier answer, as a string unless its message has parts: the parts of an
/// answer need the members that its server gave them (<https://github.com/BerriAI/litellm/issues/35213>).
fn add_text(items: &mut Vec<Item>, text: &str) {
    match items.last_mut() {
        Some(Item::Message(Message {
            role: Role::Assistant,
            content,
            ..
        })) => match content {
            TextOr::Text(before) => before.push_str(text),
            TextOr::List(parts) => parts.push(output_text(text)),
        },
        _ => items.push(Item::Message(Message::new(Role::Assistant, text.into()))),
    }
}

/// Adds an earlier refusal, which only a complete output message can hold.
fn add_refusal(items: &mut Vec<Item>, text: &str) {
    let is_assistants =
        |item: &mut Item| matches!(item, Item::Message(message) if message.role == Role::Assistant);
    let mut parts = match items.pop_if(is_assistants) {
        Some(Item::Message(message)) => output_parts(message.content),
        _ => Vec::new(),
    };
    parts.push(Part::Refusal(RefusalPart::new(text.to_owned())));
    let mut message = Message::new(Role::Assistant, TextOr::List(parts));
    message.id = Some(format!("msg_{}", items.len()));
    message.status = Some(Status::Completed);
    items.push(Item::Message(message));
}

fn output_parts(content: TextOr<Part>) -> Vec<Part> {
    match content {
        TextOr::Text(text) => vec![output_text(&text)],
        TextOr::List(parts) => parts,
    }
}

/// A text of the model, with the annotations that servers require.
fn output_text(text: &str) -> Part {
    let mut part = text_part(text);
    part.extra.insert("annotations".to_owned(), json!([]));
    Part::OutputText(part)
}

/// Encodes reasoning with the signature that the answer had.
fn reasoning_item(text: &str, signature: &str) -> Reasoning {
    let (id, encrypted_content) = signed(signature);
    let summary = (!text.is_empty()).then(|| ReasoningPart::Summary(text_part(text)));
    let mut item = Reasoning::new(summary.into_iter().collect());
    item.id = id.map(str::to_owned);
    item.encrypted_content = Some(encrypted_content.to_owned());
    item
}

fn output(
    result: &ToolResult,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Item, EngineError> {
    let prefix = if result.is_error { ERROR_PREFIX } else { "" };
    let output = match result.content.as_slice() {
        [] => prefix.into(),
        [UserPart::Text(text)] => format!("{prefix}{text}").into(),
        content => {
            let prefix = result.is_error.then(|| Part::InputText(text_part(prefix)));
            TextOr::List(
                prefix
                    .into_iter()
                    .chain(parts(content, settings, dropped)?)
                    .collect(),
            )
        }
    };
    let mut output = FunctionCallOutput::new(output);
    output.call_id = Some(super::call_id(&result.call_id, MAX_ID, settings));
    Ok(Item::FunctionCallOutput(output))
}

fn parts(
    parts: &[UserPart],
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Vec<Part>, EngineError> {
    let mut encoded = Vec::with_capacity(parts.len());
    for part in parts {
        add_part(&mut encoded, part, settings, dropped)?;
    }
    Ok(encoded)
}

fn add_part(
    parts: &mut Vec<Part>,
    part: &UserPart,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<(), EngineError> {
    parts.push(match part {
        UserPart::Text(text) => Part::InputText(text_part(text)),
        UserPart::Image { source, detail } => {
            let mut image = ImagePart::default();
            image.image_url = Some(super::image_url(source));
            image.detail = Some(known_detail(detail.as_deref()).to_owned());
            Part::Image(image)
        }
        UserPart::File {
            name,
            media_type,
            data,
        } => {
            super::check_data(media_type, data)?;
            let mut file = FilePart::default();
            file.filename = Some(super::file_name(name.as_deref(), media_type));
            file.file_data = Some(super::data_url(media_type, data));
            Part::File(file)
        }
        UserPart::FileUrl { name, url } => {
            let mut file = FilePart::default();
            file.filename.clone_from(name);
            file.file_url = Some(url.clone());
            Part::File(file)
        }
        UserPart::CacheBreakpoint(lifetime) => {
            let members = match parts.last_mut() {
                Some(Part::InputText(part)) => Some(&mut part.extra),
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

/// Returns the detail of an image, which Responses requires
/// (<https://github.com/vercel/ai/issues/20300>). Chat Completions does not restrict the values.
fn known_detail(detail: Option<&str>) -> &str {
    let known = detail.filter(|detail| DETAILS.contains(detail));
    known.unwrap_or(DETAILS[0])
}

fn function_tool(tool: &engine::Tool, dropped: &mut DroppedFields) -> Result<Tool, EngineError> {
    // Absent, the schema would be made exact, so that optional parameters become required:
    // https://platform.openai.com/docs/guides/function-calling#strict-mode
    let mut function = FunctionTool::new(tool.name.clone());
    function.description.clone_from(&tool.description);
    function.parameters = schema::of_tool(tool, dropped)?;
    let parameters = function.parameters.as_ref();
    function.strict = match parameters {
        Some(parameters) => schema::permitted(tool.strict, parameters, dropped),
        None => tool.strict,
    };
    Ok(Tool::Function(function))
}

fn tool_choice(choice: &engine::ToolChoice) -> ToolChoice {
    match choice {
        engine::ToolChoice::Auto => ToolChoice::Word(ToolMode::Auto),
        engine::ToolChoice::None => ToolChoice::Word(ToolMode::None),
        engine::ToolChoice::Required => ToolChoice::Word(ToolMode::Required),
        engine::ToolChoice::Named(name) => ToolChoice::Object(ToolChoiceObject::Function(
            FunctionChoice::new(name.clone()),
        )),
    }
}

fn text(
    request: &TextRequest,
    dropped: &mut DroppedFields,
) -> Result<Option<TextOptions>, EngineError> {
    let format = match &request.format {
        engine::Format::Text => None,
        engine::Format::JsonObject => Some(Format::JsonObject(PlainFormat::default())),
        engine::Format::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => {
            let name = name.as_deref().unwrap_or(SCHEMA_NAME).to_owned();
            let sent = schema::of_answer(schema, dropped)?;
            let strict = schema::permitted(*strict, &sent, dropped);
            let mut format = JsonSchemaFormat::new(name, sent);
            format.description.clone_from(description);
            format.strict = strict;
            Some(Format::JsonSchema(format))
        }
    };
    let verbosity = request
        .verbosity
        .map(|verbosity| Verbosity::from(verbosity.as_str()));
    let is_set = format.is_some() || verbosity.is_some();
    let mut options = TextOptions::default();
    options.format = format;
    options.verbosity = verbosity;
    Ok(is_set.then_some(options))
}

fn reasoning(reasoning: &engine::Reasoning) -> Option<ReasoningOptions> {
    let mut options = ReasoningOptions::default();
    options.effort = reasoning.effort.map(|effort| Effort::from(effort.as_str()));
    options.summary = reasoning
        .summary
        .filter(|wanted| *wanted)
        .map(|_| Summary::Auto);
    Some(options).filter(|options| *options != ReasoningOptions::default())
}

/// The supported values of an image's `detail`, the default first.
const DETAILS: [&str; 4] = ["auto", "low", "high", "original"];
/// The least output limit, in tokens.
const MIN_CAP: i64 = 16;
/// The longest id of a call, in characters
/// (<https://platform.openai.com/docs/api-reference/responses/create>).
const MAX_ID: usize = 64;
