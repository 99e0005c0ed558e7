//! [Messages](https://docs.anthropic.com/en/api/messages).

use serde_json::{Value, json};

use super::answer::{Answer, Call, Content, Stop, Usage};
use super::parsed_request::{Choice, Format, ParsedRequest, Tool, elements, integer, text_of, texts};
use super::{Event, Failure, Reply, nonce};
use crate::request::Request;

pub(super) fn reply(request: &Request, body: &Value) -> Result<Reply, Failure> {
    let parsed = parse(body)?;
    if parsed.cap.is_none() {
        return Err(Failure::invalid("max_tokens", "max_tokens: Field required"));
    }
    let answer = Answer::new(&parsed);
    let writer = Writer { model: &body["model"], nonce: nonce(request), events: Vec::new() };
    Ok(match body["stream"] {
        Value::Bool(true) => Reply::Events(writer.stream(&answer)),
        _ => Reply::Json(200, writer.message(&answer)),
    })
}

/// Returns the reply of `count_tokens`.
pub(super) fn count(body: &Value) -> Result<Reply, Failure> {
    Ok(Reply::Json(200, json!({"input_tokens": parse(body)?.tokens()})))
}

fn parse(body: &Value) -> Result<ParsedRequest, Failure> {
    if !body["model"].is_string() {
        return Err(Failure::invalid("model", "model: Field required"));
    }
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let messages =
        messages.ok_or_else(|| Failure::invalid("messages", "messages: at least one message is required"))?;
    let mut parsed = ParsedRequest {
        tools: tools(&body["tools"]),
        choice: choice(&body["tool_choice"]),
        parallel: body["tool_choice"]["disable_parallel_tool_use"].as_bool().map(|is_disabled| !is_disabled),
        reasons: matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive")),
        format: format(&body["output_config"]["format"]),
        cap: integer(&body["max_tokens"]),
        stops: texts(&body["stop_sequences"]),
        ..ParsedRequest::default()
    };
    parsed.count_text(&text_of(&body["system"]));
    messages.iter().for_each(|message| parse_message(message, &mut parsed));
    Ok(parsed)
}

fn parse_message(message: &Value, parsed: &mut ParsedRequest) {
    let content = &message["content"];
    if message["role"] == "user" {
        parsed.start_user_turn();
        parsed.add_user_text(&text_of(content));
    } else {
        parsed.count_text(&text_of(content));
    }
    for block in elements(content) {
        parse_image(block, parsed);
        if block["type"] == "tool_result" {
            parsed.add_tool_result(text_of(&block["content"]));
            elements(&block["content"]).for_each(|inner| parse_image(inner, parsed));
        }
    }
}

fn parse_image(block: &Value, parsed: &mut ParsedRequest) {
    if block["type"] == "image" {
        let media_type = block["source"]["media_type"].as_str();
        parsed.add_image(&media_type.map_or("url".into(), |media_type| format!("data:{media_type};")));
    }
}

fn tools(tools: &Value) -> Vec<Tool> {
    elements(tools).filter_map(|tool| Tool::read(tool, "input_schema")).collect()
}

fn choice(choice: &Value) -> Choice {
    match (choice["type"].as_str(), choice["name"].as_str()) {
        (Some("none"), _) => Choice::None,
        (Some("any"), _) => Choice::Required,
        (Some("tool"), Some(name)) => Choice::Named(name.to_owned()),
        _ => Choice::Auto,
    }
}

fn format(format: &Value) -> Format {
    match format["type"].as_str() {
        Some("json_schema") => Format::Schema(format["schema"].clone()),
        _ => Format::Text,
    }
}

/// Encodes an answer in this protocol.
struct Writer<'a> {
    model: &'a Value,
    nonce: String,
    events: Vec<Event>,
}

