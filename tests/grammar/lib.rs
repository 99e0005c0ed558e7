//! Streams as the tests see them: each is decoded in pieces and validated by the grammar of its
//! protocol.

use sse::Decoder;
use testkit::Response;

/// The data of each event of a stream, checked not to depend on how the bytes are split.
#[track_caller]
pub(crate) fn data(response: &Response) -> Vec<String> {
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(
        response.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(response.header("content-length"), None);
    assert!(
        response.is_complete(),
        "the body came to its end: {}",
        response.text()
    );
    let whole = decode(&response.body, usize::MAX);
    assert_eq!(whole, decode(&response.body, 7), "in any pieces");
    whole
}

fn decode(bytes: &[u8], size: usize) -> Vec<String> {
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    for piece in bytes.chunks(size.min(bytes.len().max(1))) {
        decoder.feed(piece.to_vec().into());
        while let Some(event) = decoder.poll() {
            data.push(
                event
                    .expect("an event within the limits")
                    .data()
                    .into_owned(),
            );
        }
    }
    decoder.finish().expect("no event is cut");
    data
}

/// The result of a stream: its reply, or the failure that it reported.
#[derive(Debug)]
pub(crate) enum End<T> {
    Reply(T),
    Failure(String),
}

impl<T: std::fmt::Debug> End<T> {
    #[track_caller]
    pub(crate) fn reply(self) -> T {
        match self {
            Self::Reply(reply) => reply,
            Self::Failure(failure) => panic!("the stream failed: {failure}"),
        }
    }

    #[track_caller]
    pub(crate) fn failure(self) -> String {
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
        #[track_caller]
        pub(crate) fn $name(response: &Response) -> End<$reply> {
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
