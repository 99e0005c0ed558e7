//! Drawn answers, written as servers that bend a protocol write them.

use std::collections::BTreeMap;

use accumulator::{Answer, Call, Protocol, add_up};
use engine::EngineError;
use proptest::collection::vec;
use proptest::prelude::*;
use relay::{Chat, Messages, Responses};
use serde_json::{Value, json};

use super::{relayed, translated};

/// The ways in which a server bends a stream.
#[derive(Clone, Copy, Debug)]
struct Bends {
    /// The index of the first call, block or item.
    first: u64,
    /// True if the choices of a chunk are in reverse order.
    reversed: bool,
    repeats_names: bool,
    all_numbered_zero: bool,
    lacks_indexes: bool,
    lists_texts: bool,
    has_nulls: bool,
    escapes_names: bool,
    cuts_pairs: bool,
}

fn bends() -> impl Strategy<Value = Bends> {
    (0..3_u64, any::<[bool; 8]>()).prop_map(|(first, flags)| {
        let [
            reversed,
            repeats_names,
            all_numbered_zero,
            lacks_indexes,
            ..,
        ] = flags;
        let [.., lists_texts, has_nulls, escapes_names, cuts_pairs] = flags;
        Bends {
            first,
            reversed,
            repeats_names,
            all_numbered_zero,
            lacks_indexes,
            lists_texts,
            has_nulls,
            escapes_names,
            cuts_pairs,
        }
    })
}

fn words() -> impl Strategy<Value = Vec<String>> {
    vec(
        prop_oneof![
            "[a-z\u{e9}\u{1f600}\"\\\\]{1,4}",
            Just("\u{1f600}".to_owned())
        ],
        1..4,
    )
}

/// An answer, with its texts and the arguments of its calls in pieces.
#[derive(Clone, Debug)]
struct Drawn {
    text: Vec<String>,
    reasoning: Vec<String>,
    calls: Vec<Vec<String>>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let calls = vec(words(), 0..3);
    (words(), words(), calls).prop_map(|(text, reasoning, calls)| Drawn {
        text,
        reasoning,
        // The arguments are a JSON text, in pieces.
        calls: calls
            .into_iter()
            .map(|pieces| {
                let text = json!(pieces.concat()).to_string();
                text.chars().map(String::from).collect()
            })
            .collect(),
    })
}

impl Drawn {
    fn answer(&self) -> Answer {
        let call = |(number, pieces): (usize, &Vec<String>)| Call {
            id: id(number),
            name: "f".to_owned(),
            arguments: pieces.concat(),
        };
        Answer {
            text: self.text.concat(),
            refusal: String::new(),
            reasoning: self.reasoning.concat(),
            calls: self.calls.iter().enumerate().map(call).collect(),
        }
    }
}

fn id(number: usize) -> String {
    format!("call_{number}")
}

/// The JSON text of an event.
fn written(event: &Value, bends: Bends) -> String {
    let text = event.to_string();
    if bends.escapes_names {
        let names = [
            ("\"choices\"", "\"\\u0063hoices\""),
            ("\"delta\":", "\"d\\u0065lta\":"),
            ("\"tool_calls\"", "\"tool_\\u0063alls\""),
            ("\"content_index\"", "\"content_\\u0069ndex\""),
        ];
        return names
            .iter()
            .fold(text, |text, (name, other)| text.replace(name, other));
    }
    text
}

/// The events with a surrogate pair that is cut between two of them.
fn cut(events: Vec<String>, bends: Bends) -> Vec<String> {
    let (pair, first, second) = ("\u{1f600}", "\\ud83d", "\\ude00");
    let mut all = Vec::new();
    for event in events {
        // Only in events with nothing else, so that it can be written twice.
        let is_alone = event.contains(&format!(":\"{pair}\"")) && event.matches(pair).count() == 1;
        let is_piece = !event.contains("item.done") && event.matches("finish_reason").count() < 2;
        if bends.cuts_pairs && is_alone && is_piece {
            all.push(event.replace(pair, first));
            all.push(event.replace(pair, second));
        } else {
            all.push(event);
        }
    }
    all
}

/// The chunk with these deltas of choices, each with its index.
fn chunk(mut deltas: Vec<(u64, Value)>, bends: Bends) -> Value {
    if bends.reversed {
        deltas.reverse();
    }
    let choice = |(index, delta): (u64, Value)| {
        let mut choice = json!({"index": index, "delta": delta, "finish_reason": null});
        if bends.has_nulls {
            choice["message"] = Value::Null;
        }
        choice
    };
    let choices: Value = deltas.into_iter().map(choice).collect();
    json!({"object": "chat.completion.chunk", "model": "theirs", "choices": choices})
}

