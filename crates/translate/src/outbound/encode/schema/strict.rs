//! The schemas that OpenAI accepts in strict mode.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::tidy::{TYPES, is_of_type};

/// Returns true if OpenAI accepts a schema in strict mode: its root is an object without
/// alternatives, every object requires all its properties and permits no others, every schema has a
/// type, and there are only words that are known
/// (<https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas>).
pub(super) fn permits(schema: &Value) -> bool {
    let has_plain_root = schema.as_object().is_some_and(|members| {
        members.get("type").is_some_and(|kind| kind == "object") && !members.contains_key("anyOf")
    });
    has_plain_root && is_strict(schema)
}

fn is_strict(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else {
        return false;
    };
    if members.contains_key("$ref") {
        // "$ref cannot have keywords {'description'}", OpenAI.
        return members.len() == 1;
    }
    is_typed(members)
        && has_known_format(members)
        && is_exact(members)
        && (!is_of_type(members, "array") || members.contains_key("items"))
        && members
            .iter()
            .all(|(word, inner)| is_permitted(word, inner))
}

/// Returns true if a schema states its type: "schema must have a 'type' key", OpenAI.
fn is_typed(members: &Map<String, Value>) -> bool {
    let is_known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match members.get("type") {
        Some(Value::Array(names)) => !names.is_empty() && names.iter().all(is_known),
        Some(name) => is_known(name),
        None => members.contains_key("anyOf"),
    }
}

fn has_known_format(members: &Map<String, Value>) -> bool {
    let is_known = |format: &Value| format.as_str().is_some_and(|name| FORMATS.contains(&name));
    members.get("format").is_none_or(is_known)
}

/// Returns true if a schema is not about objects, or if the object requires all its properties and
/// permits no others.
fn is_exact(members: &Map<String, Value>) -> bool {
    let properties = members.get("properties").and_then(Value::as_object);
    if properties.is_none() && !is_of_type(members, "object") {
        return true;
    }
    let required = members.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let required: HashSet<_> = required.collect();
    let is_required = |name: &String| required.contains(name.as_str());
    members.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.is_none_or(|properties| properties.keys().all(is_required))
}

/// Returns true if a word of a schema is known, with strict schemas in it.
fn is_permitted(word: &str, inner: &Value) -> bool {
    match word {
        "properties" | "$defs" | "definitions" => inner
            .as_object()
            .is_some_and(|schemas| schemas.values().all(is_strict)),
        "anyOf" => inner
            .as_array()
            .is_some_and(|schemas| schemas.iter().all(is_strict)),
        "items" => is_strict(inner),
        "additionalProperties" => *inner == false,
        word => WORDS.contains(&word),
    }
}

/// The words of strict schemas that contain no schema. The guide has the lengths of texts only
/// among what fine-tuned models do not know, so that the others know them.
const WORDS: [&str; 18] = [
    "$schema",
    "title",
    "description",
    "type",
    "required",
    "enum",
    "const",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];
/// The formats of texts in strict schemas.
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];
