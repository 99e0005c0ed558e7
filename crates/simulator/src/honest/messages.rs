//! Messages (wire-reference §3).

use serde_json::{Value, json};

use super::answer::{Answer, Call, Said, Stop, Usage};
use super::ask::{Ask, Choice, Format, Tool, text_of, texts, whole};
use super::{Event, Failure, Reply};
use crate::request::Request;

pub(super) fn reply(request: &Request, body: &Value) -> Result<Reply, Failure> {
    let ask = read(body)?;
    if ask.cap.is_none() {
        return Err(Failure::invalid("max_tokens", "max_tokens: Field required"));
    }
    let answer = Answer::to(&ask);
    let writer = Writer { model: &body["model"], nonce: format!("{:016x}", request.number), events: Vec::new() };
    Ok(match body["stream"] {
        Value::Bool(true) => Reply::Events(writer.stream(&answer)),
        _ => Reply::Json(200, writer.message(&answer)),
    })
}

/// The answer of `count_tokens`.
pub(super) fn count(body: &Value) -> Result<Reply, Failure> {
    Ok(Reply::Json(200, json!({"input_tokens": read(body)?.tokens()})))
}

fn read(body: &Value) -> Result<Ask, Failure> {
    if !body["model"].is_string() {
        return Err(Failure::invalid("model", "model: Field required"));
    }
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let messages =
        messages.ok_or_else(|| Failure::invalid("messages", "messages: at least one message is required"))?;
    let mut ask = Ask {
        tools: tools(&body["tools"]),
        choice: choice(&body["tool_choice"]),
        parallel: body["tool_choice"]["disable_parallel_tool_use"].as_bool().map(|is_disabled| !is_disabled),
        thinks: matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive")),
        format: format(&body["output_config"]["format"]),
        cap: whole(&body["max_tokens"]),
        stops: texts(&body["stop_sequences"]),
        ..Ask::default()
    };
    ask.note(&text_of(&body["system"]));
    messages.iter().for_each(|message| hear(message, &mut ask));
    Ok(ask)
}

fn hear(message: &Value, ask: &mut Ask) {
    let content = &message["content"];
    if message["role"] == "user" {
        ask.turn();
        ask.hear(&text_of(content));
    } else {
        ask.note(&text_of(content));
    }
    for block in content.as_array().into_iter().flatten() {
        see(block, ask);
        if block["type"] == "tool_result" {
            ask.learn(text_of(&block["content"]));
            block["content"].as_array().into_iter().flatten().for_each(|inner| see(inner, ask));
        }
    }
}

fn see(block: &Value, ask: &mut Ask) {
    if block["type"] == "image" {
        let media_type = block["source"]["media_type"].as_str();
        ask.see(&media_type.map_or("url".into(), |media_type| format!("data:{media_type};")));
    }
}

fn tools(tools: &Value) -> Vec<Tool> {
    let tools = tools.as_array().into_iter().flatten();
    let read = tools.filter_map(|tool| {
        Some(Tool { name: tool["name"].as_str()?.to_owned(), schema: tool["input_schema"].clone() })
    });
    read.collect()
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

/// Says an answer in this protocol.
struct Writer<'a> {
    model: &'a Value,
    nonce: String,
    events: Vec<Event>,
}

impl Writer<'_> {
    /// The whole message.
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

    /// The blocks of the answer, as they are once they are whole.
    fn blocks(&self, answer: &Answer) -> Vec<Value> {
        let mut blocks = Vec::new();
        if !answer.thoughts.is_empty() {
            let thoughts = answer.thoughts.concat();
            blocks.push(json!({"type": "thinking", "thinking": thoughts, "signature": SIGNATURE}));
        }
        match &answer.said {
            Said::Text(text) | Said::Refusal(text) => blocks.push(json!({"type": "text", "text": text.concat()})),
            Said::Calls(calls) => {
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
        match (block["type"].as_str(), &answer.said) {
            (Some("thinking"), _) => {
                self.deltas(index, "thinking_delta", "thinking", &answer.thoughts);
                self.deltas(index, "signature_delta", "signature", &[SIGNATURE.to_owned()]);
            }
            (_, Said::Text(text) | Said::Refusal(text)) => self.deltas(index, "text_delta", "text", text),
            (_, Said::Calls(calls)) => {
                let call = &calls[index - usize::from(!answer.thoughts.is_empty())];
                // The vendor begins with an empty piece.
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

    /// The message before anything is said.
    fn snapshot(&self, usage: Value) -> Value {
        json!({
            "id": format!("msg_{}", self.nonce), "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
        })
    }
}

fn stop_reason(answer: &Answer) -> &'static str {
    match (&answer.said, &answer.stop) {
        (Said::Calls(_), _) => "tool_use",
        (Said::Refusal(_), _) => "refusal",
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

/// What makes thoughts good to be sent back.
const SIGNATURE: &str = "c2lnbmF0dXJl";
