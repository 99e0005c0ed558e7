//! The facts of models, as the list states them.

use serde_json::{Value, json};
use sluicegate_catalog::{Catalog, Facts, Family, Model, Protocol};

/// Returns the entry of a model with these facts.
fn entry(facts: Value) -> Value {
    let mut model = Model::new("m", Family::Text, [Protocol::Chat]);
    model.facts = serde_json::from_value(facts).unwrap();
    let catalog = Catalog::new(vec![model]).unwrap();
    serde_json::to_value(
        catalog
            .retrieve("m", Protocol::Responses, |_| true)
            .unwrap(),
    )
    .unwrap()
}

fn supported(is: bool) -> Value {
    json!({"supported": is})
}

/// All members of `ModelCapabilities` in Anthropic's SDK 2.14.0, which requires them.
#[test]
fn capabilities_are_whole() {
    let facts = json!({
        "input_modalities": ["text", "image", "file"],
        "capabilities": [
            "tools", "structured_outputs", "thinking", "adaptive_thinking", "effort_low",
            "effort_medium", "effort_high", "citations", "web_search", "compaction"
        ]
    });
    let (yes, no) = (supported(true), supported(false));
    assert_eq!(
        entry(facts)["capabilities"],
        json!({
            "batch": no,
            "citations": yes,
            "code_execution": no,
            "context_management": {
                "supported": true,
                "clear_thinking_20251015": no,
                "clear_tool_uses_20250919": no,
                "compact_20260112": yes
            },
            "effort": {
                "supported": true, "low": yes, "medium": yes, "high": yes, "xhigh": no, "max": no
            },
            "image_input": yes,
            "pdf_input": yes,
            "server_tools": {"supported": true, "code_execution": no, "web_search": yes},
            "structured_outputs": yes,
            "thinking": {
                "supported": true,
                "types": {"adaptive": yes, "between_tools": no, "disabled": yes, "enabled": yes}
            }
        })
    );
}

/// An SDK reads `capabilities.image_input.supported` without a check, so a part of the object is worse
/// than none.
#[test]
fn capabilities_are_absent_if_the_media_are_unknown() {
    let partial = entry(json!({"capabilities": ["tools"]}));
    assert_eq!(partial.get("capabilities"), None);
    assert_eq!(
        partial["supported_parameters"],
        json!(["tools", "tool_choice"])
    );
    let partial = entry(json!({"input_modalities": ["text", "image"]}));
    assert_eq!(partial.get("capabilities"), None);
    assert_eq!(partial.get("supported_parameters"), None);
    assert_eq!(
        partial["architecture"],
        json!({"input_modalities": ["text", "image"]})
    );
}

/// `disabled` is true for a model that never reasons, and false for one that always does.
#[test]
fn thinking_can_be_disabled_unless_the_model_always_thinks() {
    for (words, reasons, disabled) in [
        (json!([]), false, true),
        (json!(["thinking"]), true, true),
        (json!(["always_thinking", "adaptive_thinking"]), true, false),
    ] {
        let facts = json!({"input_modalities": ["text"], "capabilities": words});
        let thinking = entry(facts)["capabilities"]["thinking"].clone();
        assert_eq!(thinking["supported"], reasons, "{words}");
        assert_eq!(
            thinking["types"]["disabled"]["supported"], disabled,
            "{words}"
        );
    }
}

/// The words of <https://openrouter.ai/docs/api-reference/parameters>, each one once.
#[test]
fn parameters_follow_from_the_capabilities() {
    let facts = json!({"capabilities": [
        "parallel_tool_calls", "structured_outputs", "thinking", "adaptive_thinking", "effort_high",
        "effort_max", "citations"
    ]});
    assert_eq!(
        entry(facts)["supported_parameters"],
        json!([
            "parallel_tool_calls",
            "response_format",
            "structured_outputs",
            "reasoning",
            "reasoning_effort"
        ])
    );
}

/// Anthropic: a model is `active` if no end of it is announced.
#[test]
fn a_model_with_an_end_is_deprecated() {
    let members = |facts| {
        let entry = entry(facts);
        ["lifecycle", "deprecated_at", "retires_at", "shutdown_date"]
            .map(|name| entry[name].clone())
    };
    let day = "2026-10-01T00:00:00Z";
    assert_eq!(
        members(json!({})),
        [json!("active"), Value::Null, Value::Null, Value::Null]
    );
    assert_eq!(
        members(json!({"deprecated_at": day})),
        [json!("deprecated"), json!(day), Value::Null, Value::Null]
    );
    assert_eq!(
        members(json!({"retires_at": "2026-10-01T02:00:00+02:00"})),
        [
            json!("deprecated"),
            Value::Null,
            json!(day),
            json!("2026-10-01")
        ]
    );
}

#[test]
fn facts_are_unknown_until_they_are_given() {
    let all = [
        "max_input_tokens",
        "max_output_tokens",
        "input_modalities",
        "output_modalities",
        "capabilities",
    ];
    assert_eq!(Facts::default().unknown(), all);
    let facts = json!({"max_input_tokens": 1, "capabilities": []});
    let facts: Facts = serde_json::from_value(facts).unwrap();
    assert_eq!(
        facts.unknown(),
        ["max_output_tokens", "input_modalities", "output_modalities"]
    );
}
