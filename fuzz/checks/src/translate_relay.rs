//! Any bytes as the stream of an upstream of the client's own protocol: the relayed stream is
//! within the grammar, ends once, and ends well only when the upstream's did.

use bytes::Bytes;
use sse::Decoder;
use translate::api_error;
use translate::relay::{Chat, Guard, Images, Messages, RelayProtocol, Responses};

macro_rules! check {
    ($protocol:ident, $grammar:expr, $failure:pat, $relayed:expr) => {{
        let (out, is_success) = $relayed;
        let (mut grammar, mut failures) = ($grammar, 0);
        let events = data(out);
        for data in &events {
            let event = $protocol::Event::read(data).expect("relayed data is an event");
            failures += usize::from(matches!(event, $failure));
            match grammar.push(&event) {
                Ok(()) => {}
                Err(offence) => assert!(is_unknown(&format!("{offence:?}")), "{offence:?}"),
            }
        }
        assert!(
            grammar.is_ended() || events.is_empty(),
            "every stream has an end"
        );
        assert_eq!(
            failures,
            usize::from(!is_success && !events.is_empty()),
            "one end"
        );
    }};
}

/// Checks one input; a panic is a finding.
pub fn check(input: &[u8]) {
    let Some((first, stream)) = input.split_first() else {
        return;
    };
    let (size, stream) = (usize::from(first >> 2) * 3 + 1, stream);
    match first % 4 {
        0 => check!(
            responses,
            responses::Grammar::default(),
            responses::Event::Failed(_) | responses::Event::Error(_),
            relayed(Responses::default(), stream, size)
        ),
        1 => check!(
            chat,
            chat::Grammar::default(),
            chat::Event::Error(_),
            relayed(Chat::default(), stream, size)
        ),
        2 => check!(
            messages,
            messages::Grammar::default(),
            messages::Event::Error(_),
            relayed(Messages::default(), stream, size)
        ),
        _ => check!(
            images,
            images::Grammar::new(images::Operation::Generation, Some(1)),
            images::Event::Error(_),
            relayed(Images::new(images::Operation::Generation, 1), stream, size)
        ),
    }
}

/// The client's stream for an upstream's that arrives in pieces of `size`, and whether it ended
/// well.
fn relayed<S: RelayProtocol>(protocol: S, stream: &[u8], size: usize) -> (Vec<u8>, bool) {
    let (mut guard, mut out) = (Guard::new(protocol, "m".to_owned()), Vec::new());
    let fed = stream.chunks(size).find_map(|piece| {
        guard
            .feed(Bytes::copy_from_slice(piece), &mut out)
            .transpose()
    });
    let ended = fed.unwrap_or_else(|| guard.finish(&mut out));
    if let Err(error) = &ended {
        guard.fail(&api_error(error), &mut out);
    }
    (out, ended.is_ok())
}

fn data(stream: Vec<u8>) -> Vec<String> {
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    decoder.feed(stream.into());
    while let Some(event) = decoder.poll() {
        data.push(event.expect("relayed data is an event").data().into_owned());
    }
    data
}

/// Events of unknown types are relayed.
fn is_unknown(offence: &str) -> bool {
    offence == "UnknownType"
}
