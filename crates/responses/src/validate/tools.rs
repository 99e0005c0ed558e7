//! Rules for the tools and the choice among them.

use std::collections::HashSet;

use wire::{Path, Violations};

use super::{MAX_NAME, Rules};
use crate::request::{Request, Tool, ToolChoice, ToolChoiceObject, ToolMode};

pub(super) fn check_tools(request: &Request, rules: &Rules, found: &mut Violations) {
    let tools = request.tools.as_deref().unwrap_or_default();
    let list = Path::ROOT.key("tools");
    found.check_length(&list, tools.len(), MAX_TOOLS);
    for (i, tool) in tools.iter().enumerate() {
        let path = list.index(i);
        match tool {
            Tool::Function(tool) => {
                found.check_name(&path.key("name"), &tool.name, MAX_NAME);
                found.check_schema(&path.key("parameters"), tool.parameters.as_ref());
            }
            Tool::Other(_) if rules.accepts(tool.kind()) => {}
            Tool::Other(_) => found.unknown_word(&path.key("type"), tool.kind(), &known_tools()),
        }
    }
    if let Some(choice) = &request.tool_choice {
        check_tool_choice(choice, tools, rules, &Path::ROOT.key("tool_choice"), found);
    }
}

fn check_tool_choice(
    choice: &ToolChoice,
    tools: &[Tool],
    rules: &Rules,
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
        Tool::Function(tool) => Some(tool.name.as_str()),
        Tool::Other(_) => None,
    });
    functions.collect()
}

fn check_choice(
    choice: &ToolChoiceObject,
    offered: &HashSet<&str>,
    rules: &Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    match choice {
        ToolChoiceObject::Function(choice) => {
            if !offered.contains(choice.name.as_str()) && !rules.unknown_types {
                // Wherever the name is nested, clients look for the top-level field.
                found.unknown_function(&Path::ROOT.key("tool_choice"), &choice.name);
            }
        }
        ToolChoiceObject::AllowedTools(choice) => {
            let mode = rules.judged(choice.mode.as_ref().map(ToolMode::as_str));
            found.check_word(&path.key("mode"), mode, &["auto", "required"]);
            let list = path.key("tools");
            for (i, allowed) in choice.tools.iter().enumerate() {
                check_choice(allowed, offered, rules, &list.index(i), found);
            }
        }
        ToolChoiceObject::Other(_) if rules.accepts(choice.kind()) => {}
        ToolChoiceObject::Other(_) => {
            found.unknown_word(&path.key("type"), choice.kind(), ToolChoiceObject::KNOWN);
        }
    }
}

impl Rules {
    /// Returns true if tools of this type are accepted, or choices of them.
    fn accepts(&self, kind: &str) -> bool {
        is_hosted_tool(kind) || self.unknown_types && !kind.is_empty()
    }
}

/// Returns true for hosted tools. Whether one is supported is for the target to decide.
fn is_hosted_tool(kind: &str) -> bool {
    HOSTED_TOOLS.contains(&kind)
        || HOSTED_TOOL_FAMILIES
            .iter()
            .any(|family| kind.starts_with(family))
}

fn known_tools() -> Vec<&'static str> {
    [Tool::KNOWN, &HOSTED_TOOLS, &HOSTED_TOOL_FAMILIES].concat()
}

const MAX_TOOLS: usize = 128;
const HOSTED_TOOLS: [&str; 11] = [
    "custom",
    "file_search",
    "code_interpreter",
    "image_generation",
    "mcp",
    "local_shell",
    "shell",
    "apply_patch",
    "programmatic_tool_calling",
    "namespace",
    "tool_search",
];
/// Prefixes: a version or variant follows the name.
const HOSTED_TOOL_FAMILIES: [&str; 2] = ["web_search", "computer"];
