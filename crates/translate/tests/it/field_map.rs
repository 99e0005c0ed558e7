//! Checks the field map against the types of the protocols, the encoders, and its page.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ::field_map::{Disposition, Outline, has_nested_rows, markdown, rows};
use engine::{EngineError, Format, TextRequest};
use proptest::prelude::*;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use sluicegate_translate::outbound::encode;
use vendor::Protocol::{self, Chat, Messages, Responses};
use wire::ApiError;

use crate::clients::{SETTINGS, full, neutral, requests};

fn dropped_fields(
    client: Protocol,
    upstream: Protocol,
    body: &Value,
) -> Result<Vec<String>, ApiError> {
    let document = body.to_string();
    let outline = Outline::read(client, document.as_bytes()).unwrap();
    outline.dropped_fields(upstream)
}

/// The fields of a type, named as in the field map and to the same depth.
struct Fields {
    client: Protocol,
    document: Value,
    found: BTreeSet<String>,
}

impl Fields {
    fn of<T: JsonSchema>(client: Protocol) -> BTreeSet<String> {
        let document = SchemaGenerator::default()
            .into_root_schema_for::<T>()
            .to_value();
        let mut fields = Self {
            client,
            document: document.clone(),
            found: BTreeSet::new(),
        };
        fields.visit(&document, "");
        fields.found
    }

    /// Visits the schema of the value at `field`: its members, entries and alternatives.
    fn visit(&mut self, schema: &Value, field: &str) {
        if let Some(pointer) = schema["$ref"]
            .as_str()
            .and_then(|pointer| pointer.strip_prefix('#'))
        {
            let target = self.document.pointer(pointer).unwrap().clone();
            self.visit(&target, field);
        }
        for branches in ["anyOf", "oneOf", "allOf"].map(|word| &schema[word]) {
            branches
                .as_array()
                .into_iter()
                .flatten()
                .for_each(|branch| self.visit(branch, field));
        }
        if schema["items"].is_object() && has_nested_rows(self.client, field) {
            self.visit(&schema["items"], &format!("{field}[]"));
        }
        if !field.is_empty() && !has_nested_rows(self.client, field) {
            return;
        }
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let dot = if field.is_empty() { "" } else { "." };
            let field = format!("{field}{dot}{name}");
            self.found.insert(field.clone());
            self.visit(member, &field);
        }
    }
}

fn fields(client: Protocol) -> BTreeSet<String> {
    match client {
        Responses => Fields::of::<responses::Request>(client),
        Chat => Fields::of::<chat::Request>(client),
        Messages => Fields::of::<messages::Request>(client),
    }
}

#[test]
fn every_field_of_the_types_is_in_the_ledger() {
    for client in Protocol::ALL {
        let fields = fields(client);
        let known = |field: &str| {
            has_nested_rows(client, field)
                || rows()
                    .iter()
                    .any(|row| (row.client, row.field) == (client, field))
        };
        let missing: Vec<_> = fields.iter().filter(|field| !known(field)).collect();
        assert!(
            fields.len() > 40 && missing.is_empty(),
            "{client:?}: {missing:?}"
        );
    }
}

#[test]
fn every_row_is_about_a_field() {
    for row in rows() {
        let field = row.field.strip_suffix("[]").unwrap_or(row.field);
        assert!(
            fields(row.client).contains(field) || UNTYPED.contains(&field),
            "{:?}: {field}",
            row.client
        );
        assert!(
            row.dispositions.iter().all(
                |(upstream, one)| *upstream != row.client && row.disposition(*upstream) == *one
            )
        );
    }
}

#[test]
fn the_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../field-map/LEDGER.md");
    let (page, kept) = (markdown(), fs::read_to_string(&path).unwrap_or_default());
    if page != kept {
        fs::write(&path, page).unwrap();
        panic!("LEDGER.md was out of date and has been regenerated: review and commit it");
    }
}

#[test]
fn lost_fields_are_reported_by_name() {
    let dropped = |client, upstream| dropped_fields(client, upstream, &full(client)).unwrap();
    assert_eq!(dropped(Responses, Chat), ["tools[]", "reasoning.summary"],);
    assert_eq!(
        dropped(Responses, Messages),
        [
            "input[].content[].detail",
            "tools[].strict",
            "tools[]",
            "presence_penalty",
            "frequency_penalty",
            "text.verbosity",
            "text.format.name",
        ],
    );
    assert_eq!(dropped(Chat, Responses), Vec::<String>::new());
    assert_eq!(
        dropped(Chat, Messages),
        [
            "messages[].content[].image_url.detail",
            "verbosity",
            "response_format.json_schema.name"
        ],
    );
    let dropped = |upstream| dropped_fields(Messages, upstream, &full(Messages)).unwrap();
    let common = ["messages[].content[]", "tools[]", "top_k"];
    assert_eq!(dropped(Responses), common);
    assert_eq!(dropped(Chat), [&common[..], &["thinking.display"]].concat());
    // Re-encoded in its own protocol, a request keeps the fields that have a neutral form.
    assert_eq!(dropped(Messages), ["messages[].content[]", "tools[]"]);
}

