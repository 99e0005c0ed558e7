//! Example requests for the OpenAPI document. Each succeeds against a gateway without a
//! configuration.

use serde_json::{Value, json};

pub(super) fn responses() -> Value {
    let plain = json!({ "model": "alt-flash", "input": "What is the capital of France?", "max_output_tokens": 16 });
    let tool = json!({
        "model": "alt-flash",
        "input": [{ "role": "user", "content": "What is the weather in Oslo?" }],
        "max_output_tokens": 64,
        "tools": [{ "type": "function", "name": "get_weather", "parameters": weather() }],
        "tool_choice": "required",
    });
    named([
        ("plain", plain.clone()),
        ("streamed", streamed(plain)),
        ("tool", tool),
    ])
}

pub(super) fn chat() -> Value {
    let messages = json!([{ "role": "user", "content": "What is the capital of France?" }]);
    let plain = json!({ "model": "alt-flash", "messages": messages, "max_tokens": 16 });
    let mut with_usage = streamed(plain.clone());
    with_usage["stream_options"] = json!({ "include_usage": true });
    let tool = json!({
        "model": "alt-flash",
        "messages": [{ "role": "user", "content": "What is the weather in Oslo?" }],
        "max_tokens": 64,
        "tools": [{ "type": "function", "function": { "name": "get_weather", "parameters": weather() } }],
        "tool_choice": "required",
    });
    named([("plain", plain), ("streamed", with_usage), ("tool", tool)])
}

pub(super) fn messages() -> Value {
    let messages = json!([{ "role": "user", "content": "Say hello." }]);
    let plain = json!({ "model": "msg-sonnet-5", "messages": messages, "max_tokens": 16 });
    let tool = json!({
        "model": "msg-sonnet-5",
        "messages": [{ "role": "user", "content": "What is the weather in Oslo?" }],
        "max_tokens": 64,
        "tools": [{ "name": "get_weather", "input_schema": weather() }],
        "tool_choice": { "type": "any" },
    });
    named([
        ("plain", plain.clone()),
        ("streamed", streamed(plain)),
        ("tool", tool),
    ])
}

pub(super) fn count_tokens() -> Value {
    let messages = json!([{ "role": "user", "content": "Say hello." }]);
    named([(
        "plain",
        json!({ "model": "msg-sonnet-5", "messages": messages }),
    )])
}

pub(super) fn input_tokens() -> Value {
    named([(
        "plain",
        json!({ "model": "alt-flash", "input": "What is the capital of France?" }),
    )])
}

pub(super) fn image_generations() -> Value {
    let prompt = "A red circle on a white ground";
    let plain = json!({ "model": "model-image-2.5-flare", "prompt": prompt, "size": "64x64" });
    let mut with_preview = streamed(plain.clone());
    with_preview["partial_images"] = 1.into();
    named([("plain", plain), ("streamed", with_preview)])
}

pub(super) fn image_edits() -> Value {
    let edit = |stream| {
        json!({
            "model": "model-image-2.5-flare",
            "prompt": "Make it blue",
            "images": [{ "image_url": PIXEL }],
            "size": "64x64",
            "stream": stream,
        })
    };
    named([("plain", edit(false)), ("streamed", edit(true))])
}

fn named<const N: usize>(examples: [(&str, Value); N]) -> Value {
    examples
        .into_iter()
        .map(|(name, example)| (name, json!({ "value": example })))
        .collect()
}

fn streamed(mut request: Value) -> Value {
    request["stream"] = true.into();
    request
}

fn weather() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] })
}

/// A PNG of one black pixel.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";
