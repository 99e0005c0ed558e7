//! Properties: parsing reverses encoding, and a truncated or corrupted stream is never taken for a
//! complete one.

use engine::{EngineError, Stop, TextEvent, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use sluicegate_translate::inbound::{Answer, Chat, ClientProtocol, Messages, Reply, Responses};
use sluicegate_translate::outbound::{Reader, reply};
use sse::Decoder;
use vendor::Protocol;

use crate::streams::{ModelOutput, data, fixture, fixtures, parse_ok, parse_stream};
use crate::{NOW, chat_request, messages_request, responses_request, stamp};

/// One step of a model, in pieces.
fn step() -> impl Strategy<Value = Vec<TextEvent>> {
    let words = "[a-z\u{e9}\u{2028}\u{1f600}\"\\\\\r\n{}: ]{0,6}";
    let text_event = |event: fn(String) -> TextEvent| words.prop_map(move |text| vec![event(text)]);
    let input = prop_oneof![
        Just("{}".to_owned()),
        Just(String::new()),
        (words, any::<i32>())
            .prop_map(|(text, number)| serde_json::json!({"t": text, "n": number}).to_string()),
    ];
    let call = (
        0..9_u8,
        "[a-z_]{1,6}",
        input,
        vec(any::<prop::sample::Index>(), 0..3),
    );
    prop_oneof![
        text_event(TextEvent::Text),
        text_event(TextEvent::Reasoning),
        text_event(TextEvent::ReasoningSignature),
        text_event(TextEvent::RedactedReasoning),
        text_event(TextEvent::Refusal),
        call.prop_map(|(number, name, input, cuts)| {
            let mut events = vec![TextEvent::Call {
                id: format!("call_{number}"),
                name,
            }];
            events.extend(pieces(&input, &cuts).into_iter().map(TextEvent::Arguments));
            events
        }),
    ]
}

fn pieces(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let mut cuts: Vec<_> = cuts
        .iter()
        .map(|cut| text.floor_char_boundary(cut.index(text.len() + 1)))
        .collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| text[pair[0]..pair[1]].to_owned())
        .collect()
}

fn stop() -> impl Strategy<Value = Stop> {
    let stops = vec![
        Stop::End,
        Stop::MaxTokens,
        Stop::ContextFull,
        Stop::Refused,
        Stop::Paused,
    ];
    prop_oneof![
        prop::sample::select(stops),
        "[a-z]{1,4}".prop_map(Stop::StopText)
    ]
}

prop_compose! {
    fn usage()(cache_read in 0..99_u64, cache_write in 0..99_u64, rest in 0..99_u64, answer in 0..99_u64,
               reasoning in 0..9_u64) -> Usage {
        Usage {
            input: cache_read + cache_write + rest,
            cache_read,
            cache_write,
            output: reasoning + answer,
            reasoning,
            ..Usage::default()
        }
    }
}

/// The complete output of a model.
fn model_events() -> impl Strategy<Value = Vec<TextEvent>> {
    (vec(step(), 0..8), stop(), prop::option::of(usage())).prop_map(|(steps, stop, usage)| {
        let mut events: Vec<_> = steps.into_iter().flatten().collect();
        // Each call has an id of its own.
        let calls = events.iter_mut().filter_map(|event| match event {
            TextEvent::Call { id, .. } => Some(id),
            _ => None,
        });
        for (number, id) in calls.enumerate() {
            *id = format!("{id}_{number}");
        }
        events.push(TextEvent::Finished { stop, usage });
        events
    })
}

/// The part of the output that a protocol can represent.
fn representable(protocol: Protocol, events: &[TextEvent]) -> ModelOutput {
    let mut output = ModelOutput::of(events);
    let (stop, usage) = output.end.take().unwrap();
    let (called, refused) = (!output.calls.is_empty(), !output.refusal.is_empty());
    output
        .calls
        .iter_mut()
        .for_each(|(_, _, arguments)| *arguments = normalized(arguments));
    let natural = if called { Stop::ToolCalls } else { Stop::End };
    let stop = match (protocol, stop) {
        (Protocol::Messages, Stop::End) if refused => Stop::Refused,
        (_, Stop::End) => natural,
        (Protocol::Messages, stop) => stop,
        (_, Stop::ContextFull) => Stop::MaxTokens,
        (_, stop @ (Stop::MaxTokens | Stop::Refused)) => stop,
        _ => natural,
    };
    // Chat has only the sums, and missing counts are zeros in Messages.
    let usage = match protocol {
        Protocol::Responses => usage,
        Protocol::Chat => usage.map(|usage| Usage {
            input: usage.input,
            output: usage.output,
            ..Usage::default()
        }),
        Protocol::Messages => Some(usage.unwrap_or_default()),
    };
    if protocol == Protocol::Messages {
        output.text = text_and_refusals(events);
        output.refusal.clear();
    } else {
        output.signature.clear();
        output.redacted.clear();
    }
    if protocol == Protocol::Chat {
        output.reasoning = paragraphs(events);
    }
    output.end = Some((stop, usage));
    output
}

