//! [Chat Completions](https://platform.openai.com/docs/api-reference/chat).

use serde_json::{Value, json};

use super::answer::{Answer, Call, Stop, fragments, words};
use super::parsed_request::{
    Choice, Format, ParsedRequest, Thought, Tool, elements, integer, text_of, texts,
};
use super::responses::obfuscate;
use super::{Event, Failure, Model, Reply, created, nonce};
use crate::request::Request;

pub(super) fn reply(request: &Request, body: &Value, model: Model<'_>) -> Result<Reply, Failure> {
    let answer = model(&parse(body)?)?;
    let choices = integer(&body["n"]).unwrap_or(1).clamp(1, MAX_CHOICES);
    let writer = Writer {
        request,
        body,
        choices,
        events: Vec::new(),
    };
    Ok(match body["stream"] {
        Value::Bool(true) => Reply::Events(writer.stream(&answer)),
        _ => Reply::Json(200, writer.completion(&answer)),
    })
}

fn parse(body: &Value) -> Result<ParsedRequest, Failure> {
    if !body["model"].is_string() {
        return Err(Failure::missing("model"));
    }
    let messages = body["messages"]
        .as_array()
        .ok_or_else(|| Failure::missing("messages"))?;
    if messages.is_empty() {
        return Err(Failure::invalid(
            "messages",
            "Invalid 'messages': empty array.",
        ));
    }
    let choice = &body["tool_choice"];
    let format = &body["response_format"];
    let mut parsed = ParsedRequest {
        tools: elements(&body["tools"])
            .filter_map(|tool| Tool::read(&tool["function"], "parameters"))
            .collect(),
        choice: Choice::read(
            choice.as_str(),
            "required",
            choice["function"]["name"].as_str(),
        ),
        parallel: body["parallel_tool_calls"].as_bool(),
        reasons: body["reasoning_effort"]
            .as_str()
            .is_some_and(|effort| effort != "none"),
        format: Format::read(format, &format["json_schema"]),
        cap: integer(&body["max_completion_tokens"]).or(integer(&body["max_tokens"])),
        stops: texts(&body["stop"]),
        ..ParsedRequest::default()
    };
    messages
        .iter()
        .for_each(|message| parse_message(message, &mut parsed));
    Ok(parsed)
}

fn parse_message(message: &Value, parsed: &mut ParsedRequest) {
    let content = &message["content"];
    match message["role"].as_str() {
        Some("user") => parsed.start_user_turn(text_of(content)),
        Some("tool") => parsed.add_tool_result(text_of(content)),
        Some("assistant") => {
            parsed.add_model_text(text_of(content));
            let thought = message["reasoning_content"].as_str();
            parsed.lacks_thoughts |= message["tool_calls"].is_array() && thought.is_none();
            let thought = thought.filter(|thought| !thought.is_empty());
            parsed.thoughts.extend(thought.map(|thought| Thought {
                text: Some(thought.to_owned()),
                ..Thought::default()
            }));
        }
        _ => parsed.count_text(&text_of(content)),
    }
    for part in elements(content) {
        let image = &part["image_url"];
        if let Some(url) = image["url"].as_str().or(image.as_str()) {
            parsed.add_image(url);
        }
    }
}

/// Encodes an answer in this protocol, once for each choice.
struct Writer<'a> {
    request: &'a Request,
    body: &'a Value,
    choices: usize,
    events: Vec<Event>,
}

impl Writer<'_> {
    fn completion(&self, answer: &Answer) -> Value {
        let choice = |index| {
            let message = self.message(index, answer);
            json!({"index": index, "message": message, "logprobs": null, "finish_reason": finish_reason(answer)})
        };
        let mut completion = self.frame("chat.completion");
        completion["choices"] = (0..self.choices).map(choice).collect();
        completion["usage"] = usage(answer, self.choices);
        completion
    }

    fn message(&self, choice: usize, answer: &Answer) -> Value {
        let mut message =
            json!({"role": "assistant", "content": null, "refusal": null, "annotations": []});
        if !answer.reasoning.is_empty() {
            message["reasoning_content"] = answer.reasoning.as_str().into();
        }
        match &answer.stop {
            Stop::Calls(calls) => {
                let call = |(index, call): (usize, &Call)| {
                    let id = format!("call_{}{choice:02}{index:02}", nonce(self.request));
                    let function =
                        json!({"name": call.name, "arguments": call.arguments.to_string()});
                    json!({"id": id, "type": "function", "function": function})
                };
                message["tool_calls"] = calls.iter().enumerate().map(call).collect();
            }
            Stop::Refusal => message["refusal"] = answer.text.as_str().into(),
            _ => message["content"] = answer.text.as_str().into(),
        }
        message
    }

    fn stream(mut self, answer: &Answer) -> Vec<Event> {
        for choice in 0..self.choices {
            self.choice(choice, &self.message(choice, answer), finish_reason(answer));
        }
        if self.body["stream_options"]["include_usage"] == true {
            let mut chunk = self.frame("chat.completion.chunk");
            chunk["choices"] = json!([]);
            chunk["usage"] = usage(answer, self.choices);
            self.events.push(Event::new(&chunk));
        }
        self.events.push(Event {
            name: None,
            data: "[DONE]".into(),
        });
        self.events
    }

    /// Writes the chunks of a choice.
    fn choice(&mut self, choice: usize, message: &Value, finish_reason: &str) {
        let content = if message["content"].is_string() {
            "".into()
        } else {
            Value::Null
        };
        let role = json!({"role": "assistant", "content": content, "refusal": null});
        self.chunk(choice, role, "", Value::Null);
        for name in ["reasoning_content", "content", "refusal"] {
            for piece in words(message[name].as_str().unwrap_or_default()) {
                self.chunk(choice, json!({name: piece}), &piece, Value::Null);
            }
        }
        for (index, call) in elements(&message["tool_calls"]).enumerate() {
            let function = json!({"name": call["function"]["name"], "arguments": ""});
            let first =
                json!({"index": index, "id": call["id"], "type": "function", "function": function});
            self.chunk(choice, json!({"tool_calls": [first]}), "", Value::Null);
            for piece in fragments(call["function"]["arguments"].as_str().unwrap_or_default()) {
                let next = json!({"index": index, "function": {"arguments": piece}});
                self.chunk(choice, json!({"tool_calls": [next]}), &piece, Value::Null);
            }
        }
        self.chunk(choice, json!({}), "", finish_reason.into());
    }

    fn chunk(&mut self, choice: usize, delta: Value, piece: &str, finish_reason: Value) {
        let mut chunk = self.frame("chat.completion.chunk");
        chunk["choices"] = json!([{"index": choice, "delta": delta, "logprobs": null, "finish_reason": finish_reason}]);
        if self.body["stream_options"]["include_usage"] == true {
            chunk["usage"] = Value::Null;
        }
        obfuscate(&mut chunk, self.body, piece);
        self.events.push(Event::new(&chunk));
    }

    /// The fields that all objects of a reply share.
    fn frame(&self, object: &str) -> Value {
        json!({
            "id": format!("chatcmpl-{}", nonce(self.request)), "object": object, "created": created(self.request),
            "model": self.body["model"], "service_tier": "default", "system_fingerprint": "fp_44709d6fcb",
        })
    }
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Calls(_) => "tool_calls",
        Stop::Length => "length",
        _ => "stop",
    }
}

fn usage(answer: &Answer, choices: usize) -> Value {
    let output = answer.output_tokens * choices;
    json!({
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": output,
        "total_tokens": answer.input_tokens + output,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": answer.reasoning_tokens * choices, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

const MAX_CHOICES: usize = 128;
