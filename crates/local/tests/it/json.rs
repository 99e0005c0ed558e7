//! Answers as JSON.

use engine::{EngineError, Format, Stop, TextEngine, TextRequest};
use serde_json::{Value, json};

use super::{LOCAL, ask, tell};

fn schema_of(schema: Value, strict: Option<bool>) -> Format {
    Format::JsonSchema { name: Some("answer".to_owned()), description: None, schema: schema.into(), strict }
}

fn with(format: Format, question: &str) -> TextRequest {
    TextRequest { format, max_output_tokens: Some(512), ..ask(question) }
}

#[tokio::test]
async fn a_json_object_is_one() {
    let told = tell(with(Format::JsonObject, "Describe a cat with name and age.")).await.unwrap();
    assert_eq!(told.stop, Some(Stop::End), "{told:?}");
    assert!(serde_json::from_str::<Value>(&told.text).unwrap().is_object(), "{told:?}");
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
    let told = tell(with(schema_of(schema, Some(true)), "Describe Tom, a cat of 3 years.")).await.unwrap();
    assert_eq!(told.stop, Some(Stop::End), "{told:?}");
    let value: Value = serde_json::from_str(&told.text).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 3);
    assert!(value["name"].as_str().unwrap().chars().count() <= 200);
    assert!(value["age"].as_u64().unwrap() <= 120);
    let tags = value["tags"].as_array().unwrap();
    assert!(tags.len() <= 2 && tags.iter().all(|tag| tag == "calm" || tag == "wild"), "{value}");
}

#[tokio::test]
async fn json_that_the_cap_cuts_is_not_finished() {
    let request = TextRequest { max_output_tokens: Some(4), ..with(Format::JsonObject, "Describe a cat.") };
    let told = tell(request).await.unwrap();
    assert_eq!((told.stop, told.usage.output), (Some(Stop::MaxTokens), 4));
}

#[tokio::test]
async fn a_schema_that_nothing_fits_is_refused() {
    let schema = json!({ "type": "string", "minLength": 3, "maxLength": 1 });
    let refused = LOCAL.start(with(schema_of(schema, Some(true)), "Say something.")).await.err().unwrap();
    let EngineError::Unsupported { reason, .. } = refused else { panic!("{refused:?}") };
    assert!(reason.starts_with("The JSON schema of the answer cannot be followed: "), "{reason}");
}
