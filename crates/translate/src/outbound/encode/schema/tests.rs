//! Checks which schemas are accepted, and the laws of their repairs.

use boon::{Compiler, Draft, SchemaIndex, Schemas};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

#[test]
fn only_closed_schemas_can_be_strict() {
    let city = json!({ "type": "string" });
    let closed = json!({ "type": "object", "properties": { "city": city },
        "required": ["city"], "additionalProperties": false });
    let nested = json!({ "type": "object", "properties": { "at": closed },
        "required": ["at"], "additionalProperties": false });
    let open = json!({ "type": "object", "properties": { "city": city }, "required": ["city"] });
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

/// Each schema is one property of a closed object:
/// <https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas>
#[test]
fn only_known_words_can_be_strict() {
    let text = json!({ "type": "string" });
    let permits = |schema: &Value| {
        let root = json!({ "type": "object", "properties": { "x": schema }, "required": ["x"],
            "additionalProperties": false, "$defs": { "a": { "type": "string" } } });
        permits_strict(&root.into())
    };
    for schema in [
        json!({ "type": "string", "format": "date-time", "pattern": "a", "description": "d" }),
        json!({ "type": ["integer", "null"], "minimum": 1, "multipleOf": 2 }),
        json!({ "type": "array", "items": text, "minItems": 2 }),
        json!({ "anyOf": [text, { "type": "null" }], "title": "t" }),
        json!({ "type": "string", "enum": ["a"] }),
        json!({ "$ref": "#/$defs/a" }),
    ] {
        assert!(permits(&schema), "{schema}");
    }
    for schema in [
        json!({}),
        json!(true),
        json!({ "description": "anything" }),
        json!({ "enum": ["a"] }),
        json!({ "type": "string", "default": "a" }),
        json!({ "type": "string", "format": "uri" }),
        json!({ "type": "string", "not": { "const": "x" } }),
        json!({ "type": "array" }),
        json!({ "type": "array", "items": text, "uniqueItems": true }),
        json!({ "type": "array", "items": {} }),
        json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false,
            "propertyNames": text }),
        json!({ "type": ["object", "null"] }),
        json!({ "oneOf": [text] }),
        json!({ "allOf": [text] }),
        json!({ "anyOf": [text, { "allOf": [text] }] }),
        // "$ref cannot have keywords {'description'}"
        json!({ "$ref": "#/$defs/a", "description": "d" }),
    ] {
        assert!(!permits(&schema), "{schema}");
    }
    // "Root objects must not be anyOf and must be an object."
    for root in [
        text.clone(),
        json!({ "anyOf": [text] }),
        json!({ "type": "object", "anyOf": [text], "additionalProperties": false }),
    ] {
        assert!(!permits_strict(&(&root).into()), "{root}");
    }
}

