//! What the tests of listening have in common.

use engine::{EngineError, Stop, TextEvent, Usage};
use sluicegate_translate::outbound::{Protocol, Reader};
use sse::Decoder;

/// What a model did, put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) reasoning: String,
    pub(crate) seal: String,
    /// Thoughts that only the model can read.
    pub(crate) redacted: Vec<String>,
    pub(crate) text: String,
    pub(crate) refusal: String,
    /// Id, name and arguments of each call.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) end: Option<(Stop, Option<Usage>)>,
}

impl Said {
    pub(crate) fn of(events: &[TextEvent]) -> Self {
        let mut said = Self::default();
        for (at, event) in events.iter().enumerate() {
            match event.clone() {
                TextEvent::Reasoning(text) => said.reasoning += &text,
                TextEvent::ReasoningSignature(text) => said.seal += &text,
                TextEvent::RedactedReasoning(data) => said.redacted.extend(Some(data).filter(|data| !data.is_empty())),
                TextEvent::Text(text) => said.text += &text,
                TextEvent::Refusal(text) => said.refusal += &text,
                TextEvent::Call { id, name } => said.calls.push((id, name, String::new())),
                TextEvent::Arguments(text) => {
                    let before = &events[at - 1];
                    assert!(matches!(before, TextEvent::Call { .. } | TextEvent::Arguments(_)), "arguments of no call");
                    said.calls.last_mut().unwrap().2 += &text;
                }
                TextEvent::Finished { stop, usage } => {
                    assert_eq!(at + 1, events.len(), "the end is the last");
                    said.end = Some((stop, usage));
                }
                other => panic!("{other:?}"),
            }
        }
        said
    }
}

/// The data of the events in the bytes of a stream, as far as they are whole.
pub(crate) fn data(stream: &[u8]) -> Vec<String> {
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    decoder.feed(stream.to_vec().into());
    while let Some(event) = decoder.poll() {
        data.push(event.unwrap().data().into_owned());
    }
    data
}

/// Everything that is told of events, up to the failure.
pub(crate) fn listen<D: AsRef<str>>(protocol: Protocol, data: &[D]) -> (Vec<TextEvent>, Result<(), EngineError>) {
    let (mut reader, mut out) = (Reader::new(protocol), Vec::new());
    let heard = data.iter().try_for_each(|data| reader.event(data.as_ref().as_bytes(), &mut out));
    let heard = heard.and_then(|()| reader.end(&mut out));
    assert_eq!(reader.is_finished(), heard.is_ok());
    (out, heard)
}

/// What a stream says that ends well.
pub(crate) fn said<D: AsRef<str>>(protocol: Protocol, data: &[D]) -> Said {
    let (events, heard) = listen(protocol, data);
    heard.unwrap();
    Said::of(&events)
}

/// A file of the fixtures.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/it/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The streams and replies of a protocol among the fixtures.
pub(crate) fn fixtures(prefix: &str) -> Vec<String> {
    let dir = std::fs::read_dir(format!("{}/tests/it/fixtures", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let names = dir.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    assert!(!names.is_empty());
    names
}
