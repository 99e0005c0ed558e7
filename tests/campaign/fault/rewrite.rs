//! Complete replies whose end is another word, or whose parts contradict each other.

use serde_json::{Value, json};
use simulator::{Play, Protocol};
use testkit::dice::Dice;

/// A change of the content of a complete reply, after which it may no longer be a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// The reason for the end is this word.
    Finish(&'static str),
    /// The arguments of every call lack their last brace, wherever they are.
    CutArguments,
    /// The complete texts differ from their deltas.
    OtherText,
    /// The response of an upstream of Responses is incomplete because of a filter.
    Filtered,
}

impl Rewrite {
    pub(crate) fn draw(dice: &mut Dice, upstream: Protocol) -> Self {
        match dice.among(0..4) {
            0 => Self::CutArguments,
            1 if upstream == Protocol::Responses => Self::OtherText,
            2 if upstream == Protocol::Responses => Self::Filtered,
            _ => {
                let words = words(upstream);
                Self::Finish(words[dice.among(0..words.len())])
            }
        }
    }

    /// Changes every event of a stream, or a plain reply.
    pub(crate) fn of(self, play: Play) -> Play {
        let pieces: Vec<_> = play.pieces().map(|piece| self.piece(piece)).collect();
        play.with_pieces(pieces)
    }

    fn piece(self, piece: &[u8]) -> Vec<u8> {
        let line = |line: &str| {
            let (field, data) = line.split_at(line.find('{').unwrap_or(line.len()));
            match serde_json::from_str::<Value>(data) {
                Ok(mut value) => {
                    self.change(&mut value);
                    format!("{field}{value}")
                }
                Err(_) => line.to_owned(),
            }
        };
        let text = String::from_utf8_lossy(piece);
        let changed = text.split('\n').map(line).collect::<Vec<_>>().join("\n");
        if self == Self::Filtered {
            changed
                .replace("response.completed", "response.incomplete")
                .into_bytes()
        } else {
            changed.into_bytes()
        }
    }

    fn change(self, value: &mut Value) {
        match self {
            Self::Finish(word) => finish(value, word),
            Self::CutArguments => {
                let is_delta = value["type"] == "response.function_call_arguments.delta";
                if let Some(Value::String(delta)) = value.get_mut("delta").filter(|_| is_delta)
                    && delta.ends_with('}')
                {
                    delta.pop();
                }
                cut_arguments(value);
            }
            Self::Filtered => filter(value),
            Self::OtherText => {
                let is_done = value["type"]
                    .as_str()
                    .is_some_and(|kind| kind.ends_with("text.done"));
                if is_done && let Some(text) = value.get_mut("text") {
                    *text = "Another text.".into();
                }
            }
        }
    }
}

/// Replaces the word for the end, where there is one.
fn finish(value: &mut Value, word: &str) {
    let places = [
        "/choices/0/finish_reason",
        "/delta/stop_reason",
        "/stop_reason",
        "/status",
        "/response/status",
    ];
    for place in places {
        if let Some(found) = value.pointer_mut(place)
            && found.as_str().is_some_and(|found| ENDS.contains(&found))
        {
            *found = word.into();
        }
    }
}

/// Marks a final response as cut by a filter.
fn filter(value: &mut Value) {
    let response = if value["type"] == "response.completed" {
        &mut value["response"]
    } else {
        value
    };
    if response["object"] == "response" && response["status"] == "completed" {
        response["status"] = "incomplete".into();
        response["incomplete_details"] = json!({"reason": "content_filter"});
    }
}

/// Removes the last brace of arguments, in whatever piece it is.
fn cut_arguments(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text)
                        if matches!(name.as_str(), "arguments" | "partial_json")
                            && text.ends_with('}') =>
                    {
                        text.pop();
                    }
                    member => cut_arguments(member),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(cut_arguments),
        _ => {}
    }
}

/// The words for the end that servers of a protocol send: of success, of a limit, of a filter, of
/// failures, and none.
fn words(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::Chat => &[
            "stop",
            "eos",
            "COMPLETE",
            "tool_calls",
            "function_call",
            "length",
            "model_length",
            "content_filter",
            "SAFETY",
            "network_error",
            "cancelled",
            "error",
            "insufficient_system_resource",
            "MALFORMED_FUNCTION_CALL",
            "",
        ],
        Protocol::Messages => &[
            "end_turn",
            "stop_sequence",
            "tool_use",
            "max_tokens",
            "model_context_window_exceeded",
            "refusal",
            "error",
            "network_error",
            "cancelled",
            "",
        ],
        Protocol::Responses | Protocol::Images => &[
            "completed",
            "failed",
            "cancelled",
            "in_progress",
            "queued",
            "done",
        ],
    }
}

/// The words for the end that a conforming upstream sends.
const ENDS: [&str; 9] = [
    "stop",
    "tool_calls",
    "length",
    "end_turn",
    "tool_use",
    "max_tokens",
    "refusal",
    "completed",
    "incomplete",
];
