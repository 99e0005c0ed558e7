//! Collects an answer.

use wire::lenient::{self, AnswerReader, ReadError, Tokens, Update};

use super::{Finish, Reader};

/// Collects a stream into its answer.
///
/// ```
/// use sluicegate_responses::lenient::{Collector, Finish};
///
/// let mut collector = Collector::default();
/// for data in [
///     r#"{"type":"response.output_text.delta","delta":"Good day."}"#,
///     r#"{"type":"response.completed","response":{"status":"completed"}}"#,
/// ] {
///     collector.event(data)?;
/// }
/// let answer = collector.finish()?;
/// assert_eq!((answer.text.as_str(), answer.finish), ("Good day.", Finish::Completed));
/// # Ok::<(), sluicegate_responses::lenient::ReadError>(())
/// ```
pub type Collector = lenient::Collector<Reader>;

/// A response.
pub type Answer = lenient::Answer<Finish>;

/// Reads a plain reply.
///
/// # Errors
/// As for [`Reader::reply`].
pub fn collect(body: &str) -> Result<Answer, ReadError> {
    lenient::collect::<Reader>(body)
}

impl AnswerReader for Reader {
    type Finish = Finish;

    fn event<'a>(&mut self, data: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
        self.event(data, out).map(drop)
    }

    fn reply<'a>(&mut self, body: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
        self.reply(body, out)
    }

    fn finish(&self) -> Result<Finish, ReadError> {
        self.finish().ok_or(ReadError::Truncated)
    }

    fn tokens(&self) -> Option<Tokens> {
        self.tokens()
    }
}
