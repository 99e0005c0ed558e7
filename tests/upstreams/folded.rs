//! The reply that a stream amounts to, folded from its raw JSON as the vendors' public pages
//! describe it.
//!
//! None of the gateway's types is used, so that a member which one of them drops shows as a
//! difference.

use serde_json::{Map, Value, json};
use simulator::Protocol;
use testkit::Response;

/// Folds a complete stream into its reply. Its grammar is checked by [`grammar::stream`].
#[track_caller]
pub(crate) fn reply(protocol: Protocol, response: &Response) -> Value {
    let data = response
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]");
    let events: Vec<Value> = data
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    match protocol {
        Protocol::Responses => responses(&events),
        Protocol::Chat => chat(&events),
        Protocol::Messages => messages(&events),
        Protocol::Images => panic!("pictures come whole"),
    }
}

/// <https://platform.openai.com/docs/api-reference/responses-streaming>: the last event has the
/// whole response, with the items of the events before it.
fn responses(events: &[Value]) -> Value {
    let mut output = Vec::<Value>::new();
    for event in events {
        let (subject, what) = event["type"].as_str().unwrap().rsplit_once('.').unwrap();
        match (subject, what) {
            ("response", "created" | "in_progress") => {}
            ("response", _) => {
                assert_eq!(
                    event["response"]["output"],
                    Value::from(output),
                    "the items of the events before"
                );
                return event["response"].clone();
            }
            ("response.output_item", "added") => output.push(event["item"].clone()),
            ("response.output_item", "done") => {
                let item = &mut output[index(event, "output_index")];
                for (name, value) in members(item).iter().filter(|(name, _)| *name != "status") {
                    assert_eq!(
                        &event["item"][name], value,
                        "{name} of an item that was built by events"
                    );
                }
                *item = event["item"].clone();
            }
            (_, "added") => {
                let list = if event["summary_index"].is_null() {
                    "content"
                } else {
                    "summary"
                };
                let item = &mut output[index(event, "output_index")];
                item[list]
                    .as_array_mut()
                    .unwrap()
                    .push(event["part"].clone());
            }
            (_, "delta") => append(
                &mut place(&mut output, event)[text_of(subject)],
                &event["delta"],
            ),
            (_, "done") if subject.ends_with("_part") => {
                assert_eq!(*place(&mut output, event), event["part"]);
            }
            (_, "done") => {
                assert_eq!(
                    place(&mut output, event)[text_of(subject)],
                    event[text_of(subject)],
                    "{subject}"
                );
            }
            _ => panic!("no event of an answer: {event}"),
        }
    }
    panic!("no end: {events:?}")
}

/// The part that an event refers to, or the item if it refers to no part.
fn place<'a>(output: &'a mut [Value], event: &Value) -> &'a mut Value {
    let item = &mut output[index(event, "output_index")];
    for (number, list) in [("summary_index", "summary"), ("content_index", "content")] {
        if !event[number].is_null() {
            return &mut item[list][index(event, number)];
        }
    }
    item
}

/// The member that the deltas of these events are appended to.
fn text_of(subject: &str) -> &'static str {
    match subject {
        "response.function_call_arguments" => "arguments",
        "response.refusal" => "refusal",
        _ => "text",
    }
}

/// <https://platform.openai.com/docs/api-reference/chat-streaming>: each chunk has a delta of the
/// message, and the last one the usage.
fn chat(events: &[Value]) -> Value {
    let mut reply = json!({});
    let mut choice = json!({"message": {"content": null, "refusal": null}});
    for chunk in events {
        for (name, value) in members(chunk)
            .iter()
            .filter(|(name, _)| !["choices", "obfuscation"].contains(&name.as_str()))
        {
            set(&mut reply, name, value);
        }
        let [chunk_choice] = &chunk["choices"].as_array().unwrap()[..] else {
            continue;
        };
        for (name, value) in members(chunk_choice)
            .iter()
            .filter(|(name, _)| *name != "delta")
        {
            set(&mut choice, name, value);
        }
        for (name, value) in members(&chunk_choice["delta"]) {
            match name.as_str() {
                "tool_calls" => call(&mut choice["message"], value),
                "role" => set(&mut choice["message"], name, value),
                "reasoning_details" => extend(&mut choice["message"][name], value),
                _ => append(&mut choice["message"][name], value),
            }
        }
    }
    if choice["message"]["content"] == "" {
        choice["message"]["content"] = Value::Null;
    }
    reply["object"] = "chat.completion".into();
    reply["choices"] = json!([choice]);
    reply
}

/// Adds pieces of calls to a message: the first piece of each has everything but the arguments.
fn call(message: &mut Value, pieces: &Value) {
    if message["tool_calls"].is_null() {
        message["tool_calls"] = json!([]);
    }
    let calls = message["tool_calls"].as_array_mut().unwrap();
    for piece in pieces.as_array().unwrap() {
        let number = index(piece, "index");
        if number < calls.len() {
            append(
                &mut calls[number]["function"]["arguments"],
                &piece["function"]["arguments"],
            );
        } else {
            let mut call = piece.clone();
            call.as_object_mut().unwrap().remove("index");
            calls.push(call);
        }
    }
}

/// <https://docs.anthropic.com/en/docs/build-with-claude/streaming>: `message_start` has the
/// message without its blocks, and `message_delta` changes it at its end.
fn messages(events: &[Value]) -> Value {
    let mut reply = Value::Null;
    for event in events {
        match event["type"].as_str().unwrap() {
            "message_start" => reply = event["message"].clone(),
            "content_block_start" => reply["content"]
                .as_array_mut()
                .unwrap()
                .push(event["content_block"].clone()),
            "content_block_delta" => {
                let block = &mut reply["content"][index(event, "index")];
                for (name, piece) in members(&event["delta"])
                    .iter()
                    .filter(|(name, _)| *name != "type")
                {
                    append(&mut block[name], piece);
                }
            }
            "content_block_stop" => {
                let block = &mut reply["content"][index(event, "index")];
                if let Some(arguments) = block.as_object_mut().unwrap().remove("partial_json") {
                    block["input"] = serde_json::from_str(arguments.as_str().unwrap()).unwrap();
                }
            }
            "message_delta" => {
                members(&event["delta"])
                    .iter()
                    .for_each(|(name, value)| reply[name] = value.clone());
                members(&event["usage"])
                    .iter()
                    .for_each(|(name, value)| reply["usage"][name] = value.clone());
            }
            "ping" | "message_stop" => {}
            _ => panic!("no event of an answer: {event}"),
        }
    }
    reply
}

/// Sets a member that is null until an event has it.
fn set(object: &mut Value, name: &str, value: &Value) {
    let member = object
        .as_object_mut()
        .unwrap()
        .entry(name)
        .or_insert(Value::Null);
    if !value.is_null() {
        *member = value.clone();
    }
}

/// Adds the elements of a list.
fn extend(list: &mut Value, more: &Value) {
    match list.as_array_mut() {
        Some(list) => list.extend_from_slice(more.as_array().unwrap()),
        None => *list = more.clone(),
    }
}

/// Adds a piece of a text, if there is one.
fn append(text: &mut Value, piece: &Value) {
    if let Some(piece) = piece.as_str() {
        *text = format!("{}{piece}", text.as_str().unwrap_or_default()).into();
    }
}

fn members(value: &Value) -> &Map<String, Value> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("no object: {value}"))
}

fn index(event: &Value, name: &str) -> usize {
    event[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name}: {event}")) as usize
}
