//! Checks responses by the grammar of their protocols, with the types that the gateway sends.
//!
//! A package of its own, because `testkit` does not parse with the crates of the gateway.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic on failure")]

mod outcome;

use images::Operation;
use serde_json::Value;
use simulator::Protocol;
use testkit::Response;
use testkit::events::data;

pub use self::outcome::Judged;

/// The result of a stream: its reply, or the failure that it reported.
#[derive(Debug)]
pub enum End<T> {
    /// The reply to which the stream folds.
    Reply(T),
    /// The failure, as JSON.
    Failure(String),
}

impl<T: std::fmt::Debug> End<T> {
    /// Returns the reply.
    #[track_caller]
    pub fn reply(self) -> T {
        match self {
            Self::Reply(reply) => reply,
            Self::Failure(failure) => panic!("the stream failed: {failure}"),
        }
    }

    /// Returns the failure.
    #[track_caller]
    pub fn failure(self) -> String {
        match self {
            Self::Reply(reply) => panic!("the stream did not fail: {reply:?}"),
            Self::Failure(failure) => failure,
        }
    }
}

/// Validates a stream by the grammar of a protocol and folds it. Anything outside the grammar fails
/// the test.
macro_rules! read_stream {
    ($name:ident, $protocol:ident, $reply:ty) => {
        /// Validates a stream of this protocol, and folds it.
        #[track_caller]
        pub fn $name(response: &Response) -> End<$reply> {
            let events: Vec<_> = data(response)
                .iter()
                .map(|data| {
                    $protocol::Event::read(data).unwrap_or_else(|error| panic!("{error}: {data}"))
                })
                .collect();
            let terminals = events.iter().filter(|event| event.is_terminal()).count();
            assert_eq!(terminals, 1, "exactly one end: {}", response.text());
            let mut fold = $protocol::Fold::default();
            for event in &events {
                if let Err(error) = fold.push(event) {
                    panic!("{error}: {event:?}\n{}", response.text());
                }
            }
            match fold.finish() {
                Ok(reply) => End::Reply(reply),
                Err($protocol::StreamError::Failed(failure)) => {
                    End::Failure(serde_json::to_string(&failure).unwrap())
                }
                Err(error) => panic!("{error}\n{}", response.text()),
            }
        }
    };
}

read_stream!(chat, chat, chat::Completion);
read_stream!(messages, messages, messages::Message);
read_stream!(responses, responses, responses::Response);

/// Parses a stream by the grammar of its protocol: its reply, or the failure that it reported.
/// Anything outside the grammar, a second end and bytes after the end fail the test.
#[track_caller]
pub fn stream(protocol: Protocol, response: &Response) -> End<Value> {
    match protocol {
        Protocol::Responses => value(responses(response)),
        Protocol::Chat => value(chat(response)),
        Protocol::Messages => value(messages(response)),
        Protocol::Images => pictures(Operation::Generation, 1, response),
    }
}

/// Parses a plain reply, and asserts that the type that streams are folded to can read it.
#[track_caller]
pub fn plain(protocol: Protocol, response: &Response) -> Value {
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, Some("application/json")),
        "{response:?}"
    );
    let body = &response.body;
    let read = match protocol {
        Protocol::Responses => serde_json::from_slice::<responses::Response>(body).map(drop),
        Protocol::Chat => serde_json::from_slice::<chat::Completion>(body).map(drop),
        Protocol::Messages => serde_json::from_slice::<messages::Message>(body).map(drop),
        Protocol::Images => serde_json::from_slice::<images::Response>(body).map(drop),
    };
    let reply = read.and_then(|()| serde_json::from_slice(body));
    reply.unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

/// As `stream`, for a stream of so many pictures.
#[track_caller]
pub fn pictures(operation: Operation, count: u32, response: &Response) -> End<Value> {
    let mut fold = images::Fold::new(operation, Some(count));
    let data = data(response);
    for (place, data) in data.iter().enumerate() {
        let event = images::Event::read(data).unwrap_or_else(|error| panic!("{error}: {data}"));
        match fold.push(event) {
            Ok(()) => {}
            Err(images::StreamError::Failed(_)) => {}
            Err(error) => panic!("{error}: event {place}\n{}", response.text()),
        }
    }
    match fold.finish() {
        Ok(reply) => End::Reply(written(&reply).unwrap()),
        Err(images::StreamError::Failed(failure)) => {
            End::Failure(serde_json::to_string(&failure).unwrap())
        }
        Err(error) => panic!("{error}\n{}", response.text()),
    }
}

#[track_caller]
fn value<T: serde::Serialize + std::fmt::Debug>(end: End<T>) -> End<Value> {
    match end {
        End::Reply(reply) => End::Reply(written(&reply).unwrap()),
        End::Failure(failure) => End::Failure(failure),
    }
}

fn written(reply: &impl serde::Serialize) -> serde_json::Result<Value> {
    serde_json::to_value(reply)
}
