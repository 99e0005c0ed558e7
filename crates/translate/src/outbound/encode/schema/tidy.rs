//! Repairs JSON Schemas that vendors refuse as malformed.
//!
//! Both vendors check schemas by the metaschema of draft 2020-12, and one bad schema of a tool
//! refuses the whole request. The schema sent accepts each value that the client's accepts.

use serde_json::{Map, Value, json};
use wire::Json;

use super::super::{DroppedField, DroppedFields};
use super::sound::is_sound;

/// Returns the schema in the form of draft 2020-12, or as it is if it has that form. Constraints
/// that are lost are named.
pub(super) fn tidied(schema: Json, dropped: &mut DroppedFields) -> Json {
    if is_sound(schema.text()) {
        return schema;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(schema.text()) else {
        return schema;
    };
    // Only the caller knows what stands for a root that is no schema.
    if !value.is_object() {
        return schema;
    }
    match tidy(&mut value) {
        Change::None => return schema,
        Change::Exact => {}
        Change::Wider => dropped.add(DroppedField::Schema),
    }
    Json::from(&value)
}

/// How a schema was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    None,
    /// It accepts the same values.
    Exact,
    /// It accepts more values.
    Wider,
}

impl Change {
    /// Adds another change of the same schema.
    pub(super) fn add(&mut self, other: Self) {
        *self = other.max(*self);
    }
}

fn tidy(schema: &mut Value) -> Change {
    match schema {
        Value::Bool(_) => Change::None,
        Value::Object(members) => tidy_members(members),
        // `null` says nothing about the value.
        other => {
            let is_null = other.is_null();
            *other = json!({});
            if is_null {
                Change::Exact
            } else {
                Change::Wider
            }
        }
    }
}

fn tidy_members(members: &mut Map<String, Value>) -> Change {
    let mut change = without_nulls(members);
    change.add(tidy_type(members));
    change.add(tidy_lists(members));
    change.add(number_bound(members, "exclusiveMinimum", "minimum"));
    change.add(number_bound(members, "exclusiveMaximum", "maximum"));
    change.add(tidy_tuple(members));
    change.add(tidy_inner(members));
    if is_of_type(members, "array") && !members.contains_key("items") {
        // "array schema missing items", OpenAI: https://github.com/sigoden/aichat/issues/1049
        members.insert("items".to_owned(), json!({}));
        change.add(Change::Exact);
    }
    change
}

/// Removes the words without a value, as servers in Go write them: "None is not of type 'array'"
/// (<https://github.com/yomorun/yomo/issues/860>, <https://github.com/code-yeongyu/senpi/issues/713>).
fn without_nulls(members: &mut Map<String, Value>) -> Change {
    let before = members.len();
    members.retain(|word, value| !value.is_null() || EXAMPLES.contains(&word.as_str()));
    if members.len() == before {
        Change::None
    } else {
        Change::Exact
    }
}

/// Makes the type one that JSON Schema knows, or removes it.
fn tidy_type(members: &mut Map<String, Value>) -> Change {
    let Some(kind) = members.get_mut("type") else {
        return Change::None;
    };
    let mut change = Change::None;
    let names = match kind {
        Value::Array(names) => names.as_mut_slice(),
        name => std::slice::from_mut(name),
    };
    let mut is_known = !names.is_empty();
    for name in names {
        if name.is_null() {
            // Within a list it is the type of the same name.
            *name = "null".into();
            change = Change::Exact;
        }
        let text = name.as_str().unwrap_or_default();
        if TYPES.contains(&text) {
            continue;
        }
        // Gemini has the same types in capital letters: https://ai.google.dev/api/caching#Type
        let lower = text.to_ascii_lowercase();
        is_known &= TYPES.contains(&lower.as_str());
        *name = lower.into();
        change = Change::Exact;
    }
    if is_known {
        return change;
    }
    members.shift_remove("type");
    Change::Wider
}

/// Removes members that should be lists and are not, and empty lists, which no value could match
/// ("[] should be non-empty", OpenAI).
fn tidy_lists(members: &mut Map<String, Value>) -> Change {
    let mut change = Change::None;
    for word in ["enum", "anyOf", "oneOf", "allOf", "prefixItems"] {
        let is_filled = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        if members.get(word).is_some_and(|list| !is_filled(list)) {
            members.shift_remove(word);
            change = Change::Wider;
        }
    }
    let change_of_names = match members.get_mut("required") {
        None => Change::None,
        Some(Value::Array(names)) => {
            let before = names.len();
            names.retain(Value::is_string);
            if names.len() == before {
                Change::None
            } else {
                Change::Wider
            }
        }
        // Draft 3 says with a boolean whether the object needs the property.
        Some(other) => {
            let is_false = *other == false;
            members.shift_remove("required");
            if is_false {
                Change::Exact
            } else {
                Change::Wider
            }
        }
    };
    change.add(change_of_names);
    change
}

