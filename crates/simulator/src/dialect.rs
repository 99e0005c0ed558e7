//! The forms in which real servers send their replies.
//!
//! The first segment of a request's path selects one: the requests of a client whose base URL is
//! `http://127.0.0.1:9100/deepseek/v1` get replies in the form of DeepSeek's server. Faults are
//! selected by the model name as ever, so that `reset-at-200` there is a DeepSeek that breaks off.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::reply::{Event, Reply};
use crate::request::{Protocol, Request};

/// A server whose replies have a form of their own.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The segment of the path that selects it.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    protocol: Protocol,
    /// Changes each chunk or event of a stream.
    event: fn(&mut Value),
    /// Changes the sequence of a stream.
    stream: fn(&mut Vec<Event>),
    /// Changes a plain reply.
    plain: fn(&mut Value),
}

impl Dialect {
    /// The protocol of its replies.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }
}

/// Returns all dialects. Requests in another protocol than theirs get conforming replies.
#[must_use]
pub fn all() -> &'static [Dialect] {
    &ALL
}

/// Returns the request as the server of the dialect reads it. Mistral sends the usage of a stream
/// without a request for it (<https://docs.mistral.ai/api/endpoint/chat>).
pub(crate) fn understood(request: &Request) -> Cow<'_, Request> {
    match of(request) {
        Some(dialect) if dialect.name == "mistral" && request.streams() => {
            let mut body = request.json();
            body["stream_options"] = json!({"include_usage": true});
            let mut request = request.clone();
            request.body = body.to_string().into();
            Cow::Owned(request)
        }
        _ => Cow::Borrowed(request),
    }
}

/// Changes the reply to a request into the form that its path selects.
pub(crate) fn apply(request: &Request, reply: &mut Reply) {
    let Some(dialect) = of(request) else { return };
    match reply {
        Reply::Json(200, body) => (dialect.plain)(body),
        Reply::Json(..) => {}
        Reply::Events(events) => {
            (dialect.stream)(events);
            events
                .iter_mut()
                .for_each(|event| event.change(dialect.event));
        }
    }
}

fn of(request: &Request) -> Option<&'static Dialect> {
    let segment = request.route().split('/').nth(1)?;
    ALL.iter()
        .find(|known| known.name == segment && request.protocol() == Some(known.protocol))
}

const ALL: [Dialect; 16] = [
    Dialect {
        stream: filter_results_first,
        event: filter_results,
        plain: filter_results,
        ..chat(
            "azure",
            "filter results; a first chunk without choices has the prompt's",
        )
    },
    Dialect {
        stream: usage_with_the_finish,
        ..chat("deepseek", "the usage comes with the finish reason")
    },
    Dialect {
        stream: |events| {
            usage_with_the_finish(events);
            whole_calls(events);
        },
        event: |chunk| each_message(chunk, reasoning_as_parts),
        plain: |reply| each_message(reply, reasoning_as_parts),
        ..chat(
            "mistral",
            "content is a list of parts where there is reasoning, calls come whole",
        )
    },
    Dialect {
        stream: usage_with_the_finish,
        event: |chunk| {
            rename_reasoning(chunk);
            chunk["x_groq"] = json!({"id": "req_0000000000000001"});
        },
        plain: rename_reasoning,
        ..chat(
            "groq",
            "reasoning is in the member `reasoning`, and x_groq beside",
        )
    },
    Dialect {
        event: |chunk| each_message(chunk, role),
        ..chat("xai", "the role is in each chunk")
    },
    Dialect {
        event: openrouter,
        plain: |reply| {
            rename_reasoning(reply);
            reply["provider"] = "Example".into();
        },
        ..chat(
            "openrouter",
            "the role is in each chunk, the reason of the provider beside the finish reason",
        )
    },
    Dialect {
        stream: |events| {
            usage_with_the_finish(events);
            whole_calls(events);
        },
        event: |chunk| {
            each_message(chunk, calls_without_index);
            each_choice(chunk, stop_for_calls);
        },
        plain: |reply| each_choice(reply, stop_for_calls),
        ..chat(
            "gemini",
            "calls come whole and without an index, and the finish reason is `stop` all the same",
        )
    },
    Dialect {
        stream: usage_with_the_finish,
        event: |chunk| each_choice(chunk, |choice| choice["seed"] = 1.into()),
        ..chat(
            "together",
            "the usage comes with the finish reason, and a seed in each choice",
        )
    },
    Dialect {
        stream: usage_with_the_finish,
        ..chat("fireworks", "the usage comes with the finish reason")
    },
    Dialect {
        stream: whole_calls,
        event: |chunk| {
            rename_reasoning(chunk);
            each_message(chunk, role);
            each_choice(chunk, stop_for_calls);
        },
        plain: rename_reasoning,
        ..chat(
            "ollama",
            "the role is in each chunk, calls come whole, reasoning is in the member `reasoning`",
        )
    },
    Dialect {
        event: rename_reasoning,
        plain: rename_reasoning,
        ..chat("vllm", "reasoning is in the member `reasoning`")
    },
    Dialect {
        event: |chunk| each_choice(chunk, |choice| choice["matched_stop"] = Value::Null),
        ..chat("sglang", "each choice has the stop sequence that matched")
    },
    Dialect {
        stream: usage_with_the_finish,
        event: timings,
        plain: timings,
        ..chat(
            "llama-cpp",
            "the usage comes with the finish reason, and timings beside",
        )
    },
    Dialect {
        plain: |reply| reply["stats"] = json!({}),
        event: |chunk| chunk["system_fingerprint"] = Value::Null,
        ..chat("lm-studio", "statistics beside the completion")
    },
    Dialect {
        event: invocation_metrics,
        ..messages(
            "bedrock",
            "the last event has the metrics of the invocation",
        )
    },
    Dialect {
        event: |event| {
            if event["type"] == "message_start" {
                event["message"]["id"] = "msg_vrtx_0000000000000001".into();
            }
        },
        ..messages("vertex", "ids have a prefix of the cloud")
    },
];

