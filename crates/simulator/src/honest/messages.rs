//! [Messages](https://docs.anthropic.com/en/api/messages).

use serde_json::{Value, json};

use super::answer::{Answer, Call, Stop, fragments, words};
use super::parsed_request::{
    Choice, Format, ParsedRequest, Thought, Tool, elements, integer, text_of, texts,
};
use super::{Event, Failure, Model, Reply, nonce};
use crate::request::Request;

pub(super) fn reply(request: &Request, body: &Value, model: Model<'_>) -> Result<Reply, Failure> {
    let parsed = parse(body)?;
    if parsed.cap.is_none() {
        return Err(Failure::invalid("max_tokens", "max_tokens: Field required"));
    }
    let answer = model(&parsed)?;
    let writer = Writer {
        model: &body["model"],
        nonce: nonce(request),
        events: Vec::new(),
    };
    Ok(match body["stream"] {
        Value::Bool(true) => Reply::Events(writer.stream(&answer)),
        _ => Reply::Json(200, writer.message(&answer)),
    })
}

/// Returns the reply of `count_tokens`.
pub(super) fn count(body: &Value) -> Result<Reply, Failure> {
    Ok(Reply::Json(
        200,
        json!({"input_tokens": parse(body)?.tokens()}),
    ))
}

fn parse(body: &Value) -> Result<ParsedRequest, Failure> {
    if !body["model"].is_string() {
        return Err(Failure::invalid("model", "model: Field required"));
    }
    let messages = body["messages"]
        .as_array()
        .filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| {
        Failure::invalid("messages", "messages: at least one message is required")
    })?;
    let choice = &body["tool_choice"];
    let tool = choice["name"].as_str().filter(|_| choice["type"] == "tool");
    let format = &body["output_config"]["format"];
    let mut parsed = ParsedRequest {
        tools: elements(&body["tools"])
            .filter_map(|tool| Tool::read(tool, "input_schema"))
            .collect(),
        choice: Choice::read(choice["type"].as_str(), "any", tool),
        parallel: choice["disable_parallel_tool_use"]
            .as_bool()
            .map(|is_disabled| !is_disabled),
        reasons: matches!(
            body["thinking"]["type"].as_str(),
            Some("enabled" | "adaptive")
        ),
        format: if format["type"] == "json_schema" {
            Format::Schema(format["schema"].clone())
        } else {
            Format::Text
        },
        cap: integer(&body["max_tokens"]),
        stops: texts(&body["stop_sequences"]),
        ..ParsedRequest::default()
    };
    parsed.count_text(&text_of(&body["system"]));
    for (index, message) in messages.iter().enumerate() {
        parse_message(message, &mut parsed);
        parse_thoughts(index, message, &mut parsed);
    }
    Ok(parsed)
}

fn parse_message(message: &Value, parsed: &mut ParsedRequest) {
    let content = &message["content"];
    // Results continue the turn, as in the other protocols.
    let is_answer =
        content.is_array() && elements(content).all(|block| block["type"] == "tool_result");
    match message["role"].as_str() {
        Some("user") if !is_answer => parsed.start_user_turn(text_of(content)),
        Some("assistant") => parsed.add_model_text(text_of(content)),
        _ => parsed.count_text(&text_of(content)),
    }
    for block in elements(content) {
        parse_image(block, parsed);
        if block["type"] == "tool_result" {
            parsed.add_tool_result(text_of(&block["content"]));
            elements(&block["content"]).for_each(|inner| parse_image(inner, parsed));
        }
    }
}

/// Collects the thoughts of a message. The vendor names one by its place.
fn parse_thoughts(index: usize, message: &Value, parsed: &mut ParsedRequest) {
    for (at, block) in elements(&message["content"]).enumerate() {
        let seal = match block["type"].as_str() {
            Some("thinking") => &block["signature"],
            Some("redacted_thinking") => &block["data"],
            _ => continue,
        };
        parsed.thoughts.push(Thought {
            text: block["thinking"].as_str().map(str::to_owned),
            seal: seal.as_str().unwrap_or_default().to_owned(),
            place: format!("messages.{index}.content.{at}"),
        });
    }
}

