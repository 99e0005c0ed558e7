//! Validates requests beyond the types of their fields.

use wire::{Code, DataUrl, Path, Problem, TextOr, Violations};

use crate::request::{
    DataSource, Effort, InputBlock, InputMessage, OutputConfig, OutputFormat, Request, Role,
    Source, Thinking, ThinkingDisplay, Tool, ToolChoice, ToolResultBlock,
};

/// Model-dependent exceptions to the rules. The default is the strictest set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// True if `max_tokens` may be 0, which clients use to warm the vendor's cache.
    pub cache_warming: bool,
    /// True if images and documents may be files that the server keeps. In earlier messages they may
    /// be.
    pub file_ids: bool,
    /// True if unknown types of blocks and sources, unknown roles and unknown words of settings are
    /// accepted, because somebody else interprets them. So are known blocks in any message, and
    /// choices of tools that are not in the request.
    pub unknown_types: bool,
}

impl Rules {
    /// Returns true if this type is accepted although it is unknown.
    fn accepts(self, kind: &str) -> bool {
        self.unknown_types && !kind.is_empty()
    }
}

wire::valid! {
    /// A request for a message that satisfies every rule. Only [`Request::validate`] creates it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ValidRequest(Request);
}

wire::valid! {
    /// A request for a token count that satisfies every rule. Only [`Request::validate_for_count`]
    /// creates it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ValidCount(Request);
}

impl Request {
    /// Validates the request against every rule for messages.
    ///
    /// # Errors
    /// Returns every violation, each with its path.
    pub fn validate(self, rules: &Rules) -> Result<ValidRequest, Violations> {
        let mut found = Violations::default();
        check_model(&self, &mut found);
        check_cap(&self, rules, &mut found);
        check_prompt(&self, *rules, &mut found);
        check_sampling(&self, &mut found);
        found.or(ValidRequest(self))
    }

    /// Validates the request against every rule for token counts, which ignore the output options.
    ///
    /// # Errors
    /// Returns every violation, each with its path.
    pub fn validate_for_count(self, rules: &Rules) -> Result<ValidCount, Violations> {
        let mut found = Violations::default();
        check_model(&self, &mut found);
        check_prompt(&self, *rules, &mut found);
        found.or(ValidCount(self))
    }
}

fn check_model(request: &Request, found: &mut Violations) {
    found.check_spelling(&Path::ROOT, request);
    found.check_model(&request.model);
}

fn check_cap(request: &Request, rules: &Rules, found: &mut Violations) {
    let path = Path::ROOT.key("max_tokens");
    let minimum = if rules.cache_warming { 0 } else { 1 };
    match request.max_tokens {
        None => found.missing(&path),
        some => found.check_integer(&path, some, minimum, i64::MAX),
    }
}

fn check_sampling(request: &Request, found: &mut Violations) {
    let root = Path::ROOT;
    found.check_number(&root.key("temperature"), request.temperature, 0.0, 1.0);
    found.check_number(&root.key("top_p"), request.top_p, 0.0, 1.0);
    found.check_integer(&root.key("top_k"), request.top_k, 0, i64::MAX);
}

fn check_prompt(request: &Request, rules: Rules, found: &mut Violations) {
    let root = Path::ROOT;
    check_messages(&request.messages, rules, &root.key("messages"), found);
    if let Some(system) = &request.system {
        let rules = MessageRules {
            rules,
            is_history: false,
        };
        check_blocks(system, &["text"], rules, &root.key("system"), found);
    }
    let tools = request.tools.as_deref().unwrap_or_default();
    check_tools(tools, &root.key("tools"), found);
    if let Some(choice) = &request.tool_choice {
        check_tool_choice(choice, tools, rules, &root.key("tool_choice"), found);
    }
    if let Some(thinking) = &request.thinking {
        check_thinking(thinking, rules, &root.key("thinking"), found);
    }
    if let Some(config) = &request.output_config {
        check_output_config(config, rules, &root.key("output_config"), found);
    }
}

fn check_messages(
    messages: &[InputMessage],
    rules: Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    if messages.is_empty() {
        found.add(
            path,
            Problem::Other(
                Code::EmptyArray,
                format!("{path}: at least one message is required"),
            ),
        );
    }
    let last = messages.len().saturating_sub(1);
    for (i, message) in messages.iter().enumerate() {
        let rules = MessageRules {
            rules,
            is_history: i < last,
        };
        check_message(message, rules, &path.index(i), found);
    }
}

/// The rules for a message, or for the system text.
#[derive(Clone, Copy)]
struct MessageRules {
    rules: Rules,
    /// True if messages follow. Its blocks come with each later request, and are no reason to refuse
    /// it: a target that cannot take them does without them.
    is_history: bool,
}

