//! Example requests for the OpenAPI document. Each succeeds against a gateway without a configuration.

use serde_json::{Value, json};

pub(super) fn responses() -> Value {
    let input = "What is the capital of France?";
    json!({
        "plain": { "value": { "model": "alt-flash", "input": input, "max_output_tokens": 16 } },
        "streamed": { "value": { "model": "alt-flash", "input": input, "max_output_tokens": 16, "stream": true } },
        "tool": {
            "value": {
                "model": "alt-flash",
                "input": [{ "role": "user", "content": "What is the weather in Oslo?" }],
                "max_output_tokens": 64,
                "tools": [{ "type": "function", "name": "get_weather", "parameters": weather() }],
                "tool_choice": "required",
            },
        },
    })
}

pub(super) fn chat() -> Value {
    let messages = json!([{ "role": "user", "content": "What is the capital of France?" }]);
    json!({
        "plain": { "value": { "model": "alt-flash", "messages": messages, "max_tokens": 16 } },
        "streamed": {
            "value": {
                "model": "alt-flash",
                "messages": messages,
                "max_tokens": 16,
                "stream": true,
                "stream_options": { "include_usage": true },
            },
        },
        "tool": {
            "value": {
                "model": "alt-flash",
                "messages": [{ "role": "user", "content": "What is the weather in Oslo?" }],
                "max_tokens": 64,
                "tools": [{ "type": "function", "function": { "name": "get_weather", "parameters": weather() } }],
                "tool_choice": "required",
            },
        },
    })
}

pub(super) fn messages() -> Value {
    let messages = json!([{ "role": "user", "content": "Say hello." }]);
    json!({
        "plain": { "value": { "model": "msg-sonnet-5", "messages": messages, "max_tokens": 16 } },
        "streamed": { "value": { "model": "msg-sonnet-5", "messages": messages, "max_tokens": 16, "stream": true } },
        "tool": {
            "value": {
                "model": "msg-sonnet-5",
                "messages": [{ "role": "user", "content": "What is the weather in Oslo?" }],
                "max_tokens": 64,
                "tools": [{ "name": "get_weather", "input_schema": weather() }],
                "tool_choice": { "type": "any" },
            },
        },
    })
}

pub(super) fn count_tokens() -> Value {
    let messages = json!([{ "role": "user", "content": "Say hello." }]);
    json!({ "plain": { "value": { "model": "msg-sonnet-5", "messages": messages } } })
}

pub(super) fn image_generations() -> Value {
    let prompt = "A red circle on a white ground";
    json!({
        "plain": { "value": { "model": "model-image-2.5-flare", "prompt": prompt, "size": "64x64" } },
        "streamed": {
            "value": {
                "model": "model-image-2.5-flare",
                "prompt": prompt,
                "size": "64x64",
                "stream": true,
                "partial_images": 1,
            },
        },
    })
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
    json!({ "plain": { "value": edit(false) }, "streamed": { "value": edit(true) } })
}

fn weather() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] })
}

/// A PNG of one black pixel.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";
