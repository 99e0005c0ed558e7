//! A relay that recognizes events by their form behaves like a relay that parses every event.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use sluicegate_relay::{Chat, Guard, Messages, RelayProtocol, Responses};
use vendor::api_error;

use crate::laws::fixture;
use crate::laws::{CHAT, MESSAGES, RESPONSES};

/// All that a relay shows after each piece, and at the end.
fn shown<S: RelayProtocol>(mut guard: Guard<S>, pieces: &[&[u8]]) -> Vec<String> {
    let (mut out, mut shown) = (Vec::new(), Vec::new());
    let mut show = |guard: &Guard<S>, out: &[u8], end: String| {
        let (signs, buffered) = (guard.signs_of_life(), guard.buffered());
        let text = String::from_utf8_lossy(out);
        shown.push(format!("{end} {signs} {buffered} {text}"));
    };
    for piece in pieces {
        let fed = guard.feed(Bytes::copy_from_slice(piece), &mut out);
        show(&guard, &out, format!("{fed:?}"));
        match fed {
            Ok(None) => {}
            Ok(Some(_)) => return shown,
            Err(error) => {
                guard.fail(&api_error(&error), &mut out);
                show(&guard, &out, "failed".to_owned());
                return shown;
            }
        }
    }
    let end = guard.finish(&mut out);
    show(&guard, &out, format!("{end:?}"));
    shown
}

/// Compares the two ways for a stream that is cut at these positions.
fn compare<S: RelayProtocol>(protocol: impl Fn() -> S, stream: &[u8], cuts: &[Index]) {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    let pieces: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
    let by_form = shown(Guard::new(protocol(), "ours".to_owned()), &pieces);
    let parsed = Guard::that_parses_all(protocol(), "ours".to_owned());
    assert_eq!(by_form, shown(parsed, &pieces));
}

/// A change of a stream: of its order, or of a byte.
type Change = (Index, Index, u8);

