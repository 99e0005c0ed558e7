//! Parses Messages answers of upstreams into neutral events.

use engine::{EngineError, Stop, TextEvent};
use messages::lenient::{self, Reader, Update};

use super::call_sequencer::{CallSequencer, key};
use super::json::{engine_error, text, usage};

/// Parses a stream.
#[derive(Debug, Default)]
pub(super) struct StreamParser {
    reader: Reader,
    sequencer: CallSequencer,
}

/// Parses a complete message.
pub(super) fn reply(body: &[u8]) -> Result<Vec<TextEvent>, EngineError> {
    let (mut parser, mut out, mut updates) = (StreamParser::default(), Vec::new(), Vec::new());
    parser
        .reader
        .reply(text(body)?, &mut updates)
        .map_err(engine_error)?;
    parser.emit(updates, &mut out)?;
    Ok(out)
}

impl StreamParser {
    pub(super) fn event(
        &mut self,
        data: &[u8],
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        let mut updates = Vec::new();
        self.reader
            .event(text(data)?, &mut updates)
            .map_err(engine_error)?;
        self.emit(updates, out)
    }

    fn emit(
        &mut self,
        updates: Vec<Update<'_>>,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        let sequencer = &mut self.sequencer;
        for update in updates {
            match update {
                Update::Thinking(text) => {
                    sequencer.emit(TextEvent::Reasoning(text.into_owned()), out);
                }
                Update::Signature(text) => {
                    sequencer.emit(TextEvent::ReasoningSignature(text.into_owned()), out);
                }
                Update::RedactedThinking(data) => {
                    sequencer.emit(TextEvent::RedactedReasoning(data.into_owned()), out);
                }
                Update::Text(text) => sequencer.emit(TextEvent::Text(text.into_owned()), out),
                Update::Call { call, id, name } => sequencer.call(key(call), &id, &name, out),
                Update::Input { call, json } => sequencer.arguments(key(call), &json, out),
                Update::CallEnd(call) => sequencer.close(key(call), out),
                _ => {}
            }
        }
        if let Some(stop) = self.reader.stop().filter(|_| self.reader.is_ended()) {
            sequencer.end(!stop.is_complete(), out)?;
            out.push(TextEvent::Finished {
                stop: neutral(stop),
                usage: self.reader.tokens().map(usage),
            });
        }
        Ok(())
    }
}

fn neutral(stop: &lenient::Stop) -> Stop {
    match stop {
        lenient::Stop::StopSequence(Some(text)) => Stop::StopText(text.clone()),
        lenient::Stop::ToolUse => Stop::ToolCalls,
        lenient::Stop::MaxTokens => Stop::MaxTokens,
        lenient::Stop::ContextFull => Stop::ContextFull,
        lenient::Stop::Refusal => Stop::Refused,
        lenient::Stop::PauseTurn => Stop::Paused,
        _ => Stop::End,
    }
}
