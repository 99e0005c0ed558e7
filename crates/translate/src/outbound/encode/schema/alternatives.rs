//! The schemas with alternatives that Moonshot accepts.

use serde_json::{Map, Value, json};
use wire::Json;

use super::super::{DroppedField, DroppedFields};
use super::tidy::{Change, SCHEMAS, SCHEMAS_BY_NAME};

/// Returns a schema whose alternatives have their types themselves, and no keyword that the schema
/// around them has too, as the validator of Moonshot wants them: "when using anyOf, type should be
/// defined in anyOf items instead of the parent schema"
/// (<https://pkg.go.dev/github.com/moonshotai/walle>).
pub(super) fn typed(schema: &Json, dropped: &mut DroppedFields) -> Json {
    let Ok(mut value) = serde_json::from_str::<Value>(schema.text()) else {
        return schema.clone();
    };
    match type_alternatives(&mut value) {
        Change::None => return schema.clone(),
        Change::Exact => {}
        Change::Wider => dropped.add(DroppedField::Schema),
    }
    Json::from(&value)
}

fn type_alternatives(schema: &mut Value) -> Change {
    let members = match schema {
        Value::Object(members) => members,
        // The items of a tuple, in the older drafts.
        Value::Array(schemas) => return type_each(schemas),
        _ => return Change::None,
    };
    let mut change = isolate_reference(members);
    change.add(move_type(members));
    change.add(move_repeated_keywords(members));
    for keyword in SCHEMAS_BY_NAME {
        let schemas = members.get_mut(keyword).and_then(Value::as_object_mut);
        change.add(type_each(schemas.into_iter().flat_map(Map::values_mut)));
    }
    for keyword in LISTS.iter().chain(&SCHEMAS) {
        let schema = members.get_mut(*keyword);
        change.add(schema.map_or(Change::None, type_alternatives));
    }
    change
}

fn type_each<'a>(schemas: impl IntoIterator<Item = &'a mut Value>) -> Change {
    let mut change = Change::None;
    schemas
        .into_iter()
        .for_each(|one| change.add(type_alternatives(one)));
    change
}

/// Makes a reference that has other keywords beside it the only alternative, since a schema may not
/// have a keyword of the one that it refers to: "conflicting keywords found after $ref expansion".
fn isolate_reference(members: &mut Map<String, Value>) -> Change {
    if members.len() < 2 || members.contains_key("anyOf") {
        return Change::None;
    }
    match members.shift_remove("$ref") {
        None => Change::None,
        Some(reference) => {
            members.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
            Change::Exact
        }
    }
}

/// Moves the type of a schema into its alternatives. A reference has its own.
fn move_type(members: &mut Map<String, Value>) -> Change {
    if ALTERNATIVES
        .iter()
        .all(|keyword| branches(members, keyword).is_empty())
    {
        return Change::None;
    }
    let Some(kind) = members.shift_remove("type") else {
        return Change::None;
    };
    let mut change = Change::Exact;
    for keyword in ALTERNATIVES {
        for branch in branches(members, keyword) {
            match branch.as_object_mut() {
                Some(branch) if !branch.contains_key("$ref") => {
                    branch.entry("type").or_insert_with(|| kind.clone());
                }
                _ => change = Change::Wider,
            }
        }
    }
    change
}

/// Moves the keywords of a schema into its alternatives, if one of these repeats one of them:
/// "conflicting keywords found in anyOf with parent".
fn move_repeated_keywords(members: &mut Map<String, Value>) -> Change {
    let branches = members.get("anyOf").and_then(Value::as_array);
    let branches = branches.into_iter().flatten().filter_map(Value::as_object);
    let is_repeated =
        |keyword: &String| members.contains_key(keyword) && !SHARED.contains(&&**keyword);
    if !branches.flat_map(Map::keys).any(is_repeated) {
        return Change::None;
    }
    let (shared, own): (Map<_, _>, Map<_, _>) = std::mem::take(members)
        .into_iter()
        .partition(|(keyword, _)| SHARED.contains(&keyword.as_str()));
    *members = shared;
    let branches = self::branches(members, "anyOf").iter_mut();
    for branch in branches.filter_map(Value::as_object_mut) {
        if !branch.contains_key("$ref") {
            add_words(branch, &own);
        }
    }
    Change::Wider
}

/// Adds the keywords of the schema around an alternative. Those that both have stay as they are in the
/// alternative, except that it gets more properties.
fn add_words(branch: &mut Map<String, Value>, outer: &Map<String, Value>) {
    for (keyword, value) in outer {
        match (keyword.as_str(), branch.get_mut(keyword), value) {
            (_, None, value) => {
                branch.insert(keyword.clone(), value.clone());
            }
            ("properties", Some(Value::Object(own)), Value::Object(outer)) => {
                for (name, property) in outer {
                    own.entry(name).or_insert_with(|| property.clone());
                }
            }
            ("required", Some(Value::Array(own)), Value::Array(outer)) => {
                let is_new = |name: &&Value| !own.contains(name);
                let new: Vec<_> = outer.iter().filter(is_new).cloned().collect();
                own.extend(new);
            }
            _ => {}
        }
    }
}

fn branches<'a>(members: &'a mut Map<String, Value>, keyword: &str) -> &'a mut [Value] {
    let list = members.get_mut(keyword).and_then(Value::as_array_mut);
    list.map_or(&mut [], Vec::as_mut_slice)
}

/// The keywords with the alternatives of a schema.
const ALTERNATIVES: [&str; 2] = ["anyOf", "oneOf"];
/// The keywords with a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// The keywords that may stay beside the alternatives of a schema, and the keywords of the root.
const SHARED: [&str; 8] = [
    "anyOf",
    "oneOf",
    "description",
    "title",
    "$defs",
    "definitions",
    "$schema",
    "$id",
];
