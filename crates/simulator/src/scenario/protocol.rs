//! Deviations from the protocols that are common among servers.

use serde_json::{Value, json};

use super::events::edit;
use super::{Scenario, pair};
use crate::honest::{self, Event, Reply};
use crate::play::Play;
use crate::request::{Protocol, Request};

scenarios! {
    "responses-error-event" [U14] "Responses: an error event with a nested error, instead of response.failed" =>
        |request, _| failing(request, &json!({"type": "error", "sequence_number": 2, "error": {
            "type": "server_error", "code": "server_error", "message": "The server failed.", "param": null,
        }}));
    "responses-error-event-flat" [U14] "Responses: an error event with flat fields" =>
        |request, _| failing(request, &json!({
            "type": "error", "sequence_number": 2,
            "code": "server_error", "message": "The server failed.", "param": null,
        }));
    "vllm" [S6 U9] "Chat in the form of common open-source servers" => |request, _| if_chat(request, vllm);
    "filtered" [S6] "Chat: filter results, and a first chunk with only the prompt's" =>
        |request, _| if_chat(request, filtered);
    "think-tags" [] "Chat: reasoning in the text, between tags" => |request, _| if_chat(request, think_tags);
}

/// Chat in the form of common open-source servers: reasoning in another field, the role in every
/// chunk, calls without an index but with their id in every delta and the finish reason `stop`, the
/// usage in the last chunk, no `[DONE]`. In plain replies, arguments are objects.
fn vllm(request: &Request) -> Play {
    match honest::reply(request) {
        Reply::Json(status, mut body) => {
            deviate_plain(&mut body);
            Reply::Json(status, body).play(request)
        }
        Reply::Events(mut events) => {
            deviate(&mut events);
            let events = events.iter().map(Event::encoded);
            honest::answer(request)
                .with_pieces([": connected\n\n".into()].into_iter().chain(events))
        }
    }
}

/// Chat in the form of a cloud with content filters: the first chunk has only the results of the
/// prompt, and every choice has filter results.
fn filtered(request: &Request) -> Play {
    let results = json!({"hate": {"filtered": false, "severity": "safe"}, "violence": {"filtered": false, "severity": "safe"}});
    let about_prompt = json!([{"prompt_index": 0, "content_filter_results": results}]);
    let mark = |data: &mut Value| {
        for choice in data["choices"].as_array_mut().into_iter().flatten() {
            choice["content_filter_results"] = results.clone();
        }
    };
    let mut reply = honest::reply(request);
    match &mut reply {
        Reply::Json(_, body) => {
            mark(body);
            body["prompt_filter_results"] = about_prompt;
        }
        Reply::Events(events) => {
            events.iter_mut().for_each(|event| event.change(mark));
            let first = json!({
                "choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": about_prompt,
            });
            events.insert(0, Event::new(&first));
        }
    }
    reply.play(request)
}

/// Chat with the reasoning in the text.
fn think_tags(request: &Request) -> Play {
    if let Reply::Json(status, mut body) = honest::reply(request) {
        let text = &mut body["choices"][0]["message"]["content"];
        if let Some(content) = text.as_str() {
            *text = format!("{REASONING}{content}").into();
        }
        return Reply::Json(status, body).play(request);
    }
    edit(request, |events| {
        let Some(place) = events
            .iter()
            .position(|event| event.data.contains("\"delta\":{\"content\""))
        else {
            return;
        };
        let pieces = REASONING.split_inclusive(' ').map(|piece| {
            let mut event = events[place].clone();
            event.change(|data| {
                data["choices"][0]["delta"]["content"] = piece.into();
            });
            event
        });
        let pieces: Vec<Event> = pieces.collect();
        events.splice(place..place, pieces);
    })
}

/// A stream of Responses that ends with this event after the first two.
fn failing(request: &Request, error: &Value) -> Play {
    edit(request, |events| {
        if request.protocol() == Some(Protocol::Responses) {
            events.truncate(2);
            events.push(Event::new(error));
        }
    })
}

/// Plays a scenario of Chat; the other protocols get a conforming reply.
fn if_chat(request: &Request, play: fn(&Request) -> Play) -> Play {
    if request.protocol() == Some(Protocol::Chat) {
        play(request)
    } else {
        honest::answer(request)
    }
}

fn deviate_plain(body: &mut Value) {
    for choice in body["choices"].as_array_mut().into_iter().flatten() {
        rename(&mut choice["message"], "reasoning_content", "reasoning");
        for call in choice["message"]["tool_calls"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let arguments = &mut call["function"]["arguments"];
            *arguments = arguments
                .as_str()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default();
        }
        stop_for_calls(choice);
    }
}

fn deviate(events: &mut Vec<Event>) {
    events.pop();
    let usage = events
        .iter()
        .position(|event| event.data.contains("\"choices\":[]"))
        .map(|place| events.remove(place));
    let usage: Value = usage
        .and_then(|event| serde_json::from_str(&event.data).ok())
        .unwrap_or_default();
    let last = events.len().saturating_sub(1);
    let mut ids = Vec::new();
    for (place, event) in events.iter_mut().enumerate() {
        event.change(|data| {
            let choice = &mut data["choices"][0];
            choice["delta"]["role"] = "assistant".into();
            rename(&mut choice["delta"], "reasoning_content", "reasoning");
            repeat_id(&mut choice["delta"], &mut ids);
            stop_for_calls(choice);
            data.as_object_mut()
                .and_then(|data| data.shift_remove("obfuscation"));
            if place == last && usage["usage"].is_object() {
                data["usage"] = usage["usage"].clone();
            }
        });
    }
}

/// Replaces the index of a call delta with the id, which `ids` contains by index.
fn repeat_id(delta: &mut Value, ids: &mut Vec<Value>) {
    for call in delta
        .get_mut("tool_calls")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if call["id"].is_string() {
            ids.push(call["id"].clone());
        }
        let index = call
            .as_object_mut()
            .and_then(|call| call.shift_remove("index"));
        let index = index.and_then(|index| usize::try_from(index.as_u64()?).ok());
        call["id"] = index
            .and_then(|index| ids.get(index))
            .cloned()
            .unwrap_or_default();
        call["type"] = "function".into();
    }
}

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(value) = object
        .as_object_mut()
        .and_then(|object| object.shift_remove(from))
    {
        object[to] = value;
    }
}

fn stop_for_calls(choice: &mut Value) {
    if choice["finish_reason"] == "tool_calls" {
        choice["finish_reason"] = "stop".into();
    }
}

const REASONING: &str = "<think>The user said something. I answer it.</think>";
