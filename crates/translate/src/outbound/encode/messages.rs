//! Encodes requests for Messages (<https://docs.anthropic.com/en/api/messages>).

mod thinking;

use engine::{
    AssistantPart, CacheLifetime, EngineError, Format, ImageSource, Sampling, TextRequest,
    ToolResult, Turn, UserPart,
};
use messages::{
    AnyTool, CustomTool, DataSource, DocumentBlock, ImageBlock, InputBlock, InputMessage,
    JsonSchemaFormat, NamedTool, OutputConfig, OutputFormat, RedactedThinkingBlock, Request, Role,
    Source, TextBlock, ThinkingBlock, Tool, ToolChoice, ToolResultBlock, ToolUseBlock, UrlSource,
};
use serde_json::json;
use vendor::Protocol;
use vendor::envelope::is_envelope;
use wire::{DataUrl, Object, TextOr};

use super::{DroppedField, DroppedFields, Settings, names, schema, stops};

pub(super) fn request(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Request, EngineError> {
    let user = request
        .user
        .as_ref()
        .or(request.labels.safety_identifier.as_ref());
    let sampling = sampling(&request.sampling, settings, dropped);
    let mut body = Request::new(
        request.model.clone(),
        messages(&request.turns, settings, dropped)?,
    );
    body.max_tokens = Some(super::count(
        request
            .max_output_tokens
            .unwrap_or(settings.max_tokens)
            .max(1),
    ));
    body.system = system(request);
    body.stream = settings.stream.then_some(true);
    body.stop_sequences = stops::sent(Protocol::Messages, request, settings);
    body.temperature = sampling.temperature;
    body.top_p = sampling.top_p;
    body.top_k = sampling.top_k.map(super::count);
    set_tools(&mut body, request, settings, dropped)?;
    body.output_config = output_config(request, dropped)?;
    thinking::set(&mut body, request, settings, dropped);
    if let Some(user) = user {
        body.metadata.get_or_insert_default().user_id = Some(user.clone());
    }
    Ok(body)
}

fn sampling(requested: &Sampling, settings: &Settings, dropped: &mut DroppedFields) -> Sampling {
    if requested
        .temperature
        .is_some_and(|temperature| temperature > 1.0 || !settings.sampling)
    {
        dropped.add(DroppedField::Temperature);
    }
    if settings.sampling {
        return Sampling {
            temperature: requested
                .temperature
                .map(|temperature| temperature.min(1.0)),
            ..requested.clone()
        };
    }
    if requested.top_p.is_some() {
        dropped.add(DroppedField::TopP);
    }
    if requested.top_k.is_some() {
        dropped.add(DroppedField::TopK);
    }
    Sampling::default()
}

/// Collects all system texts, each as a block of its own. The prefix that should be cached ends with
/// the texts before the conversation.
fn system(request: &TextRequest) -> Option<TextOr<InputBlock>> {
    let turns = &request.turns;
    let texts = turns.iter().filter_map(|turn| match turn {
        Turn::System(text) if !is_blank(text) => Some(text),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    match (texts.as_slice(), request.cached.system) {
        ([], _) => None,
        ([only], None) => Some(TextOr::Text((*only).clone())),
        (several, None) => Some(TextOr::List(several.iter().map(|one| text(one)).collect())),
        (several, Some(lifetime)) => {
            let is_leading = |turn: &&Turn| matches!(turn, Turn::System(_));
            let leading = turns.iter().take_while(is_leading);
            let leading =
                leading.filter(|turn| !matches!(turn, Turn::System(text) if is_blank(text)));
            let mut blocks: Vec<_> = several.iter().map(|one| text(one)).collect();
            let last = leading.count().checked_sub(1);
            if let Some(InputBlock::Text(block)) = last.and_then(|last| blocks.get_mut(last)) {
                add_cache_control(&mut block.extra, lifetime);
            }
            Some(TextOr::List(blocks))
        }
    }
}

fn messages(
    turns: &[Turn],
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<Vec<InputMessage>, EngineError> {
    let mut messages = Vec::new();
    for turn in turns {
        match turn {
            Turn::System(text) if is_blank(text) || messages.is_empty() => {}
            Turn::System(_) => dropped.add(DroppedField::SystemPosition),
            Turn::User(parts) => {
                let blocks = blocks(parts)?;
                if !blocks.is_empty() {
                    add(&mut messages, Role::User, blocks);
                }
            }
            Turn::Tool(result) => add(&mut messages, Role::User, vec![tool_result(result)?]),
            Turn::Assistant(parts) => {
                let blocks = assistant_blocks(parts, settings, dropped);
                if !blocks.is_empty() {
                    add(&mut messages, Role::Assistant, blocks);
                }
            }
        }
    }
    let is_assistants = |message: &(Role, _)| message.0 == Role::Assistant;
    let (Some(begins), Some(ends)) = (
        messages.first().map(is_assistants),
        messages.last().map(is_assistants),
    ) else {
        return Err(super::empty_conversation());
    };
    if ends && settings.quirks.no_prefill {
        messages.push((Role::User, vec![text(CONTINUE)]));
        dropped.add(DroppedField::RoleSequence);
    }
    for (role, blocks) in &mut messages {
        if *role == Role::Assistant {
            put_calls_last(blocks, dropped);
        }
    }
    trim_prefill(&mut messages);
    if begins {
        messages.insert(0, (Role::User, vec![text(BEGIN)]));
        dropped.add(DroppedField::RoleSequence);
    }
    Ok(messages.into_iter().map(message).collect())
}

/// Moves calls to the end of a message, because their results have to follow them directly:
/// "`tool_use` ids were found without `tool_result` blocks immediately after"
/// (<https://github.com/anomalyco/opencode/issues/5750>).
fn put_calls_last(blocks: &mut [InputBlock], dropped: &mut DroppedFields) {
    let is_call = |block: &InputBlock| matches!(block, InputBlock::ToolUse(_));
    if !blocks.is_sorted_by_key(is_call) {
        blocks.sort_by_key(is_call);
        dropped.add(DroppedField::MessagePosition);
    }
}

/// Removes the white space at the end of a text that the model is to continue, which the API
/// refuses
/// (<https://docs.anthropic.com/en/docs/build-with-claude/prompt-engineering/prefill-claudes-response>).
fn trim_prefill(messages: &mut [(Role, Vec<InputBlock>)]) {
    if let Some((Role::Assistant, blocks)) = messages.last_mut()
        && let Some(InputBlock::Text(last)) = blocks.last_mut()
    {
        last.text.truncate(last.text.trim_end().len());
    }
}

/// Adds blocks to the last message if it has the same role, else as a new message.
fn add(messages: &mut Vec<(Role, Vec<InputBlock>)>, role: Role, blocks: Vec<InputBlock>) {
    match messages.last_mut() {
        Some((last, content)) if *last == role => content.extend(blocks),
        _ => messages.push((role, blocks)),
    }
}

fn message((role, mut blocks): (Role, Vec<InputBlock>)) -> InputMessage {
    // Tool results have to precede the other blocks of a user message.
    blocks.sort_by_key(|block| !matches!(block, InputBlock::ToolResult(_)));
    let mut message = InputMessage::new(role);
    message.content = Some(TextOr::List(blocks));
    message
}

/// Encodes parts of a user message or a tool result. Blank texts are left out, because the API
/// refuses them.
fn blocks(parts: &[UserPart]) -> Result<Vec<InputBlock>, EngineError> {
    let parts = parts
        .iter()
        .filter(|part| !matches!(part, UserPart::Text(text) if is_blank(text)));
    let mut blocks = Vec::new();
    for part in parts {
        add_block(&mut blocks, part)?;
    }
    Ok(blocks)
}

fn add_block(blocks: &mut Vec<InputBlock>, part: &UserPart) -> Result<(), EngineError> {
    blocks.push(match part {
        UserPart::Text(content) => text(content),
        UserPart::Image { source, .. } => InputBlock::Image(ImageBlock::new(image_source(source))),
        UserPart::File {
            name,
            media_type,
            data,
        } => {
            let mut document = DocumentBlock::new(document(media_type, data)?);
            document.title.clone_from(name);
            InputBlock::Document(document)
        }
        UserPart::FileUrl { name, url } => {
            let mut document = DocumentBlock::new(Source::Url(UrlSource::new(url.clone())));
            document.title.clone_from(name);
            InputBlock::Document(document)
        }
        UserPart::CacheBreakpoint(lifetime) => {
            let members = match blocks.last_mut() {
                Some(InputBlock::Text(block)) => Some(&mut block.extra),
                Some(InputBlock::Image(block)) => Some(&mut block.extra),
                Some(InputBlock::Document(block)) => Some(&mut block.extra),
                _ => None,
            };
            if let Some(members) = members {
                add_cache_control(members, *lifetime);
            }
            return Ok(());
        }
    });
    Ok(())
}

/// Adds a breakpoint of the prompt cache
/// (<https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching>).
fn add_cache_control(members: &mut Object, lifetime: CacheLifetime) {
    let mark = match lifetime {
        CacheLifetime::Short => json!({ "type": "ephemeral" }),
        CacheLifetime::Long => json!({ "type": "ephemeral", "ttl": "1h" }),
    };
    members.insert("cache_control".to_owned(), mark);
}

fn text(text: &str) -> InputBlock {
    InputBlock::Text(TextBlock::new(text.to_owned()))
}

fn image_source(source: &ImageSource) -> Source {
    match source {
        ImageSource::Inline { media_type, data } => Source::Base64(DataSource::new(
            media_type.to_ascii_lowercase(),
            data.clone(),
        )),
        ImageSource::Url(url) => Source::Url(UrlSource::new(url.clone())),
    }
}

/// Encodes a document. This protocol supports PDF and text.
fn document(media_type: &str, data: &str) -> Result<Source, EngineError> {
    super::check_data(media_type, data)?;
    let essence = essence(media_type);
    if essence == PDF {
        return Ok(Source::Base64(DataSource::new(essence, data.to_owned())));
    }
    match text_of(media_type, data) {
        Some(text) => Ok(Source::Text(DataSource::new("text/plain".to_owned(), text))),
        None => {
            let sentence = format!(
                "Documents of the type '{essence}' are not supported by this model: send PDF or UTF-8 text."
            );
            Err(super::unsupported(sentence))
        }
    }
}

/// Returns true if [`document`] can encode a document.
pub(super) fn takes(media_type: &str, data: &str) -> bool {
    let is_pdf = || essence(media_type) == PDF;
    super::check_data(media_type, data).is_ok() && (is_pdf() || text_of(media_type, data).is_some())
}

/// Returns the text of a document that is one.
pub(super) fn text_of(media_type: &str, data: &str) -> Option<String> {
    let is_text = essence(media_type).starts_with("text/");
    let bytes = is_text.then(|| DataUrl { media_type, data }.decode().ok())??;
    String::from_utf8(bytes).ok()
}

/// The media type of a document without its parameters.
fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn tool_result(result: &ToolResult) -> Result<InputBlock, EngineError> {
    let content = match result.content.as_slice() {
        [UserPart::Text(text)] if !is_blank(text) => Some(TextOr::Text(text.clone())),
        content => Some(blocks(content)?)
            .filter(|blocks| !blocks.is_empty())
            .map(TextOr::List),
    };
    let mut block = ToolResultBlock::new(call_id(&result.call_id));
    block.content = content;
    block.is_error = result.is_error.then_some(true);
    Ok(InputBlock::ToolResult(block))
}

fn assistant_blocks(
    parts: &[AssistantPart],
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Vec<InputBlock> {
    let mut blocks = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text(content) | AssistantPart::Refusal(content) if is_blank(content) => {
            }
            AssistantPart::Text(content) | AssistantPart::Refusal(content) => {
                blocks.push(text(content));
            }
            AssistantPart::Reasoning {
                text,
                signature: Some(signature),
            } if !is_envelope(signature) => {
                blocks.push(InputBlock::Thinking(ThinkingBlock::new(
                    text.clone(),
                    signature.clone(),
                )));
            }
            AssistantPart::Reasoning { text, .. }
                if settings.quirks.unsigned_thinking && !text.is_empty() =>
            {
                let thinking = ThinkingBlock::new(text.clone(), String::new());
                blocks.push(InputBlock::Thinking(thinking));
            }
            // The API refuses thinking blocks without a signature.
            AssistantPart::Reasoning { .. } => dropped.add(DroppedField::Reasoning),
            AssistantPart::RedactedReasoning(data) => {
                blocks.push(InputBlock::RedactedThinking(RedactedThinkingBlock::new(
                    data.clone(),
                )));
            }
            AssistantPart::Call(call) => {
                let block = ToolUseBlock::new(
                    call_id(&call.id),
                    call.name.clone(),
                    super::arguments(call, dropped),
                );
                blocks.push(InputBlock::ToolUse(block));
            }
        }
    }
    blocks
}

/// Sets the tools and the choice among them.
///
/// Calls in a conversation without tools would be refused
/// (<https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use>), so their
/// functions are offered, and may not be called.
fn set_tools(
    body: &mut Request,
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<(), EngineError> {
    if !request.tools.is_empty() {
        let mut tools = tools(&request.tools, dropped)?;
        if let (Some(Tool::Custom(last)), Some(lifetime)) = (tools.last_mut(), request.cached.tools)
        {
            add_cache_control(&mut last.extra, lifetime);
        }
        body.tools = Some(tools);
        body.tool_choice = tool_choice(request, settings, dropped);
        return Ok(());
    }
    let mut called: Vec<_> = names::calls(request).collect();
    called.sort();
    called.dedup();
    if !called.is_empty() {
        let tool = |name: &&String| Tool::Custom(CustomTool::new((*name).clone(), schema::empty()));
        body.tools = Some(called.iter().map(tool).collect());
        body.tool_choice = Some(ToolChoice::None(AnyTool::default()));
    }
    Ok(())
}

fn tools(tools: &[engine::Tool], dropped: &mut DroppedFields) -> Result<Vec<Tool>, EngineError> {
    let tool = |tool: &engine::Tool| {
        let schema = schema::of_claude_tool(tool, dropped)?;
        // `strict` is left out, because not every version of the protocol supports it.
        let mut custom = CustomTool::new(tool.name.clone(), schema);
        custom.description.clone_from(&tool.description);
        Ok(Tool::Custom(custom))
    };
    tools.iter().map(tool).collect()
}

/// Encodes the tool choice, which also carries `disable_parallel_tool_use`.
fn tool_choice(
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Option<ToolChoice> {
    let parallel = super::parallel_calls(request, settings, dropped);
    let sequential = (parallel == Some(false)).then_some(true);
    let mut any = AnyTool::default();
    any.disable_parallel_tool_use = sequential;
    match &request.tool_choice {
        engine::ToolChoice::Auto => sequential.map(|_| ToolChoice::Auto(any)),
        engine::ToolChoice::None => Some(ToolChoice::None(AnyTool::default())),
        engine::ToolChoice::Required => Some(ToolChoice::Any(any)),
        engine::ToolChoice::Named(name) => {
            let mut named = NamedTool::new(name.clone());
            named.disable_parallel_tool_use = sequential;
            Some(ToolChoice::Tool(named))
        }
    }
}

/// Encodes the format of the output.
fn output_config(
    request: &TextRequest,
    dropped: &mut DroppedFields,
) -> Result<Option<OutputConfig>, EngineError> {
    let mut config = OutputConfig::default();
    config.format = match &request.format {
        Format::Text => None,
        Format::JsonSchema { schema, .. } => Some(OutputFormat::JsonSchema(JsonSchemaFormat::new(
            schema::for_claude_answer(schema, dropped)?,
        ))),
        Format::JsonObject => {
            let sentence =
                "JSON without a schema is not supported by this model: send a JSON Schema.";
            return Err(super::unsupported(sentence));
        }
    };
    Ok(Some(config).filter(|config| *config != OutputConfig::default()))
}

/// Returns the id of a call in the only form that the API accepts.
fn call_id(id: &str) -> String {
    vendor::call_id::plain(&vendor::call_id::original(id))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The message of the user that stands before a conversation which the assistant has begun.
const BEGIN: &str = "(The conversation begins with the assistant.)";
/// The message of the user behind a text that the model cannot continue as its own.
const CONTINUE: &str = "Continue from where your last message ends.";
/// The media type of PDF.
const PDF: &str = "application/pdf";
