//! [Chat Completions](https://platform.openai.com/docs/api-reference/chat).

use serde_json::{Value, json};

use super::answer::{Answer, Call, Content, Stop, Usage};
use super::parsed_request::{Choice, Format, ParsedRequest, Tool, elements, integer, text_of, texts};
use super::responses::obfuscation;
use super::{Event, Failure, Reply, created, nonce};
use crate::request::Request;

pub(super) fn reply(request: &Request, body: &Value) -> Result<Reply, Failure> {
    let parsed = parse(body)?;
    let answer = Answer::new(&parsed);
    let choices = integer(&body["n"]).unwrap_or(1).clamp(1, MAX_CHOICES);
    let writer = Writer::new(request, body, choices);
    Ok(match body["stream"] {
        Value::Bool(true) => Reply::Events(writer.stream(&answer)),
        _ => Reply::Json(200, writer.completion(&answer)),
    })
}

fn parse(body: &Value) -> Result<ParsedRequest, Failure> {
    if !body["model"].is_string() {
        return Err(Failure::missing("model"));
    }
    let messages = body["messages"].as_array().ok_or_else(|| Failure::missing("messages"))?;
    if messages.is_empty() {
        return Err(Failure::invalid("messages", "Invalid 'messages': empty array."));
    }
    let mut parsed = ParsedRequest {
        tools: tools(&body["tools"]),
        choice: choice(&body["tool_choice"]),
        parallel: body["parallel_tool_calls"].as_bool(),
        reasons: body["reasoning_effort"].as_str().is_some_and(|effort| effort != "none"),
        format: format(&body["response_format"]),
        cap: integer(&body["max_completion_tokens"]).or(integer(&body["max_tokens"])),
        stops: texts(&body["stop"]),
        ..ParsedRequest::default()
    };
    messages.iter().for_each(|message| parse_message(message, &mut parsed));
    Ok(parsed)
}

fn parse_message(message: &Value, parsed: &mut ParsedRequest) {
    let content = &message["content"];
    match message["role"].as_str() {
        Some("user") => {
            parsed.start_user_turn();
            parsed.add_user_text(&text_of(content));
        }
        Some("tool") => parsed.add_tool_result(text_of(content)),
        _ => parsed.count_text(&text_of(content)),
    }
    for part in elements(content) {
        let image = &part["image_url"];
        if let Some(url) = image["url"].as_str().or(image.as_str()) {
            parsed.add_image(url);
        }
    }
}

fn tools(tools: &Value) -> Vec<Tool> {
    elements(tools).filter_map(|tool| Tool::read(&tool["function"], "parameters")).collect()
}

fn choice(choice: &Value) -> Choice {
    match (choice.as_str(), choice["function"]["name"].as_str()) {
        (Some("none"), _) => Choice::None,
        (Some("required"), _) => Choice::Required,
        (_, Some(name)) => Choice::Named(name.to_owned()),
        _ => Choice::Auto,
    }
}

fn format(format: &Value) -> Format {
    match format["type"].as_str() {
        Some("json_object") => Format::Json,
        Some("json_schema") => Format::Schema(format["json_schema"]["schema"].clone()),
        _ => Format::Text,
    }
}

/// Encodes an answer in this protocol, once for each choice.
struct Writer<'a> {
    model: &'a Value,
    created: usize,
    nonce: String,
    choices: u64,
    includes_usage: bool,
    obfuscates: bool,
    events: Vec<Event>,
}

impl<'a> Writer<'a> {
    fn new(request: &Request, body: &'a Value, choices: u64) -> Self {
        let options = &body["stream_options"];
        Self {
            model: &body["model"],
            created: created(request),
            nonce: nonce(request),
            choices,
            includes_usage: options["include_usage"] == true,
            obfuscates: options["include_obfuscation"] != false,
            events: Vec::new(),
        }
    }

    fn completion(&self, answer: &Answer) -> Value {
        let choice = |index| {
            let message = self.message(index, answer);
            json!({"index": index, "message": message, "logprobs": null, "finish_reason": finish_reason(answer)})
        };
        let mut completion = self.frame("chat.completion");
        completion["choices"] = (0..self.choices).map(choice).collect();
        completion["usage"] = usage(answer.usage, self.choices);
        completion
    }

