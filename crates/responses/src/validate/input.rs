//! Rules for the input: its items and the parts of their content.

use std::collections::HashSet;

use wire::{Code, DataUrl, Path, Problem, TextOr, Violations, check_image_url};

use super::Rules;
use crate::request::{
    FilePart, FunctionCallOutput, ImagePart, Item, Message, Part, ReasoningPart, Request, Role,
};

pub(super) fn check_input(
    request: &Request,
    rules: &Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    match &request.input {
        TextOr::Text(_) if rules.string_input => {}
        TextOr::Text(_) => {
            found.add(
                path,
                Problem::Type {
                    expected: "an array of objects".to_owned(),
                    found: "a string",
                },
            );
        }
        TextOr::List(items) if items.is_empty() => found.add(path, Problem::EmptyArray),
        TextOr::List(items) => {
            // Its calls are not known here.
            let is_continued = rules.previous_response && request.previous_response_id.is_some()
                || rules.conversation && request.conversation.is_some()
                || rules.item_references && items.iter().any(is_reference);
            let input = Input {
                rules,
                is_continued,
                is_history: false,
            };
            input.check_items(items, path, found);
        }
    }
}

/// The rules for the items of one request.
#[derive(Clone, Copy)]
struct Input<'a> {
    rules: &'a Rules,
    /// True if the request continues a conversation that the server keeps.
    is_continued: bool,
    /// True for an item that the user's words or the result of a call follow. Its parts come with each
    /// later request, and are no reason to refuse it: a target that cannot take them gets a text.
    is_history: bool,
}

impl Input<'_> {
    fn check_items(&self, items: &[Item], path: &Path<'_>, found: &mut Violations) {
        let mut calls = HashSet::new();
        let last = items.iter().rposition(is_of_user).unwrap_or_default();
        for (i, item) in items.iter().enumerate() {
            let path = path.index(i);
            let of_item = Self {
                is_history: i < last,
                ..*self
            };
            match item {
                Item::Message(message) => of_item.check_message(message, &path, found),
                Item::FunctionCall(_) if self.rules.unknown_types => {}
                Item::FunctionCall(call) => {
                    check_call_id(&call.call_id, &path.key("call_id"), found);
                }
                Item::FunctionCallOutput(output) => {
                    of_item.check_output(output, &calls, &path, found);
                }
                Item::Reasoning(reasoning) => {
                    self.check_summary(&reasoning.summary, &path.key("summary"), found);
                }
                Item::CustomToolCall(_) | Item::CustomToolCallOutput(_) => {}
                Item::ItemReference(_) => self.check_reference(&path, found),
                Item::Other(_) if is_reference(item) => self.check_reference(&path, found),
                Item::Other(_) => self.check_other(item.kind(), &path, found),
            }
            calls.extend(call_id(item));
        }
    }

    fn check_message(&self, message: &Message, path: &Path<'_>, found: &mut Violations) {
        let accepted: &[&str] = match message.role {
            Role::User => &[
                "input_text",
                "input_image",
                "input_file",
                "input_audio",
                "text",
            ],
            Role::System | Role::Developer => {
                let parts = Self {
                    is_history: false,
                    ..*self
                };
                let accepted = ["input_text", "text"];
                return parts.check_parts(&message.content, &accepted, &path.key("content"), found);
            }
            Role::Assistant => &["output_text", "refusal", "text"],
            Role::Other(_) if self.rules.unknown_types => return,
            Role::Other(ref word) => {
                return found.unknown_word(&path.key("role"), word, Role::KNOWN);
            }
        };
        self.check_parts(&message.content, accepted, &path.key("content"), found);
    }

    fn check_output(
        &self,
        output: &FunctionCallOutput,
        calls: &HashSet<&str>,
        path: &Path<'_>,
        found: &mut Violations,
    ) {
        let call_id = path.key("call_id");
        match output.call_id.as_deref() {
            // OpenAI's SDKs have it as optional since openai-python 3.5.0.
            None => {}
            Some(_) if self.rules.unknown_types => {}
            Some(id) if self.is_continued || calls.contains(id) => {}
            Some(id) => {
                let id = wire::truncate_for_error(id);
                let sentence =
                    format!("No tool call found for function call output with call_id {id}.");
                found.invalid(&call_id, sentence);
            }
        }
        let accepted = ["input_text", "input_image", "input_file", "text"];
        self.check_parts(&output.output, &accepted, &path.key("output"), found);
    }

    fn check_summary(&self, summary: &[ReasoningPart], path: &Path<'_>, found: &mut Violations) {
        for (i, part) in summary.iter().enumerate() {
            let is_unknown = matches!(part, ReasoningPart::Other(_)) && self.rules.unknown_types;
            if !matches!(part, ReasoningPart::Summary(_)) && !is_unknown {
                found.unknown_word(&path.index(i).key("type"), part.kind(), &["summary_text"]);
            }
        }
    }

    fn check_other(&self, kind: &str, path: &Path<'_>, found: &mut Violations) {
        match kind {
            "" => found.add(
                path,
                Problem::Type {
                    expected: "an item with a 'type' or a 'role'".to_owned(),
                    found: "an object without them",
                },
            ),
            kind if !is_hosted_item(kind) && !self.rules.unknown_types => {
                found.unknown_word(&path.key("type"), kind, Item::KNOWN);
            }
            _ => {}
        }
    }

    fn check_reference(&self, path: &Path<'_>, found: &mut Violations) {
        if self.rules.item_references {
            return;
        }
        let sentence = format!(
            "{path}: item_reference is not supported because this service keeps no state between requests; \
             send the full item instead (clients: set store to false)."
        );
        found.unsupported(path, Code::UnsupportedItemReference, sentence);
    }

    fn check_parts(
        &self,
        content: &TextOr<Part>,
        accepted: &[&str],
        path: &Path<'_>,
        found: &mut Violations,
    ) {
        for (i, part) in content.parts().iter().enumerate() {
            let path = path.index(i);
            let is_lenient = self.rules.unknown_types || self.is_history;
            let is_left_to_server = is_lenient && !part.kind().is_empty();
            if !accepted.contains(&part.kind()) && !is_left_to_server {
                found.unknown_word(&path.key("type"), part.kind(), accepted);
                continue;
            }
            match part {
                Part::Image(part) => self.check_image(part, &path, found),
                Part::File(part) => self.check_file(part, &path, found),
                _ => {}
            }
        }
    }

    fn check_image(&self, part: &ImagePart, path: &Path<'_>, found: &mut Violations) {
        let url = path.key("image_url");
        match (&part.image_url, &part.file_id) {
            (_, Some(_)) if self.rules.file_ids || self.is_history => {}
            (_, Some(_)) => refuse_file_id(path, "image_url", found),
            (Some(address), None) => check_image_url(&url, address, found),
            (None, None) => found.missing(&url),
        }
        found.check_word(
            &path.key("detail"),
            self.rules.judged(part.detail.as_deref()),
            &["auto", "low", "high", "original"],
        );
    }

    fn check_file(&self, part: &FilePart, path: &Path<'_>, found: &mut Violations) {
        let data = path.key("file_data");
        match (&part.file_data, &part.file_url) {
            _ if part.file_id.is_some() && (self.rules.file_ids || self.is_history) => {}
            _ if part.file_id.is_some() => refuse_file_id(path, "file_data", found),
            (None, None) => found.missing(&data),
            (Some(text), _) if DataUrl::is_meant(text) => {
                if let Err(why) = DataUrl::parse(text).and_then(|url| url.check()) {
                    found.invalid(&data, format!("Invalid Data URL in '{data}': {why}."));
                }
            }
            (None, Some(url)) if !url.starts_with("https://") => {
                found.invalid_url(&path.key("file_url"));
            }
            _ => {}
        }
    }
}

