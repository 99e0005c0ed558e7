//! Collects an answer.

use super::{Answer, AnswerReader, Call, ReadError, Update};

/// Collects a stream into its answer. The reader determines the protocol; [`AnswerReader`] has an
/// example.
#[derive(Clone, Debug, Default)]
pub struct Collector<R> {
    reader: R,
    /// The answer without its end.
    content: Answer<()>,
}

impl<R: AnswerReader> Collector<R> {
    /// Reads the data of an event.
    ///
    /// # Errors
    /// As for [`AnswerReader::event`].
    pub fn event(&mut self, data: &str) -> Result<(), ReadError> {
        let mut updates = Vec::new();
        self.reader.event(data, &mut updates)?;
        self.add(updates);
        Ok(())
    }

    /// Returns the answer at the end of the stream.
    ///
    /// # Errors
    /// If the answer has not ended: the stream was truncated.
    pub fn finish(self) -> Result<Answer<R::Finish>, ReadError> {
        let Answer {
            reasoning,
            text,
            refusal,
            calls,
            ..
        } = self.content;
        Ok(Answer {
            reasoning,
            text,
            refusal,
            calls,
            finish: self.reader.finish()?,
            tokens: self.reader.tokens(),
        })
    }

    fn add(&mut self, updates: Vec<Update<'_>>) {
        let content = &mut self.content;
        for update in updates {
            match update {
                Update::Reasoning(text) | Update::Summary { text, .. } => {
                    content.reasoning += &text;
                }
                Update::Text(text) => content.text += &text,
                Update::Refusal(text) => content.refusal += &text,
                Update::Call { call, id, name } => {
                    let call = content.call(call);
                    call.id = id.into_owned();
                    call.name = name.into_owned();
                }
                Update::Arguments { call, text } => content.call(call).arguments += &text,
                Update::Logprobs(_)
                | Update::Signature(_)
                | Update::RedactedReasoning(_)
                | Update::Encrypted { .. }
                | Update::Detail(_)
                | Update::Extra(_)
                | Update::Member { .. }
                | Update::CallExtra { .. }
                | Update::CallEnd(_) => {}
            }
        }
    }
}

impl Answer<()> {
    fn call(&mut self, number: usize) -> &mut Call {
        if self.calls.len() <= number {
            self.calls.resize_with(number + 1, Call::default);
        }
        &mut self.calls[number]
    }
}

/// Reads a plain reply. The reader determines the protocol; [`AnswerReader`] has an example.
///
/// # Errors
/// As for [`AnswerReader::reply`].
pub fn collect<R: AnswerReader>(body: &str) -> Result<Answer<R::Finish>, ReadError> {
    let (mut collector, mut updates) = (Collector::<R>::default(), Vec::new());
    collector.reader.reply(body, &mut updates)?;
    collector.add(updates);
    collector.finish()
}
