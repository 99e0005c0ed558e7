//! Parses the answers of upstreams into neutral events.

use engine::{EngineError, Stop, TextEvent, Usage};
use vendor::{engine_error, text, usage};
use wire::lenient::{AnswerReader, OtherContent, ReadError, Update};

use super::call_sequencer::CallSequencer;
use crate::outbound::chat_seals::{ChatSeals, call_seal};
use crate::outbound::signature;

/// A lenient reader with the facts that neutral events need.
pub(super) trait NeutralReader: AnswerReader {
    /// The reason why the content ended; `None` before its end.
    fn neutral_stop(&self) -> Option<Stop>;

    /// Returns false if token counts may follow the end of the content.
    fn is_done(&self) -> bool {
        true
    }

    /// Returns true if a piece of a text belongs before one that came earlier.
    fn breaks_order(&self) -> bool {
        false
    }

    /// The kinds of content of the answer without a neutral event.
    fn other_content(&self) -> &[OtherContent];

    /// The id of the answer, from which ids of calls are made; empty if it is unknown.
    fn answer_id(&self) -> &str {
        ""
    }
}

/// Parses a stream.
#[derive(Debug, Default)]
pub(super) struct StreamParser<R> {
    reader: R,
    sequencer: CallSequencer,
    /// The seals that were not emitted yet.
    seals: ChatSeals,
    /// The item of reasoning, and the part of its summary, to which text was appended last, with
    /// nothing else behind it.
    part: Option<(u64, u64)>,
    /// True after a text, a refusal or a call.
    has_content: bool,
    /// Set at the end of the content.
    stop: Option<Stop>,
}

/// Parses a complete reply.
pub(super) fn reply<R: NeutralReader>(body: &[u8]) -> Result<Vec<TextEvent>, EngineError> {
    let (mut parser, mut out) = (StreamParser::<R>::default(), Vec::new());
    let mut updates = Vec::new();
    parser
        .reader
        .reply(text(body)?, &mut updates)
        .map_err(engine_error)?;
    parser.emit(updates, &mut out)?;
    if parser.stop.is_none() {
        return Err(engine_error(ReadError::Truncated));
    }
    parser.end(&mut out);
    Ok(out)
}

impl<R: NeutralReader> StreamParser<R> {
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
            self.end(out);
        }
        Ok(())
    }

    /// Emits the end, if the content has ended.
    pub(super) fn end(&mut self, out: &mut Vec<TextEvent>) {
        if let Some(stop) = self.stop.clone() {
            self.emit_seals(out);
            let others = self.reader.other_content().iter();
            out.extend(others.map(|kind| TextEvent::LeftOut(kind.as_str())));
            let usage = self.usage();
            out.push(TextEvent::Finished { stop, usage });
        }
    }

    /// Returns the token usage that was reported so far.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.reader.tokens().map(usage)
    }

    fn emit(
        &mut self,
        updates: Vec<Update<'_>>,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        if self.reader.breaks_order() {
            // The texts of an answer become one, to which pieces are appended as they come.
            return Err(EngineError::Upstream(
                "the pieces of several texts are out of their order".to_owned(),
            ));
        }
        self.sequencer.set_answer_id(self.reader.answer_id());
        for update in updates {
            self.update(update, out);
        }
        if self.stop.is_none() {
            self.stop = self.reader.neutral_stop();
            if let Some(stop) = &self.stop {
                self.sequencer.end(is_truncation(stop), out)?;
                let is_lost = !self.has_content && !self.reader.other_content().is_empty();
                if is_lost && !is_truncation(stop) {
                    return Err(EngineError::Upstream(
                        "the answer has no content that other protocols have".to_owned(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Emits the seals so far: before a call, because clients return them there, and before a
    /// text, unless the message goes on behind them.
    fn emit_seals(&mut self, out: &mut Vec<TextEvent>) {
        let signature = self.seals.take_signature();
        if let Some(signature) = signature {
            self.sequencer
                .emit(TextEvent::ReasoningSignature(signature), out);
        }
    }

    fn update(&mut self, update: Update<'_>, out: &mut Vec<TextEvent>) {
        match update {
            Update::Detail(detail) => return self.seals.add_detail(detail),
            Update::Extra(extra) => return self.seals.add_extra(extra),
            Update::Member { name, value } => return self.seals.add_member(name, value),
            Update::Call { .. } | Update::CallExtra { .. } => self.emit_seals(out),
            Update::Text(_) if self.seals.extra_content.is_none() => self.emit_seals(out),
            _ => {}
        }
        let is_content = matches!(
            update,
            Update::Text(_) | Update::Refusal(_) | Update::Call { .. }
        );
        if is_content {
            self.has_content = true;
            self.part = None;
        }
        let sequencer = &mut self.sequencer;
        let event = match update {
            Update::Call { call, id, name } => return sequencer.call(call, &id, &name, out),
            Update::Arguments { call, text } => return sequencer.arguments(call, &text, out),
            Update::CallEnd(call) => return sequencer.close(call, out),
            Update::CallExtra {
                call,
                id,
                member,
                content,
            } => TextEvent::CallSeal {
                id: sequencer.id(call, &id),
                seal: call_seal(member, content),
            },
            Update::Reasoning(text) => TextEvent::Reasoning(text.into_owned()),
            Update::Summary { item, part, text } => {
                let part = (item, part);
                if self.part.replace(part).is_some_and(|last| last != part) {
                    sequencer.emit(TextEvent::Reasoning(PARAGRAPH.to_owned()), out);
                }
                TextEvent::Reasoning(text.into_owned())
            }
            Update::Signature(text) => TextEvent::ReasoningSignature(text.into_owned()),
            Update::RedactedReasoning(data) => TextEvent::RedactedReasoning(data.into_owned()),
            Update::Encrypted { id, content } => {
                self.part = None;
                TextEvent::ReasoningSignature(signature(&id, &content))
            }
            Update::Logprobs(tokens) => {
                TextEvent::Logprobs(serde_json::from_str(tokens).unwrap_or_default())
            }
            Update::Text(text) => TextEvent::Text(text.into_owned()),
            Update::Refusal(text) => TextEvent::Refusal(text.into_owned()),
            _ => return,
        };
        sequencer.emit(event, out);
    }
}

/// Returns true if the last output of the model may be cut off.
fn is_truncation(stop: &Stop) -> bool {
    matches!(stop, Stop::MaxTokens | Stop::ContextFull | Stop::Refused)
}

/// The separator of the parts of a summary, and of summaries, which are paragraphs
/// (<https://github.com/zed-industries/zed/pull/62466>).
const PARAGRAPH: &str = "\n\n";
