//! Any bytes as the stream of an upstream, translated to a client of each protocol.

use engine::{EngineError, TextEvent};
use sse::Decoder;
use translate::inbound::{Answer, Chat, ClientProtocol, Messages, Responses, Stamp};
use translate::outbound::Reader;
use vendor::Protocol;
use vendor::api_error;

/// Asserts that the stream of a client is within its grammar and has one end, whatever the upstream
/// sent.
macro_rules! check_client {
    ($protocol:ident, $protocol_type:ident, $request:expr, $events:expr, $result:expr) => {{
        let mut grammar = $protocol::Grammar::default();
        for data in &client_events::<$protocol_type>($request, $events, $result) {
            let event = $protocol::Event::read(data).expect("what we write is an event");
            grammar.push(&event).expect("and within the grammar");
        }
        assert!(grammar.is_ended(), "every stream has an end");
    }};
}

/// Checks one input; a panic is a finding.
pub fn check(input: &[u8]) {
    let Some((first, stream)) = input.split_first() else {
        return;
    };
    let protocol =
        [Protocol::Responses, Protocol::Chat, Protocol::Messages][usize::from(first % 3)];
    let (events, result) = parse(protocol, stream);
    let ends = events
        .iter()
        .filter(|event| matches!(event, TextEvent::Finished { .. }))
        .count();
    assert_eq!(ends, usize::from(result.is_ok()), "one end, or a failure");
    check_client!(responses, Responses, &responses_request(), &events, &result);
    check_client!(chat, Chat, &chat_request(), &events, &result);
    check_client!(messages, Messages, &messages_request(), &events, &result);
}

fn parse(protocol: Protocol, stream: &[u8]) -> (Vec<TextEvent>, Result<(), EngineError>) {
    let (mut decoder, mut reader, mut out) = (Decoder::new(), Reader::new(protocol), Vec::new());
    decoder.feed(stream.to_vec().into());
    while let Some(Ok(event)) = decoder.poll() {
        let before = out.len();
        if let Err(error) = reader.event(&event.data_bytes(), &mut out) {
            assert_eq!(out.len(), before, "an invalid event adds no output");
            return (out, Err(error));
        }
    }
    let result = reader.end(&mut out);
    assert_eq!(result.is_ok(), reader.is_finished());
    (out, result)
}

/// The data of the events that a client gets.
fn client_events<D: ClientProtocol>(
    request: &D::Request,
    events: &[TextEvent],
    result: &Result<(), EngineError>,
) -> Vec<String> {
    let (mut answer, mut out) = (
        Answer::<D>::new(
            request,
            &Stamp {
                bits: 7,
                created_at: NOW,
            },
        ),
        Vec::new(),
    );
    answer.open(&mut out);
    events
        .iter()
        .for_each(|event| answer.event(event.clone(), NOW, &mut out));
    if let Err(error) = result {
        answer.fail(&api_error(error), &mut out);
    }
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    decoder.feed(out.into());
    while let Some(event) = decoder.poll() {
        data.push(
            event
                .expect("our own stream can be read")
                .data()
                .into_owned(),
        );
    }
    data
}

fn responses_request() -> responses::ValidRequest {
    let body = br#"{"model":"m","input":[{"role":"user","content":"Hi."}]}"#;
    let request = responses::Request::read(body).expect("a request");
    request
        .validate(&responses::Rules::default())
        .expect("a valid one")
}

fn chat_request() -> chat::ValidRequest {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"stream_options":{"include_usage":true}}"#;
    let request = chat::Request::read(body).expect("a request");
    request
        .validate(&chat::Rules::default())
        .expect("a valid one")
}

fn messages_request() -> messages::ValidRequest {
    let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}"#;
    let request = messages::Request::read(body).expect("a request");
    request
        .validate(&messages::Rules::default())
        .expect("a valid one")
}

const NOW: i64 = 1_789_000_000;
