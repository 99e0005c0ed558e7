//! Calls of tools of other kinds, in the history of a conversation.

use engine::{ToolCall, ToolResult, UserPart};
use serde_json::Value;
use wire::Object;

use super::tools::SEARCH;

/// A call of a tool of another kind, or its result.
pub(super) enum OtherCall {
    Call(ToolCall),
    Result(ToolResult),
}

/// Converts a call of a tool of another kind that runs at the client, such as a shell, or its
/// result, in the nearest form: the call of a function, and its members. The record of a tool that
/// ran at the vendor has none.
pub(super) fn other_call(kind: &str, members: &Object) -> Option<OtherCall> {
    let id = ["call_id", "id"]
        .into_iter()
        .find_map(|name| members.get(name)?.as_str());
    let rest = || -> Value {
        let of_item = |name: &str| ["type", "id", "call_id", "status"].contains(&name);
        let rest = members.iter().filter(|(name, _)| !of_item(name));
        let rest = rest.map(|(name, value)| (name.clone(), value.clone()));
        Value::Object(rest.collect())
    };
    if let Some(tool) = kind
        .strip_suffix("_call")
        .filter(|tool| CLIENT_TOOLS.contains(tool))
    {
        let arguments = match members.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(arguments) => arguments.to_string(),
            None => rest().to_string(),
        };
        return Some(OtherCall::Call(ToolCall {
            id: id?.to_owned(),
            name: tool.to_owned(),
            arguments,
            seal: None,
        }));
    }
    let tool = kind.strip_suffix("_output")?;
    CLIENT_TOOLS
        .contains(&tool.strip_suffix("_call").unwrap_or(tool))
        .then_some(())?;
    let text = match members.get("output") {
        Some(Value::String(text)) => text.clone(),
        Some(output) => output.to_string(),
        None => rest().to_string(),
    };
    Some(OtherCall::Result(ToolResult {
        call_id: id?.to_owned(),
        content: vec![UserPart::Text(text)],
        is_error: false,
    }))
}

/// The kinds of tools that run at the client.
const CLIENT_TOOLS: [&str; 4] = ["local_shell", "shell", "apply_patch", SEARCH];
