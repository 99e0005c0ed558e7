//! Validates requests beyond the types of their fields.

use std::collections::HashSet;

use wire::{Code, Path, TextOr, Violations, check_image_url};

use crate::request::{
    AssistantMessage, Effort, Message, Part, Request, ResponseFormat, Tool, ToolCall, ToolChoice,
    ToolChoiceObject, ToolMode,
};

/// Model-dependent exceptions to the rules. The default is the strictest set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// True if `n` may be more than 1.
    pub many_choices: bool,
    /// True if audio output may be requested.
    pub audio: bool,
    /// True if a hosted web search may be requested.
    pub web_search: bool,
    /// True if documents may be files that the server keeps. In earlier messages they may be.
    pub file_ids: bool,
    /// True if unknown types of parts and tools, unknown roles and unknown words of settings are
    /// accepted, because somebody else interprets them. So are known parts in any message, choices
    /// whose function is not in the request, and the members that `tools` has replaced.
    pub unknown_types: bool,
}

impl Rules {
    /// Returns true if this type is accepted although it is unknown.
    fn accepts(self, kind: &str) -> bool {
        self.unknown_types && !kind.is_empty()
    }

    /// Returns a word of a setting if it has to be a known one.
    fn judged(self, word: Option<&str>) -> Option<&str> {
        word.filter(|word| !self.accepts(word))
    }
}

wire::valid! {
    /// A request that satisfies every rule. Only [`Request::validate`] creates it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ValidRequest(Request);
}

impl Request {
    /// Validates the request against every rule.
    ///
    /// # Errors
    /// Returns every violation, each with its path.
    pub fn validate(self, rules: &Rules) -> Result<ValidRequest, Violations> {
        let mut found = Violations::default();
        let root = Path::ROOT;
        found.check_spelling(&root, &self);
        if let Some(options) = &self.stream_options {
            found.check_spelling(&root.key("stream_options"), options);
        }
        found.check_model(&self.model);
        check_messages(&self.messages, *rules, &root.key("messages"), &mut found);
        check_output(&self, rules, &mut found);
        check_sampling(&self, *rules, &mut found);
        check_format(&self, *rules, &mut found);
        check_tools(&self, *rules, &mut found);
        check_unserved(&self, rules, &mut found);
        found.or(ValidRequest(self))
    }
}

fn check_messages(messages: &[Message], rules: Rules, path: &Path<'_>, found: &mut Violations) {
    if messages.is_empty() {
        found.add(path, wire::Problem::EmptyArray);
    }
    let is_of_user = |message: &Message| {
        matches!(
            message,
            Message::User(_) | Message::Tool(_) | Message::Function(_)
        )
    };
    let last = messages.iter().rposition(is_of_user).unwrap_or_default();
    for (i, message) in messages.iter().enumerate() {
        let rules = MessageRules {
            rules,
            is_history: i < last,
        };
        check_message(message, rules, &path.index(i), found);
    }
}

/// The rules for a message.
#[derive(Clone, Copy)]
struct MessageRules {
    rules: Rules,
    /// True for a message that one of the user or a result follows. Its parts come with each later
    /// request, and are no reason to refuse it: a target that cannot take them gets a text.
    is_history: bool,
}

impl MessageRules {
    /// Returns true if this type is accepted although it is unknown.
    fn accepts(self, kind: &str) -> bool {
        self.rules.accepts(kind) || self.is_history && !kind.is_empty()
    }
}

fn check_message(message: &Message, rules: MessageRules, path: &Path<'_>, found: &mut Violations) {
    let content = path.key("content");
    match message {
        Message::System(message) | Message::Developer(message) => {
            let rules = MessageRules {
                is_history: false,
                ..rules
            };
            check_parts(&message.content, &["text"], rules, &content, found);
        }
        Message::User(message) => {
            check_parts(
                &message.content,
                &["text", "image_url", "input_audio", "file"],
                rules,
                &content,
                found,
            );
        }
        // OpenAI takes texts alone, and others pictures and documents as well.
        Message::Tool(message) => {
            let accepted = ["text", "image_url", "file"];
            check_parts(&message.content, &accepted, rules, &content, found);
        }
        Message::Assistant(message) => check_assistant(message, rules, path, found),
        Message::Function(_) => {}
        Message::Other(_) if rules.rules.accepts(message.kind()) => {}
        Message::Other(_) => found.unknown_word(&path.key("role"), message.kind(), Message::KNOWN),
    }
}

