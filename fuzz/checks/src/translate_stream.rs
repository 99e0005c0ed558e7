//! Any bytes as the stream of an upstream, and what was heard told on to a client of each protocol.

use engine::{EngineError, TextEvent};
use sse::Decoder;
use translate::api_error;
use translate::inbound::{Answer, Chat, ClientProtocol, Messages, Responses, Stamp};
use translate::outbound::{Protocol, Reader};

/// The stream of a client is within its grammar and has one end, whatever the upstream said.
macro_rules! tell {
    ($protocol:ident, $dialect:ident, $request:expr, $events:expr, $heard:expr) => {{
        let mut grammar = $protocol::Grammar::new();
        for data in &told::<$dialect>($request, $events, $heard) {
            let event = $protocol::Event::read(data).expect("what we write is an event");
            grammar.push(&event).expect("and within the grammar");
        }
        assert!(grammar.is_ended(), "every stream has an end");
    }};
}

/// Checks one input; a panic is a finding.
pub fn check(input: &[u8]) {
    let Some((first, stream)) = input.split_first() else { return };
    let protocol = [Protocol::Responses, Protocol::Chat, Protocol::Messages][usize::from(first % 3)];
    let (events, heard) = listen(protocol, stream);
    let ends = events.iter().filter(|event| matches!(event, TextEvent::Finished { .. })).count();
    assert_eq!(ends, usize::from(heard.is_ok()), "one end, or a failure");
    tell!(responses, Responses, &responses_request(), &events, &heard);
    tell!(chat, Chat, &chat_request(), &events, &heard);
    tell!(messages, Messages, &messages_request(), &events, &heard);
}

fn listen(protocol: Protocol, stream: &[u8]) -> (Vec<TextEvent>, Result<(), EngineError>) {
    let (mut decoder, mut reader, mut out) = (Decoder::new(), Reader::new(protocol), Vec::new());
    decoder.feed(stream.to_vec().into());
    while let Some(Ok(event)) = decoder.poll() {
        let before = out.len();
        if let Err(error) = reader.event(&event.data_bytes(), &mut out) {
            assert_eq!(out.len(), before, "nothing is told of an event that fails");
            return (out, Err(error));
        }
    }
    let heard = reader.end(&mut out);
    assert_eq!(heard.is_ok(), reader.is_finished());
    (out, heard)
}

/// The data of the events that a client gets.
fn told<D: ClientProtocol>(request: &D::Request, events: &[TextEvent], heard: &Result<(), EngineError>) -> Vec<String> {
    let (mut answer, mut out) = (Answer::<D>::new(request, &Stamp { bits: 7, created_at: NOW }), Vec::new());
    answer.open(&mut out);
    events.iter().for_each(|event| answer.event(event.clone(), NOW, &mut out));
    if let Err(error) = heard {
        answer.fail(&api_error(error), &mut out);
    }
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    decoder.feed(out.into());
    while let Some(event) = decoder.poll() {
        data.push(event.expect("our own stream can be read").data().into_owned());
    }
    data
}

fn responses_request() -> responses::ValidRequest {
    let body = br#"{"model":"m","input":[{"role":"user","content":"Hi."}]}"#;
    let request = responses::Request::read(body).expect("a request");
    request.validate(&responses::Rules::default()).expect("a valid one")
}

fn chat_request() -> chat::ValidRequest {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"stream_options":{"include_usage":true}}"#;
    let request = chat::Request::read(body).expect("a request");
    request.validate(&chat::Rules::default()).expect("a valid one")
}

fn messages_request() -> messages::ValidRequest {
    let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}"#;
    let request = messages::Request::read(body).expect("a request");
    request.validate(&messages::Rules::default()).expect("a valid one")
}

const NOW: i64 = 1_789_000_000;
