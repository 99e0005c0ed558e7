//! Sample requests in each protocol.

use serde_json::{Value, json};
use sluicegate_simulator::Protocol;

pub(crate) const PROTOCOLS: [Protocol; 4] = [
    Protocol::Responses,
    Protocol::Chat,
    Protocol::Messages,
    Protocol::Images,
];

pub(crate) fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "/v1/responses",
        Protocol::Chat => "/v1/chat/completions",
        Protocol::Messages => "/v1/messages",
        Protocol::Images => "/v1/images/generations",
    }
}

/// The body of a request with this text.
pub(crate) fn sample(protocol: Protocol, model: &str, text: &str, stream: bool) -> Value {
    let mut body = match protocol {
        Protocol::Responses => json!({"input": [{"role": "user", "content": text}]}),
        Protocol::Chat => {
            json!({"messages": [{"role": "user", "content": text}], "stream_options": {"include_usage": true}})
        }
        Protocol::Messages => {
            json!({"messages": [{"role": "user", "content": text}], "max_tokens": 100})
        }
        Protocol::Images => json!({"prompt": text, "size": "64x64", "partial_images": 2}),
    };
    body["model"] = model.into();
    body["stream"] = stream.into();
    body
}

/// Adds this many functions to a request, `get_weather` first.
pub(crate) fn with_tools(protocol: Protocol, mut body: Value, count: usize) -> Value {
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = |name: &&str| match protocol {
        Protocol::Responses => json!({"type": "function", "name": name, "parameters": schema}),
        Protocol::Chat => {
            json!({"type": "function", "function": {"name": name, "parameters": schema}})
        }
        _ => json!({"name": name, "input_schema": schema}),
    };
    body["tools"] = ["get_weather", "get_time"][..count]
        .iter()
        .map(tool)
        .collect();
    body
}

/// Forces a call of `get_weather`.
pub(crate) fn forced(protocol: Protocol, mut body: Value) -> Value {
    body["tool_choice"] = match protocol {
        Protocol::Responses => json!({"type": "function", "name": "get_weather"}),
        Protocol::Chat => json!({"type": "function", "function": {"name": "get_weather"}}),
        _ => json!({"type": "tool", "name": "get_weather"}),
    };
    body
}

/// Enables reasoning.
pub(crate) fn thinking(protocol: Protocol, mut body: Value) -> Value {
    match protocol {
        Protocol::Responses => body["reasoning"] = json!({"effort": "low", "summary": "auto"}),
        Protocol::Chat => body["reasoning_effort"] = "low".into(),
        _ => body["thinking"] = json!({"type": "enabled", "budget_tokens": 1_024}),
    }
    body
}

/// Limits the number of output tokens.
pub(crate) fn capped(protocol: Protocol, mut body: Value, cap: impl Into<Value>) -> Value {
    let name = match protocol {
        Protocol::Responses => "max_output_tokens",
        Protocol::Chat => "max_completion_tokens",
        _ => "max_tokens",
    };
    body[name] = cap.into();
    body
}

/// Requests JSON that matches this schema.
pub(crate) fn shaped(protocol: Protocol, mut body: Value, schema: &Value) -> Value {
    match protocol {
        Protocol::Responses => {
            body["text"] =
                json!({"format": {"type": "json_schema", "name": "x", "schema": schema}});
        }
        Protocol::Chat => {
            body["response_format"] =
                json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        }
        _ => body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}}),
    }
    body
}

/// Adds a call and its result.
pub(crate) fn with_result(protocol: Protocol, mut body: Value, result: &str) -> Value {
    let (list, turns) = match protocol {
        Protocol::Responses => (
            "input",
            json!([
                {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": result},
            ]),
        ),
        Protocol::Chat => (
            "messages",
            json!([
                {"role": "assistant", "content": null, "tool_calls":
                    [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": result},
            ]),
        ),
        _ => (
            "messages",
            json!([
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}]},
            ]),
        ),
    };
    body[list]
        .as_array_mut()
        .unwrap()
        .extend(turns.as_array().unwrap().clone());
    body
}

/// Adds pictures to the user turn: one as base64, one by URL.
pub(crate) fn with_pictures(protocol: Protocol, mut body: Value) -> Value {
    let data = "data:image/png;base64,iVBORw0KGgo=";
    let (list, parts) = match protocol {
        Protocol::Responses => (
            "input",
            json!([{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": data},
                {"type": "input_image", "image_url": "https://host.example/a.png"}]),
        ),
        Protocol::Chat => (
            "messages",
            json!([{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": data}},
                {"type": "image_url", "image_url": {"url": "https://host.example/a.png"}}]),
        ),
        _ => (
            "messages",
            json!([{"type": "text", "text": "Look."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                {"type": "image", "source": {"type": "url", "url": "https://host.example/a.png"}}]),
        ),
    };
    body[list][0]["content"] = parts;
    body
}
