//! [Responses](https://platform.openai.com/docs/api-reference/responses).

use serde_json::{Map, Value, json};

use super::answer::{Answer, Call, Stop, fragments, words};
use super::parsed_request::{
    Choice, Format, ParsedRequest, Thought, Tool, elements, integer, text_of,
};
use super::{Event, Failure, Model, Reply, created, nonce};
use crate::request::Request;

pub(super) fn reply(request: &Request, body: &Value, model: Model<'_>) -> Result<Reply, Failure> {
    let answer = model(&parse(body)?);
    let writer = Writer {
        request,
        body,
        events: Vec::new(),
    };
    let is_stream = request.streams();
    Ok(match answer {
        Ok(answer) if is_stream => Reply::Events(writer.stream(&answer)),
        Ok(answer) => Reply::Json(200, writer.response(&answer)),
        // The vendor finds out within the stream.
        Err(failure) if is_stream && failure.code == "context_length_exceeded" => {
            Reply::Events(writer.failed_stream(&failure))
        }
        Err(failure) => return Err(failure),
    })
}

/// Returns the reply of `input_tokens`.
pub(super) fn count(body: &Value) -> Result<Reply, Failure> {
    Ok(Reply::Json(
        200,
        json!({"object": "response.input_tokens", "input_tokens": parse(body)?.tokens()}),
    ))
}

fn parse(body: &Value) -> Result<ParsedRequest, Failure> {
    if !body["model"].is_string() {
        return Err(Failure::missing("model"));
    }
    let choice = &body["tool_choice"];
    let format = &body["text"]["format"];
    let mut parsed = ParsedRequest {
        choice: Choice::read(
            choice.as_str().or(choice["mode"].as_str()),
            "required",
            choice["name"].as_str(),
        ),
        parallel: body["parallel_tool_calls"].as_bool(),
        reasons: body["reasoning"]["effort"]
            .as_str()
            .is_some_and(|effort| effort != "none"),
        format: Format::read(format, format),
        cap: integer(&body["max_output_tokens"]),
        ..ParsedRequest::default()
    };
    parse_tools(&body["tools"], None, &mut parsed.tools);
    parsed.count_text(&text_of(&body["instructions"]));
    match &body["input"] {
        Value::String(text) => parsed.start_user_turn(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| parse_item(item, &mut parsed)),
        _ => return Err(Failure::missing("input")),
    }
    Ok(parsed)
}

/// Adds the functions and the custom tools of a list, and those in its namespaces.
fn parse_tools(list: &Value, namespace: Option<&str>, tools: &mut Vec<Tool>) {
    for tool in elements(list) {
        let kind = tool["type"].as_str().unwrap_or_default();
        if kind == "namespace" {
            parse_tools(&tool["tools"], tool["name"].as_str(), tools);
        } else if ["function", "custom"].contains(&kind) {
            // Functions may also have the form of Chat.
            let read = Tool::read(tool.get("function").unwrap_or(tool), "parameters");
            tools.extend(read.map(|read| Tool {
                namespace: namespace.map(str::to_owned),
                is_freeform: kind == "custom",
                ..read
            }));
        }
    }
}

fn parse_item(item: &Value, parsed: &mut ParsedRequest) {
    match (
        item["type"].as_str().unwrap_or("message"),
        item["role"].as_str(),
    ) {
        ("message", Some("user")) => parsed.start_user_turn(text_of(&item["content"])),
        ("message", Some("assistant")) => parsed.add_model_text(text_of(&item["content"])),
        ("message", _) => parsed.count_text(&text_of(&item["content"])),
        ("function_call_output" | "custom_tool_call_output", _) => {
            parsed.add_tool_result(text_of(&item["output"]));
        }
        ("additional_tools", _) => parse_tools(&item["tools"], None, &mut parsed.tools),
        ("reasoning", _) => parsed.thoughts.extend(thought(item)),
        _ => {}
    }
    for part in elements(&item["content"]).chain(elements(&item["output"])) {
        if let Some(url) = part["image_url"].as_str() {
            parsed.add_image(url);
        }
    }
}

/// The thought of a reasoning item, unless the client has sent it without its seal.
fn thought(item: &Value) -> Option<Thought> {
    Some(Thought {
        text: None,
        seal: item["encrypted_content"].as_str()?.to_owned(),
        place: String::new(),
    })
}

/// Encodes an answer in this protocol.
struct Writer<'a> {
    request: &'a Request,
    body: &'a Value,
    events: Vec<Event>,
}

