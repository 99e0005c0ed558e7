//! Parses Responses answers of upstreams into neutral events.

use engine::{EngineError, Stop, TextEvent};
use responses::lenient::{Finish, Reader, Update};

use super::call_sequencer::{CallSequencer, key};
use super::json::{engine_error, text, usage};

/// Parses a stream.
#[derive(Debug, Default)]
pub(super) struct StreamParser {
    reader: Reader,
    sequencer: CallSequencer,
    /// The part of a summary to which text was appended last.
    part: Option<u64>,
}

/// Parses a complete response.
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
        for update in updates {
            self.update(update, out);
        }
        let Some(finish) = self.reader.finish() else {
            return Ok(());
        };
        self.sequencer.end(finish != Finish::Completed, out)?;
        let stop = match finish {
            Finish::Completed if self.reader.has_calls() => Stop::ToolCalls,
            Finish::Completed => Stop::End,
            Finish::ContentFilter => Stop::Refused,
            _ => Stop::MaxTokens,
        };
        out.push(TextEvent::Finished {
            stop,
            usage: self.reader.tokens().map(usage),
        });
        Ok(())
    }

    fn update(&mut self, update: Update<'_>, out: &mut Vec<TextEvent>) {
        let sequencer = &mut self.sequencer;
        match update {
            Update::Reasoning(text) => sequencer.emit(TextEvent::Reasoning(text.into_owned()), out),
            Update::Summary { part, text } => {
                if self.part.replace(part).is_some_and(|last| last != part) {
                    sequencer.emit(TextEvent::Reasoning(PARAGRAPH.to_owned()), out);
                }
                sequencer.emit(TextEvent::Reasoning(text.into_owned()), out);
            }
            Update::Text(text) => sequencer.emit(TextEvent::Text(text.into_owned()), out),
            Update::Refusal(text) => sequencer.emit(TextEvent::Refusal(text.into_owned()), out),
            Update::Call { call, id, name } => sequencer.call(key(call), &id, &name, out),
            Update::Arguments { call, text } => sequencer.arguments(key(call), &text, out),
            Update::CallEnd(call) => sequencer.close(key(call), out),
            _ => {}
        }
    }
}

/// The separator of the parts of a summary, which are paragraphs.
const PARAGRAPH: &str = "\n\n";
