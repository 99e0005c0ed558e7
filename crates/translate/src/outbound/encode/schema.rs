//! Properties of JSON Schemas that decide how a tool can be offered.

use std::collections::HashSet;

use serde_json::Value;
use wire::Json;

/// Returns true if OpenAI accepts a schema in strict mode: every object requires all its
/// properties and permits no others
/// (<https://platform.openai.com/docs/guides/function-calling#strict-mode>).
pub(super) fn permits_strict(schema: &Json) -> bool {
    serde_json::from_str(schema.text()).is_ok_and(|schema: Value| is_closed(&schema))
}

fn is_closed(schema: &Value) -> bool {
    match schema {
        Value::Array(schemas) => schemas.iter().all(is_closed),
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
            (!is_object || is_exact) && members.values().all(is_closed)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_closed_schemas_can_be_strict() {
        let city = json!({ "type": "string" });
        let closed = json!({ "type": "object", "properties": { "city": city },
            "required": ["city"], "additionalProperties": false });
        let nested = json!({ "type": "object", "properties": { "at": closed },
            "required": ["at"], "additionalProperties": false });
        let open =
            json!({ "type": "object", "properties": { "city": city }, "required": ["city"] });
        let optional = json!({ "type": "object", "properties": { "city": city },
            "required": [], "additionalProperties": false });
        let inside = json!({ "type": "object", "properties": { "at": open },
            "required": ["at"], "additionalProperties": false });
        for (schema, expected) in [
            (&closed, true),
            (&nested, true),
            (&open, false),
            (&optional, false),
            (&inside, false),
        ] {
            assert_eq!(permits_strict(&schema.into()), expected, "{schema}");
        }
    }
}