#[test]
fn default_values_are_not_reported_as_dropped() {
    let chat = json!({ "n": 1.0, "stop": null, "logprobs": false, "store": false, "presence_penalty": 0, "logit_bias": {} });
    let responses = json!({ "background": false, "truncation": "disabled", "include": [], "top_logprobs": 0, "text": null });
    let messages = json!({ "stop_sequences": [], "mcp_servers": [], "tools": [{ "name": "f", "input_schema": {} }] });
    for (client, body) in [(Chat, chat), (Responses, responses), (Messages, messages)] {
        for upstream in Protocol::ALL {
            assert_eq!(
                dropped_fields(client, upstream, &body),
                Ok(Vec::new()),
                "{client:?} {upstream:?}"
            );
        }
    }
}

#[test]
fn unknown_fields_are_reported_as_dropped() {
    let body = json!({ "new": 1, "nothing": null, "not a name": 1, "text": { "new": 1 }, "metadata": { "a": "b" } });
    assert_eq!(
        dropped_fields(Responses, Chat, &body).unwrap(),
        ["new", "text.new"]
    );
    let odd =
        json!({ "text.format": { "type": "json_object" }, "tools[]": {}, "": 1, "b\r\nc": 1 });
    assert_eq!(dropped_fields(Responses, Messages, &odd), Ok(Vec::new()));
    let many: serde_json::Map<_, _> = (0..1000).map(|i| (format!("a{i}"), json!(i))).collect();
    assert_eq!(
        dropped_fields(Chat, Messages, &many.into()).unwrap().len(),
        16
    );
}

