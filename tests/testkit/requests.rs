//! The same requests in each protocol.

use serde_json::{Value, json};
use simulator::Protocol;

use crate::client::Request;
use crate::privacy::CLIENT_KEY;

/// A kind of request. Each makes a conforming upstream send another kind of reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// A short text.
    Text,
    /// Calls of two tools at once.
    ParallelTools,
    /// A call of one tool.
    ForcedTool,
    /// A text after the results of tools.
    ToolResults,
    /// A text about pictures.
    Images,
    /// A text after reasoning.
    Reasoning,
    /// JSON of a schema.
    Schema,
    /// A text that a limit cuts.
    Cap,
    /// A refusal.
    Refusal,
}

impl Question {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Text,
        Self::ParallelTools,
        Self::ForcedTool,
        Self::ToolResults,
        Self::Images,
        Self::Reasoning,
        Self::Schema,
        Self::Cap,
        Self::Refusal,
    ];

    /// Its part of the names of snapshots.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::ParallelTools => "parallel_tools",
            Self::ForcedTool => "forced_tool",
            Self::ToolResults => "tool_results",
            Self::Images => "images",
            Self::Reasoning => "reasoning",
            Self::Schema => "schema",
            Self::Cap => "cap",
            Self::Refusal => "refusal",
        }
    }

    /// The body of the request.
    pub fn body(self, protocol: Protocol, model: &str, stream: bool) -> Value {
        let plain = |text| ask(protocol, model, text, stream);
        match self {
            Self::Text => with_settings(protocol, plain("Hello.")),
            Self::ParallelTools => {
                tools(protocol, plain("Weather and time in Paris, in parallel."))
            }
            Self::ForcedTool => forced(protocol, tools(protocol, plain("Anything."))),
            Self::ToolResults => results(
                protocol,
                tools(protocol, plain("Weather and time in Paris?")),
            ),
            Self::Images => pictures(protocol, plain("")),
            Self::Reasoning => thinking(protocol, plain("Think.")),
            Self::Schema => shaped(protocol, plain("A place, as JSON.")),
            Self::Cap => capped(protocol, plain("Please count to 200.")),
            Self::Refusal => plain("Please refuse this."),
        }
    }
}

/// A request with this text. For Images it is the prompt.
pub fn ask(protocol: Protocol, model: &str, text: &str, stream: bool) -> Value {
    let turns = json!([{"role": "user", "content": text}]);
    let mut body = json!({"model": model, "stream": stream});
    match protocol {
        Protocol::Responses => body["input"] = turns,
        Protocol::Chat => {
            body["messages"] = turns;
            if stream {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        Protocol::Messages => {
            body["max_tokens"] = json!(512);
            body["messages"] = turns;
        }
        Protocol::Images => {
            body["prompt"] = text.into();
            body["size"] = "64x64".into();
            if stream {
                body["partial_images"] = 3.into();
            }
        }
    }
    body
}

/// The name of a protocol in a configuration, and in names of snapshots.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "responses",
        Protocol::Chat => "chat",
        Protocol::Messages => "messages",
        Protocol::Images => "images",
    }
}

/// The path of the endpoint; for Images, the path of generations.
pub fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "/v1/responses",
        Protocol::Chat => "/v1/chat/completions",
        Protocol::Messages => "/v1/messages",
        Protocol::Images => "/v1/images/generations",
    }
}

/// A request of a client of `protocol`, with the tests' key.
pub fn request(protocol: Protocol, body: &Value) -> Request {
    let request = Request::post(path(protocol), body).bearer(CLIENT_KEY);
    if protocol == Protocol::Messages {
        request.header("anthropic-version", "2023-06-01")
    } else {
        request
    }
}

/// Adds a system prompt, and settings that every protocol has.
fn with_settings(protocol: Protocol, mut body: Value) -> Value {
    match protocol {
        Protocol::Responses => body["instructions"] = "Be brief.".into(),
        Protocol::Chat => {
            let system = json!({"role": "system", "content": "Be brief."});
            body["messages"].as_array_mut().unwrap().insert(0, system);
        }
        _ => body["system"] = "Be brief.".into(),
    }
    body["temperature"] = json!(0.5);
    body["top_p"] = json!(0.9);
    body
}

fn tools(protocol: Protocol, mut body: Value) -> Value {
    let city = json!({"city": {"type": "string"}});
    let schema = json!({"type": "object", "properties": city, "required": ["city"], "additionalProperties": false});
    let tool = |(name, about): &(&str, &str)| match protocol {
        Protocol::Responses => {
            json!({"type": "function", "name": name, "description": about, "parameters": schema, "strict": true})
        }
        Protocol::Chat => {
            let function =
                json!({"name": name, "description": about, "parameters": schema, "strict": true});
            json!({"type": "function", "function": function})
        }
        _ => json!({"name": name, "description": about, "input_schema": schema}),
    };
    body["tools"] = [
        ("get_weather", "The weather now."),
        ("get_time", "The time now."),
    ]
    .iter()
    .map(tool)
    .collect();
    body
}

