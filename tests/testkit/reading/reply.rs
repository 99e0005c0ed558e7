//! Plain replies.

use serde_json::Value;
use simulator::Protocol;

use super::{End, Reading, Usage, failure, is_picture, list, parts, texts, truth};

/// Parses a plain reply.
pub(super) fn read(protocol: Protocol, reply: &Value) -> Reading {
    let mut reading = Reading {
        usage: Usage::of(&reply["usage"]),
        contradiction: truth::reply(protocol, reply).err(),
        ..Reading::default()
    };
    reading.name(&reply["model"]);
    let is_finished = match protocol {
        Protocol::Responses => response(reply, &mut reading),
        Protocol::Chat => completion(reply, &mut reading),
        Protocol::Messages => message(reply, &mut reading),
        Protocol::Images => {
            reading.words = list(reply, "data")
                .flat_map(|picture| texts(picture, &["b64_json"]))
                .collect();
            let pictures: Vec<_> = list(reply, "data").collect();
            let is_whole = |picture: &&Value| is_picture(&picture["b64_json"]);
            !pictures.is_empty() && pictures.iter().all(is_whole)
        }
    };
    let end = if is_finished {
        End::Success
    } else {
        End::Missing
    };
    Reading {
        end: failure(reply).unwrap_or(end),
        ..reading
    }
}

/// Parses a response object; returns true if it is finished.
pub(super) fn response(response: &Value, reading: &mut Reading) -> bool {
    for item in list(response, "output") {
        match item["type"].as_str() {
            Some("reasoning") => reading
                .words
                .extend(list(item, "summary").flat_map(|part| texts(part, &["text"]))),
            Some("function_call") => reading.words.extend(texts(item, &["arguments"])),
            _ => reading
                .words
                .extend(list(item, "content").flat_map(|part| texts(part, &["text", "refusal"]))),
        }
    }
    note_incomplete(response, reading);
    matches!(
        response["status"].as_str(),
        Some("completed" | "incomplete")
    )
}

/// Notes whether a response is complete.
pub(super) fn note_incomplete(response: &Value, reading: &mut Reading) {
    reading.is_incomplete = response["status"] == "incomplete";
    let reason = |owed| {
        response["status"] == "incomplete" && response["incomplete_details"]["reason"] == owed
    };
    reading.is_cut = reason("max_output_tokens");
    reading.is_filtered = reason("content_filter");
}

fn completion(completion: &Value, reading: &mut Reading) -> bool {
    for choice in list(completion, "choices") {
        let message = &choice["message"];
        let calls = list(message, "tool_calls").map(|call| &call["function"]);
        reading
            .words
            .extend(texts(message, &["reasoning_content", "content", "refusal"]));
        reading.words.extend(parts(&message["content"]));
        reading
            .words
            .extend(calls.flat_map(|function| texts(function, &["arguments"])));
        reading.finish(Protocol::Chat, &choice["finish_reason"]);
    }
    let mut choices = list(completion, "choices").peekable();
    choices.peek().is_some() && choices.all(|choice| choice["finish_reason"].is_string())
}

fn message(message: &Value, reading: &mut Reading) -> bool {
    for block in list(message, "content") {
        match block["type"].as_str() {
            Some("tool_use") => reading.words += &block["input"].to_string(),
            _ => reading.words.extend(texts(block, &["thinking", "text"])),
        }
    }
    reading.finish(Protocol::Messages, &message["stop_reason"]);
    message["type"] == "message" && message["stop_reason"].is_string()
}
