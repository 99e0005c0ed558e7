//! Collects an answer.

use wire::lenient::{Call, ReadError, Tokens};

use super::{Finish, Reader, Update};

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
#[derive(Clone, Debug, Default)]
pub struct Collector {
    reader: Reader,
    content: Content,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The reasoning and its summary, if the server sends them.
    pub reasoning: String,
    /// The output text.
    pub text: String,
    /// The refusal.
    pub refusal: String,
    /// The calls, in the order in which they began.
    pub calls: Vec<Call>,
    /// The end of the answer. Unless it is complete, the last of the texts or calls may be
    /// truncated.
    pub finish: Finish,
    /// The token counts, if the server sends them.
    pub tokens: Option<Tokens>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    reasoning: String,
    text: String,
    refusal: String,
    calls: Vec<Call>,
}

impl Collector {
    /// Reads the data of an event.
    ///
    /// # Errors
    /// As for [`Reader::event`].
    pub fn event(&mut self, data: &str) -> Result<(), ReadError> {
        let mut updates = Vec::new();
        self.reader.event(data, &mut updates)?;
        updates
            .into_iter()
            .for_each(|update| self.content.add(update));
        Ok(())
    }

    /// Returns the answer at the end of the stream.
    ///
    /// # Errors
    /// If there was no terminal event.
    pub fn finish(self) -> Result<Answer, ReadError> {
        self.content.answer(&self.reader)
    }
}

/// Reads a plain reply.
///
/// # Errors
/// As for [`Reader::reply`].
pub fn collect(body: &str) -> Result<Answer, ReadError> {
    let (mut reader, mut updates, mut content) = (Reader::new(), Vec::new(), Content::default());
    reader.reply(body, &mut updates)?;
    updates.into_iter().for_each(|update| content.add(update));
    content.answer(&reader)
}

impl Content {
    fn add(&mut self, update: Update<'_>) {
        match update {
            Update::Reasoning(text) | Update::Summary { text, .. } => self.reasoning += &text,
            Update::Text(text) => self.text += &text,
            Update::Refusal(text) => self.refusal += &text,
            Update::Call { call, id, name } => {
                let call = self.call(call);
                call.id = id.into_owned();
                call.name = name.into_owned();
            }
            Update::Arguments { call, text } => self.call(call).arguments += &text,
            Update::CallEnd(_) => {}
        }
    }

    fn call(&mut self, number: usize) -> &mut Call {
        if self.calls.len() <= number {
            self.calls.resize_with(number + 1, Call::default);
        }
        &mut self.calls[number]
    }

    fn answer(self, reader: &Reader) -> Result<Answer, ReadError> {
        let finish = reader.finish().ok_or(ReadError::Truncated)?;
        let Self {
            reasoning,
            text,
            refusal,
            calls,
        } = self;
        Ok(Answer {
            reasoning,
            text,
            refusal,
            calls,
            finish,
            tokens: reader.tokens(),
        })
    }
}
