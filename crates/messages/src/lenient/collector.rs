//! Collects an answer.

use wire::lenient::{Call, ReadError, Tokens};

use super::{Reader, Stop, Update};

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
/// assert_eq!((answer.text.as_str(), answer.stop), ("Good day.", Stop::EndTurn));
/// # Ok::<(), sluicegate_messages::lenient::ReadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Collector {
    reader: Reader,
    content: Content,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The thinking, if the server sends it.
    pub thinking: String,
    /// The output text.
    pub text: String,
    /// The calls, in the order in which they began.
    pub calls: Vec<Call>,
    /// The end of the answer. Unless it is complete, the last of the texts or calls may be
    /// truncated.
    pub stop: Stop,
    /// The token counts, if the server sends them.
    pub tokens: Option<Tokens>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    thinking: String,
    text: String,
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
    /// If there was no `message_stop`.
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
            Update::Thinking(text) => self.thinking += &text,
            Update::Text(text) => self.text += &text,
            Update::Call { id, name, .. } => {
                self.calls.push(Call {
                    id: id.into_owned(),
                    name: name.into_owned(),
                    arguments: String::new(),
                });
            }
            Update::Input { call, json } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.arguments += &json;
                }
            }
            Update::Signature(_) | Update::RedactedThinking(_) | Update::CallEnd(_) => {}
        }
    }

    fn answer(self, reader: &Reader) -> Result<Answer, ReadError> {
        let stop = reader
            .stop()
            .filter(|_| reader.is_ended())
            .cloned()
            .ok_or(ReadError::Truncated)?;
        let Self {
            thinking,
            text,
            calls,
        } = self;
        Ok(Answer {
            thinking,
            text,
            calls,
            stop,
            tokens: reader.tokens(),
        })
    }
}
