//! For any output of a model, each client gets a stream within its grammar with one end, and the
//! plain reply is its fold.

use engine::{Stop, TextEvent, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_translate::inbound::{Answer, Chat, ClientProtocol, Messages, Reply, Responses};
use sse::Decoder;
use wire::ApiError;

use crate::{NOW, chat_request, messages_request, responses_request, stamp};

/// The events of a model, in which calls have their complete arguments: whoever reads truncated ones
/// ends the answer with a failure.
fn events() -> impl Strategy<Value = Vec<TextEvent>> {
    let words = "[a-z\u{e9}\u{2028}\"\\\\\r\n{}: ]{0,6}";
    let arguments = prop::sample::select(vec!["", " ", "{\"a\": 1}", "\n{\"a\":[{}]}", "[2]"]);
    let call = (0..9_u8, "[a-z_]{1,6}", arguments).prop_map(|(number, name, arguments)| {
        let (one, other) = arguments.split_at(arguments.len() / 2);
        vec![
            TextEvent::Call {
                id: format!("call_{number}"),
                name,
            },
            TextEvent::Arguments(one.to_owned()),
            TextEvent::Arguments(other.to_owned()),
        ]
    });
    let text = prop_oneof![
        words.prop_map(TextEvent::Text),
        words.prop_map(TextEvent::Reasoning),
        words.prop_map(TextEvent::ReasoningSignature),
        words.prop_map(TextEvent::RedactedReasoning),
        words.prop_map(TextEvent::Refusal),
    ];
    let step = prop_oneof![5 => text.prop_map(|event| vec![event]), 2 => call];
    vec(step, 0..8).prop_map(|steps| steps.concat())
}

fn stop() -> impl Strategy<Value = Stop> {
    let stops = vec![
        Stop::End,
        Stop::MaxTokens,
        Stop::ContextFull,
        Stop::ToolCalls,
        Stop::Refused,
        Stop::Paused,
    ];
    prop_oneof![
        prop::sample::select(stops),
        "[a-z]{1,4}".prop_map(Stop::StopText)
    ]
}

/// Encodes events as a stream.
fn stream<D: ClientProtocol>(
    request: &D::Request,
    events: &[TextEvent],
    failure: Option<&ApiError>,
) -> Vec<u8> {
    let (mut answer, mut out) = (Answer::<D>::new(request, &stamp()), Vec::new());
    answer.open(&mut out);
    for event in events {
        answer.event(event.clone(), NOW, &mut out);
        answer.keep_alive(&mut out);
    }
    if let Some(failure) = failure {
        answer.fail(failure, &mut out);
    }
    out
}

/// Returns the data of each event.
fn data(stream: &[u8]) -> Vec<String> {
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    decoder.feed(stream.to_vec().into());
    while let Some(event) = decoder.poll() {
        data.push(event.unwrap().data().into_owned());
    }
    decoder.finish().unwrap();
    data
}

/// Checks a stream against its protocol's grammar. Returns its reply as JSON, or `None` if it ends
/// with a failure.
macro_rules! folded {
    ($protocol:ident, $stream:expr) => {{
        let events: Vec<_> = data($stream)
            .iter()
            .map(|data| $protocol::Event::read(data).unwrap())
            .collect();
        assert_eq!(
            events.iter().filter(|event| event.is_terminal()).count(),
            1,
            "one end"
        );
        let mut fold = $protocol::Fold::default();
        events.iter().for_each(|event| fold.push(event).unwrap());
        match fold.finish() {
            Ok(reply) => Some(serde_json::to_value(reply).unwrap()),
            Err($protocol::StreamError::Failed(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }};
}

fn reply<D: ClientProtocol>(
    request: &D::Request,
    events: &[TextEvent],
) -> Option<serde_json::Value> {
    let mut reply = Reply::<D>::new(request, &stamp());
    events
        .iter()
        .for_each(|event| reply.event(event.clone(), NOW));
    reply
        .finish()
        .map(|reply| serde_json::to_value(reply).unwrap())
}

/// Clients send the ids back, and a request with an invalid id would be refused.
#[test]
fn responses_call_ids_are_valid_in_a_later_request() {
    let long = "a".repeat(65);
    for (id, fits) in [
        ("call_a-1", true),
        ("functions.f:0", false),
        (long.as_str(), false),
        ("", false),
    ] {
        let call = TextEvent::Call {
            id: id.to_owned(),
            name: "f".to_owned(),
        };
        let events = [
            call,
            TextEvent::Finished {
                stop: Stop::ToolCalls,
                usage: None,
            },
        ];
        let reply = reply::<Responses>(&responses_request(), &events).unwrap();
        let call_id = reply["output"][0]["call_id"].as_str().unwrap();
        assert_eq!(call_id == id, fits, "{call_id}");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(
            (1..=64).contains(&call_id.len()) && call_id.chars().all(is_plain),
            "{call_id}"
        );
    }
}

proptest! {
    #[test]
    fn the_plain_reply_is_the_fold_of_the_stream(mut events in events(), stop in stop()) {
        events.push(TextEvent::Finished { stop, usage: Some(Usage { input: 3, output: 4, ..Usage::default() }) });
        let request = responses_request();
        let folded = folded!(responses, &stream::<Responses>(&request, &events, None));
        prop_assert!(folded.is_some());
        prop_assert_eq!(folded, reply::<Responses>(&request, &events));
        let request = chat_request();
        let folded = folded!(chat, &stream::<Chat>(&request, &events, None));
        prop_assert!(folded.is_some());
        prop_assert_eq!(folded, reply::<Chat>(&request, &events));
        let request = messages_request();
        let folded = folded!(messages, &stream::<Messages>(&request, &events, None));
        prop_assert!(folded.is_some());
        prop_assert_eq!(folded, reply::<Messages>(&request, &events));
    }

    #[test]
    fn a_failure_is_reported_once_and_is_not_a_reply(events in events()) {
        let failure = ApiError::server_error();
        prop_assert_eq!(folded!(responses, &stream::<Responses>(&responses_request(), &events, Some(&failure))), None);
        prop_assert_eq!(folded!(chat, &stream::<Chat>(&chat_request(), &events, Some(&failure))), None);
        prop_assert_eq!(folded!(messages, &stream::<Messages>(&messages_request(), &events, Some(&failure))), None);
    }

    #[test]
    fn unfinished_generation_has_no_reply(events in events()) {
        prop_assert_eq!(reply::<Responses>(&responses_request(), &events), None);
        prop_assert_eq!(reply::<Chat>(&chat_request(), &events), None);
        prop_assert_eq!(reply::<Messages>(&messages_request(), &events), None);
    }
}
