//! Collects an answer.

use wire::lenient::{self, AnswerReader, ReadError, Tokens, Update};

use super::{Finish, Reader};

/// Collects a stream into its answer.
///
/// ```
/// use sluicegate_chat::lenient::{Collector, Finish};
///
/// let mut collector = Collector::default();
/// collector.event(r#"{"choices":[{"delta":{"content":"Good "}}]}"#)?;
/// collector.event(r#"{"choices":[{"delta":{"content":"day."},"finish_reason":"stop"}]}"#)?;
/// let answer = collector.finish()?;
/// assert_eq!((answer.text.as_str(), answer.finish), ("Good day.", Finish::Stop));
/// # Ok::<(), sluicegate_chat::lenient::ReadError>(())
/// ```
pub type Collector = lenient::Collector<Reader>;

/// The first choice of an answer.
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
        self.event(data, out)
    }

    fn reply<'a>(&mut self, body: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
        self.reply(body, out).map(drop)
    }

    fn finish(&self) -> Result<Finish, ReadError> {
        self.finish()
    }

    fn tokens(&self) -> Option<Tokens> {
        self.tokens()
    }
}