/// Each case is a schema of a client, what vendors accept in its place, and whether a constraint is
/// lost.
#[test]
fn malformed_schemas_are_repaired() {
    for (schema, expected, is_lossy) in [
        // "array schema missing items": https://github.com/sigoden/aichat/issues/1049
        (
            json!({ "type": "array" }),
            json!({ "type": "array", "items": {} }),
            false,
        ),
        (
            json!({ "anyOf": [{ "not": { "type": ["array", "null"] } }] }),
            json!({ "anyOf": [{ "not": { "type": ["array", "null"], "items": {} } }] }),
            false,
        ),
        // https://json-schema.org/draft/2020-12/release-notes#changes-to-items-and-additionalitems
        (
            json!({ "items": [{ "type": "array" }, true], "additionalItems": false }),
            json!({ "items": false, "prefixItems": [{ "type": "array", "items": {} }, true] }),
            false,
        ),
        (
            json!({ "type": "array", "items": [] }),
            json!({ "type": "array", "items": {} }),
            false,
        ),
        // https://json-schema.org/draft-06/json-schema-release-notes
        (
            json!({ "minimum": 0.5, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false }),
            json!({ "exclusiveMinimum": 0.5, "maximum": 9 }),
            false,
        ),
        (json!({ "exclusiveMaximum": true }), json!({}), false),
        (json!({ "exclusiveMaximum": "9" }), json!({}), true),
        // "None is not of type 'array'": https://github.com/yomorun/yomo/issues/860
        (
            json!({ "properties": null, "required": null, "default": null, "const": null }),
            json!({ "default": null, "const": null }),
            false,
        ),
        (
            json!({ "properties": { "null": null, "x": { "type": null, "enum": null } } }),
            json!({ "properties": { "null": {}, "x": {} } }),
            false,
        ),
        (
            json!({ "$defs": { "a": { "enum": [] } }, "anyOf": [] }),
            json!({ "$defs": { "a": {} } }),
            true,
        ),
        (json!({ "required": false }), json!({}), false),
        (
            json!({ "properties": { "x": { "required": true } } }),
            json!({ "properties": { "x": {} } }),
            true,
        ),
        (
            json!({ "required": ["a", null] }),
            json!({ "required": ["a"] }),
            true,
        ),
        // PHP's empty object.
        (json!({ "properties": [] }), json!({}), false),
        (
            json!({ "properties": { "x": "string" } }),
            json!({ "properties": { "x": {} } }),
            true,
        ),
        // Gemini's types: https://ai.google.dev/api/caching#Type
        (
            json!({ "type": ["ARRAY", null] }),
            json!({ "type": ["array", "null"], "items": {} }),
            false,
        ),
        (json!({ "type": "any" }), json!({}), true),
        // A value that matched no entry would match every entry.
        (
            json!({ "not": { "enum": [] }, "title": "t" }),
            json!({ "title": "t" }),
            true,
        ),
        (
            json!({ "if": { "type": "int" }, "then": { "minimum": 1 }, "else": false }),
            json!({}),
            true,
        ),
        (
            json!({ "oneOf": [{ "type": "str" }, { "type": "null" }] }),
            json!({ "anyOf": [{}, { "type": "null" }] }),
            true,
        ),
    ] {
        let mut dropped = DroppedFields::default();
        let sent = tidy::tidied(Json::from(&schema), &mut dropped);
        assert_eq!(sent.value(), expected, "{schema}");
        assert_eq!(dropped.0 == [DroppedField::Schema], is_lossy, "{schema}");
        assert!(sound::is_sound(sent.text()), "{sent:?}");
    }
}

proptest! {
    /// A repaired schema has no word without a value, and all its arrays have items.
    #[test]
    fn repaired_schemas_are_well_formed(schema in schemas()) {
        let sent = repaired(&schema);
        assert_well_formed(&sent);
        prop_assert_eq!(repaired(&sent), sent);
    }

    /// A schema without faults is sent byte for byte.
    #[test]
    fn well_formed_schemas_stay_the_same_bytes(schema in schemas()) {
        let spaced = serde_json::to_string_pretty(&repaired(&schema)).unwrap();
        let json: Json = serde_json::from_str(&spaced).unwrap();
        let mut dropped = DroppedFields::default();
        let sent = tidy::tidied(json.clone(), &mut dropped);
        prop_assert_eq!(sent.text(), json.text());
        prop_assert_eq!(dropped.0, vec![]);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The repaired schema accepts each value that the client's schema accepts.
    #[test]
    fn repaired_schemas_accept_no_less(schema in schemas_of(old_leaves()), values in vec(values(), 8)) {
        let Some(original) = Validator::of_older_draft(&schema) else {
            return Ok(());
        };
        let mut dropped = DroppedFields::default();
        let sent = tidy::tidied(Json::from(&schema), &mut dropped).value();
        let own = Validator::new(&sent, Draft::V2020_12).unwrap();
        for value in values {
            let (before, now) = (original.accepts(&value), own.accepts(&value));
            prop_assert!(now || !before, "{} no longer accepts {}: {}", schema, value, sent);
            let is_named = !dropped.0.is_empty();
            prop_assert!(is_named || before == now, "{} also accepts {}: {}", schema, value, sent);
        }
    }
}

struct Validator(Schemas, SchemaIndex);

impl Validator {
    /// Reads a schema by the newest draft before 2020-12 that knows its words.
    fn of_older_draft(schema: &Value) -> Option<Self> {
        let of_draft_4 = || {
            let has_condition = schema.to_string().contains("\"if\"");
            let read = || Self::new(schema, Draft::V4);
            (!has_condition).then(read).flatten()
        };
        Self::new(schema, Draft::V2019_09).or_else(of_draft_4)
    }

    fn new(schema: &Value, draft: Draft) -> Option<Self> {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.set_default_draft(draft);
        compiler.add_resource("schema.json", schema.clone()).ok()?;
        let index = compiler.compile("schema.json", &mut schemas).ok()?;
        Some(Self(schemas, index))
    }

    fn accepts(&self, value: &Value) -> bool {
        self.0.validate(value, self.1).is_ok()
    }
}

fn repaired(schema: &Value) -> Value {
    tidy::tidied(Json::from(schema), &mut DroppedFields::default()).value()
}

fn assert_well_formed(schema: &Value) {
    let Some(members) = schema.as_object() else {
        assert!(schema.is_boolean(), "{schema}");
        return;
    };
    for (word, inner) in members {
        match word.as_str() {
            "default" => {}
            "properties" => inner
                .as_object()
                .unwrap()
                .values()
                .for_each(assert_well_formed),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let schemas = inner.as_array().unwrap();
                assert!(!schemas.is_empty(), "{schema}");
                schemas.iter().for_each(assert_well_formed);
            }
            "items" | "additionalProperties" | "not" | "if" | "then" | "else" => {
                assert_well_formed(inner);
            }
            _ => assert!(!inner.is_null() && *inner != true, "{schema}"),
        }
    }
    let kind = &members.get("type").cloned().unwrap_or_default();
    let kinds = kind
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![kind.clone()]);
    let is_array = kinds.iter().any(|kind| kind == "array");
    assert!(!is_array || members.contains_key("items"), "{schema}");
}