fn check_assistant(
    message: &AssistantMessage,
    rules: MessageRules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    match &message.content {
        Some(content) => {
            let accepted = ["text", "refusal"];
            check_parts(content, &accepted, rules, &path.key("content"), found);
        }
        None if calls.is_empty()
            && message.refusal.is_none()
            && message.extra.get("function_call").is_none()
            && !rules.rules.unknown_types =>
        {
            found.missing(&path.key("content"));
        }
        None => {}
    }
    let list = path.key("tool_calls");
    for (i, call) in calls.iter().enumerate() {
        if matches!(call, ToolCall::Other(_)) && !rules.accepts(call.kind()) {
            found.unknown_word(&list.index(i).key("type"), call.kind(), ToolCall::KNOWN);
        }
    }
}

fn check_parts(
    content: &TextOr<Part>,
    accepted: &[&str],
    rules: MessageRules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    for (i, part) in content.parts().iter().enumerate() {
        let path = path.index(i);
        if accepted.contains(&part.kind()) || rules.accepts(part.kind()) {
            check_part(part, rules, &path, found);
        } else {
            found.unknown_word(&path.key("type"), part.kind(), accepted);
        }
    }
}

fn check_part(part: &Part, rules: MessageRules, path: &Path<'_>, found: &mut Violations) {
    match part {
        Part::Image(part) => check_image_url(
            &path.key("image_url").key("url"),
            &part.image_url.url,
            found,
        ),
        Part::File(part)
            if part.file.file_id.is_some() && !rules.rules.file_ids && !rules.is_history =>
        {
            let path = path.key("file");
            found.unsupported_parameter(&path.key("file_id"), Some("file_data"));
        }
        _ => {}
    }
}

fn check_output(request: &Request, rules: &Rules, found: &mut Violations) {
    let root = Path::ROOT;
    found.check_integer(&root.key("max_tokens"), request.max_tokens, 1, i64::MAX);
    found.check_integer(
        &root.key("max_completion_tokens"),
        request.max_completion_tokens,
        1,
        i64::MAX,
    );
    if let (Some(old), Some(new)) = (request.max_tokens, request.max_completion_tokens)
        && old != new
    {
        let sentence =
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        let code = Code::InvalidParameterCombination;
        found.unsupported(&root.key("max_tokens"), code, sentence);
    }
    let path = root.key("n");
    found.check_integer(&path, request.n, 1, 128);
    if let Some(n @ 2..=128) = request.n
        && !rules.many_choices
    {
        found.only_default(&path, &n.to_string(), "1");
    }
    let path = root.key("stop");
    match &request.stop {
        Some(TextOr::List(stops)) if stops.is_empty() => {
            found.add(&path, wire::Problem::EmptyArray);
        }
        Some(TextOr::List(stops)) if !rules.unknown_types => {
            found.check_length(&path, stops.len(), 4);
        }
        _ => {}
    }
}

fn check_sampling(request: &Request, rules: Rules, found: &mut Violations) {
    let root = Path::ROOT;
    found.check_number(&root.key("temperature"), request.temperature, 0.0, 2.0);
    found.check_number(&root.key("top_p"), request.top_p, 0.0, 1.0);
    found.check_number(
        &root.key("presence_penalty"),
        request.presence_penalty,
        -2.0,
        2.0,
    );
    found.check_number(
        &root.key("frequency_penalty"),
        request.frequency_penalty,
        -2.0,
        2.0,
    );
    let path = root.key("top_logprobs");
    found.check_integer(&path, request.top_logprobs, 0, 20);
    if request.top_logprobs.is_some() && request.logprobs != Some(true) {
        let sentence = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.";
        found.invalid(&path, sentence);
    }
    let effort = rules.judged(request.reasoning_effort.as_ref().map(Effort::as_str));
    found.check_word(&root.key("reasoning_effort"), effort, Effort::KNOWN);
}

