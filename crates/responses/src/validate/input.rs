//! Rules for the input: its items and the parts of their content.

use std::collections::HashSet;

use wire::{Code, DataUrl, Object, Path, Problem, TextOr, Violations, check_image_url};

use super::Rules;
use crate::request::{
    FilePart, FunctionCallOutput, ImagePart, Item, Message, Part, ReasoningPart, Role,
};

pub(super) fn check_input(
    input: &TextOr<Item>,
    rules: &Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    match input {
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
            Item::Reasoning(reasoning) => {
                check_summary(&reasoning.summary, &path.key("summary"), found);
            }
            Item::CustomToolCall(_) | Item::CustomToolCallOutput(_) => {}
            Item::ItemReference(_) => refuse_reference(&path, found),
            Item::Other(members) => check_other(item.kind(), members, &path, found),
        }
        calls.extend(call_id(item));
    }
}

/// Returns the call id of an item. The results of some hosted tools refer to it just as those of
/// functions do.
fn call_id(item: &Item) -> Option<&str> {
    match item {
        Item::FunctionCall(call) => Some(&call.call_id),
        Item::Other(members) => members.get("call_id")?.as_str(),
        _ => None,
    }
}

fn check_message(message: &Message, path: &Path<'_>, found: &mut Violations) {
    let accepted: &[&str] = match message.role {
        Role::User => &[
            "input_text",
            "input_image",
            "input_file",
            "input_audio",
            "text",
        ],
        Role::System | Role::Developer => &["input_text", "text"],
        Role::Assistant => &["output_text", "refusal", "text"],
        Role::Other(ref word) => return found.unknown_word(&path.key("role"), word, Role::KNOWN),
    };
    check_parts(&message.content, accepted, &path.key("content"), found);
}

fn check_call_id(id: &str, path: &Path<'_>, found: &mut Violations) {
    if id.is_empty() {
        found.invalid(
            path,
            format!("Invalid '{path}': expected the id of a call, but got an empty string."),
        );
    }
    found.check_text(path, id, MAX_CALL_ID);
}

fn check_output(
    output: &FunctionCallOutput,
    calls: &HashSet<&str>,
    path: &Path<'_>,
    found: &mut Violations,
) {
    let call_id = path.key("call_id");
    if !calls.contains(output.call_id.as_str()) {
        found.invalid(
            &call_id,
            format!("No tool call found for '{call_id}': send the function_call item before it."),
        );
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
            Problem::Type {
                expected: "an item with a 'type' or a 'role'".to_owned(),
                found: "an object without them",
            },
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
    found.check_word(
        &path.key("detail"),
        part.detail.as_deref(),
        &["auto", "low", "high", "original"],
    );
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
            found.invalid(
                &path,
                format!("Invalid '{path}': expected an https:// URL."),
            );
        }
        _ => {}
    }
}

fn refuse_file_id(path: &Path<'_>, instead: &str, found: &mut Violations) {
    let path = path.key("file_id");
    let sentence = format!("{path} is not supported: no files are stored; send {instead}.");
    found.unsupported(&path, Code::UnsupportedParameter, sentence);
}

/// Returns true for items of hosted tools. Whether they are supported is for the target to decide.
fn is_hosted_item(kind: &str) -> bool {
    HOSTED_ITEMS.contains(&kind)
        || HOSTED_ITEM_FAMILIES
            .iter()
            .any(|family| kind.starts_with(family))
}

const MAX_CALL_ID: usize = 64;
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