impl MessageRules {
    /// Returns true if this type is accepted although it is unknown.
    fn accepts(self, kind: &str) -> bool {
        self.rules.accepts(kind)
    }
}

fn check_message(
    message: &InputMessage,
    rules: MessageRules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    let content = path.key("content");
    let accepted: &[&str] = match message.role {
        Role::User => &["text", "image", "document", "tool_result"],
        Role::Assistant => &["text", "tool_use", "thinking", "redacted_thinking"],
        Role::System => &["text"],
        Role::Other(_) if rules.accepts(message.role.as_str()) => return,
        Role::Other(_) => {
            return found.unknown_word(&path.key("role"), message.role.as_str(), Role::KNOWN);
        }
    };
    match &message.content {
        Some(blocks) => check_blocks(blocks, accepted, rules, &content, found),
        None if message.role == Role::System => {}
        None => found.missing(&content),
    }
    if message.role == Role::User {
        check_order(message.blocks(), &content, found);
    }
}

/// Checks that the results of calls precede the user's text.
fn check_order(blocks: &[InputBlock], path: &Path<'_>, found: &mut Violations) {
    let text = blocks
        .iter()
        .position(|block| matches!(block, InputBlock::Text(_)));
    let result = blocks
        .iter()
        .rposition(|block| matches!(block, InputBlock::ToolResult(_)));
    if let (Some(text), Some(result)) = (text, result)
        && text < result
    {
        let path = path.index(result);
        found.invalid(
            &path,
            format!("{path}: tool_result blocks must come before the text of their message"),
        );
    }
}

fn check_blocks(
    content: &TextOr<InputBlock>,
    accepted: &[&str],
    rules: MessageRules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    for (i, block) in content.parts().iter().enumerate() {
        let path = path.index(i);
        if accepted.contains(&block.kind()) || rules.accepts(block.kind()) {
            check_block(block, rules, &path, found);
        } else if !is_carried(block, rules) {
            found.unknown_word(&path.key("type"), block.kind(), accepted);
        }
    }
}

/// Returns true for blocks of the vendor's own tools and services, which a target of this protocol
/// may support, and for unknown blocks of the history, such as the ones that new betas add to answers
/// (<https://platform.claude.com/docs/en/build-with-claude/compaction>).
fn is_carried(block: &InputBlock, rules: MessageRules) -> bool {
    let kind = block.kind();
    matches!(block, InputBlock::Other(_))
        && (CARRIED.contains(&kind)
            || kind.ends_with("_tool_result")
            || rules.is_history && !kind.is_empty())
}

fn check_block(block: &InputBlock, rules: MessageRules, path: &Path<'_>, found: &mut Violations) {
    match block {
        InputBlock::Image(block) => check_picture(&block.source, rules, &path.key("source"), found),
        InputBlock::Document(block) => {
            check_document(&block.source, rules, &path.key("source"), found);
        }
        InputBlock::ToolUse(call) if !call.input.is_object() => {
            let path = path.key("input");
            found.invalid(&path, format!("{path}: Input should be a valid dictionary"));
        }
        InputBlock::ToolResult(result) => check_result(result, rules, path, found),
        _ => {}
    }
}

fn check_result(
    result: &ToolResultBlock,
    rules: MessageRules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    if let Some(content) = &result.content {
        check_blocks(
            content,
            &["text", "image", "document"],
            rules,
            &path.key("content"),
            found,
        );
    }
}

fn check_picture(source: &Source, rules: MessageRules, path: &Path<'_>, found: &mut Violations) {
    match source {
        Source::Base64(source) => check_data(source, &PICTURES, rules, path, found),
        Source::Url(source) => check_url(&source.url, &path.key("url"), found),
        _ => check_other_source(source, &["base64", "url"], rules, path, found),
    }
}

fn check_document(source: &Source, rules: MessageRules, path: &Path<'_>, found: &mut Violations) {
    match source {
        Source::Base64(source) => check_data(source, &["application/pdf"], rules, path, found),
        Source::Text(_) => {}
        Source::Url(source) => check_url(&source.url, &path.key("url"), found),
        Source::Content(source) => check_blocks(
            &source.content,
            &["text", "image"],
            rules,
            &path.key("content"),
            found,
        ),
        Source::Other(_) => check_other_source(source, Source::KNOWN, rules, path, found),
    }
}

