//! The schemas of answers that Claude accepts.

use serde_json::{Map, Value};

use super::tidy::{SCHEMAS_BY_NAME, is_of_type};

/// Makes the schema of an answer one that Claude accepts: its objects permit no other members, it
/// has a type, and some limits are not known
/// (<https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations>).
/// Returns true if it changed.
pub(super) fn close(schema: &mut Value) -> bool {
    let mut changed = close_one(schema);
    if let Some(members) = schema.as_object_mut()
        && members.contains_key("properties")
        && !members.contains_key("type")
    {
        members.insert("type".to_owned(), "object".into());
        changed = true;
    }
    changed
}

/// Closes each object of a schema and removes the limits that Claude does not know.
fn close_one(schema: &mut Value) -> bool {
    let members = match schema {
        Value::Array(schemas) => return close_each(schemas.iter_mut()),
        Value::Object(members) => members,
        _ => return false,
    };
    let mut changed = false;
    members.retain(|word, limit| {
        let is_kept = is_known(word, limit);
        changed |= !is_kept;
        is_kept
    });
    if let Some(branches) = members.shift_remove("oneOf") {
        // https://github.com/BerriAI/litellm/pull/34313
        members.entry("anyOf").or_insert(branches);
        changed = true;
    }
    if is_of_type(members, "object") || members.contains_key("properties") {
        let before = members.insert("additionalProperties".to_owned(), Value::Bool(false));
        changed |= before != Some(Value::Bool(false));
    }
    changed | close_inner(members)
}

fn close_inner(members: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    for (word, inner) in members {
        changed |= match word.as_str() {
            // The names of these members are not words of JSON Schema.
            word if SCHEMAS_BY_NAME.contains(&word) => {
                close_each(inner.as_object_mut().into_iter().flat_map(Map::values_mut))
            }
            "items" | "anyOf" | "allOf" => close_one(inner),
            _ => false,
        };
    }
    changed
}

fn close_each<'a>(schemas: impl Iterator<Item = &'a mut Value>) -> bool {
    schemas.fold(false, |changed, one| close_one(one) | changed)
}

/// Returns true if Claude knows a word of a schema, with this value.
fn is_known(word: &str, value: &Value) -> bool {
    match word {
        // "For 'array' type, 'minItems' values other than 0 or 1 are not supported", Claude:
        // https://github.com/ghostlobster/memorize-everything/issues/93
        "minItems" => value.as_u64().is_some_and(|least| least <= 1),
        "format" => value.as_str().is_some_and(|name| FORMATS.contains(&name)),
        word => !UNKNOWN_WORDS.contains(&word),
    }
}

/// The words that the answers of Claude cannot have. Its SDK moves them into the description.
const UNKNOWN_WORDS: [&str; 25] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "dependentRequired",
    "dependentSchemas",
    "not",
    "if",
    "then",
    "else",
];
/// The formats of texts that Claude knows.
const FORMATS: [&str; 10] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];