impl Writer<'_> {
    /// The complete message.
    fn message(&self, answer: &Answer) -> Value {
        let mut message = self.snapshot(usage(answer.usage));
        message["content"] = self.blocks(answer).into();
        message["stop_reason"] = stop_reason(answer).into();
        message["stop_sequence"] = stop_sequence(answer);
        message
    }

    fn stream(mut self, answer: &Answer) -> Vec<Event> {
        let start = self.snapshot(usage(Usage { output: 1, ..answer.usage }));
        self.event(&json!({"type": "message_start", "message": start}));
        for (index, block) in self.blocks(answer).iter().enumerate() {
            self.start(index, block);
            if index == 0 {
                self.event(&json!({"type": "ping"}));
            }
            self.block(index, block, answer);
            self.event(&json!({"type": "content_block_stop", "index": index}));
        }
        let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": stop_sequence(answer)});
        self.event(&json!({"type": "message_delta", "delta": delta, "usage": usage(answer.usage)}));
        self.event(&json!({"type": "message_stop"}));
        self.events
    }

    /// The complete content blocks of the answer.
    fn blocks(&self, answer: &Answer) -> Vec<Value> {
        let mut blocks = Vec::new();
        if !answer.reasoning.is_empty() {
            let reasoning = answer.reasoning.concat();
            blocks.push(json!({"type": "thinking", "thinking": reasoning, "signature": SIGNATURE}));
        }
        match &answer.content {
            Content::Text(text) | Content::Refusal(text) => blocks.push(json!({"type": "text", "text": text.concat()})),
            Content::Calls(calls) => {
                for Call { name, arguments } in calls {
                    let id = format!("toolu_{}{:02}", self.nonce, blocks.len());
                    blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": arguments}));
                }
            }
        }
        blocks
    }

    fn start(&mut self, index: usize, block: &Value) {
        let mut empty = block.clone();
        match block["type"].as_str() {
            Some("thinking") => {
                empty["thinking"] = "".into();
                empty["signature"] = "".into();
            }
            Some("tool_use") => empty["input"] = json!({}),
            _ => empty["text"] = "".into(),
        }
        self.event(&json!({"type": "content_block_start", "index": index, "content_block": empty}));
    }

    fn block(&mut self, index: usize, block: &Value, answer: &Answer) {
        match (block["type"].as_str(), &answer.content) {
            (Some("thinking"), _) => {
                self.deltas(index, "thinking_delta", "thinking", &answer.reasoning);
                self.deltas(index, "signature_delta", "signature", &[SIGNATURE.to_owned()]);
            }
            (_, Content::Text(text) | Content::Refusal(text)) => self.deltas(index, "text_delta", "text", text),
            (_, Content::Calls(calls)) => {
                let call = &calls[index - usize::from(!answer.reasoning.is_empty())];
                // The vendor starts with an empty delta.
                self.deltas(index, "input_json_delta", "partial_json", &[String::new()]);
                self.deltas(index, "input_json_delta", "partial_json", &call.pieces());
            }
        }
    }

    fn deltas(&mut self, index: usize, kind: &str, member: &str, pieces: &[String]) {
        for piece in pieces {
            let delta = json!({"type": kind, member: piece});
            self.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
    }

    fn event(&mut self, data: &Value) {
        self.events.push(Event::named(data));
    }

    /// The message without its content.
    fn snapshot(&self, usage: Value) -> Value {
        json!({
            "id": format!("msg_{}", self.nonce), "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
        })
    }
}

fn stop_reason(answer: &Answer) -> &'static str {
    match (&answer.content, &answer.stop) {
        (Content::Calls(_), _) => "tool_use",
        (Content::Refusal(_), _) => "refusal",
        (_, Stop::Length) => "max_tokens",
        (_, Stop::Text(_)) => "stop_sequence",
        (_, Stop::End) => "end_turn",
    }
}

fn stop_sequence(answer: &Answer) -> Value {
    match &answer.stop {
        Stop::Text(text) => text.as_str().into(),
        _ => Value::Null,
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output,
        "service_tier": "standard",
    })
}

/// The signature of a thinking block, which clients have to send back with it.
const SIGNATURE: &str = "c2lnbmF0dXJl";