fn check_format(request: &Request, rules: Rules, found: &mut Violations) {
    let path = Path::ROOT.key("response_format");
    match &request.response_format {
        Some(ResponseFormat::JsonSchema(format)) => {
            let path = path.key("json_schema");
            found.check_name(&path.key("name"), &format.json_schema.name, 64);
            found.check_schema(&path.key("schema"), format.json_schema.schema.as_ref());
        }
        Some(format @ ResponseFormat::Other(_)) if !rules.accepts(format.kind()) => {
            found.unknown_word(&path.key("type"), format.kind(), ResponseFormat::KNOWN);
        }
        _ => {}
    }
}

fn check_tools(request: &Request, rules: Rules, found: &mut Violations) {
    let tools = request.tools.as_deref().unwrap_or_default();
    let list = Path::ROOT.key("tools");
    found.check_length(&list, tools.len(), 128);
    for (i, tool) in tools.iter().enumerate() {
        let path = list.index(i);
        match tool {
            Tool::Function(tool) => {
                let path = path.key("function");
                found.check_name(&path.key("name"), &tool.function.name, 64);
                found.check_schema(&path.key("parameters"), tool.function.parameters.as_ref());
            }
            Tool::Custom(_) => {}
            Tool::Other(_) if rules.accepts(tool.kind()) => {}
            Tool::Other(_) => found.unknown_word(&path.key("type"), tool.kind(), Tool::KNOWN),
        }
    }
    if let Some(choice) = &request.tool_choice {
        check_tool_choice(choice, tools, rules, &Path::ROOT.key("tool_choice"), found);
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
        ToolChoice::Word(ToolMode::Required) if tools.is_empty() => {
            found.choice_without_tools(path);
        }
        ToolChoice::Word(word) => {
            found.check_word(path, rules.judged(Some(word.as_str())), ToolMode::KNOWN);
        }
        ToolChoice::Object(choice) => check_choice(choice, &functions(tools), rules, path, found),
    }
}

fn functions(tools: &[Tool]) -> HashSet<&str> {
    let functions = tools.iter().filter_map(|tool| match tool {
        Tool::Function(tool) => Some(tool.function.name.as_str()),
        _ => None,
    });
    functions.collect()
}

fn check_choice(
    choice: &ToolChoiceObject,
    offered: &HashSet<&str>,
    rules: Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    match choice {
        ToolChoiceObject::Function(choice) => {
            if !offered.contains(choice.function.name.as_str()) && !rules.unknown_types {
                found.unknown_function(path, &choice.function.name);
            }
        }
        ToolChoiceObject::AllowedTools(choice) => {
            let path = path.key("allowed_tools");
            let mode = rules.judged(choice.allowed_tools.mode.as_ref().map(ToolMode::as_str));
            found.check_word(&path.key("mode"), mode, &["auto", "required"]);
            let list = path.key("tools");
            for (i, allowed) in choice.allowed_tools.tools.iter().enumerate() {
                check_choice(allowed, offered, rules, &list.index(i), found);
            }
        }
        ToolChoiceObject::Custom(_) => {}
        ToolChoiceObject::Other(_) if rules.accepts(choice.kind()) => {}
        ToolChoiceObject::Other(_) => {
            found.unknown_word(&path.key("type"), choice.kind(), ToolChoiceObject::KNOWN);
        }
    }
}

fn check_unserved(request: &Request, rules: &Rules, found: &mut Violations) {
    let wants_audio = request
        .modalities
        .as_ref()
        .is_some_and(|list| list.iter().any(|modality| modality == "audio"));
    if wants_audio && !rules.audio {
        found.unsupported_value(&Path::ROOT.key("modalities"), "'audio'");
    }
    if request.audio.is_some() && !rules.audio {
        found.unsupported_parameter(&Path::ROOT.key("audio"), None);
    }
    if request.web_search_options.is_some() && !rules.web_search {
        found.unsupported_parameter(&Path::ROOT.key("web_search_options"), None);
    }
    if request.functions.is_some() && !rules.unknown_types {
        found.unsupported_parameter(&Path::ROOT.key("functions"), Some("tools"));
    }
    if request.function_call.is_some() && !rules.unknown_types {
        found.unsupported_parameter(&Path::ROOT.key("function_call"), Some("tool_choice"));
    }
}