/// Writes an exclusive bound of draft 4 as the number: "True is not of type 'number'", OpenAI.
/// (<https://json-schema.org/draft-06/json-schema-release-notes>)
fn number_bound(members: &mut Map<String, Value>, exclusive: &str, bound: &str) -> Change {
    let is_exclusive = match members.get(exclusive) {
        None | Some(Value::Number(_)) => return Change::None,
        Some(Value::Bool(is_exclusive)) => *is_exclusive,
        Some(_) => {
            members.shift_remove(exclusive);
            return Change::Wider;
        }
    };
    match members.get(bound).filter(|_| is_exclusive).cloned() {
        Some(number @ Value::Number(_)) => {
            members.shift_remove(bound);
            members.insert(exclusive.to_owned(), number);
        }
        _ => {
            members.shift_remove(exclusive);
        }
    }
    Change::Exact
}

/// Writes a list of items of the older drafts in the form of draft 2020-12: "[...] is not of type
/// 'object', 'boolean'", OpenAI (<https://github.com/hyperdxio/hyperdx/issues/2925>,
/// <https://json-schema.org/draft/2020-12/release-notes#changes-to-items-and-additionalitems>).
fn tidy_tuple(members: &mut Map<String, Value>) -> Change {
    let Some(Value::Array(first)) = members.get_mut("items") else {
        return Change::None;
    };
    let first = std::mem::take(first);
    let rest = members.shift_remove("additionalItems");
    members.insert("items".to_owned(), rest.unwrap_or_else(|| json!({})));
    if members.contains_key("prefixItems") {
        return Change::Wider;
    }
    if !first.is_empty() {
        members.insert("prefixItems".to_owned(), Value::Array(first));
    }
    Change::Exact
}

/// Repairs the schemas within a schema.
fn tidy_inner(members: &mut Map<String, Value>) -> Change {
    let mut change = Change::None;
    for word in SCHEMAS_BY_NAME {
        let Some(inner) = members.get_mut(word) else {
            continue;
        };
        if let Value::Object(schemas) = inner {
            schemas.values_mut().for_each(|one| change.add(tidy(one)));
            continue;
        }
        // PHP writes an empty object as an empty list.
        let is_empty = inner.as_array().is_some_and(Vec::is_empty);
        members.shift_remove(word);
        change.add(if is_empty {
            Change::Exact
        } else {
            Change::Wider
        });
    }
    for word in ["anyOf", "allOf", "prefixItems"] {
        let schemas = members.get_mut(word).and_then(Value::as_array_mut);
        let schemas = schemas.into_iter().flatten();
        schemas.for_each(|one| change.add(tidy(one)));
    }
    for word in SCHEMAS {
        if let Some(inner) = members.get_mut(word) {
            change.add(tidy(inner));
        }
    }
    change.add(tidy_negations(members));
    change
}

/// Repairs the schemas whose matches count against a value. If one of them accepts more than
/// before, it would make the schema around it accept less, so that it is removed.
fn tidy_negations(members: &mut Map<String, Value>) -> Change {
    let mut change = Change::None;
    for (word, related) in NEGATIONS {
        let inner = match members.get_mut(word) {
            None => continue,
            Some(inner) => tidy(inner),
        };
        change.add(inner);
        if inner == Change::Wider {
            for word in [word].iter().chain(related) {
                members.shift_remove(*word);
            }
        }
    }
    let branches = members.get_mut("oneOf").and_then(Value::as_array_mut);
    let mut of_branches = Change::None;
    let branches = branches.into_iter().flatten();
    branches.for_each(|one| of_branches.add(tidy(one)));
    if of_branches == Change::Wider
        && let Some(branches) = members.shift_remove("oneOf")
    {
        // A value may now match several of them.
        members.entry("anyOf").or_insert(branches);
    }
    change.add(of_branches);
    change
}

/// Returns true if a schema states that its values are of a type, or may be.
pub(super) fn is_of_type(members: &Map<String, Value>, name: &str) -> bool {
    match members.get("type") {
        Some(Value::Array(names)) => names.iter().any(|one| one == name),
        Some(one) => one == name,
        None => false,
    }
}

/// The types of JSON Schema.
pub(super) const TYPES: [&str; 7] = [
    "string", "object", "array", "number", "integer", "boolean", "null",
];
/// The words with values of any kind.
const EXAMPLES: [&str; 3] = ["const", "default", "example"];
/// The words with schemas by name.
pub(super) const SCHEMAS_BY_NAME: [&str; 5] = [
    "properties",
    "$defs",
    "definitions",
    "patternProperties",
    "dependentSchemas",
];
/// The words with one schema.
pub(super) const SCHEMAS: [&str; 7] = [
    "items",
    "additionalProperties",
    "propertyNames",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// The words with one schema that a value should not match in each case, and the words that depend
/// on them.
const NEGATIONS: [(&str, &[&str]); 3] = [
    ("not", &[]),
    (
        "if",
        &["then", "else", "unevaluatedItems", "unevaluatedProperties"],
    ),
    ("contains", &["minContains", "maxContains"]),
];
