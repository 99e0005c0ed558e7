//! What our own encoders write is read back the same; a stream that is cut or spoilt is never taken for a whole one.

use engine::{EngineError, Stop, TextEvent, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use sluicegate_translate::inbound::{Answer, Chat, ClientProtocol, Messages, Reply, Responses};
use sluicegate_translate::outbound::{Protocol, Reader, reply};
use sse::Decoder;

use crate::hearing::{Said, data, fixture, fixtures, listen, said};
use crate::{NOW, chat_request, messages_request, responses_request, stamp};

/// Something that a model does, in pieces.
fn act() -> impl Strategy<Value = Vec<TextEvent>> {
    let words = "[a-z\u{e9}\u{2028}\u{1f600}\"\\\\\r\n{}: ]{0,6}";
    let say = |event: fn(String) -> TextEvent| words.prop_map(move |text| vec![event(text)]);
    let input = prop_oneof![
        Just("{}".to_owned()),
        Just(String::new()),
        (words, any::<i32>()).prop_map(|(text, number)| serde_json::json!({"t": text, "n": number}).to_string()),
    ];
    let call = (0..9_u8, "[a-z_]{1,6}", input, vec(any::<prop::sample::Index>(), 0..3));
    prop_oneof![
        say(TextEvent::Text),
        say(TextEvent::Reasoning),
        say(TextEvent::ReasoningSignature),
        say(TextEvent::RedactedReasoning),
        say(TextEvent::Refusal),
        call.prop_map(|(number, name, input, cuts)| {
            let mut events = vec![TextEvent::Call { id: format!("call_{number}"), name }];
            events.extend(pieces(&input, &cuts).into_iter().map(TextEvent::Arguments));
            events
        }),
    ]
}

fn pieces(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

fn stop() -> impl Strategy<Value = Stop> {
    let stops = vec![Stop::End, Stop::MaxTokens, Stop::ContextFull, Stop::ToolCalls, Stop::Refused, Stop::Paused];
    prop_oneof![prop::sample::select(stops), "[a-z]{1,4}".prop_map(Stop::StopText)]
}

prop_compose! {
    fn usage()(cache_read in 0..99_u64, cache_write in 0..99_u64, rest in 0..99_u64, output in 0..99_u64,
               reasoning in 0..9_u64) -> Usage {
        Usage { input: cache_read + cache_write + rest, cache_read, cache_write, output, reasoning }
    }
}

/// Everything that a model does, to the end.
fn doings() -> impl Strategy<Value = Vec<TextEvent>> {
    (vec(act(), 0..8), stop(), prop::option::of(usage())).prop_map(|(acts, stop, usage)| {
        let mut events: Vec<_> = acts.into_iter().flatten().collect();
        events.push(TextEvent::Finished { stop, usage });
        events
    })
}

/// What of it a protocol can say.
fn sayable(protocol: Protocol, events: &[TextEvent]) -> Said {
    let mut said = Said::of(events);
    let (stop, usage) = said.end.take().unwrap();
    let (called, refused) = (!said.calls.is_empty(), !said.refusal.is_empty());
    said.calls.iter_mut().for_each(|(_, _, arguments)| *arguments = normal(arguments));
    let natural = if called { Stop::ToolCalls } else { Stop::End };
    let stop = match (protocol, stop) {
        (Protocol::Messages, Stop::End) if refused => Stop::Refused,
        (_, Stop::End) => natural,
        (Protocol::Messages, stop) => stop,
        (_, Stop::ContextFull) => Stop::MaxTokens,
        (Protocol::Chat, Stop::ToolCalls) => Stop::ToolCalls,
        (_, stop @ (Stop::MaxTokens | Stop::Refused)) => stop,
        _ => natural,
    };
    // Chat tells only the sums, Messages no reasoning, and where Messages has no counts it has zeros.
    let usage = match protocol {
        Protocol::Responses => usage,
        Protocol::Chat => usage.map(|usage| Usage { input: usage.input, output: usage.output, ..Usage::default() }),
        Protocol::Messages => Some(Usage { reasoning: 0, ..usage.unwrap_or_default() }),
    };
    if protocol == Protocol::Messages {
        said.text = spoken(events);
        said.refusal.clear();
    } else {
        said.seal.clear();
        said.redacted.clear();
    }
    said.end = Some((stop, usage));
    said
}

/// Text and refusals in the order in which they came: Messages has no word for a refusal.
fn spoken(events: &[TextEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        TextEvent::Text(text) | TextEvent::Refusal(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Arguments as JSON; none are an empty object, or none when the model was cut off before them.
fn normal(arguments: &str) -> String {
    match arguments {
        "" => "{}".to_owned(),
        text => serde_json::from_str::<Value>(text).map_or(text.to_owned(), |value| value.to_string()),
    }
}

/// What was read, as [`sayable`] states it.
fn stated(mut said: Said) -> Said {
    said.calls.iter_mut().for_each(|(_, _, arguments)| *arguments = normal(arguments));
    said
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

fn whole<D: ClientProtocol>(request: &D::Request, events: &[TextEvent]) -> Vec<u8> {
    let mut reply = Reply::<D>::new(request, &stamp());
    events.iter().for_each(|event| reply.event(event.clone(), NOW));
    serde_json::to_vec(&reply.finish().unwrap()).unwrap()
}

proptest! {
    /// Whatever a model does is told in each protocol so that the same is read back.
    #[test]
    fn s16_a_stream_of_ours_is_read_back(events in doings()) {
        let streams = [
            (Protocol::Responses, stream::<Responses>(&responses_request(), &events)),
            (Protocol::Chat, stream::<Chat>(&chat_request(), &events)),
            (Protocol::Messages, stream::<Messages>(&messages_request(), &events)),
        ];
        for (protocol, stream) in streams {
            prop_assert_eq!(stated(said(protocol, &data(&stream))), sayable(protocol, &events), "{:?}", protocol);
        }
    }

    #[test]
    fn a_reply_of_ours_is_read_back(events in doings()) {
        let replies = [
            (Protocol::Responses, whole::<Responses>(&responses_request(), &events)),
            (Protocol::Chat, whole::<Chat>(&chat_request(), &events)),
            (Protocol::Messages, whole::<Messages>(&messages_request(), &events)),
        ];
        for (protocol, body) in replies {
            let said = Said::of(&reply(protocol, &body).unwrap());
            let mut owed = sayable(protocol, &events);
            if let (Protocol::Chat, Some((_, usage))) = (protocol, &mut owed.end) {
                usage.get_or_insert_default();
            }
            prop_assert_eq!(stated(said), owed, "{:?}", protocol);
        }
    }

    /// Any events in any order come to one end or to a failure, and to nothing behind it.
    #[test]
    fn s16_any_events_have_at_most_one_end(
        protocol in prop::sample::select(ALL.to_vec()),
        picks in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..40),
    ) {
        let pool: Vec<_> = streams().into_iter().flat_map(|(_, stream)| data(&stream)).collect();
        let (mut reader, mut out) = (Reader::new(protocol), Vec::new());
        for (pick, place, how) in picks {
            let event = spoilt(pick.get::<String>(&pool), place, how);
            let (before, was_finished) = (out.len(), reader.is_finished());
            let heard = reader.event(&event, &mut out);
            prop_assert!(!(was_finished && out.len() > before), "nothing after the end");
            prop_assert!(heard.is_ok() || out.len() == before, "nothing of a failure");
        }
        let ended = reader.end(&mut out);
        let ends = out.iter().filter(|event| matches!(event, TextEvent::Finished { .. })).count();
        prop_assert_eq!(ends, usize::from(reader.is_finished()));
        prop_assert_eq!(ended.is_ok(), reader.is_finished());
        Said::of(&out);
    }

    #[test]
    fn any_body_is_a_reply_or_a_failure(
        protocol in prop::sample::select(ALL.to_vec()),
        pick in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), how in any::<u8>(),
    ) {
        let names: Vec<_> = ["responses-response", "chat-response", "messages-response"].map(fixtures).concat();
        let body = spoilt(std::str::from_utf8(&fixture(pick.get::<String>(&names))).unwrap(), place, how);
        if let Ok(events) = reply(protocol, &body) {
            prop_assert!(Said::of(&events).end.is_some());
        }
    }
}

/// An event with a member renamed, a value of another type, a piece cut out, or as it was.
fn spoilt(event: &str, place: prop::sample::Index, how: u8) -> Vec<u8> {
    let mut bytes = event.as_bytes().to_vec();
    let at = place.index(bytes.len().max(1));
    match how % 6 {
        0 => bytes.truncate(at),
        1 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = how),
        2 => bytes.iter_mut().skip(at).find(|byte| byte.is_ascii_digit()).into_iter().for_each(|byte| *byte = b'9'),
        3 => return event.replacen("null", "{\"x\":[1]}", 1 + at % 3).into_bytes(),
        4 => return event.replacen("\"delta\"", "\"other\"", 1).into_bytes(),
        _ => {}
    }
    bytes
}

#[test]
fn a_stream_that_is_cut_anywhere_is_not_taken_for_a_whole_one() {
    for (protocol, stream) in streams() {
        let all = listen(protocol, &data(&stream)).0;
        let mut whole_events = usize::MAX;
        for cut in 0..=stream.len() {
            let data = data(&stream[..cut]);
            // Within an event nothing changes.
            if std::mem::replace(&mut whole_events, data.len()) == data.len() {
                continue;
            }
            let (events, heard) = listen(protocol, &data);
            match heard {
                Ok(()) => assert_eq!(Said::of(&events), without_lost_usage(&events, &all)),
                Err(error) => assert!(!finished(&events) && told(&error) && all.starts_with(&events), "{error:?}"),
            }
        }
    }
}

#[test]
fn chunks_do_not_matter() {
    for (protocol, stream) in streams() {
        let all = listen(protocol, &data(&stream)).0;
        for size in [1, 2, 3, 7, 64, 1024] {
            let (mut decoder, mut reader, mut out) = (Decoder::new(), Reader::new(protocol), Vec::new());
            for chunk in stream.chunks(size) {
                decoder.feed(chunk.to_vec().into());
                while let Some(event) = decoder.poll() {
                    if reader.event(&event.unwrap().data_bytes(), &mut out).is_err() {
                        assert!(!reader.is_finished());
                    }
                }
            }
            assert_eq!(reader.end(&mut out).is_ok(), finished(&all));
            assert_eq!(out, all);
        }
    }
}

/// All that was said. The usage of a Chat stream that broke off behind its finish reason is not known.
fn without_lost_usage(events: &[TextEvent], all: &[TextEvent]) -> Said {
    let mut said = Said::of(all);
    if matches!(events.last(), Some(TextEvent::Finished { usage: None, .. })) {
        said.end = said.end.map(|(stop, _)| (stop, None));
    }
    said
}

fn finished(events: &[TextEvent]) -> bool {
    matches!(events.last(), Some(TextEvent::Finished { .. }))
}

/// Whether a failure says whose it is.
fn told(error: &EngineError) -> bool {
    use EngineError::{Overloaded, RateLimited, Rejected, Truncated, Upstream};
    matches!(error, Truncated(_) | Upstream(_) | Overloaded { .. } | RateLimited { .. } | Rejected { .. })
}

/// The streams among the fixtures.
fn streams() -> Vec<(Protocol, Vec<u8>)> {
    let prefixes = [
        (Protocol::Responses, "responses-stream"),
        (Protocol::Responses, "responses-upstream"),
        (Protocol::Chat, "chat-stream"),
        (Protocol::Chat, "chat-upstream"),
        (Protocol::Messages, "messages-stream"),
    ];
    let named = |(protocol, prefix)| fixtures(prefix).into_iter().map(move |name| (protocol, fixture(&name)));
    prefixes.into_iter().flat_map(named).collect()
}

const ALL: [Protocol; 3] = [Protocol::Responses, Protocol::Chat, Protocol::Messages];
