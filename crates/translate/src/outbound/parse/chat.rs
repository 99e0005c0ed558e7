//! Parses Chat Completions answers of upstreams into neutral events.

use chat::lenient::{Finish, Reader, Update};
use engine::{EngineError, Stop, TextEvent};

use super::call_sequencer::{CallSequencer, key};
use super::json::{engine_error, text, usage};

/// Parses a stream.
#[derive(Debug, Default)]
pub(super) struct StreamParser {
    reader: Reader,
    sequencer: CallSequencer,
    /// Set when the finish reason arrives: no content follows.
    finish: Option<Finish>,
}

/// Parses a complete reply.
pub(super) fn reply(body: &[u8]) -> Result<Vec<TextEvent>, EngineError> {
    let (mut parser, mut out, mut updates) = (StreamParser::default(), Vec::new(), Vec::new());
    parser
        .reader
        .reply(text(body)?, &mut updates)
        .map_err(engine_error)?;
    parser.emit(updates, &mut out)?;
    parser.end(&mut out).map(|()| out)
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
        self.emit(updates, out)?;
        if self.reader.is_done() {
            self.end(out)
        } else {
            Ok(())
        }
    }

    pub(super) fn end(&mut self, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        if let Some(finish) = self.finish {
            let stop = match finish {
                Finish::ToolCalls => Stop::ToolCalls,
                Finish::Length => Stop::MaxTokens,
                Finish::ContentFilter => Stop::Refused,
                _ => Stop::End,
            };
            out.push(TextEvent::Finished {
                stop,
                usage: self.reader.tokens().map(usage),
            });
        }
        Ok(())
    }

    fn emit(
        &mut self,
        updates: Vec<Update<'_>>,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        self.sequencer.set_answer_id(self.reader.id());
        for update in updates {
            match update {
                Update::Reasoning(text) => self
                    .sequencer
                    .emit(TextEvent::Reasoning(text.into_owned()), out),
                Update::Text(text) => self.sequencer.emit(TextEvent::Text(text.into_owned()), out),
                Update::Refusal(text) => self
                    .sequencer
                    .emit(TextEvent::Refusal(text.into_owned()), out),
                Update::Call { call, id, name } => self.sequencer.call(key(call), &id, &name, out),
                Update::Arguments { call, text } => self.sequencer.arguments(key(call), &text, out),
                _ => {}
            }
        }
        if self.finish.is_none()
            && let Ok(finish) = self.reader.finish()
        {
            self.finish = Some(finish);
            self.sequencer.end(!finish.is_complete(), out)?;
        }
        Ok(())
    }
}
