//! The root of the schema of a tool, which has to be a plain object.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use wire::{Json, Splice};

use super::super::{DroppedField, DroppedFields};

/// Returns the schema of an object with its type and properties, and without `forbidden` words.
///
/// OpenAI refuses an "object schema missing properties", and Claude an `input_schema` without a
/// type; both refuse alternatives at the root
/// (<https://platform.openai.com/docs/guides/function-calling>,
/// <https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use>). Alternatives
/// become one object that permits the properties of each.
pub(super) fn completed(schema: Json, forbidden: &[&str], dropped: &mut DroppedFields) -> Json {
    let mut splice = Splice::new(schema.text().as_bytes());
    let words = splice.names();
    let has = |word: &str| words.iter().any(|own| own == word);
    if forbidden.iter().copied().any(has) {
        dropped.add(DroppedField::Schema);
        let mut value = schema.value();
        if let Some(members) = value.as_object_mut() {
            members.retain(|word, _| !forbidden.contains(&word.as_str()) || is_alternative(word));
        }
        return Json::from(&without_alternatives(value));
    }
    if has("properties") && splice.has_value(&["type"], OBJECT.as_bytes()) {
        return schema;
    }
    splice.replace(&["type"], OBJECT.as_bytes());
    splice.add_missing(&[], &[("type", OBJECT), ("properties", "{}")]);
    let completed = serde_json::from_slice(&splice.to_vec());
    // Only an object gets members. `true` and `null` are schemas that say nothing.
    let completed = completed.ok().filter(Json::is_object);
    completed.unwrap_or_else(super::empty)
}

/// Merges the alternatives at the root of a schema into one object. It requires what `allOf` does,
/// and what all alternatives of `anyOf` and `oneOf` do.
fn without_alternatives(mut schema: Value) -> Value {
    let root = schema.clone();
    let Some(members) = schema.as_object_mut() else {
        return schema;
    };
    let mut properties = members_of(members.remove("properties"));
    let own_names: HashSet<String> = properties.keys().cloned().collect();
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
                add_property(&mut properties, &own_names, word, name, property);
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

/// Adds a property of a branch. Another branch may have one of the same name: either of them is
/// accepted, or for `allOf` the first. A property of the root applies to each branch.
fn add_property(
    properties: &mut Map<String, Value>,
    own: &HashSet<String>,
    word: &str,
    name: String,
    property: Value,
) {
    let Some(first) = properties.get_mut(&name) else {
        properties.insert(name, property);
        return;
    };
    if own.contains(&name) || word == "allOf" || *first == property {
        return;
    }
    let is_list = first.as_object().is_some_and(|members| members.len() == 1);
    let branches = first.get_mut(EITHER).and_then(Value::as_array_mut);
    match branches.filter(|_| is_list) {
        Some(branches) => branches.push(property),
        None => *first = json!({ EITHER: [first.take(), property] }),
    }
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

fn is_alternative(word: &str) -> bool {
    ALTERNATIVES.contains(&word)
}

/// The keyword of JSON Schema for alternatives: a value matches at least one of them.
const EITHER: &str = "anyOf";
/// The type of a tool's arguments.
const OBJECT: &str = "\"object\"";
/// The words that Claude refuses at the root: those for several schemas.
pub(super) const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];
/// The words that OpenAI refuses at the root: "schema must have type 'object' and not have
/// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
pub(super) const FORBIDDEN: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];
