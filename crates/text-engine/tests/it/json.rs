//! JSON output.

use engine::{EngineError, Format, Stop, TextEngine, TextRequest};
use serde_json::{Value, json};

use super::{ENGINE, run, single_turn};

fn schema_of(schema: Value, strict: Option<bool>) -> Format {
    Format::JsonSchema {
        name: Some("answer".to_owned()),
        description: None,
        schema: schema.into(),
        strict,
    }
}

fn with(format: Format, question: &str) -> TextRequest {
    TextRequest {
        format,
        max_output_tokens: Some(512),
        ..single_turn(question)
    }
}

#[tokio::test]
async fn a_json_object_is_one() {
    let output = run(with(
        Format::JsonObject,
        "Describe a cat with name and age.",
    ))
    .await
    .unwrap();
    assert_eq!(output.stop, Some(Stop::End), "{output:?}");
    assert!(
        serde_json::from_str::<Value>(&output.text)
            .unwrap()
            .is_object(),
        "{output:?}"
    );
}

#[tokio::test]
async fn json_of_a_schema_fits_it() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "age": { "type": "integer", "minimum": 0, "maximum": 120 },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["calm", "wild"] }, "maxItems": 2 },
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": false,
    });
    let output = run(with(
        schema_of(schema, Some(true)),
        "Describe Tom, a cat of 3 years.",
    ))
    .await
    .unwrap();
    assert_eq!(output.stop, Some(Stop::End), "{output:?}");
    let value: Value = serde_json::from_str(&output.text).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 3);
    assert!(value["name"].as_str().unwrap().chars().count() <= 200);
    assert!(value["age"].as_u64().unwrap() <= 120);
    let tags = value["tags"].as_array().unwrap();
    assert!(
        tags.len() <= 2 && tags.iter().all(|tag| tag == "calm" || tag == "wild"),
        "{value}"
    );
}

#[tokio::test]
async fn json_that_the_cap_cuts_is_not_finished() {
    let request = TextRequest {
        max_output_tokens: Some(4),
        ..with(Format::JsonObject, "Describe a cat.")
    };
    let output = run(request).await.unwrap();
    assert_eq!(
        (output.stop, output.usage.output),
        (Some(Stop::MaxTokens), 4)
    );
}

#[tokio::test]
async fn a_schema_that_nothing_fits_is_refused() {
    let schema = json!({ "type": "string", "minLength": 3, "maxLength": 1 });
    let refused = ENGINE
        .start(with(schema_of(schema, Some(true)), "Say something."))
        .await
        .err()
        .unwrap();
    let EngineError::Unsupported { reason, .. } = refused else {
        panic!("{refused:?}")
    };
    assert!(
        reason.starts_with("The JSON schema of the answer cannot be followed: "),
        "{reason}"
    );
}

/// The deepest and widest accepted schemas are followed or refused, and one value more is refused.
#[tokio::test]
async fn j12_oversized_schemas_are_rejected() {
    for (name, shape) in SHAPES {
        let count = async |of: usize| {
            ENGINE
                .count_tokens(with(schema_of(shape(of), Some(true)), "Hi."))
                .await
        };
        let largest = (1..2000)
            .rev()
            .find(|of| values(&shape(*of)) <= 2000)
            .unwrap();
        let request = TextRequest {
            max_output_tokens: Some(8),
            ..with(schema_of(shape(largest), Some(true)), "Hi.")
        };
        match run(request).await {
            Ok(_) | Err(EngineError::Unsupported { .. }) => {}
            Err(other) => panic!("{name}: {other:?}"),
        }
        for of in [largest + 1, 20_000] {
            let refused = count(of).await.unwrap_err();
            let EngineError::Unsupported { reason, .. } = refused else {
                panic!("{name}: {refused:?}")
            };
            assert!(
                reason.ends_with(" values, and at most 2000 are accepted."),
                "{name}: {reason}"
            );
        }
    }
}

