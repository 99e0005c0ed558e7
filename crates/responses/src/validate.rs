//! Every rule that a request must keep, beyond the types of its fields (spec §4.2, §7; wire-reference §1.1–1.4).

use std::collections::HashSet;
use std::ops::Deref;

use wire::{Code, DataUrl, Object, Path, Problem, TextOr, Violations, check_image_url};

use crate::request::{
    Effort, FilePart, Format, FunctionCallOutput, ImagePart, Item, Message, Part, ReasoningOptions, ReasoningPart,
    Request, Role, Summary, TextOptions, Tool, ToolChoice, ToolChoiceObject, ToolMode, Truncation, Verbosity,
};

/// What a model bends of the rules. The default is the strictest reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// Whether the input may be a text.
    pub string_input: bool,
}

/// A request that keeps every rule; it comes from [`Request::validate`] alone.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidRequest(Request);

impl ValidRequest {
    /// The request itself.
    #[must_use]
    pub fn into_inner(self) -> Request {
        self.0
    }
}

impl Deref for ValidRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.0
    }
}

impl Request {
    /// Holds the request against every rule.
    ///
    /// # Errors
    /// Every rule that it breaks, with paths.
    pub fn validate(self, rules: &Rules) -> Result<ValidRequest, Violations> {
        let mut found = Violations::default();
        let root = Path::ROOT;
        check_model(&self, &mut found);
        check_input(&self.input, rules, &root.key("input"), &mut found);
        check_numbers(&self, &mut found);
        check_text(self.text.as_ref(), &root.key("text"), &mut found);
        check_reasoning(self.reasoning.as_ref(), &root.key("reasoning"), &mut found);
        check_word(self.truncation.as_ref().map(Truncation::as_str), Truncation::KNOWN, &root.key("truncation"), &mut found);
        check_metadata(self.metadata.as_ref(), &root.key("metadata"), &mut found);
        check_tools(&self, &mut found);
        check_unserved(&self, &mut found);
        found.or(ValidRequest(self))
    }
}

fn check_model(request: &Request, found: &mut Violations) {
    if request.model.is_empty() {
        found
            .invalid(&Path::ROOT.key("model"), "Invalid 'model': expected the id of a model, but got an empty string.");
    }
}

fn check_input(input: &TextOr<Item>, rules: &Rules, path: &Path<'_>, found: &mut Violations) {
    match input {
        TextOr::Text(_) if rules.string_input => {}
        TextOr::Text(_) => found.add(path, Problem::Other(Code::InvalidType, STRING_INPUT.to_owned())),
        TextOr::List(items) if items.is_empty() => found.add(path, Problem::EmptyArray),
        TextOr::List(items) => check_items(items, path, found),
    }
}

fn check_items(items: &[Item], path: &Path<'_>, found: &mut Violations) {
    let mut calls = HashSet::new();
    for (i, item) in items.iter().enumerate() {
        let path = path.index(i);
        match item {
            Item::Message(message) => check_message(message, &path, found),
            Item::FunctionCall(call) => check_call_id(&call.call_id, &path.key("call_id"), found),
            Item::FunctionCallOutput(output) => check_output(output, &calls, &path, found),
            Item::Reasoning(reasoning) => check_summary(&reasoning.summary, &path.key("summary"), found),
            Item::CustomToolCall(_) | Item::CustomToolCallOutput(_) => {}
            Item::ItemReference(_) => refuse_reference(&path, found),
            Item::Other(members) => check_other(item.kind(), members, &path, found),
        }
        calls.extend(call_id(item));
    }
}

/// The id by which a result refers to the item. Some hosted tools are answered like functions.
fn call_id(item: &Item) -> Option<&str> {
    match item {
        Item::FunctionCall(call) => Some(&call.call_id),
        Item::Other(members) => members.get("call_id")?.as_str(),
        _ => None,
    }
}

fn check_message(message: &Message, path: &Path<'_>, found: &mut Violations) {
    let accepted: &[&str] = match message.role {
        Role::User => &["input_text", "input_image", "input_file", "input_audio", "text"],
        Role::System | Role::Developer => &["input_text", "text"],
        Role::Assistant => &["output_text", "refusal", "text"],
        Role::Other(ref word) => return found.unknown_word(&path.key("role"), word, Role::KNOWN),
    };
    check_parts(&message.content, accepted, &path.key("content"), found);
}