fn parse_image(block: &Value, parsed: &mut ParsedRequest) {
    if block["type"] == "image" {
        parsed.images.push(
            block["source"]["media_type"]
                .as_str()
                .unwrap_or("url")
                .to_owned(),
        );
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
        let mut message = self.snapshot(usage(answer, answer.output_tokens));
        message["content"] = self.blocks(answer).into();
        message["stop_reason"] = stop_reason(answer).into();
        message["stop_sequence"] = stop_sequence(answer);
        message
    }

    fn stream(mut self, answer: &Answer) -> Vec<Event> {
        // The counts of a stream are cumulative: <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.
        let start = self.snapshot(usage(answer, answer.output_tokens.min(1)));
        self.event(&json!({"type": "message_start", "message": start}));
        for (index, block) in self.blocks(answer).iter().enumerate() {
            self.block(index, block);
        }
        let delta =
            json!({"stop_reason": stop_reason(answer), "stop_sequence": stop_sequence(answer)});
        self.event(&json!({"type": "message_delta", "delta": delta, "usage": usage(answer, answer.output_tokens)}));
        self.event(&json!({"type": "message_stop"}));
        self.events
    }

    /// The complete content blocks of the answer.
    fn blocks(&self, answer: &Answer) -> Vec<Value> {
        let mut blocks = Vec::new();
        if !answer.reasoning.is_empty() {
            let seal = answer.seal.as_deref().unwrap_or(SIGNATURE);
            blocks
                .push(json!({"type": "thinking", "thinking": answer.reasoning, "signature": seal}));
        }
        let Stop::Calls(calls) = &answer.stop else {
            blocks.push(json!({"type": "text", "text": answer.text}));
            return blocks;
        };
        for Call {
            name, arguments, ..
        } in calls
        {
            let id = format!("toolu_{}{:02}", self.nonce, blocks.len());
            blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": arguments}));
        }
        blocks
    }

    /// Writes the events of a block.
    fn block(&mut self, index: usize, block: &Value) {
        let mut empty = block.clone();
        let deltas: Vec<Value> = match block["type"].as_str() {
            Some("thinking") => {
                empty["thinking"] = "".into();
                empty["signature"] = "".into();
                let thinking = words(block["thinking"].as_str().unwrap_or_default()).into_iter();
                let thinking =
                    thinking.map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
                thinking
                    .chain([json!({"type": "signature_delta", "signature": block["signature"]})])
                    .collect()
            }
            Some("tool_use") => {
                empty["input"] = json!({});
                // The vendor starts with an empty delta.
                let pieces = [String::new()]
                    .into_iter()
                    .chain(fragments(&block["input"].to_string()));
                pieces
                    .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                    .collect()
            }
            _ => {
                empty["text"] = "".into();
                let text = words(block["text"].as_str().unwrap_or_default()).into_iter();
                text.map(|piece| json!({"type": "text_delta", "text": piece}))
                    .collect()
            }
        };
        self.event(&json!({"type": "content_block_start", "index": index, "content_block": empty}));
        if index == 0 {
            self.event(&json!({"type": "ping"}));
        }
        for delta in deltas {
            self.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        self.event(&json!({"type": "content_block_stop", "index": index}));
    }

    fn event(&mut self, data: &Value) {
        self.events.push(Event::new(data));
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
    match answer.stop {
        Stop::Calls(_) => "tool_use",
        Stop::Refusal => "refusal",
        Stop::Length => "max_tokens",
        Stop::Sequence(_) => "stop_sequence",
        Stop::End => "end_turn",
    }
}

fn stop_sequence(answer: &Answer) -> Value {
    if let Stop::Sequence(text) = &answer.stop {
        text.as_str().into()
    } else {
        Value::Null
    }
}

fn usage(answer: &Answer, output_tokens: usize) -> Value {
    json!({
        "input_tokens": answer.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output_tokens,
        "service_tier": "standard",
    })
}

/// The signature of a thinking block, which clients have to send back with it.
const SIGNATURE: &str = "c2lnbmF0dXJl";