/// Returns the reasoning, with a blank line behind each part that has a seal.
fn paragraphs(events: &[TextEvent]) -> String {
    let (mut reasoning, mut is_complete) = (String::new(), false);
    for event in events {
        match event {
            TextEvent::Reasoning(text) if !text.is_empty() => {
                if std::mem::take(&mut is_complete) {
                    reasoning += "\n\n";
                }
                reasoning += text;
            }
            TextEvent::ReasoningSignature(_) | TextEvent::RedactedReasoning(_) => {
                is_complete = !reasoning.is_empty();
            }
            _ => {}
        }
    }
    reasoning
}

/// Returns text and refusals in their order: Messages has no separate form for refusals.
fn text_and_refusals(events: &[TextEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        TextEvent::Text(text) | TextEvent::Refusal(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Returns arguments as normalized JSON. Empty arguments become an empty object.
fn normalized(arguments: &str) -> String {
    match arguments {
        "" => "{}".to_owned(),
        text => {
            serde_json::from_str::<Value>(text).map_or(text.to_owned(), |value| value.to_string())
        }
    }
}

/// Normalizes parsed output as [`representable`] does.
fn with_normalized_calls(mut output: ModelOutput) -> ModelOutput {
    output
        .calls
        .iter_mut()
        .for_each(|(_, _, arguments)| *arguments = normalized(arguments));
    output
}

fn stream<D: ClientProtocol>(request: &D::Request, events: &[TextEvent]) -> Vec<u8> {
    let (mut answer, mut out) = (Answer::<D>::new(request, &stamp()), Vec::new());
    answer.open(&mut out);
    for event in events {
        answer.event(event.clone(), NOW, &mut out);
        answer.keep_alive(&mut out);
    }
    out
}

fn complete_reply<D: ClientProtocol>(request: &D::Request, events: &[TextEvent]) -> Vec<u8> {
    let mut reply = Reply::<D>::new(request, &stamp());
    events
        .iter()
        .for_each(|event| reply.event(event.clone(), NOW));
    serde_json::to_vec(&reply.finish().unwrap()).unwrap()
}

proptest! {
    /// Any output of a model, encoded in a protocol, parses back to the same output.
    #[test]
    fn s16_a_stream_of_ours_is_read_back(events in model_events()) {
        let streams = [
            (Protocol::Responses, stream::<Responses>(&responses_request(), &events)),
            (Protocol::Chat, stream::<Chat>(&chat_request(), &events)),
            (Protocol::Messages, stream::<Messages>(&messages_request(), &events)),
        ];
        for (protocol, stream) in streams {
            let parsed = with_normalized_calls(parse_ok(protocol, &data(&stream)));
            let mut expected = representable(protocol, &events);
            if let (Protocol::Messages, Some((_, Some(usage)))) = (protocol, &mut expected.end) {
                // A stream of Messages begins with an output of 1.
                usage.output = usage.output.max(1);
            }
            prop_assert_eq!(parsed, expected, "{:?}", protocol);
        }
    }

    #[test]
    fn a_reply_of_ours_is_read_back(events in model_events()) {
        let replies = [
            (Protocol::Responses, complete_reply::<Responses>(&responses_request(), &events)),
            (Protocol::Chat, complete_reply::<Chat>(&chat_request(), &events)),
            (Protocol::Messages, complete_reply::<Messages>(&messages_request(), &events)),
        ];
        for (protocol, body) in replies {
            let output = ModelOutput::of(&reply(protocol, &body).unwrap());
            let mut expected = representable(protocol, &events);
            if let (Protocol::Chat, Some((_, usage))) = (protocol, &mut expected.end) {
                usage.get_or_insert_default();
            }
            prop_assert_eq!(with_normalized_calls(output), expected, "{:?}", protocol);
        }
    }

    /// Any events in any order produce one end or a failure, and nothing after it.
    #[test]
    fn s16_any_events_have_at_most_one_end(
        protocol in prop::sample::select(ALL.to_vec()),
        picks in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..40),
    ) {
        let pool: Vec<_> = streams().into_iter().flat_map(|(_, stream)| data(&stream)).collect();
        let (mut reader, mut out) = (Reader::new(protocol), Vec::new());
        for (pick, place, how) in picks {
            let event = corrupted(pick.get::<String>(&pool), place, how);
            let (before, was_finished) = (out.len(), reader.is_finished());
            let result = reader.event(&event, &mut out);
            prop_assert!(!(was_finished && out.len() > before), "nothing after the end");
            prop_assert!(result.is_ok() || out.len() == before, "nothing of a failure");
        }
        let ended = reader.end(&mut out);
        let ends = out.iter().filter(|event| matches!(event, TextEvent::Finished { .. })).count();
        prop_assert_eq!(ends, usize::from(reader.is_finished()));
        prop_assert_eq!(ended.is_ok(), reader.is_finished());
        ModelOutput::of(&out);
    }

    #[test]
    fn any_body_is_a_reply_or_a_failure(
        protocol in prop::sample::select(ALL.to_vec()),
        pick in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), how in any::<u8>(),
    ) {
        let names: Vec<_> = ["responses-response", "chat-response", "messages-response"].map(fixtures).concat();
        let body = corrupted(std::str::from_utf8(&fixture(pick.get::<String>(&names))).unwrap(), place, how);
        if let Ok(events) = reply(protocol, &body) {
            prop_assert!(ModelOutput::of(&events).end.is_some());
        }
    }
}

/// Corrupts an event: truncates it, changes a byte, a value or a member's name, or leaves it
/// unchanged.
fn corrupted(event: &str, place: prop::sample::Index, how: u8) -> Vec<u8> {
    let mut bytes = event.as_bytes().to_vec();
    let at = place.index(bytes.len().max(1));
    match how % 6 {
        0 => bytes.truncate(at),
        1 => bytes
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte = how),
        2 => bytes
            .iter_mut()
            .skip(at)
            .find(|byte| byte.is_ascii_digit())
            .into_iter()
            .for_each(|byte| *byte = b'9'),
        3 => {
            return event
                .replacen("null", "{\"x\":[1]}", 1 + at % 3)
                .into_bytes();
        }
        4 => return event.replacen("\"delta\"", "\"other\"", 1).into_bytes(),
        _ => {}
    }
    bytes
}

