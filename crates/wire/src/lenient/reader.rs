//! The interface of the readers.

use super::{ReadError, Tokens, Update};

/// A lenient reader of the answers of one protocol.
///
/// ```
/// use sluicegate_wire::lenient::{AnswerReader, Collector, ReadError, Tokens, Update, collect};
///
/// /// Reads words up to a full stop.
/// #[derive(Default)]
/// struct Words {
///     is_ended: bool,
/// }
///
/// impl AnswerReader for Words {
///     type Finish = ();
///
///     fn event<'a>(&mut self, data: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
///         self.is_ended = data == ".";
///         out.push(Update::Text(data.into()));
///         Ok(())
///     }
///
///     fn reply<'a>(&mut self, body: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
///         body.split(' ').try_for_each(|word| self.event(word, out))?;
///         self.finish()
///     }
///
///     fn finish(&self) -> Result<(), ReadError> {
///         self.is_ended.then_some(()).ok_or(ReadError::Truncated)
///     }
///
///     fn tokens(&self) -> Option<Tokens> {
///         None
///     }
/// }
///
/// let mut collector = Collector::<Words>::default();
/// collector.event("Hello")?;
/// collector.event(".")?;
/// assert_eq!(collector.finish()?.text, "Hello.");
/// assert_eq!(collect::<Words>("Hello there"), Err(ReadError::Truncated));
/// # Ok::<(), ReadError>(())
/// ```
pub trait AnswerReader: Default {
    /// The meaning of the word for the end of an answer.
    type Finish;

    /// Reads the data of an event, and appends its updates.
    ///
    /// # Errors
    /// If it is not an event, reports an error, or contradicts an earlier event. The reader is
    /// unusable afterwards.
    fn event<'a>(&mut self, data: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError>;

    /// Reads a plain reply, which has to be finished.
    ///
    /// # Errors
    /// As for [`AnswerReader::event`], and if it is not finished.
    fn reply<'a>(&mut self, body: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError>;

    /// Returns how the answer ended.
    ///
    /// # Errors
    /// If it has not ended.
    fn finish(&self) -> Result<Self::Finish, ReadError>;

    /// Returns the token counts so far.
    fn tokens(&self) -> Option<Tokens>;
}