/// Returns true for a message of the user and for the result of a call.
fn is_of_user(item: &Item) -> bool {
    match item {
        Item::Message(message) => message.role == Role::User,
        Item::FunctionCallOutput(_) | Item::CustomToolCallOutput(_) => true,
        other => other.kind().ends_with("_output"),
    }
}

/// Returns true for references to items that the server keeps. Some clients leave the type out.
fn is_reference(item: &Item) -> bool {
    match item {
        Item::ItemReference(_) => true,
        Item::Other(members) => {
            item.kind().is_empty() && members.len() == 2 && members.contains_key("id")
        }
        _ => false,
    }
}

/// Returns the call id of an item. The results of some hosted tools refer to it like the results of
/// functions.
fn call_id(item: &Item) -> Option<&str> {
    match item {
        Item::FunctionCall(call) => Some(&call.call_id),
        Item::Other(members) => members.get("call_id")?.as_str(),
        _ => None,
    }
}

fn check_call_id(id: &str, path: &Path<'_>, found: &mut Violations) {
    if id.is_empty() {
        found.add(path, Problem::EmptyString);
    }
    found.check_text(path, id, MAX_CALL_ID);
}

fn refuse_file_id(path: &Path<'_>, instead: &str, found: &mut Violations) {
    found.unsupported_parameter(&path.key("file_id"), Some(instead));
}

/// Returns true for items of hosted tools. Whether they are supported is for the target to decide.
fn is_hosted_item(kind: &str) -> bool {
    HOSTED_ITEMS.contains(&kind)
        || HOSTED_ITEM_FAMILIES
            .iter()
            .any(|family| kind.starts_with(family))
}

const MAX_CALL_ID: usize = 64;
const HOSTED_ITEMS: [&str; 17] = [
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
    "configuration_update",
    "program",
    "program_output",
];
const HOSTED_ITEM_FAMILIES: [&str; 2] = ["mcp_", "tool_search_"];