/// A refused field: the client's and the upstream's protocol, the value, the path, and true if it
/// has a neutral form.
type Refusal = (Protocol, Protocol, Value, &'static str, bool);

fn refusals() -> Vec<Refusal> {
    let url = "https://documents.example/a.pdf";
    let file = json!([{ "role": "user", "content": [{ "type": "input_file", "file_url": url }] }]);
    let schema = json!({ "type": "json_schema", "json_schema": { "name": "n" } });
    vec![
        (
            Chat,
            Messages,
            json!({ "response_format": { "type": "json_object" } }),
            "response_format.type",
            true,
        ),
        (
            Chat,
            Messages,
            json!({ "response_format": schema }),
            "response_format.json_schema",
            true,
        ),
        (
            Responses,
            Messages,
            json!({ "text": { "format": { "type": "json_object" } } }),
            "text.format.type",
            true,
        ),
        (
            Responses,
            Chat,
            json!({ "input": file }),
            "input[0].content[0].file_url",
            true,
        ),
        (
            Responses,
            Chat,
            json!({ "tools": [{ "type": "mcp" }], "tool_choice": { "type": "mcp" } }),
            "tool_choice.type",
            true,
        ),
        (
            Chat,
            Messages,
            json!({ "logprobs": true }),
            "logprobs",
            false,
        ),
        (
            Responses,
            Messages,
            json!({ "top_logprobs": 2 }),
            "top_logprobs",
            false,
        ),
        (
            Responses,
            Messages,
            json!({ "include": ["message.output_text.logprobs"] }),
            "include[0]",
            false,
        ),
    ]
}

fn with(client: Protocol, fields: &Value) -> Value {
    let mut body = json!({ "model": "m" });
    let user = json!([{ "role": "user", "content": "Hi." }]);
    body[if client == Responses {
        "input"
    } else {
        "messages"
    }] = user;
    body["max_tokens"] = if client == Messages {
        json!(9)
    } else {
        Value::Null
    };
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn fields_rejected_by_the_map_are_not_encoded() {
    for (client, upstream, fields, param, is_neutral) in refusals() {
        let body = with(client, &fields);
        let error = dropped_fields(client, upstream, &body).unwrap_err();
        assert_eq!(
            (error.kind.status(), error.code, error.param.as_deref()),
            (400, "unsupported_value", Some(param))
        );
        let inbound = neutral(client, body.to_string().as_bytes()).unwrap();
        let encoded = inbound.map(|inbound| encode::request(upstream, &inbound.request, &SETTINGS));
        assert_eq!(!matches!(encoded, Ok(Ok(_))), is_neutral, "{body}");
    }
    let n = json!({ "n": 2 });
    assert_eq!(
        dropped_fields(Chat, Messages, &n)
            .unwrap_err()
            .param
            .as_deref(),
        Some("n")
    );
}

/// Returns true if the upstream's protocol cannot represent a value of the request.
fn is_unsupported(upstream: Protocol, request: &TextRequest) -> bool {
    match upstream {
        Messages => request.format == Format::JsonObject,
        Responses | Chat => false,
    }
}

proptest! {
    #[test]
    fn unsupported_values_are_rejected_by_map_and_encoder(
        (client, body) in prop::sample::select(Protocol::ALL.to_vec())
            .prop_flat_map(|client| (Just(client), strategies::changed(requests(client)))),
    ) {
        let Some(Ok(inbound)) = neutral(client, body.to_string().as_bytes()) else { return Ok(()) };
        for upstream in Protocol::ALL.into_iter().filter(|upstream| *upstream != client) {
            let dropped = dropped_fields(client, upstream, &body);
            let encoded = encode::request(upstream, &inbound.request, &SETTINGS);
            if is_unsupported(upstream, &inbound.request) {
                prop_assert!(dropped.is_err(), "{} {:?}", body, upstream);
                prop_assert!(matches!(encoded, Err(EngineError::Unsupported { .. })), "{} {:?}", body, upstream);
            }
        }
    }

    #[test]
    fn a_document_with_rare_forms_is_read_alike(
        (client, body) in prop::sample::select(Protocol::ALL.to_vec())
            .prop_flat_map(|client| (Just(client), strategies::changed(requests(client)))),
    ) {
        let document = body.to_string();
        let Some(members) = document.strip_suffix('}') else { return Ok(()) };
        // A reader of frequent forms does not take exponents.
        let comma = if members == "{" { "" } else { "," };
        let rare = format!(r#"{members}{comma}"zz":1e2}}"#);
        for upstream in Protocol::ALL {
            let dropped = |text: &str| Outline::read(client, text.as_bytes()).unwrap().dropped_fields(upstream);
            let with_more = dropped(&document).map(|mut dropped| {
                dropped.push("zz".to_owned());
                dropped
            });
            prop_assert_eq!(dropped(&rare), with_more);
        }
    }

    #[test]
    fn the_ledger_takes_any_document(
        body in strategies::json_value(),
        client in prop::sample::select(Protocol::ALL.to_vec()),
    ) {
        let own = dropped_fields(client, client, &body).unwrap_or_default();
        for upstream in Protocol::ALL {
            let Ok(dropped) = dropped_fields(client, upstream, &body) else { continue };
            prop_assert!(own.iter().all(|name| dropped.contains(name)), "{:?} is not all of {:?}", dropped, own);
        }
    }
}

#[test]
fn the_ledger_holds_each_fate() {
    let has = |matches: fn(Disposition) -> bool| {
        rows()
            .iter()
            .any(|row| row.dispositions.iter().any(|(_, one)| matches(*one)))
    };
    assert!(
        has(|one| matches!(one, Disposition::Mapped(_)))
            && has(|one| one == Disposition::Dropped)
            && has(|one| one == Disposition::Refused)
    );
}

/// Documented fields that the types do not declare.
const UNTYPED: [&str; 48] = [
    "messages[].cache_control",
    "reasoning",
    "top_k",
    "access_programs",
    "cache_control",
    "chat_template_kwargs",
    "client_metadata",
    "container",
    "context_management",
    "diagnostics",
    "enable_thinking",
    "image",
    "inference_geo",
    "input[].action",
    "input[].content[].annotations",
    "input[].content[].logprobs",
    "input[].content[].prompt_cache_breakpoint",
    "input[].execution",
    "input[].extra_content",
    "input[].namespace",
    "input[].operation",
    "input[].tools",
    "logit_bias",
    "mcp_servers",
    "messages[].content[].cache_control",
    "messages[].content[].caller",
    "messages[].content[].citations",
    "messages[].content[].prompt_cache_breakpoint",
    "messages[].function_call",
    "messages[].name",
    "messages[].reasoning_details",
    "metadata",
    "moderation",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "speed",
    "store",
    "stream_options.include_obfuscation",
    "thinking",
    "tools[].cache_control",
    "tools[].execution",
    "tools[].format",
    "tools[].tools",
    "verbosity",
];
