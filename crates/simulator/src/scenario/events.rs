//! Faults in the content of events.

use serde_json::{Value, json};

use super::{Scenario, pair};
use crate::honest::{self, Event, Failure, Reply};
use crate::play::Play;
use crate::request::{Protocol, Request};

scenarios! {
    "malformed-event" [S5] "a delta with truncated JSON" =>
        |request, _| with_delta(request, |event| event.data.truncate(event.data.len() / 2));
    "not-an-object" [S5] "a delta that is a JSON string" =>
        |request, _| with_delta(request, |event| event.data = "\"a string\"".into());
    "wrong-type" [S5] "a delta that is a number" => |request, _| change_delta(request, |data| match request.protocol() {
        Some(Protocol::Images) => data["b64_json"] = 7.into(),
        Some(Protocol::Chat) => data["choices"][0]["delta"] = 7.into(),
        _ => data["delta"] = 7.into(),
    });
    "missing-delta" [S5] "a delta event without its delta" => |request, _| change_delta(request, |data| {
        let holder = if data["choices"].is_array() { &mut data["choices"][0] } else { data };
        for member in ["delta", "b64_json"] {
            holder.as_object_mut().and_then(|holder| holder.shift_remove(member));
        }
    });
    "unknown-event" [S6] "an event of an unknown type" => unknown;
    "event-name-lies" [S13] "event: lines that do not match the data" => wrong_name;
    "huge-index-N" (2_147_483_648) [S15] "a delta of index N" => huge_index;
    "usage-missing" [S8] "a terminal event without usage" => usage_missing;
    "usage-twice" [S8] "Chat: the usage twice" => |request, _| edit(request, |events| {
        if let Some(place) = events.iter().position(is_usage_chunk) {
            events.insert(place, events[place].clone());
        }
    });
    "failed-first" [U14] "a failure before the first delta" => |request, _| fail(request, 500, |_| 0);
    "failed-middle" [U14] "a failure in the middle" => |request, _| fail(request, 500, |events| events.len() / 2);
    "failed-last" [U14] "a failure instead of the end" =>
        |request, _| fail(request, 500, |events| end_of_answer(request, events));
    "limited-first" [U14] "a rate limit error in the stream, before the first delta" =>
        |request, _| fail(request, 429, |_| 0);
}

fn unknown(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| {
        let place = first_delta(events);
        let data = match request.protocol() {
            Some(Protocol::Responses) => {
                json!({"type": "response.simulated", "sequence_number": 0, "note": "unknown"})
            }
            Some(Protocol::Chat) => {
                let mut data: Value = serde_json::from_str(&events[place].data).unwrap_or_default();
                data["choices"][0]["delta"] = json!({"note": "unknown"});
                data
            }
            _ => json!({"type": "simulated", "note": "unknown"}),
        };
        events.insert(place, Event::new(&data));
        renumber(events);
    })
}

fn wrong_name(request: &Request, _: [u64; 2]) -> Play {
    let name = match request.protocol() {
        Some(Protocol::Responses) => "response.completed",
        Some(Protocol::Messages) => "message_stop",
        Some(Protocol::Images) => "image_generation.completed",
        _ => "error",
    };
    edit(request, |events| {
        events
            .iter_mut()
            .for_each(|event| event.name = Some(name.to_owned()));
    })
}

fn huge_index(request: &Request, [index, _]: [u64; 2]) -> Play {
    change_delta(request, |data| {
        for member in ["index", "output_index", "partial_image_index"] {
            if data[member].is_number() {
                data[member] = index.into();
            }
        }
        if data["choices"].is_array() {
            data["choices"][0]["index"] = index.into();
        }
    })
}

fn usage_missing(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| {
        events.retain(|event| !is_usage_chunk(event));
        for event in events
            .iter_mut()
            .filter(|event| event.data.contains("\"usage\""))
        {
            event.change(|data| match data["type"].as_str() {
                Some("response.completed" | "response.incomplete") => {
                    data["response"]["usage"] = Value::Null;
                }
                Some("message_start") => {}
                _ => {
                    data.as_object_mut()
                        .and_then(|data| data.shift_remove("usage"));
                }
            });
        }
    })
}

/// A conforming stream with edited events. Plain replies are not changed.
pub(super) fn edit(request: &Request, edit: impl FnOnce(&mut Vec<Event>)) -> Play {
    let mut reply = honest::reply(request);
    if let Reply::Events(events) = &mut reply {
        edit(events);
    }
    reply.play(request)
}

/// A conforming stream with changed data of its first delta.
pub(super) fn change_delta(request: &Request, change_data: impl FnOnce(&mut Value)) -> Play {
    with_delta(request, |event| event.change(change_data))
}

/// The index of the first delta; for pictures, of the first event.
pub(super) fn first_delta(events: &[Event]) -> usize {
    let is_delta = |event: &Event| match event.name.as_deref() {
        Some(name) => name.ends_with(".delta") || name == "content_block_delta",
        None => !event.data.contains("\"role\""),
    };
    events.iter().position(is_delta).unwrap_or_default()
}

/// The index of the event with the finish reason, or of the last event.
pub(super) fn end_of_answer(request: &Request, events: &[Event]) -> usize {
    let finishes = |event: &Event| match request.protocol() {
        Some(Protocol::Chat) => event.data.contains("\"finish_reason\":\""),
        Some(Protocol::Messages) => event.name.as_deref() == Some("message_delta"),
        _ => false,
    };
    events
        .iter()
        .position(finishes)
        .unwrap_or(events.len().saturating_sub(1))
}

/// Renumbers the events, if they have sequence numbers.
pub(super) fn renumber(events: &mut [Event]) {
    for (number, event) in events
        .iter_mut()
        .enumerate()
        .filter(|(_, event)| event.data.contains("\"sequence_number\""))
    {
        event.change(|data| data["sequence_number"] = number.into());
    }
}

fn with_delta(request: &Request, edit_delta: impl FnOnce(&mut Event)) -> Play {
    edit(request, |events| {
        let place = first_delta(events);
        edit_delta(&mut events[place]);
    })
}

/// Replaces the event at `place` and all later ones with a failure of this status. In Responses the
/// first event is always kept.
fn fail(request: &Request, status: u16, place: impl FnOnce(&[Event]) -> usize) -> Play {
    let message = match status {
        429 => "Rate limit reached for org-simulator-secret. Please try again in 1.5s.",
        _ => "The server had an error while processing your request (internal-host-7).",
    };
    let failure = Failure::of_status(status, message);
    edit(request, |events| {
        let is_responses = request.protocol() == Some(Protocol::Responses);
        let place = place(events).max(usize::from(is_responses));
        let event = match request.protocol() {
            Some(Protocol::Responses) => {
                let mut data: Value = serde_json::from_str(&events[0].data).unwrap_or_default();
                data["type"] = "response.failed".into();
                data["response"]["status"] = "failed".into();
                data["response"]["error"] = failure.openai_error();
                Event::new(&data)
            }
            Some(Protocol::Chat) => Event::new(&json!({"error": failure.openai_error()})),
            Some(Protocol::Messages) => Event::new(&failure.messages_error()),
            _ => Event::new(&json!({"type": "error", "error": failure.openai_error()})),
        };
        events.truncate(place);
        events.push(event);
        renumber(events);
    })
}

fn is_usage_chunk(event: &Event) -> bool {
    event.name.is_none() && event.data.contains("\"choices\":[]")
}