/// Writes events, and changes their order or their bytes.
fn written(events: Vec<String>, changes: &[Change]) -> Vec<u8> {
    let mut events: Vec<_> = events.into_iter().map(String::into_bytes).collect();
    for (from, to, how) in changes {
        let (from, to) = (from.index(events.len()), *to);
        match how {
            0 => {
                let to = to.index(events.len());
                events.swap(from, to);
            }
            1 => {
                let event = events[from].clone();
                events.insert(to.index(events.len()), event);
            }
            2 if events.len() > 1 => drop(events.remove(from)),
            how => {
                let at = to.index(events[from].len());
                events[from][at] = BYTES[usize::from(*how) % BYTES.len()];
            }
        }
    }
    events.concat()
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop_oneof![
        Just(Vec::new()),
        vec((any::<Index>(), any::<Index>(), any::<u8>()), 1..4),
        vec((any::<Index>(), any::<Index>(), 0..3_u8), 1..4),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,6}",
        "[a-z\u{e9}\u{20ac}\u{1f642}\u{7f}'{},:]{0,6}",
        select(vec![
            "",
            "\\n",
            "\\\"",
            "\\u00e9",
            "choices",
            "usage",
            "prompt_tokens_details",
            "response.output_item.done",
            "[DONE]",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Templates of events and texts for them.
fn deltas(templates: usize) -> impl Strategy<Value = Vec<(usize, String)>> {
    // Most events have the form of the one before.
    let runs = (0..templates, vec(texts(), 1..6));
    vec(runs, 0..8).prop_map(|runs| {
        let run = |(template, texts): (usize, Vec<String>)| {
            texts.into_iter().map(move |text| (template, text))
        };
        runs.into_iter().flat_map(run).collect()
    })
}

/// The events of these templates, each with its text and its number, named after their type.
fn filled<'a>(templates: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let fill = |(number, (template, text)): (usize, (&str, &str))| {
        let data = template
            .replace("<text>", text)
            .replace("<n>", &number.to_string());
        let kind = data
            .split_once(r#""type":""#)
            .and_then(|(_, rest)| rest.split_once('"'));
        match kind.filter(|(kind, _)| *kind != "function") {
            Some((kind, _)) => format!("event: {kind}\ndata: {data}\n\n"),
            None => format!("data: {data}\n\n"),
        }
    };
    templates.enumerate().map(fill).collect()
}

/// A stream of a start, deltas and an end.
fn stream(
    [start, deltas, end]: [&[&str]; 3],
    chosen: &[(usize, String)],
    changes: &[Change],
) -> Vec<u8> {
    let chosen = chosen
        .iter()
        .map(|(template, text)| (deltas[*template], text.as_str()));
    let start = start.iter().map(|template| (*template, ""));
    let end = end.iter().map(|template| (*template, ""));
    written(filled(start.chain(chosen).chain(end)), changes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn chat_is_relayed_alike(
        chosen in deltas(CHAT_EVENTS[1].len()),
        changes in changes(),
        cuts in vec(any::<Index>(), 0..6),
        hides_usage in any::<bool>(),
    ) {
        let stream = stream(CHAT_EVENTS, &chosen, &changes);
        let protocol = || if hides_usage { Chat::default().hiding_usage() } else { Chat::with_choices(2) };
        compare(protocol, &stream, &cuts);
    }

    #[test]
    fn responses_are_relayed_alike(
        chosen in deltas(RESPONSES_EVENTS[1].len()),
        changes in changes(),
        cuts in vec(any::<Index>(), 0..6),
    ) {
        compare(Responses::default, &stream(RESPONSES_EVENTS, &chosen, &changes), &cuts);
    }

    #[test]
    fn messages_are_relayed_alike(
        chosen in deltas(MESSAGES_EVENTS[1].len()),
        changes in changes(),
        cuts in vec(any::<Index>(), 0..6),
    ) {
        compare(Messages::default, &stream(MESSAGES_EVENTS, &chosen, &changes), &cuts);
    }

    #[test]
    fn recorded_streams_are_relayed_alike(
        which in any::<Index>(),
        changes in changes(),
        cuts in vec(any::<Index>(), 0..6),
    ) {
        let names = [&RESPONSES[..], &CHAT, &MESSAGES].concat();
        let name = names[which.index(names.len())];
        let recorded = String::from_utf8(fixture(name)).unwrap();
        let events = recorded.split_inclusive("\n\n").map(str::to_owned).collect();
        let stream = written(events, &changes);
        match name.split_once('-').map(|(protocol, _)| protocol) {
            Some("responses") => compare(Responses::default, &stream, &cuts),
            Some("chat") => compare(Chat::default, &stream, &cuts),
            _ => compare(Messages::default, &stream, &cuts),
        }
    }
}

/// The bytes that are written into a stream.
const BYTES: [u8; 16] = *b"\"\\{}[],:019ax \n\xff";

/// The start, the deltas and the end of a stream of each protocol.
const CHAT_EVENTS: [&[&str]; 3] = [
    &[
        r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"theirs","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    ],
    &[
        r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"theirs","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"<text>"},"logprobs":null,"finish_reason":null}],"obfuscation":"<text>"}"#,
        r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"theirs","service_tier":"flex","choices":[{"index":0,"delta":{"content":"<text>"},"finish_reason":null}]}"#,
        r#"{"id":"c1","object":"chat.completion.chunk","created":<n>,"model":"theirs","choices":[{"index":1,"delta":{"content":"<text>"}}],"usage":null}"#,
        r#"{"id":"c1","created":<n>,"model":"theirs","choices":[{"delta":{"content":"<text>"}}]}"#,
        r#"{"id":"c<n>","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"<text>"}}]}"#,
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"<text>","reasoning":"<text>"}}],"model":"<text>"}"#,
        r#"{"object":"chat.completion","choices":[{"index":0,"delta":{"content":"<text>"},"message":{"content":"<text>"}}]}"#,
        r#"{"object":"chat.completion","choices":[{"index":0,"message":{"content":"<text>"},"finish_reason":"stop"}]}"#,
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"<text>"}}],"usage":{"prompt_tokens":<n>,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}}"#,
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":[{"type":"text","text":"<text>"}]}}]}"#,
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"<text>","tool_calls":[{"index":0,"id":"call","function":{"name":"f","arguments":"{}"}}]}}]}"#,
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"<text>","refusal":"<text>"},"logprobs":{"content":[{"token":"a"}]}}]}"#,
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    ],
    &[
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        "[DONE]",
    ],
];
const RESPONSES_EVENTS: [&[&str]; 3] = [
    &[
        r#"{"type":"response.created","sequence_number":<n>,"response":{"id":"r","model":"theirs","output":[]}}"#,
        r#"{"type":"response.output_item.added","sequence_number":<n>,"output_index":0,"item":{"id":"i","type":"message"}}"#,
    ],
    &[
        r#"{"type":"response.output_text.delta","sequence_number":<n>,"item_id":"i","output_index":0,"content_index":0,"delta":"<text>","logprobs":[],"obfuscation":"<text>"}"#,
        r#"{"type":"response.output_text.delta","sequence_number":<n>,"item_id":"i","output_index":0,"content_index":0,"delta":"<text>"}"#,
        r#"{"type":"response.output_text.delta","sequence_number":<n>,"delta":"<text>"}"#,
        r#"{"type":"response.output_text.delta","delta":"<text>"}"#,
        r#"{"type":"response.output_text.delta","sequence_number":<n>,"item_id":"other","output_index":0,"delta":"<text>"}"#,
        r#"{"type":"response.output_text.delta","sequence_number":<n>,"item_id":"i","delta":"<text>","item":{"id":"i","type":"message"}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","sequence_number":<n>,"output_index":1,"summary_index":0,"delta":"<text>"}"#,
        r#"{"type":"response.refusal.delta","sequence_number":<n>,"item_id":"i","output_index":0,"content_index":1,"delta":"<text>"}"#,
        r#"{"type":"response.output_text.done","sequence_number":<n>,"item_id":"i","output_index":0,"content_index":0,"text":"<text>"}"#,
        r#"{"type":"response.output_item.added","sequence_number":<n>,"item":{"id":"i2","type":"message"}}"#,
        r#"{"type":"response.output_item.done","sequence_number":<n>,"output_index":0,"item":{"id":"i","type":"message","content":[]}}"#,
        r#"{"type":"response.function_call_arguments.delta","sequence_number":<n>,"output_index":2,"delta":"<text>"}"#,
        r#"{"type":"response.tomorrow","sequence_number":<n>,"delta":"<text>"}"#,
    ],
    &[
        r#"{"type":"response.completed","sequence_number":<n>,"response":{"id":"r","model":"theirs","status":"completed","output":[]}}"#,
    ],
];
const MESSAGES_EVENTS: [&[&str]; 3] = [
    &[
        r#"{"type":"message_start","message":{"id":"m","model":"theirs"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    ],
    &[
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"<text>"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"<text>"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"<text>"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","text":"<text>"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"<text>"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"<text>"}}"#,
        r#"{"type":"message_start","message":{"id":"m","model":"theirs"}}"#,
        r#"{"type":"ping"}"#,
    ],
    &[
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
        r#"{"type":"message_stop"}"#,
    ],
];
