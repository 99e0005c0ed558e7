//! Checks replies with the grammars of our own protocol crates.

use images::Operation;
use serde_json::Value;
use sluicegate_simulator::Protocol;

/// Folds a stream to its complete reply. The error is a violation of the grammar, a failure event
/// or a truncation.
pub(crate) fn fold(protocol: Protocol, stream: &[u8]) -> Result<Value, String> {
    let data = decode(stream)?;
    match protocol {
        Protocol::Responses => fold_responses(&data),
        Protocol::Chat => fold_chat(&data),
        Protocol::Messages => fold_messages(&data),
        Protocol::Images => fold_images(&data, Operation::Generation, 1),
    }
}

/// Decodes the data of each event.
pub(crate) fn decode(stream: &[u8]) -> Result<Vec<String>, String> {
    let (mut decoder, mut data) = (sse::Decoder::new(), Vec::new());
    decoder.feed(stream.to_vec().into());
    while let Some(event) = decoder.poll() {
        data.push(
            event
                .map_err(|error| error.to_string())?
                .data()
                .into_owned(),
        );
    }
    decoder.finish().map_err(|error| error.to_string())?;
    Ok(data)
}

macro_rules! fold {
    ($name:ident, $protocol:ident) => {
        fn $name(data: &[String]) -> Result<Value, String> {
            let mut fold = $protocol::Fold::default();
            for data in data {
                let event =
                    $protocol::Event::read(data).map_err(|error| format!("{error}: {data}"))?;
                fold.push(&event)
                    .map_err(|error| format!("{error}: {data}"))?;
            }
            let reply = fold.finish().map_err(|error| error.to_string())?;
            Ok(serde_json::to_value(reply).expect("JSON"))
        }
    };
}

fold!(fold_responses, responses);
fold!(fold_chat, chat);
fold!(fold_messages, messages);

pub(crate) fn fold_images(
    data: &[String],
    operation: Operation,
    count: u32,
) -> Result<Value, String> {
    let mut fold = images::Fold::new(operation, Some(count));
    for data in data {
        let event = images::Event::read(data).map_err(|error| format!("{error}: {data}"))?;
        fold.push(event)
            .map_err(|error| format!("{error}: {data}"))?;
    }
    let reply = fold.finish().map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(reply).expect("JSON"))
}

/// Reads a plain reply with the type that the fold returns.
pub(crate) fn read(protocol: Protocol, reply: &[u8]) -> Value {
    let written = match protocol {
        Protocol::Responses => serde_json::from_slice(reply)
            .and_then(|reply: responses::Response| serde_json::to_value(reply)),
        Protocol::Chat => serde_json::from_slice(reply)
            .and_then(|reply: chat::Completion| serde_json::to_value(reply)),
        Protocol::Messages => serde_json::from_slice(reply)
            .and_then(|reply: messages::Message| serde_json::to_value(reply)),
        Protocol::Images => serde_json::from_slice(reply)
            .and_then(|reply: images::Response| serde_json::to_value(reply)),
    };
    written.expect("a reply of the protocol")
}