fn check_other_source(
    source: &Source,
    accepted: &[&str],
    rules: MessageRules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    let path = path.key("type");
    let is_unknown = matches!(source, Source::Other(_)) && source.kind() != "file";
    if is_unknown && rules.accepts(source.kind()) {
        return;
    }
    if source.kind() == "file" {
        if rules.rules.file_ids || rules.is_history {
            return;
        }
        let sentence = format!(
            "{path}: no files are stored; expected one of '{}'",
            accepted.join("', '")
        );
        found.unsupported(&path, Code::UnsupportedParameter, sentence);
    } else {
        found.unknown_word(&path, source.kind(), accepted);
    }
}

fn check_data(
    source: &DataSource,
    media_types: &[&str],
    rules: MessageRules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    let DataSource {
        media_type, data, ..
    } = source;
    let registered = wire::image_type(media_type).unwrap_or(media_type);
    if !media_types.contains(&registered) && !rules.accepts(media_type) {
        found.unknown_word(&path.key("media_type"), media_type, media_types);
    }
    if data.is_empty() || (DataUrl { media_type, data }).check().is_err() {
        let path = path.key("data");
        found.invalid(
            &path,
            format!("{path}: expected base64 (standard alphabet, padded)"),
        );
    }
}

fn check_url(url: &str, path: &Path<'_>, found: &mut Violations) {
    let https = url
        .split_at_checked(8)
        .is_some_and(|(scheme, rest)| scheme.eq_ignore_ascii_case("https://") && !rest.is_empty());
    if !https {
        found.invalid(path, format!("{path}: Only HTTPS URLs are supported"));
    }
}

fn check_tools(tools: &[Tool], list: &Path<'_>, found: &mut Violations) {
    for (i, tool) in tools.iter().enumerate() {
        let path = list.index(i);
        // Other tools are the vendor's own, which a target of this protocol may support.
        if let Tool::Custom(tool) = tool {
            found.check_name(&path.key("name"), &tool.name, 128);
            if !tool.input_schema.is_object() {
                let path = path.key("input_schema");
                found.invalid(&path, format!("{path}: Input should be a valid dictionary"));
            }
        }
    }
}

fn check_tool_choice(
    choice: &ToolChoice,
    tools: &[Tool],
    rules: Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    match choice {
        ToolChoice::Any(_) if tools.is_empty() => {
            found.invalid(
                path,
                format!("{path}: a tool must be called, but there are no tools"),
            );
        }
        ToolChoice::Tool(choice)
            if !rules.unknown_types
                && !tools.iter().any(|tool| tool.name() == Some(&choice.name)) =>
        {
            let path = path.key("name");
            found.invalid(
                &path,
                format!("{path}: expected the name of one of the tools"),
            );
        }
        ToolChoice::Other(_) if rules.accepts(choice.kind()) => {}
        ToolChoice::Other(_) => {
            found.unknown_word(&path.key("type"), choice.kind(), ToolChoice::KNOWN);
        }
        _ => {}
    }
}

fn check_thinking(thinking: &Thinking, rules: Rules, path: &Path<'_>, found: &mut Violations) {
    match thinking {
        Thinking::Enabled(enabled) => {
            found.check_integer(
                &path.key("budget_tokens"),
                Some(enabled.budget_tokens),
                1024,
                i64::MAX,
            );
        }
        Thinking::Other(_) if !rules.accepts(thinking.kind()) => {
            found.unknown_word(&path.key("type"), thinking.kind(), Thinking::KNOWN);
        }
        _ => {}
    }
    let display = thinking.display().map(ThinkingDisplay::as_str);
    let display = display.filter(|display| !rules.accepts(display));
    found.check_word(&path.key("display"), display, ThinkingDisplay::KNOWN);
}

fn check_output_config(
    config: &OutputConfig,
    rules: Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    let effort = config.effort.as_ref().map(Effort::as_str);
    let effort = effort.filter(|effort| !rules.accepts(effort));
    found.check_word(&path.key("effort"), effort, Effort::KNOWN);
    let path = path.key("format");
    match &config.format {
        Some(OutputFormat::JsonSchema(format)) if !format.schema.is_object() => {
            let path = path.key("schema");
            found.invalid(&path, format!("{path}: Input should be a valid dictionary"));
        }
        Some(format @ OutputFormat::Other(_)) if !rules.accepts(format.kind()) => {
            found.unknown_word(&path.key("type"), format.kind(), OutputFormat::KNOWN);
        }
        _ => {}
    }
}

/// Blocks of the vendor's own tools and services, except the results of its tools.
const CARRIED: [&str; 5] = [
    "search_result",
    "server_tool_use",
    "mcp_tool_use",
    "container_upload",
    "tool_reference",
];
/// The supported media types of images.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
