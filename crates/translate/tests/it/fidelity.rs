//! A client that adds up the events gets the content that the upstream sent: each piece once, in
//! its choice, item, part and call. Where that is impossible, the stream fails.

mod chat;
mod drawn;
mod messages;
mod responses;

use bytes::Bytes;
use engine::{EngineError, TextEvent};
use relay::{Guard, RelayProtocol};
use serde_json::Value;
use vendor::Protocol;

use crate::streams::{ModelOutput, data, parse_stream};

/// The data of the events that a client gets for events with this data, and the end of the stream.
fn relayed<S: RelayProtocol>(
    protocol: S,
    events: &[&str],
) -> (Vec<String>, Result<(), EngineError>) {
    let (mut guard, mut out) = (Guard::new(protocol, "ours".to_owned()), Vec::new());
    for event in events {
        match guard.feed(Bytes::from(format!("data: {event}\n\n")), &mut out) {
            Ok(None) => {}
            Ok(Some(_)) => return (data(&out), Ok(())),
            Err(error) => return (data(&out), Err(error)),
        }
    }
    let end = guard.finish(&mut out).map(drop);
    (data(&out), end)
}

/// The data of the events of a relayed stream that succeeds.
#[track_caller]
fn passed<S: RelayProtocol>(protocol: S, events: &[&str]) -> Vec<String> {
    let (data, end) = relayed(protocol, events);
    end.unwrap();
    data
}

/// The contradiction for which a relayed stream and a translated one fail.
#[track_caller]
fn contradiction<S: RelayProtocol>(protocol: S, name: Protocol, events: &[&str]) -> String {
    let why = |error: EngineError| match error {
        EngineError::Upstream(why) => why,
        other => panic!("{other:?}"),
    };
    let relayed = why(relayed(protocol, events).1.unwrap_err());
    assert_eq!(why(parse_stream(name, events).1.unwrap_err()), relayed);
    relayed
}

/// The output of a translated stream that succeeds.
#[track_caller]
fn translated(protocol: Protocol, events: &[&str]) -> ModelOutput {
    let (events, end): (Vec<TextEvent>, _) = parse_stream(protocol, events);
    end.unwrap();
    ModelOutput::of(&events)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