fn check_call_id(id: &str, path: &Path<'_>, found: &mut Violations) {
    match id.chars().count() {
        0 => found.invalid(path, format!("Invalid '{path}': expected the id of a call, but got an empty string.")),
        length if length > MAX_CALL_ID => {
            found.add(path, Problem::StringTooLong { maximum: MAX_CALL_ID, found: length });
        }
        _ => {}
    }
}

fn check_output(output: &FunctionCallOutput, calls: &HashSet<&str>, path: &Path<'_>, found: &mut Violations) {
    let call_id = path.key("call_id");
    if !calls.contains(output.call_id.as_str()) {
        found.invalid(&call_id, format!("No tool call found for '{call_id}': send the function_call item before it."));
    }
    let accepted = ["input_text", "input_image", "input_file", "text"];
    check_parts(&output.output, &accepted, &path.key("output"), found);
}

fn check_summary(summary: &[ReasoningPart], path: &Path<'_>, found: &mut Violations) {
    for (i, part) in summary.iter().enumerate() {
        if !matches!(part, ReasoningPart::Summary(_)) {
            found.unknown_word(&path.index(i).key("type"), part.kind(), &["summary_text"]);
        }
    }
}

fn check_other(kind: &str, members: &Object, path: &Path<'_>, found: &mut Violations) {
    match kind {
        "" if members.len() == 2 && members.contains_key("id") => refuse_reference(path, found),
        "" => found.add(
            path,
            Problem::Type { expected: "an item with a 'type' or a 'role'".to_owned(), found: "an object without them" },
        ),
        kind if !is_hosted_item(kind) => found.unknown_word(&path.key("type"), kind, Item::KNOWN),
        _ => {}
    }
}

fn refuse_reference(path: &Path<'_>, found: &mut Violations) {
    let sentence = format!(
        "{path}: item_reference is not supported because this service keeps no state between requests; \
         send the full item instead (clients: set store to false)."
    );
    found.unsupported(path, Code::UnsupportedItemReference, sentence);
}

fn check_parts(content: &TextOr<Part>, accepted: &[&str], path: &Path<'_>, found: &mut Violations) {
    for (i, part) in content.parts().iter().enumerate() {
        let path = path.index(i);
        if !accepted.contains(&part.kind()) {
            found.unknown_word(&path.key("type"), part.kind(), accepted);
            continue;
        }
        match part {
            Part::Image(part) => check_image(part, &path, found),
            Part::File(part) => check_file(part, &path, found),
            _ => {}
        }
    }
}

fn check_image(part: &ImagePart, path: &Path<'_>, found: &mut Violations) {
    let url = path.key("image_url");
    match (&part.image_url, &part.file_id) {
        (_, Some(_)) => refuse_file_id(path, "image_url", found),
        (Some(address), None) => check_image_url(&url, address, found),
        (None, None) => found.missing(&url),
    }
    check_word(part.detail.as_deref(), &["auto", "low", "high", "original"], &path.key("detail"), found);
}

fn check_file(part: &FilePart, path: &Path<'_>, found: &mut Violations) {
    let data = path.key("file_data");
    match (&part.file_data, &part.file_url) {
        _ if part.file_id.is_some() => refuse_file_id(path, "file_data", found),
        (None, None) => found.missing(&data),
        (Some(text), _) if DataUrl::is_meant(text) => {
            if let Err(why) = DataUrl::parse(text).and_then(|url| url.check()) {
                found.invalid(&data, format!("Invalid Data URL in '{data}': {why}."));
            }
        }
        (None, Some(url)) if !url.starts_with("https://") => {
            let path = path.key("file_url");
            found.invalid(&path, format!("Invalid '{path}': expected an https:// URL."));
        }
        _ => {}
    }
}

fn refuse_file_id(path: &Path<'_>, instead: &str, found: &mut Violations) {
    let path = path.key("file_id");
    let sentence = format!("{path} is not supported: no files are stored; send {instead}.");
    found.unsupported(&path, Code::UnsupportedParameter, sentence);
}