#[test]
fn a_stream_that_is_cut_anywhere_is_not_taken_for_a_whole_one() {
    for (protocol, stream) in streams() {
        let all = parse_stream(protocol, &data(&stream)).0;
        let mut complete_events = usize::MAX;
        for cut in 0..=stream.len() {
            let data = data(&stream[..cut]);
            // Offsets within one event give the same result.
            if std::mem::replace(&mut complete_events, data.len()) == data.len() {
                continue;
            }
            let (events, result) = parse_stream(protocol, &data);
            match result {
                Ok(()) => assert_eq!(ModelOutput::of(&events), without_lost_usage(&events, &all)),
                Err(error) => {
                    assert!(
                        !finished(&events)
                            && is_upstream_failure(&error)
                            && all.starts_with(&events),
                        "{error:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn chunks_do_not_matter() {
    for (protocol, stream) in streams() {
        let all = parse_stream(protocol, &data(&stream)).0;
        for size in [1, 2, 3, 7, 64, 1024] {
            let (mut decoder, mut reader, mut out) =
                (Decoder::new(), Reader::new(protocol), Vec::new());
            for chunk in stream.chunks(size) {
                decoder.feed(chunk.to_vec().into());
                while let Some(event) = decoder.poll() {
                    if reader
                        .event(&event.unwrap().data_bytes(), &mut out)
                        .is_err()
                    {
                        assert!(!reader.is_finished());
                    }
                }
            }
            assert_eq!(reader.end(&mut out).is_ok(), finished(&all));
            assert_eq!(out, all);
        }
    }
}

/// Returns the complete output. The usage of a Chat stream that was truncated after its finish
/// reason is not known.
fn without_lost_usage(events: &[TextEvent], all: &[TextEvent]) -> ModelOutput {
    let mut output = ModelOutput::of(all);
    if matches!(events.last(), Some(TextEvent::Finished { usage: None, .. })) {
        output.end = output.end.map(|(stop, _)| (stop, None));
    }
    output
}

fn finished(events: &[TextEvent]) -> bool {
    matches!(events.last(), Some(TextEvent::Finished { .. }))
}

/// Returns true for failures that are attributed to the upstream.
fn is_upstream_failure(error: &EngineError) -> bool {
    use EngineError::{Failed, Overloaded, RateLimited, Rejected, Truncated, Upstream};
    matches!(
        error,
        Truncated(_)
            | Upstream(_)
            | Failed { .. }
            | Overloaded { .. }
            | RateLimited { .. }
            | Rejected { .. }
    )
}

/// Returns the streams among the fixtures.
fn streams() -> Vec<(Protocol, Vec<u8>)> {
    let prefixes = [
        (Protocol::Responses, "responses-stream"),
        (Protocol::Responses, "responses-upstream"),
        (Protocol::Chat, "chat-stream"),
        (Protocol::Chat, "chat-upstream"),
        (Protocol::Messages, "messages-stream"),
    ];
    let named = |(protocol, prefix)| {
        fixtures(prefix)
            .into_iter()
            .map(move |name| (protocol, fixture(&name)))
    };
    prefixes.into_iter().flat_map(named).collect()
}

const ALL: [Protocol; 3] = [Protocol::Responses, Protocol::Chat, Protocol::Messages];
