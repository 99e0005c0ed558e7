//! Generates a value that matches a simple JSON Schema.

use serde_json::Value;

/// Generates a value that matches `schema`; null if the schema has no supported keyword.
pub(super) fn fit(schema: &Value) -> Value {
    value(schema, schema, 0)
}

fn value(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(given) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return given.clone();
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        return target.map_or(Value::Null, |target| value(target, root, depth + 1));
    }
    if let Some(choice) = ["anyOf", "oneOf", "allOf"]
        .iter()
        .find_map(|key| schema[*key].get(0))
    {
        return value(choice, root, depth + 1);
    }
    match kind(schema) {
        "object" => {
            let members = schema["properties"].as_object().into_iter().flatten();
            members
                .map(|(name, member)| (name.clone(), value(member, root, depth + 1)))
                .collect()
        }
        "array" => {
            let count = schema["minItems"].as_u64().unwrap_or(1).min(MAX_ITEMS);
            (0..count)
                .map(|_| value(&schema["items"], root, depth + 1))
                .collect()
        }
        "string" => string(schema).into(),
        "integer" => integer(schema).into(),
        "number" => number(schema),
        "boolean" => true.into(),
        _ => Value::Null,
    }
}

/// The first type that is not null, or `object` if the schema only has properties.
fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(kind) => kind,
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or_default(),
        _ if schema["properties"].is_object() => "object",
        _ => "",
    }
}

fn string(schema: &Value) -> String {
    let length = |key: &str| {
        schema[key]
            .as_u64()
            .and_then(|length| usize::try_from(length).ok())
    };
    match schema["format"].as_str() {
        Some("date-time") => return "2026-08-06T07:06:40Z".into(),
        Some("date") => return "2026-08-06".into(),
        Some("time") => return "07:06:40Z".into(),
        Some("email") => return "someone@host.example".into(),
        Some("uri") => return "https://host.example/".into(),
        Some("uuid") => return "3f1d0b52-6c1e-4f0a-9a77-2f4a5d9b1c01".into(),
        _ => {}
    }
    let least = length("minLength").unwrap_or(0).min(MAX_LENGTH);
    let mut text = format!("{:e<least$}", "example");
    text.truncate(length("maxLength").unwrap_or(usize::MAX).max(least));
    text
}

fn integer(schema: &Value) -> i64 {
    let least = schema["minimum"].as_i64().or(schema["exclusiveMinimum"]
        .as_i64()
        .map(|least| least.saturating_add(1)));
    let most = schema["maximum"].as_i64().or(schema["exclusiveMaximum"]
        .as_i64()
        .map(|most| most.saturating_sub(1)));
    1.min(most.unwrap_or(i64::MAX))
        .max(least.unwrap_or(i64::MIN))
}

fn number(schema: &Value) -> Value {
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    if bounds.iter().any(|bound| schema[*bound].is_number()) {
        integer(schema).into()
    } else {
        1.5.into()
    }
}

const MAX_DEPTH: usize = 16;
const MAX_ITEMS: u64 = 64;
const MAX_LENGTH: usize = 4_096;
