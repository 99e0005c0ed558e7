//! Requests of clients, and helpers to parse them.

use serde_json::{Value, json};
use sluicegate_translate::inbound::{Chat, ClientProtocol, Inbound, Messages, Responses};
use sluicegate_translate::outbound::encode::{Quirks, Settings};
use vendor::Protocol;
use wire::{ApiError, Violations};

/// Returns a client's request in the neutral form, or `None` if it is not valid.
pub(crate) fn neutral(client: Protocol, body: &[u8]) -> Option<Result<Inbound, ApiError>> {
    Some(match client {
        Protocol::Responses => Responses::request(read_responses(body).ok()?),
        Protocol::Chat => Chat::request(read_chat(body).ok()?),
        Protocol::Messages => Messages::request(read_messages(body).ok()?),
    })
}

pub(crate) fn read_responses(body: &[u8]) -> Result<responses::ValidRequest, Violations> {
    responses::Request::read(body)?.validate(&responses::Rules::default())
}

pub(crate) fn read_chat(body: &[u8]) -> Result<chat::ValidRequest, Violations> {
    chat::Request::read(body)?.validate(&chat::Rules::default())
}

pub(crate) fn read_messages(body: &[u8]) -> Result<messages::ValidRequest, Violations> {
    messages::Request::read(body)?.validate(&messages::Rules::default())
}

/// Returns the protocol with this name in the fixtures.
pub(crate) fn named(name: &str) -> Protocol {
    match name {
        "responses" => Protocol::Responses,
        "chat" => Protocol::Chat,
        _ => Protocol::Messages,
    }
}

/// Returns requests with as many fields as possible.
pub(crate) fn requests(client: Protocol) -> Vec<Value> {
    let fixtures = [
        include_str!("fixtures/translate-responses-to-chat.json"),
        include_str!("fixtures/translate-responses-to-messages.json"),
        include_str!("fixtures/translate-messages-to-chat.json"),
    ];
    let fixtures = fixtures.map(|fixture| serde_json::from_str::<Value>(fixture).unwrap());
    let bodies = fixtures.iter().flat_map(|fixture| {
        [
            (&fixture["from"], &fixture["input"]),
            (&fixture["to"], &fixture["output"]),
        ]
    });
    bodies
        .filter(|(protocol, _)| named(protocol.as_str().unwrap()) == client)
        .map(|(_, body)| body.clone())
        .chain([full(client)])
        .collect()
}

/// Returns a request with all fields of its protocol that every other protocol accepts.
pub(crate) fn full(client: Protocol) -> Value {
    let schema = json!({ "type": "object", "properties": { "b": { "type": "string" }, "a": { "type": "integer" } } });
    match client {
        Protocol::Responses => json!({
            "model": "m", "instructions": "Be brief.", "stream": true, "store": false, "metadata": { "a": "b" },
            "input": [
                { "role": "user", "content": [
                    { "type": "input_text", "text": "Look." },
                    { "type": "input_image", "image_url": "https://pictures.example/a.png", "detail": "original" },
                    { "type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,SGku" },
                ] },
                { "role": "developer", "content": "Look closely." },
                { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "Hm." }] },
                { "type": "message", "role": "assistant", "content": [{ "type": "refusal", "refusal": "No." }] },
                { "type": "function_call", "call_id": "call 1", "name": "f", "arguments": "{\"a\":1}" },
                { "type": "function_call_output", "call_id": "call 1", "output": [
                    { "type": "input_text", "text": "4" },
                ] },
            ],
            "tools": [
                { "type": "function", "name": "f", "description": "F.", "parameters": schema, "strict": true },
                { "type": "web_search" },
            ],
            "tool_choice": { "type": "allowed_tools", "mode": "required", "tools": [
                { "type": "function", "name": "f" },
            ] },
            "parallel_tool_calls": false, "max_output_tokens": 9, "temperature": 1.5, "top_p": 0.5,
            "presence_penalty": 1, "frequency_penalty": 1, "user": "u",
            "text": { "verbosity": "low", "format": { "type": "json_schema", "name": "n", "schema": schema } },
            "reasoning": { "effort": "minimal", "summary": "auto" },
        }),
        Protocol::Chat => json!({
            "model": "m", "stream": true, "stream_options": { "include_usage": true }, "max_tokens": 9,
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": [
                    { "type": "text", "text": "Look." },
                    { "type": "image_url", "image_url": {
                        "url": "data:image/PNG;base64,iVBORw0KGgo=", "detail": "low",
                    } },
                    { "type": "file", "file": {
                        "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg==",
                    } },
                ] },
                { "role": "assistant", "content": "Hm.", "reasoning_content": "Well.", "tool_calls": [
                    { "id": "call.1", "type": "function", "function": { "name": "f", "arguments": "" } },
                ] },
                { "role": "tool", "tool_call_id": "call.1", "content": "4" },
                { "role": "developer", "content": "Shorter." },
            ],
            "tools": [{ "type": "function", "function": { "name": "f" } }], "tool_choice": "required",
            "parallel_tool_calls": false, "temperature": 2, "top_p": 1, "user": "u", "verbosity": "high",
            "response_format": { "type": "json_schema", "json_schema": {
                "name": "n", "schema": schema, "strict": true,
            } },
            "reasoning_effort": "xhigh",
        }),
        Protocol::Messages => json!({
            "model": "m", "max_tokens": 9, "stream": true, "system": [{ "type": "text", "text": "Be brief." }],
            "messages": [
                { "role": "user", "content": [
                    { "type": "image", "source": {
                        "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=",
                    } },
                    { "type": "document", "source": {
                        "type": "base64", "media_type": "application/pdf", "data": "JVBERg==",
                    } },
                ] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "Hm.", "signature": "c2ln" },
                    { "type": "redacted_thinking", "data": "eA==" },
                    { "type": "tool_use", "id": "toolu_1", "name": "f", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": [
                        { "type": "text", "text": "4" },
                    ] },
                    { "type": "text", "text": "So?", "cache_control": { "type": "ephemeral" } },
                ] },
            ],
            "tools": [{ "name": "f", "input_schema": schema }, { "type": "web_search_20250305", "name": "web_search" }],
            "tool_choice": { "type": "any", "disable_parallel_tool_use": true },
            "temperature": 0.5, "top_p": 0.5, "top_k": 5, "metadata": { "user_id": "u" },
            "thinking": { "type": "enabled", "budget_tokens": 4096, "display": "summarized" },
            "output_config": { "effort": "max", "format": { "type": "json_schema", "schema": schema } },
        }),
    }
}

/// The settings in most tests.
pub(crate) const SETTINGS: Settings = Settings {
    stream: false,
    max_tokens: 4096,
    sampling: true,
    sealed: false,
    quirks: Quirks::NONE,
};