    fn message(&self, choice: u64, answer: &Answer) -> Value {
        let mut message = json!({"role": "assistant", "content": null, "refusal": null, "annotations": []});
        if !answer.reasoning.is_empty() {
            message["reasoning_content"] = answer.reasoning.concat().into();
        }
        match &answer.content {
            Content::Text(text) => message["content"] = text.concat().into(),
            Content::Refusal(text) => message["refusal"] = text.concat().into(),
            Content::Calls(calls) => {
                let calls = calls.iter().enumerate().map(|(index, call)| self.call(choice, index, call));
                message["tool_calls"] = calls.collect();
            }
        }
        message
    }

    fn call(&self, choice: u64, index: usize, call: &Call) -> Value {
        let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
        json!({"id": self.call_id(choice, index), "type": "function", "function": function})
    }

    fn stream(mut self, answer: &Answer) -> Vec<Event> {
        for choice in 0..self.choices {
            self.choice(choice, answer);
        }
        if self.includes_usage {
            let mut chunk = self.frame("chat.completion.chunk");
            chunk["choices"] = json!([]);
            chunk["usage"] = usage(answer.usage, self.choices);
            self.events.push(Event::unnamed(&chunk));
        }
        self.events.push(Event { name: None, data: "[DONE]".into() });
        self.events
    }

    fn choice(&mut self, choice: u64, answer: &Answer) {
        let content = if matches!(answer.content, Content::Text(_)) { "".into() } else { Value::Null };
        let role = json!({"role": "assistant", "content": content, "refusal": null});
        self.chunk(choice, role, "", Value::Null);
        self.deltas(choice, "reasoning_content", &answer.reasoning);
        match &answer.content {
            Content::Text(text) => self.deltas(choice, "content", text),
            Content::Refusal(text) => self.deltas(choice, "refusal", text),
            Content::Calls(calls) => {
                for (index, call) in calls.iter().enumerate() {
                    self.call_deltas(choice, index, call);
                }
            }
        }
        self.chunk(choice, json!({}), "", finish_reason(answer).into());
    }

    fn deltas(&mut self, choice: u64, name: &str, pieces: &[String]) {
        for piece in pieces {
            self.chunk(choice, json!({name: piece}), piece, Value::Null);
        }
    }

    fn call_deltas(&mut self, choice: u64, index: usize, call: &Call) {
        let function = json!({"name": call.name, "arguments": ""});
        let id = self.call_id(choice, index);
        let first = json!({"index": index, "id": id, "type": "function", "function": function});
        self.chunk(choice, json!({"tool_calls": [first]}), "", Value::Null);
        for piece in call.pieces() {
            let next = json!({"index": index, "function": {"arguments": piece}});
            self.chunk(choice, json!({"tool_calls": [next]}), &piece, Value::Null);
        }
    }

    fn chunk(&mut self, choice: u64, delta: Value, piece: &str, finish_reason: Value) {
        let mut chunk = self.frame("chat.completion.chunk");
        chunk["choices"] = json!([{"index": choice, "delta": delta, "logprobs": null, "finish_reason": finish_reason}]);
        if self.includes_usage {
            chunk["usage"] = Value::Null;
        }
        if self.obfuscates {
            chunk["obfuscation"] = obfuscation(piece).into();
        }
        self.events.push(Event::unnamed(&chunk));
    }

    /// The fields that all objects of a reply share.
    fn frame(&self, object: &str) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.nonce), "object": object, "created": self.created, "model": self.model,
            "service_tier": "default", "system_fingerprint": "fp_44709d6fcb",
        })
    }

    fn call_id(&self, choice: u64, index: usize) -> String {
        format!("call_{}{choice:02}{index:02}", self.nonce)
    }
}

fn finish_reason(answer: &Answer) -> &'static str {
    match (&answer.content, &answer.stop) {
        (Content::Calls(_), _) => "tool_calls",
        (_, Stop::Length) => "length",
        _ => "stop",
    }
}

fn usage(usage: Usage, choices: u64) -> Value {
    let output = usage.output * choices;
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": output,
        "total_tokens": usage.input + output,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning * choices, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

const MAX_CHOICES: u64 = 128;
