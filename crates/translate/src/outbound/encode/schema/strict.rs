//! The schemas that OpenAI accepts in strict mode.

use std::collections::HashSet;

use serde_json::Value;

/// Returns true if OpenAI accepts a schema in strict mode: every object requires all its
/// properties and permits no others
/// (<https://platform.openai.com/docs/guides/function-calling#strict-mode>).
pub(super) fn permits(schema: &Value) -> bool {
    match schema {
        Value::Array(schemas) => schemas.iter().all(permits),
        Value::Object(members) => {
            let properties = members.get("properties").and_then(Value::as_object);
            let required = members.get("required").and_then(Value::as_array);
            let required = required.into_iter().flatten().filter_map(Value::as_str);
            let required: HashSet<_> = required.collect();
            let is_required = |name: &String| required.contains(name.as_str());
            let is_object =
                properties.is_some() || members.get("type").is_some_and(|kind| kind == "object");
            let is_exact = members.get("additionalProperties") == Some(&Value::Bool(false))
                && properties.is_none_or(|properties| properties.keys().all(is_required));
            (!is_object || is_exact) && members.values().all(permits)
        }
        _ => true,
    }
}
