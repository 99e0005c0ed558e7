//! JSON Schemas of tools and of answers, as the upstreams accept them.

use std::collections::HashSet;

use engine::EngineError;
use serde_json::{Map, Value, json};
use wire::{Json, Splice};

use super::{DroppedField, DroppedFields};

/// Returns the schema of a tool's arguments: an object with its type and properties.
///
/// OpenAI refuses an "object schema missing properties", and Claude an `input_schema` without a
/// type; both refuse alternatives at the root
/// (<https://platform.openai.com/docs/guides/function-calling>,
/// <https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use>). Alternatives
/// become one object that permits the properties of each.
pub(super) fn of_tool(
    tool: &engine::Tool,
    dropped: &mut DroppedFields,
) -> Result<Option<Json>, EngineError> {
    let Some(schema) = &tool.parameters else {
        return Ok(None);
    };
    let schema = super::embed(schema)?;
    let mut splice = Splice::new(schema.text().as_bytes());
    let words = splice.names();
    let has = |word: &str| words.iter().any(|own| own == word);
    if ALTERNATIVES.into_iter().any(has) {
        dropped.add(DroppedField::Schema);
        return Ok(Some(Json::from(&without_alternatives(schema.value()))));
    }
    if has("properties") && splice.has_value(&["type"], OBJECT.as_bytes()) {
        return Ok(Some(schema));
    }
    splice.replace(&["type"], OBJECT.as_bytes());
    splice.add_missing(&[], &[("type", OBJECT), ("properties", "{}")]);
    let completed = serde_json::from_slice(&splice.to_vec());
    // Only an object gets members. `true` and `null` are schemas that say nothing.
    let completed = completed.ok().filter(Json::is_object);
    Ok(Some(completed.unwrap_or_else(empty)))
}

/// The schema of a tool whose arguments are not known.
pub(super) fn empty() -> Json {
    json!({ "type": "object", "properties": {} }).into()
}

/// Returns the schema of an answer as Claude accepts it: its objects permit no other members, and
/// some limits are not known
/// (<https://docs.claude.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations>).
pub(super) fn for_claude_answer(
    schema: &Json,
    dropped: &mut DroppedFields,
) -> Result<Json, EngineError> {
    let schema = super::embed(schema)?;
    let mut value = schema.value();
    if !close(&mut value) {
        return Ok(schema);
    }
    dropped.add(DroppedField::Schema);
    Ok(Json::from(&value))
}

/// Returns `strict` if the schema permits it; else it is named.
pub(super) fn permitted(
    strict: Option<bool>,
    schema: &Json,
    dropped: &mut DroppedFields,
) -> Option<bool> {
    if strict == Some(true) && !permits_strict(schema) {
        dropped.add(DroppedField::Strict);
        return Some(false);
    }
    strict
}

/// Returns true if OpenAI accepts a schema in strict mode: every object requires all its
/// properties and permits no others
/// (<https://platform.openai.com/docs/guides/function-calling#strict-mode>).
pub(super) fn permits_strict(schema: &Json) -> bool {
    serde_json::from_str(schema.text()).is_ok_and(|schema: Value| is_closed(&schema))
}

/// Merges the alternatives at the root of a schema into one object. It requires what `allOf` does,
/// and what all alternatives of `anyOf` and `oneOf` do.
fn without_alternatives(mut schema: Value) -> Value {
    let root = schema.clone();
    let Some(members) = schema.as_object_mut() else {
        return schema;
    };
    let mut properties = members_of(members.remove("properties"));
    let mut required = texts_of(members.get("required"));
    for word in ALTERNATIVES {
        let Some(Value::Array(branches)) = members.remove(word) else {
            continue;
        };
        let branches: Vec<_> = branches
            .iter()
            .map(|branch| resolved(branch, &root))
            .collect();
        let mut required_by_each = None::<Vec<String>>;
        for branch in branches {
            for (name, property) in members_of(branch.get("properties").cloned()) {
                properties.entry(name).or_insert(property);
            }
            let own = texts_of(branch.get("required"));
            required_by_each = Some(match required_by_each {
                None => own,
                Some(before) if word == "allOf" => [before, own].concat(),
                Some(before) => before
                    .into_iter()
                    .filter(|name| own.contains(name))
                    .collect(),
            });
        }
        required.extend(required_by_each.unwrap_or_default());
    }
    let mut known = HashSet::new();
    required.retain(|name| known.insert(name.clone()));
    members.insert("type".to_owned(), json!("object"));
    members.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        members.insert("required".to_owned(), json!(required));
    }
    // A branch with other members would be refused by each of the others.
    members.remove("additionalProperties");
    schema
}

/// Follows a reference to a definition of the same schema.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str();
    let pointer = pointer.and_then(|pointer| pointer.strip_prefix('#'));
    pointer
        .and_then(|pointer| root.pointer(pointer))
        .unwrap_or(schema)
}

fn members_of(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn texts_of(value: Option<&Value>) -> Vec<String> {
    let texts = value.and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Closes each object of a schema and removes the limits that Claude does not know. Returns true if
/// the schema changed.
fn close(schema: &mut Value) -> bool {
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

/// The type of a tool's arguments.
const OBJECT: &str = "\"object\"";
/// The words of JSON Schema for several schemas.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];
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