/// Schemas of the older drafts, with and without faults.
fn schemas() -> impl Strategy<Value = Value> {
    let mut leaves = old_leaves();
    leaves.extend([
        json!({ "type": null }),
        json!({ "required": true, "enum": null }),
        json!({ "properties": null }),
        json!({ "properties": [] }),
        json!({ "type": "any", "anyOf": [] }),
    ]);
    schemas_of(leaves)
}

/// Schemas that are valid in some draft.
fn old_leaves() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "type": "string" }),
        json!({ "type": "array" }),
        json!({ "type": ["array", "null"], "default": null }),
        json!({ "enum": ["a", 1] }),
        // Often, as the only repair of a valid schema that loses something.
        json!({ "enum": [] }),
        json!({ "enum": [] }),
        json!({ "enum": [] }),
        json!({ "minimum": 1, "exclusiveMinimum": true }),
        json!({ "maximum": 1, "exclusiveMaximum": false }),
        json!({ "exclusiveMinimum": 1 }),
        json!({ "type": "object", "required": ["a"] }),
        json!({ "items": [] }),
    ]
}

fn schemas_of(leaves: Vec<Value>) -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(leaves);
    let schema = leaf.prop_recursive(3, 12, 2, |inner| {
        let word = prop::sample::select(vec!["items", "not", "not", "additionalProperties"]);
        let list = prop::sample::select(vec!["items", "anyOf", "oneOf", "allOf"]);
        let property = prop::sample::select(vec!["a", "b"]);
        prop_oneof![
            (word, inner.clone()).prop_map(|(word, one)| json!({ word: one })),
            (list, vec(inner.clone(), 1..3)).prop_map(|(word, list)| json!({ word: list })),
            (property, inner.clone())
                .prop_map(|(name, one)| json!({ "properties": { name: one } })),
            (vec(inner.clone(), 1..3), inner.clone())
                .prop_map(|(list, rest)| json!({ "items": list, "additionalItems": rest })),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| json!({ "if": a, "then": b, "else": c })),
        ]
    });
    // Several words in one schema.
    vec(schema, 1..3).prop_map(|schemas| {
        let members = schemas.into_iter().flat_map(|one| match one {
            Value::Object(members) => members,
            _ => Map::new(),
        });
        Value::Object(members.collect())
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![json!(null), json!("a"), json!(0), json!(1), json!(2)]);
    leaf.prop_recursive(2, 8, 2, |inner| {
        let name = prop::sample::select(vec!["a", "b"]);
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((name, inner), 0..3).prop_map(|members| members.into_iter().collect()),
        ]
    })
}