fn values(schema: &Value) -> usize {
    1 + match schema {
        Value::Object(members) => members.values().map(values).sum(),
        Value::Array(entries) => entries.iter().map(values).sum(),
        _ => 0,
    }
}

/// Builds a schema of a given size.
type Shape = fn(usize) -> Value;

const SHAPES: [(&str, Shape); 7] = [
    ("references in a row", |of| {
        let mut definitions: serde_json::Map<_, _> = (0..of)
            .map(|at| {
                (
                    format!("d{at}"),
                    json!({ "$ref": format!("#/$defs/d{}", at + 1) }),
                )
            })
            .collect();
        definitions.insert(format!("d{of}"), json!({ "type": "object" }));
        json!({ "$ref": "#/$defs/d0", "$defs": definitions })
    }),
    ("references in a circle", |of| {
        let definitions: serde_json::Map<_, _> = (0..of)
            .map(|at| {
                (
                    format!("d{at}"),
                    json!({ "$ref": format!("#/$defs/d{}", (at + 1) % of) }),
                )
            })
            .collect();
        json!({ "$ref": "#/$defs/d0", "$defs": definitions })
    }),
    (
        "members",
        |of| json!({ "type": "object", "properties": members(of) }),
    ),
    ("members that must be", |of| {
        let known = members(of);
        let required: Vec<_> = known.keys().cloned().collect();
        json!({ "type": "object", "properties": known, "required": required })
    }),
    ("alternatives", |of| {
        let one = |at| json!({ "properties": { format!("p{at}"): { "type": "integer" } } });
        json!({ "anyOf": (0..of).map(one).collect::<Vec<_>>() })
    }),
    ("parts", |of| {
        let one = |at| json!({ "properties": { format!("p{at}"): { "type": "integer" } } });
        json!({ "allOf": (0..of).map(one).collect::<Vec<_>>() })
    }),
    (
        "words",
        |of| json!({ "enum": (0..of).map(|at| format!("word {at}")).collect::<Vec<_>>() }),
    ),
];

fn members(of: usize) -> serde_json::Map<String, Value> {
    (0..of).map(|at| (format!("p{at}"), true.into())).collect()
}

/// Combined schemas are not closed with `additionalProperties: false` where nothing would match
/// them any more.
#[tokio::test]
async fn schemas_that_are_combined_are_followed() {
    let base = json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] });
    let inherits = json!({
        "$defs": { "Base": base },
        "allOf": [
            { "$ref": "#/$defs/Base" },
            { "type": "object", "properties": { "age": { "type": "integer" } }, "required": ["age"] },
        ],
    });
    let chooses = json!({
        "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"],
        "anyOf": [
            { "properties": { "age": { "type": "integer" } }, "required": ["age"] },
            { "properties": { "size": { "type": "integer" } }, "required": ["size"] },
        ],
    });
    for schema in [inherits, chooses] {
        let output = run(with(
            schema_of(schema, Some(true)),
            "Describe Tom, a cat of 3 years.",
        ))
        .await
        .unwrap();
        let compact = output.text.replace(' ', "");
        assert!(
            compact.starts_with("{\"id\":") || compact.starts_with("{\"age\":"),
            "{output:?}"
        );
        if output.stop == Some(Stop::End) {
            let value: Value = serde_json::from_str(&output.text).unwrap();
            assert!(
                value["id"].is_i64() && (value["age"].is_i64() || value["size"].is_i64()),
                "{value}"
            );
        }
    }
}

/// A value that matches two alternatives does not match `oneOf`. A schema whose alternatives
/// overlap is refused.
#[tokio::test]
async fn alternatives_that_overlap_are_not_separated_by_narrowing() {
    let overlapping = json!({ "oneOf": [
        { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] },
        { "type": "object", "properties": { "b": { "type": "integer" } } },
    ] });
    let refused = ENGINE
        .start(with(schema_of(overlapping, Some(true)), "Say something."))
        .await
        .err()
        .unwrap();
    assert!(
        matches!(refused, EngineError::Unsupported { .. }),
        "{refused:?}"
    );
}
