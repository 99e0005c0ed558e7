//! Strategies for property tests: any JSON, and documents with something changed. Pictures.

#![allow(
    clippy::unwrap_used,
    reason = "test helpers panic at the point of failure"
)]

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use serde_json::{Value, json};

/// A PNG of one pixel, as base64.
pub const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DQAA/QD8+ApPNQAAAABJRU5ErkJggg==";

/// A PNG as base64 of this many letters, a multiple of four, with zeros behind its header. Only its
/// beginning and its end belong to a valid picture.
pub fn png(letters: usize) -> String {
    let (head, rest) = PNG.split_at(44);
    format!("{head}{}{rest}", "A".repeat(letters - PNG.len()))
}

/// Any small JSON value.
pub fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| json!(f64::from(n) / 4.0)),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((word(), inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// One of `documents` with up to four changes: a value is replaced, removed, put under another
/// name, or an object becomes an array of its members' values.
pub fn changed(documents: Vec<Value>) -> impl Strategy<Value = Value> {
    let change = (any::<prop::sample::Index>(), 0..4_u8, json_value(), word());
    (prop::sample::select(documents), vec(change, 0..4)).prop_map(|(mut document, changes)| {
        for (at, how, value, name) in changes {
            let places = count(&document);
            change_place(&mut document, &mut at.index(places), how, &value, &name);
        }
        document
    })
}

/// The JSON documents in `folder` whose file names contain `part`, in the order of their names.
pub fn documents(folder: &str, part: &str) -> Vec<Value> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.contains(part) && name.ends_with(".json")
    });
    paths.sort();
    paths
        .iter()
        .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
        .collect()
}

/// `value` without its null members, wherever they are.
pub fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members
                .values_mut()
                .for_each(|member| *member = without_nulls(member.take()));
        }
        Value::Array(entries) => entries
            .iter_mut()
            .for_each(|entry| *entry = without_nulls(entry.take())),
        _ => {}
    }
    value
}

/// Words that have a meaning in the protocols, and some that have none.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "type", "role", "content", "text", "function", "user", "auto", "message", "id", "input"
        ])
        .prop_map(str::to_owned),
        "[a-z\u{e9}\u{1f600}\"\\\\ ]{0,6}",
    ]
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(entries) => entries.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Walks to the value with the number `left` and changes it.
fn change_place(value: &mut Value, left: &mut usize, how: u8, new: &Value, name: &str) {
    match value {
        Value::Array(entries) => entries
            .iter_mut()
            .for_each(|entry| enter(entry, left, how, new, name)),
        Value::Object(members) if *left > 0 && *left <= members.len() && matches!(how, 1 | 2) => {
            let key = members.keys().nth(*left - 1).cloned().unwrap_or_default();
            let old = members.shift_remove(&key);
            if let (2, Some(old)) = (how, old) {
                members.insert(name.to_owned(), old);
            }
            *left = usize::MAX;
        }
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| enter(member, left, how, new, name)),
        _ => {}
    }
}

fn enter(value: &mut Value, left: &mut usize, how: u8, new: &Value, name: &str) {
    match *left {
        usize::MAX => {}
        0 => {
            *value = match value {
                Value::Object(members) if how == 3 => members.values().cloned().collect(),
                _ => new.clone(),
            };
            *left = usize::MAX;
        }
        _ => {
            *left -= 1;
            change_place(value, left, how, new, name);
        }
    }
}