/// The deltas of an answer of Chat Completions.
fn deltas(drawn: &Drawn, bends: Bends) -> Vec<Value> {
    let content = |piece: &String| match bends.lists_texts {
        true => json!({"content": [{"type": "text", "text": piece}], "reasoning_content": null}),
        false if bends.has_nulls => json!({"content": piece, "tool_calls": null, "refusal": null}),
        false => json!({"content": piece}),
    };
    let reasoning = |piece: &String| match bends.lists_texts {
        true => {
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}],
            "reasoning_content": null})
        }
        false => json!({"reasoning_content": piece, "content": null}),
    };
    let mut all: Vec<_> = drawn.reasoning.iter().map(reasoning).collect();
    all.extend(drawn.text.iter().map(content));
    for (number, pieces) in drawn.calls.iter().enumerate() {
        for (place, piece) in pieces.iter().enumerate() {
            let mut call =
                json!({"index": bends.first + number as u64, "function": {"arguments": piece}});
            if bends.all_numbered_zero {
                call["index"] = 0.into();
            }
            if bends.lacks_indexes {
                call["index"] = Value::Null;
            }
            if place == 0 || bends.repeats_names {
                call["id"] = id(number).into();
                call["function"]["name"] = "f".into();
            }
            all.push(json!({"tool_calls": [call]}));
        }
    }
    all
}

/// The events of a stream of choices, which take turns.
fn chat(answers: &[Drawn; 2], bends: Bends) -> Vec<String> {
    let [zero, one] = answers.each_ref().map(|drawn| deltas(drawn, bends));
    let length = zero.len().max(one.len());
    let mut events = Vec::new();
    for place in 0..length {
        let pieces = [(0, zero.get(place)), (1, one.get(place))];
        let pieces = pieces.into_iter();
        let pieces = pieces.filter_map(|(index, delta)| Some((index, delta?.clone())));
        events.push(written(&chunk(pieces.collect(), bends), bends));
    }
    let mut end = chunk(vec![(0, json!({})), (1, json!({}))], bends);
    for choice in end["choices"].as_array_mut().unwrap() {
        choice["finish_reason"] = "stop".into();
    }
    events.push(written(&end, bends));
    events.push("[DONE]".to_owned());
    cut(events, bends)
}