/// A conforming server of Chat Completions.
const fn chat(name: &'static str, about: &'static str) -> Dialect {
    Dialect {
        name,
        about,
        protocol: Protocol::Chat,
        event: |_| {},
        stream: |_| {},
        plain: |_| {},
    }
}

/// A conforming server of Messages.
const fn messages(name: &'static str, about: &'static str) -> Dialect {
    Dialect {
        protocol: Protocol::Messages,
        ..chat(name, about)
    }
}

/// <https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-streaming>
fn filter_results_first(events: &mut Vec<Event>) {
    let about_prompt = json!([{"prompt_index": 0, "content_filter_results": results()}]);
    events.insert(
        0,
        Event::new(&json!({
            "choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": about_prompt,
        })),
    );
}

/// The results of a filter that found nothing.
fn results() -> Value {
    json!({
        "hate": {"filtered": false, "severity": "safe"},
        "violence": {"filtered": false, "severity": "safe"},
    })
}

fn filter_results(reply: &mut Value) {
    each_choice(reply, |choice| choice["content_filter_results"] = results());
}

/// Moves the usage to the chunk with the finish reason:
/// <https://api-docs.deepseek.com/api/create-chat-completion>.
fn usage_with_the_finish(events: &mut Vec<Event>) {
    let usage = events.iter().position(|event| {
        event.data.contains("\"choices\":[]") && event.data.contains("\"usage\":{")
    });
    let Some(usage) = usage.map(|place| events.remove(place)) else {
        return;
    };
    let usage: Value = serde_json::from_str(&usage.data).unwrap_or_default();
    let finish = events
        .iter_mut()
        .rfind(|event| event.data.contains("\"finish_reason\":\""));
    if let Some(finish) = finish {
        finish.change(|chunk| chunk["usage"] = usage["usage"].clone());
    }
}

/// Sends each call in one chunk, as <https://docs.mistral.ai/capabilities/function_calling/> has it.
fn whole_calls(events: &mut Vec<Event>) {
    let mut merged: Vec<Event> = Vec::new();
    for event in events.drain(..) {
        let piece = first_call(&event).filter(|call| call["id"].is_null());
        match (piece, merged.last_mut()) {
            (Some(piece), Some(first)) => first.change(|chunk| {
                let arguments =
                    &mut chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"];
                let more = piece["function"]["arguments"].as_str().unwrap_or_default();
                *arguments = format!("{}{more}", arguments.as_str().unwrap_or_default()).into();
            }),
            _ => merged.push(event),
        }
    }
    *events = merged;
}

/// The call in a chunk.
fn first_call(event: &Event) -> Option<Value> {
    let chunk: Value = serde_json::from_str(&event.data).ok()?;
    chunk.pointer("/choices/0/delta/tool_calls/0").cloned()
}

fn openrouter(chunk: &mut Value) {
    rename_reasoning(chunk);
    each_message(chunk, role);
    each_choice(chunk, |choice| {
        choice["native_finish_reason"] = choice["finish_reason"].clone();
    });
    chunk["provider"] = "Example".into();
}

/// <https://docs.mistral.ai/capabilities/reasoning/>
fn reasoning_as_parts(message: &mut Value) {
    let Some(reasoning) = take(message, "reasoning_content") else {
        return;
    };
    let mut parts =
        vec![json!({"type": "thinking", "thinking": [{"type": "text", "text": reasoning}]})];
    if let Some(text) = message["content"].as_str() {
        parts.push(json!({"type": "text", "text": text}));
    }
    message["content"] = parts.into();
}

fn rename_reasoning(reply: &mut Value) {
    each_message(reply, |message| {
        if let Some(reasoning) = take(message, "reasoning_content") {
            message["reasoning"] = reasoning;
        }
    });
}

fn role(message: &mut Value) {
    message["role"] = "assistant".into();
}

fn calls_without_index(message: &mut Value) {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        take(call, "index");
    }
}

fn stop_for_calls(choice: &mut Value) {
    if choice["finish_reason"] == "tool_calls" {
        choice["finish_reason"] = "stop".into();
    }
}

/// <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>
fn timings(reply: &mut Value) {
    if reply["usage"].is_object() {
        reply["timings"] = json!({"prompt_n": 1, "predicted_n": 1, "predicted_per_second": 20.5});
    }
}

/// <https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html>
fn invocation_metrics(event: &mut Value) {
    if event["type"] == "message_stop" {
        event["amazon-bedrock-invocationMetrics"] =
            json!({"inputTokenCount": 1, "outputTokenCount": 1, "invocationLatency": 9});
    }
}

fn each_choice(reply: &mut Value, mut change: impl FnMut(&mut Value)) {
    let choices = reply.get_mut("choices").and_then(Value::as_array_mut);
    choices.into_iter().flatten().for_each(&mut change);
}

/// Changes the message or the delta of each choice.
fn each_message(reply: &mut Value, change: fn(&mut Value)) {
    each_choice(reply, |choice| {
        for name in ["message", "delta"] {
            if let Some(message) = choice.get_mut(name) {
                change(message);
            }
        }
    });
}

fn take(object: &mut Value, name: &str) -> Option<Value> {
    object.as_object_mut()?.shift_remove(name)
}