fn forced(protocol: Protocol, mut body: Value) -> Value {
    body["tool_choice"] = match protocol {
        Protocol::Responses => json!({"type": "function", "name": "get_time"}),
        Protocol::Chat => json!({"type": "function", "function": {"name": "get_time"}}),
        _ => json!({"type": "tool", "name": "get_time", "disable_parallel_tool_use": true}),
    };
    if protocol != Protocol::Messages {
        body["parallel_tool_calls"] = json!(false);
    }
    body
}

/// Continues from two calls to their results.
fn results(protocol: Protocol, mut body: Value) -> Value {
    let (list, turns) = match protocol {
        Protocol::Responses => (
            "input",
            json!([
                {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": PARIS},
                {"type": "function_call", "call_id": "call_2", "name": "get_time", "arguments": PARIS},
                {"type": "function_call_output", "call_id": "call_1", "output": "Sunny."},
                {"type": "function_call_output", "call_id": "call_2", "output": "Noon."},
            ]),
        ),
        Protocol::Chat => {
            let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": PARIS}});
            let calls = json!([call("call_1", "get_weather"), call("call_2", "get_time")]);
            let turns = json!([
                {"role": "assistant", "content": null, "tool_calls": calls},
                {"role": "tool", "tool_call_id": "call_1", "content": "Sunny."},
                {"role": "tool", "tool_call_id": "call_2", "content": "Noon."},
            ]);
            ("messages", turns)
        }
        _ => {
            let call = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"city": "Paris"}});
            let turns = json!([
                {"role": "assistant", "content": [call("toolu_1", "get_weather"), call("toolu_2", "get_time")]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Sunny."},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "Noon."}]},
                ]},
            ]);
            ("messages", turns)
        }
    };
    body[list]
        .as_array_mut()
        .unwrap()
        .extend(turns.as_array().unwrap().clone());
    body
}

/// Adds two pictures, one as data and one by URL.
fn pictures(protocol: Protocol, mut body: Value) -> Value {
    let data = format!("data:image/png;base64,{RED}");
    let url = "https://pictures.example/a.png";
    let (list, parts) = match protocol {
        Protocol::Responses => (
            "input",
            json!([{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": data, "detail": "low"},
                {"type": "input_image", "image_url": url}]),
        ),
        Protocol::Chat => (
            "messages",
            json!([{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": data, "detail": "low"}},
                {"type": "image_url", "image_url": {"url": url}}]),
        ),
        _ => (
            "messages",
            json!([{"type": "text", "text": "Look."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": RED}},
                {"type": "image", "source": {"type": "url", "url": url}}]),
        ),
    };
    body[list][0]["content"] = parts;
    body
}

fn thinking(protocol: Protocol, mut body: Value) -> Value {
    match protocol {
        Protocol::Responses => body["reasoning"] = json!({"effort": "low", "summary": "auto"}),
        Protocol::Chat => body["reasoning_effort"] = "low".into(),
        _ => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 2048});
            body["max_tokens"] = json!(4096);
        }
    }
    body
}

fn shaped(protocol: Protocol, mut body: Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "country": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["name", "country", "people"],
        "additionalProperties": false,
    });
    match protocol {
        Protocol::Responses => {
            body["text"] = json!({"format": {"type": "json_schema", "name": "place", "strict": true, "schema": schema}});
        }
        Protocol::Chat => {
            let named = json!({"name": "place", "strict": true, "schema": schema});
            body["response_format"] = json!({"type": "json_schema", "json_schema": named});
        }
        _ => body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}}),
    }
    body
}

fn capped(protocol: Protocol, mut body: Value) -> Value {
    let name = match protocol {
        Protocol::Responses => "max_output_tokens",
        Protocol::Chat => "max_completion_tokens",
        _ => "max_tokens",
    };
    body[name] = 16.into();
    body
}

/// A picture as base64 of this many letters, a multiple of four. Only its beginning and its end
/// belong to a valid PNG.
pub fn long_picture(letters: usize) -> String {
    let (head, rest) = RED.split_at(44);
    let middle = "A+/z".repeat((letters - RED.len()) / 4);
    format!("{head}{middle}{rest}")
}

const PARIS: &str = r#"{"city":"Paris"}"#;
/// A red square, as the base64 of a PNG.
pub const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg==";

/// The protocols with text.
pub const TEXT_PROTOCOLS: [Protocol; 3] = [Protocol::Responses, Protocol::Chat, Protocol::Messages];
/// All protocols.
pub const PROTOCOLS: [Protocol; 4] = [
    Protocol::Responses,
    Protocol::Chat,
    Protocol::Messages,
    Protocol::Images,
];