fn check_numbers(request: &Request, found: &mut Violations) {
    let root = Path::ROOT;
    found.check_integer(&root.key("max_output_tokens"), request.max_output_tokens, 1, i64::MAX);
    found.check_integer(&root.key("max_tool_calls"), request.max_tool_calls, 1, i64::MAX);
    found.check_integer(&root.key("top_logprobs"), request.top_logprobs, 0, 20);
    found.check_number(&root.key("temperature"), request.temperature, 0.0, 2.0);
    found.check_number(&root.key("top_p"), request.top_p, 0.0, 1.0);
    found.check_number(&root.key("presence_penalty"), request.presence_penalty, -2.0, 2.0);
    found.check_number(&root.key("frequency_penalty"), request.frequency_penalty, -2.0, 2.0);
}

fn check_text(options: Option<&TextOptions>, path: &Path<'_>, found: &mut Violations) {
    let Some(options) = options else { return };
    check_word(options.verbosity.as_ref().map(Verbosity::as_str), Verbosity::KNOWN, &path.key("verbosity"), found);
    let path = path.key("format");
    match &options.format {
        Some(Format::JsonSchema(format)) => {
            found.check_name(&path.key("name"), &format.name, MAX_NAME);
            check_schema(Some(&format.schema), &path.key("schema"), found);
        }
        Some(format @ Format::Other(_)) => found.unknown_word(&path.key("type"), format.kind(), Format::KNOWN),
        _ => {}
    }
}

fn check_reasoning(options: Option<&ReasoningOptions>, path: &Path<'_>, found: &mut Violations) {
    let Some(options) = options else { return };
    check_word(options.effort.as_ref().map(Effort::as_str), Effort::KNOWN, &path.key("effort"), found);
    for (name, summary) in [("summary", &options.summary), ("generate_summary", &options.generate_summary)] {
        check_word(summary.as_ref().map(Summary::as_str), Summary::KNOWN, &path.key(name), found);
    }
}

fn check_word(word: Option<&str>, accepted: &[&str], path: &Path<'_>, found: &mut Violations) {
    if let Some(word) = word.filter(|word| !accepted.contains(word)) {
        found.unknown_word(path, word, accepted);
    }
}

fn check_schema(schema: Option<&wire::Json>, path: &Path<'_>, found: &mut Violations) {
    if schema.is_some_and(|schema| !schema.is_object()) {
        found.invalid(path, format!("Invalid '{path}': expected a JSON Schema object."));
    }
}

fn check_metadata(metadata: Option<&Object>, path: &Path<'_>, found: &mut Violations) {
    let Some(metadata) = metadata else { return };
    found.check_length(path, metadata.len(), MAX_PAIRS);
    for (key, value) in metadata {
        let path = path.key(key);
        let length = key.chars().count();
        if length > MAX_KEY {
            found.add(&path, Problem::StringTooLong { maximum: MAX_KEY, found: length });
        }
        match value.as_str().map(|text| text.chars().count()) {
            None => found.add(&path, Problem::Type { expected: "a string".to_owned(), found: "another value" }),
            Some(length) if length > MAX_VALUE => {
                found.add(&path, Problem::StringTooLong { maximum: MAX_VALUE, found: length });
            }
            Some(_) => {}
        }
    }
}

fn check_tools(request: &Request, found: &mut Violations) {
    let tools = request.tools.as_deref().unwrap_or_default();
    let list = Path::ROOT.key("tools");
    found.check_length(&list, tools.len(), MAX_TOOLS);
    for (i, tool) in tools.iter().enumerate() {
        let path = list.index(i);
        match tool {
            Tool::Function(tool) => {
                found.check_name(&path.key("name"), &tool.name, MAX_NAME);
                check_schema(tool.parameters.as_ref(), &path.key("parameters"), found);
            }
            Tool::Other(_) if is_hosted_tool(tool.kind()) => {}
            Tool::Other(_) => found.unknown_word(&path.key("type"), tool.kind(), &known_tools()),
        }
    }
    if let Some(choice) = &request.tool_choice {
        check_tool_choice(choice, tools, &Path::ROOT.key("tool_choice"), found);
    }
}

