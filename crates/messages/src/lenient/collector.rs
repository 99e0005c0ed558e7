//! Collects an answer.

use wire::lenient::{self, AnswerReader, ReadError, Tokens, Update};

use super::{Reader, Stop};

/// Collects a stream into its answer.
///
/// ```
/// use sluicegate_messages::lenient::{Collector, Stop};
///
/// let mut collector = Collector::default();
/// for data in [
///     r#"{"type":"message_start","message":{}}"#,
///     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Good day."}}"#,
///     r#"{"type":"content_block_stop","index":0}"#,
///     r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
///     r#"{"type":"message_stop"}"#,
/// ] {
///     collector.event(data)?;
/// }
/// let answer = collector.finish()?;
/// assert_eq!((answer.text.as_str(), answer.finish), ("Good day.", Stop::EndTurn));
/// # Ok::<(), sluicegate_messages::lenient::ReadError>(())
/// ```
pub type Collector = lenient::Collector<Reader>;

/// A message. Its `reasoning` is the thinking of the model, and its `finish` the stop reason.
pub type Answer = lenient::Answer<Stop>;

/// Reads a plain reply.
///
/// # Errors
/// As for [`Reader::reply`].
pub fn collect(body: &str) -> Result<Answer, ReadError> {
    lenient::collect::<Reader>(body)
}

impl AnswerReader for Reader {
    type Finish = Stop;

    fn event<'a>(&mut self, data: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
        self.event(data, out).map(drop)
    }

    fn reply<'a>(&mut self, body: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
        self.reply(body, out)
    }

    fn finish(&self) -> Result<Stop, ReadError> {
        let stop = self.stop().filter(|_| self.is_ended());
        stop.cloned().ok_or(ReadError::Truncated)
    }

    fn tokens(&self) -> Option<Tokens> {
        self.tokens()
    }
}
