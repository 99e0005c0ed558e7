//! The schemas of answers that Claude accepts.

use serde_json::{Map, Value};

/// Closes each object of a schema and removes the limits that Claude does not know
/// (<https://docs.claude.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations>).
/// Returns true if the schema changed.
pub(super) fn close(schema: &mut Value) -> bool {
    let members = match schema {
        Value::Array(schemas) => {
            return schemas
                .iter_mut()
                .fold(false, |changed, one| close(one) | changed);
        }
        Value::Object(members) => members,
        _ => return false,
    };
    let mut changed = false;
    for word in UNKNOWN_LIMITS {
        changed |= members.shift_remove(word).is_some();
    }
    let is_object = members.get("type").is_some_and(|kind| kind == "object");
    if is_object || members.contains_key("properties") {
        let before = members.insert("additionalProperties".to_owned(), Value::Bool(false));
        changed |= before != Some(Value::Bool(false));
    }
    for (word, inner) in members {
        changed |= match word.as_str() {
            // The names of these members are not words of JSON Schema.
            "properties" | "$defs" | "definitions" => {
                members_mut(inner).fold(false, |changed, one| close(one) | changed)
            }
            "items" | "anyOf" | "allOf" | "oneOf" => close(inner),
            _ => false,
        };
    }
    changed
}

fn members_mut(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_object_mut().into_iter().flat_map(Map::values_mut)
}

/// The limits that the answers of Claude cannot have.
const UNKNOWN_LIMITS: [&str; 9] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
];
