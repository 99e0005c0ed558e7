//! Helpers for the tests of stream parsing.

use engine::{EngineError, Stop, TextEvent, Usage};
use sluicegate_translate::outbound::Reader;
use sse::Decoder;
use vendor::Protocol;

/// The collected output of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelOutput {
    pub(crate) reasoning: String,
    pub(crate) signature: String,
    /// Reasoning that only the model can decrypt.
    pub(crate) redacted: Vec<String>,
    pub(crate) text: String,
    pub(crate) refusal: String,
    /// Id, name and arguments of each call.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) end: Option<(Stop, Option<Usage>)>,
}

impl ModelOutput {
    pub(crate) fn of(events: &[TextEvent]) -> Self {
        let mut output = Self::default();
        for (at, event) in events.iter().enumerate() {
            match event.clone() {
                TextEvent::Reasoning(text) => output.reasoning += &text,
                TextEvent::ReasoningSignature(text) => output.signature += &text,
                TextEvent::RedactedReasoning(data) => {
                    output
                        .redacted
                        .extend(Some(data).filter(|data| !data.is_empty()));
                }
                TextEvent::Text(text) => output.text += &text,
                TextEvent::Refusal(text) => output.refusal += &text,
                TextEvent::Logprobs(_) | TextEvent::LeftOut(_) => {}
                TextEvent::Call { id, name } => output.calls.push((id, name, String::new())),
                TextEvent::Arguments(text) => {
                    let before = &events[at - 1];
                    assert!(
                        matches!(before, TextEvent::Call { .. } | TextEvent::Arguments(_)),
                        "arguments of no call"
                    );
                    output.calls.last_mut().unwrap().2 += &text;
                }
                TextEvent::Finished { stop, usage } => {
                    assert_eq!(at + 1, events.len(), "the end is the last");
                    output.end = Some((stop, usage));
                }
                other => panic!("{other:?}"),
            }
        }
        output
    }
}

/// Returns the data of the complete events in a stream.
pub(crate) fn data(stream: &[u8]) -> Vec<String> {
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    decoder.feed(stream.to_vec().into());
    while let Some(event) = decoder.poll() {
        data.push(event.unwrap().data().into_owned());
    }
    data
}

/// Parses a stream, up to its failure if it fails.
pub(crate) fn parse_stream<D: AsRef<str>>(
    protocol: Protocol,
    data: &[D],
) -> (Vec<TextEvent>, Result<(), EngineError>) {
    let (mut reader, mut out) = (Reader::new(protocol), Vec::new());
    let result = data
        .iter()
        .try_for_each(|data| reader.event(data.as_ref().as_bytes(), &mut out));
    let result = result.and_then(|()| reader.end(&mut out));
    assert_eq!(reader.is_finished(), result.is_ok());
    (out, result)
}

/// Parses a stream that succeeds.
pub(crate) fn parse_ok<D: AsRef<str>>(protocol: Protocol, data: &[D]) -> ModelOutput {
    let (events, result) = parse_stream(protocol, data);
    result.unwrap();
    ModelOutput::of(&events)
}

/// Reads a fixture.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/tests/it/fixtures/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

/// Returns the names of the fixtures with this prefix.
pub(crate) fn fixtures(prefix: &str) -> Vec<String> {
    let dir =
        std::fs::read_dir(format!("{}/tests/it/fixtures", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let names = dir.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    assert!(!names.is_empty());
    names
}