fn check_tool_choice(choice: &ToolChoice, tools: &[Tool], path: &Path<'_>, found: &mut Violations) {
    match choice {
        ToolChoice::Word(word) if !word.is_known() => found.unknown_word(path, word.as_str(), ToolMode::KNOWN),
        ToolChoice::Word(ToolMode::Required) if tools.is_empty() => {
            found.invalid(path, "'tool_choice' is 'required', but there are no 'tools'.");
        }
        ToolChoice::Word(_) => {}
        ToolChoice::Object(choice) => check_choice(choice, tools, path, found),
    }
}

fn check_choice(choice: &ToolChoiceObject, tools: &[Tool], path: &Path<'_>, found: &mut Violations) {
    match choice {
        ToolChoiceObject::Function(choice) => {
            let offered = |tool: &Tool| matches!(tool, Tool::Function(tool) if tool.name == choice.name);
            if !tools.iter().any(offered) {
                // Wherever the name is, clients look for the field as a whole.
                found.invalid(&Path::ROOT.key("tool_choice"), "'tool_choice' names a function that is not in 'tools'.");
            }
        }
        ToolChoiceObject::AllowedTools(choice) => {
            check_word(choice.mode.as_ref().map(ToolMode::as_str), &["auto", "required"], &path.key("mode"), found);
            let list = path.key("tools");
            for (i, allowed) in choice.tools.iter().enumerate() {
                check_choice(allowed, tools, &list.index(i), found);
            }
        }
        ToolChoiceObject::Other(_) if is_hosted_tool(choice.kind()) => {}
        ToolChoiceObject::Other(_) => found.unknown_word(&path.key("type"), choice.kind(), ToolChoiceObject::KNOWN),
    }
}

fn check_unserved(request: &Request, found: &mut Violations) {
    let mut refuse = |name: &str, code: Code, advice: &str| {
        found.unsupported(&Path::ROOT.key(name), code, format!("'{name}' is not supported{advice}."));
    };
    if request.previous_response_id.is_some() {
        let advice = ": nothing is kept between requests; send the whole conversation in 'input'";
        refuse("previous_response_id", Code::PreviousResponseNotFound, advice);
    }
    if request.conversation.is_some() {
        let advice = ": nothing is kept between requests; send the whole conversation in 'input'";
        refuse("conversation", Code::UnsupportedParameter, advice);
    }
    if request.prompt.is_some() {
        refuse("prompt", Code::UnsupportedParameter, ": no prompts are stored; send 'instructions' and 'input'");
    }
    if request.background == Some(true) {
        refuse("background", Code::UnsupportedParameter, " as true; leave it out or send false");
    }
}

/// Whether a hosted tool, or its client, makes items of this kind: what is to become of them is the target's to say.
fn is_hosted_item(kind: &str) -> bool {
    HOSTED_ITEMS.contains(&kind) || HOSTED_ITEM_FAMILIES.iter().any(|family| kind.starts_with(family))
}

/// Whether there is a tool of this kind beside functions: whether it is served is the target's to say.
fn is_hosted_tool(kind: &str) -> bool {
    HOSTED_TOOLS.contains(&kind) || HOSTED_TOOL_FAMILIES.iter().any(|family| kind.starts_with(family))
}

fn known_tools() -> Vec<&'static str> {
    [Tool::KNOWN, &HOSTED_TOOLS, &HOSTED_TOOL_FAMILIES].concat()
}

const STRING_INPUT: &str = "Invalid type for 'input': expected an array of objects, but got a string instead. \
                            This model takes no string: send an array.";

const MAX_CALL_ID: usize = 64;
const MAX_NAME: usize = 64;
const MAX_TOOLS: usize = 128;
const MAX_PAIRS: usize = 16;
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 512;

const HOSTED_TOOLS: [&str; 10] = [
    "custom",
    "file_search",
    "code_interpreter",
    "image_generation",
    "mcp",
    "local_shell",
    "shell",
    "apply_patch",
    "namespace",
    "tool_search",
];
/// These carry a version or a variant behind their name.
const HOSTED_TOOL_FAMILIES: [&str; 2] = ["web_search", "computer"];

const HOSTED_ITEMS: [&str; 16] = [
    "compaction",
    "web_search_call",
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "additional_tools",
    "program",
    "program_output",
];
const HOSTED_ITEM_FAMILIES: [&str; 2] = ["mcp_", "tool_search_"];