/// The events of a stream of Messages, whose blocks follow each other.
fn messages(drawn: &Drawn, bends: Bends) -> Vec<String> {
    let mut blocks = vec![
        (
            json!({"type": "thinking", "thinking": ""}),
            ("thinking_delta", "thinking"),
            &drawn.reasoning,
        ),
        (
            json!({"type": "text", "text": ""}),
            ("text_delta", "text"),
            &drawn.text,
        ),
    ];
    for (number, pieces) in drawn.calls.iter().enumerate() {
        let call = json!({"type": "tool_use", "id": id(number), "name": "f", "input": {}});
        blocks.push((call, ("input_json_delta", "partial_json"), pieces));
    }
    let mut events =
        vec![json!({"type": "message_start", "message": {"model": "theirs", "content": []}})];
    let at = |number: usize| match bends {
        Bends {
            lacks_indexes: true,
            ..
        } => Value::Null,
        Bends {
            all_numbered_zero: true,
            ..
        } => 0.into(),
        _ => (bends.first + number as u64).into(),
    };
    for (number, (start, (kind, member), pieces)) in blocks.into_iter().enumerate() {
        events.push(
            json!({"type": "content_block_start", "index": at(number), "content_block": start}),
        );
        events.extend(pieces.iter().map(|piece| {
            json!({"type": "content_block_delta", "index": at(number), "delta": {"type": kind, member: piece}})
        }));
        events.push(json!({"type": "content_block_stop", "index": at(number)}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
    events.push(json!({"type": "message_stop"}));
    let events = events.iter().map(|event| written(event, bends));
    cut(events.collect(), bends)
}

/// The events of a stream of Responses, whose items follow each other.
fn responses(drawn: &Drawn, bends: Bends) -> Vec<String> {
    let list = |kind: &str, pieces: &[String]| {
        let part = json!({"type": kind, "text": pieces.concat()});
        match bends.has_nulls {
            true => json!([null, part]),
            false => json!([part]),
        }
    };
    let part = u64::from(bends.has_nulls);
    let mut items = vec![
        (
            json!({"type": "reasoning", "id": "r", "summary": list("summary_text", &drawn.reasoning)}),
            ("reasoning_summary_text", "summary_index"),
            &drawn.reasoning,
        ),
        (
            json!({"type": "message", "id": "m", "content": list("output_text", &drawn.text)}),
            ("output_text", "content_index"),
            &drawn.text,
        ),
    ];
    for (number, pieces) in drawn.calls.iter().enumerate() {
        let call = json!({"type": "function_call", "id": format!("i{number}"), "call_id": id(number),
            "name": "f", "arguments": pieces.concat()});
        items.push((call, ("function_call_arguments", "content_index"), pieces));
    }
    let response = json!({"id": "x", "model": "theirs", "output": []});
    let mut events = vec![json!({"type": "response.created", "response": response})];
    for (number, (item, (name, place), pieces)) in items.iter().enumerate() {
        let at = match bends.lacks_indexes {
            true => Value::Null,
            false => (bends.first + number as u64).into(),
        };
        let mut start = json!({"type": item["type"], "id": item["id"]});
        for name in ["call_id", "name"] {
            start[name] = item[name].clone();
        }
        events
            .push(json!({"type": "response.output_item.added", "output_index": at, "item": start}));
        events.extend(pieces.iter().map(|piece| {
            json!({"type": format!("response.{name}.delta"), "output_index": at, "item_id": item["id"],
                (*place): part, "delta": piece})
        }));
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    let response = json!({"id": "x", "model": "theirs", "status": "completed"});
    events.push(json!({"type": "response.completed", "response": response}));
    let events = events.iter().map(|event| written(event, bends));
    cut(events.collect(), bends)
}

/// Asserts that a stream succeeds, and that its client adds up the drawn answers. A client of another
/// protocol gets the first one.
fn check(
    protocol: Protocol,
    events: &[String],
    relay: impl FnOnce(&[&str]) -> (Vec<String>, Result<(), EngineError>),
    owed: &BTreeMap<u64, Answer>,
) {
    let events: Vec<_> = events.iter().map(String::as_str).collect();
    let (passed, end) = relay(&events);
    end.unwrap();
    let content = add_up(protocol, &passed);
    assert_eq!(content.problems, [""; 0], "{passed:#?}");
    assert_eq!(&content.answers, owed, "{passed:#?}");
    assert!(!passed.concat().contains("theirs"), "{passed:#?}");
    let name = match protocol {
        Protocol::Chat => vendor::Protocol::Chat,
        Protocol::Messages => vendor::Protocol::Messages,
        Protocol::Responses => vendor::Protocol::Responses,
    };
    let output = translated(name, &events);
    let call = |(id, name, arguments): (String, String, String)| Call {
        id,
        name,
        arguments,
    };
    let answer = Answer {
        text: output.text,
        refusal: output.refusal,
        reasoning: output.reasoning,
        calls: output.calls.into_iter().map(call).collect(),
    };
    assert_eq!(&answer, &owed[&0], "{events:#?}");
}

proptest! {
    /// A client that adds up the chunks by their indexes gets the texts that the upstream sent, in
    /// each choice and call.
    #[test]
    fn s17_clients_of_chat_add_up_what_was_drawn(answers in [drawn(), drawn()], bends in bends()) {
        let owed = (0..).zip(answers.iter().map(Drawn::answer)).collect();
        let events = chat(&answers, bends);
        let relay = |events: &[&str]| relayed(Chat::with_choices(2), events);
        check(Protocol::Chat, &events, relay, &owed);
    }

    /// A client that adds up the events of Messages by the indexes of their blocks gets the texts
    /// and calls that the upstream sent.
    #[test]
    fn s17_clients_of_messages_add_up_what_was_drawn(drawn in drawn(), bends in bends()) {
        let events = messages(&drawn, bends);
        let owed = BTreeMap::from([(0, drawn.answer())]);
        let relay = |events: &[&str]| relayed(Messages::default(), events);
        check(Protocol::Messages, &events, relay, &owed);
    }

    /// A client that adds up the events of Responses by their items and parts gets the texts and
    /// calls that the upstream sent.
    #[test]
    fn s17_clients_of_responses_add_up_what_was_drawn(drawn in drawn(), bends in bends()) {
        let events = responses(&drawn, bends);
        let owed = BTreeMap::from([(0, drawn.answer())]);
        let relay = |events: &[&str]| relayed(Responses::default(), events);
        check(Protocol::Responses, &events, relay, &owed);
    }
}