impl Writer<'_> {
    fn begin(&mut self) {
        let beginning = self.snapshot("in_progress");
        self.event("response.created", json!({"response": beginning}));
        self.event("response.in_progress", json!({"response": beginning}));
    }

    fn failed_stream(mut self, failure: &Failure) -> Vec<Event> {
        self.begin();
        let mut response = self.snapshot("failed");
        response["error"] = json!({"code": failure.code, "message": failure.message});
        self.event("response.failed", json!({"response": response}));
        self.events
    }

    fn stream(mut self, answer: &Answer) -> Vec<Event> {
        self.begin();
        for (index, item) in self.items(answer).iter().enumerate() {
            self.item(index, item);
        }
        let end = if answer.stop == Stop::Length {
            "response.incomplete"
        } else {
            "response.completed"
        };
        let response = self.response(answer);
        self.event(end, json!({"response": response}));
        self.events
    }

    /// The complete response.
    fn response(&self, answer: &Answer) -> Value {
        let is_truncated = answer.stop == Stop::Length;
        let mut response = self.snapshot(if is_truncated {
            "incomplete"
        } else {
            "completed"
        });
        if is_truncated {
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
        } else {
            response["completed_at"] = (created(self.request) + 2).into();
        }
        response["output"] = self.items(answer).into();
        response["usage"] = usage(answer);
        response
    }

    /// The complete output items of the answer.
    fn items(&self, answer: &Answer) -> Vec<Value> {
        let mut items = Vec::new();
        if !answer.reasoning.is_empty() {
            items.push(self.reasoning(answer));
        }
        if let Stop::Calls(calls) = &answer.stop {
            for call in calls {
                items.push(self.call(items.len(), call));
            }
            return items;
        }
        let part = match answer.stop {
            Stop::Refusal => json!({"type": "refusal", "refusal": answer.text}),
            _ => {
                json!({"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []})
            }
        };
        let id = self.id("msg", items.len());
        let status = if answer.stop == Stop::Length {
            "incomplete"
        } else {
            "completed"
        };
        items.push(json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": [part]}));
        items
    }

    fn reasoning(&self, answer: &Answer) -> Value {
        let summary = json!([{"type": "summary_text", "text": answer.reasoning}]);
        let mut item = json!({"id": self.id("rs", 0), "type": "reasoning", "summary": summary});
        if elements(&self.body["include"]).any(|field| field == "reasoning.encrypted_content") {
            item["encrypted_content"] = answer.seal.as_deref().unwrap_or(SEAL).into();
        }
        item
    }

    fn call(&self, index: usize, call: &Call) -> Value {
        let call_id = self.id("call", index);
        let mut item = match &call.arguments {
            Value::String(input) => json!({
                "id": self.id("ctc", index), "type": "custom_tool_call", "status": "completed",
                "call_id": call_id, "name": call.name, "input": input,
            }),
            arguments => json!({
                "id": self.id("fc", index), "type": "function_call", "status": "completed",
                "call_id": call_id, "name": call.name, "arguments": arguments.to_string(),
            }),
        };
        if let Some(namespace) = &call.namespace {
            item["namespace"] = namespace.as_str().into();
        }
        item
    }

    /// Writes the events of an item.
    fn item(&mut self, index: usize, item: &Value) {
        let mut added = item.clone();
        if added["status"].is_string() {
            added["status"] = "in_progress".into();
        }
        match item["type"].as_str() {
            Some("reasoning") => added["summary"] = json!([]),
            Some("function_call") => added["arguments"] = "".into(),
            Some("custom_tool_call") => added["input"] = "".into(),
            _ => added["content"] = json!([]),
        }
        self.event(
            "response.output_item.added",
            json!({"output_index": index, "item": added}),
        );
        let place = json!({"item_id": item["id"], "output_index": index});
        match item["type"].as_str() {
            Some("reasoning") => self.part(
                &with(&place, json!({"summary_index": 0})),
                &item["summary"][0],
            ),
            Some("function_call") => {
                let pieces = fragments(item["arguments"].as_str().unwrap_or_default());
                self.deltas("response.function_call_arguments.delta", &place, &pieces);
                let whole = json!({"name": item["name"], "arguments": item["arguments"]});
                self.event("response.function_call_arguments.done", with(&place, whole));
            }
            Some("custom_tool_call") => {
                let pieces = fragments(item["input"].as_str().unwrap_or_default());
                self.deltas("response.custom_tool_call_input.delta", &place, &pieces);
                let whole = with(&place, json!({"input": item["input"]}));
                self.event("response.custom_tool_call_input.done", whole);
            }
            _ => self.part(
                &with(&place, json!({"content_index": 0})),
                &item["content"][0],
            ),
        }
        self.event(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }

    /// Writes the events of a part of an item, which has one text.
    fn part(&mut self, place: &Value, part: &Value) {
        let (holder, text, member, more) = match part["type"].as_str() {
            Some("summary_text") => (
                "reasoning_summary_part",
                "reasoning_summary_text",
                "text",
                json!({}),
            ),
            Some("refusal") => ("content_part", "refusal", "refusal", json!({})),
            _ => (
                "content_part",
                "output_text",
                "text",
                json!({"logprobs": []}),
            ),
        };
        let mut empty = part.clone();
        empty[member] = "".into();
        self.event(
            &format!("response.{holder}.added"),
            with(place, json!({"part": empty})),
        );
        let pieces = words(part[member].as_str().unwrap_or_default());
        self.deltas(
            &format!("response.{text}.delta"),
            &with(place, more.clone()),
            &pieces,
        );
        let whole = with(place, json!({member: part[member]}));
        self.event(&format!("response.{text}.done"), with(&whole, more));
        self.event(
            &format!("response.{holder}.done"),
            with(place, json!({"part": part})),
        );
    }

    fn deltas(&mut self, kind: &str, place: &Value, pieces: &[String]) {
        for piece in pieces {
            let mut delta = with(place, json!({"delta": piece}));
            obfuscate(&mut delta, self.body, piece);
            self.event(kind, delta);
        }
    }

    fn event(&mut self, kind: &str, fields: Value) {
        let start = json!({"type": kind, "sequence_number": self.events.len()});
        self.events.push(Event::new(&with(&start, fields)));
    }

    fn id(&self, kind: &str, index: usize) -> String {
        format!("{kind}_{}{index:02}", nonce(self.request))
    }

    /// The response without its output; many of its fields repeat the request.
    fn snapshot(&self, status: &str) -> Value {
        let requested = |name: &str, default: Value| {
            self.body
                .get(name)
                .filter(|value| !value.is_null())
                .cloned()
                .unwrap_or(default)
        };
        let reasoning = &self.body["reasoning"];
        json!({
            "id": format!("resp_{}", nonce(self.request)), "object": "response", "created_at": created(self.request),
            "completed_at": null, "status": status, "background": false, "error": null,
            "frequency_penalty": requested("frequency_penalty", json!(0)),
            "incomplete_details": null,
            "instructions": self.body["instructions"],
            "max_output_tokens": self.body["max_output_tokens"],
            "max_tool_calls": null,
            "metadata": requested("metadata", json!({})),
            "model": self.body["model"], "output": [],
            "parallel_tool_calls": requested("parallel_tool_calls", json!(true)),
            "presence_penalty": requested("presence_penalty", json!(0)),
            "previous_response_id": null,
            "prompt_cache_key": self.body["prompt_cache_key"],
            "reasoning": {"effort": reasoning["effort"], "summary": reasoning["summary"]},
            "safety_identifier": self.body["safety_identifier"],
            "service_tier": "default", "store": false,
            "temperature": requested("temperature", json!(1)),
            "text": requested("text", json!({"format": {"type": "text"}})),
            "tool_choice": requested("tool_choice", json!("auto")),
            "tools": self.echoed_tools(),
            "top_logprobs": requested("top_logprobs", json!(0)),
            "top_p": requested("top_p", json!(1)),
            "truncation": requested("truncation", json!("disabled")),
            "usage": null, "user": self.body["user"],
        })
    }

    /// The tools of the request, with all keys of a function.
    fn echoed_tools(&self) -> Vec<Value> {
        let mut tools = self.body["tools"].as_array().cloned().unwrap_or_default();
        for tool in tools.iter_mut().filter(|tool| tool["type"] == "function") {
            for key in ["description", "parameters", "strict"] {
                // Mutable indexing inserts a missing key as null.
                let _ = &mut tool[key];
            }
        }
        tools
    }
}

fn usage(answer: &Answer) -> Value {
    json!({
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    })
}

/// The encrypted content of reasoning, which clients have to send back with it.
const SEAL: &str = "c2VhbGVkIHRob3VnaHRz";

/// Merges two objects.
fn with(object: &Value, more: Value) -> Value {
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut all: Map<String, Value> = members(object);
    all.extend(members(&more));
    Value::Object(all)
}

/// Pads a delta, so that all deltas have about the same length on the wire, unless the request with
/// this body declines.
pub(super) fn obfuscate(delta: &mut Value, body: &Value, piece: &str) {
    const NOISE: &str = "hV3kQz8LmT0xWc6R";
    if body["stream_options"]["include_obfuscation"] != false {
        delta["obfuscation"] = NOISE[piece.len().min(NOISE.len())..].to_owned().into();
    }
}
