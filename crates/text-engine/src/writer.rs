//! The token loop of a generation: compute scores, draw a token, pass it on, run it.

use std::ops::ControlFlow;
use std::time::Instant;

use engine::EngineError;
use toktrie::TokenId;

use crate::constrain::Constraint;
use crate::sample::{Purpose, Sampler};
use crate::session::Session;
use crate::tokenizer::Tokenizer;

/// The reason why a generation ends without an answer.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The caller or the engine has gone away.
    Cancelled,
    Failed(EngineError),
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

/// The reason why the output for one prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// The model or the grammar ended it.
    Complete,
    /// The reader stopped it.
    ReaderStopped,
    /// The maximum number of tokens was reached.
    TokenLimit,
    /// The context is full.
    ContextFull,
}

/// Generates the output for prompts, one token at a time, until the generation is cancelled.
pub(crate) struct Writer<'m> {
    pub(crate) tokenizer: &'m Tokenizer,
    pub(crate) session: Session<'m>,
    pub(crate) sampler: Sampler,
    /// Number of tokens written so far.
    pub(crate) written: u64,
    pub(crate) deadline: Option<Instant>,
    /// Returns true once the caller or the engine has gone away.
    pub(crate) cancelled: Box<dyn Fn() -> bool + 'm>,
}

impl Writer<'_> {
    /// Generates at most `cap` tokens after a prompt and passes the bytes of each token to the
    /// reader.
    pub(crate) fn write(
        &mut self,
        prompt: &[TokenId],
        mut constraint: Option<Constraint>,
        cap: u64,
        mut reader: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<EndReason, Halt> {
        if !self.session.fits(prompt) {
            return Ok(EndReason::ContextFull);
        }
        let mut scores = self.begin(prompt)?;
        let end = self.written.saturating_add(cap);
        loop {
            let tokens = self.next(&scores, constraint.as_mut())?;
            for token in &tokens {
                if *token == self.tokenizer.end() {
                    return Ok(EndReason::Complete);
                }
                if self.written >= end {
                    return Ok(EndReason::TokenLimit);
                }
                self.written += 1;
                if reader(self.tokenizer.bytes(*token)).is_break() {
                    return Ok(EndReason::ReaderStopped);
                }
            }
            if constraint.as_ref().is_some_and(Constraint::is_done) {
                return Ok(EndReason::Complete);
            }
            if self.written >= end {
                return Ok(EndReason::TokenLimit);
            }
            if tokens.len() >= self.session.room() {
                return Ok(EndReason::ContextFull);
            }
            check_limits(&self.cancelled, self.deadline)?;
            scores = self.session.run(&tokens)?;
        }
    }

    /// Runs a prompt and returns the scores of the token after it.
    pub(crate) fn begin(&mut self, prompt: &[TokenId]) -> Result<Vec<f32>, Halt> {
        self.session
            .begin(prompt, || check_limits(&self.cancelled, self.deadline))
    }

    /// Returns the next tokens: one that was drawn, or several that the grammar leaves no choice
    /// about.
    fn next(
        &mut self,
        scores: &[f32],
        constraint: Option<&mut Constraint>,
    ) -> Result<Vec<TokenId>, Halt> {
        let tokenizer = self.tokenizer;
        let Some(constraint) = constraint else {
            let text = |token| token == tokenizer.end() || !tokenizer.is_control(token);
            let token = self
                .sampler
                .draw(scores, Purpose::Free, text)
                .ok_or_else(no_token)?;
            return Ok(vec![token]);
        };
        let forced = constraint.forced();
        if !forced.is_empty() {
            forced.iter().for_each(|token| self.sampler.note(*token));
            return Ok(forced);
        }
        let allowed = constraint.allowed()?;
        let is_allowed = |token| allowed.is_allowed(token);
        let token = self
            .sampler
            .draw(scores, Purpose::Grammar, is_allowed)
            .ok_or_else(no_token)?;
        constraint.take(token)?;
        Ok(vec![token])
    }
}

/// Returns an error if the generation was cancelled or its deadline has passed.
fn check_limits(cancelled: &dyn Fn() -> bool, deadline: Option<Instant>) -> Result<(), Halt> {
    if cancelled() {
        return Err(Halt::Cancelled);
    }
    if deadline.is_some_and(|deadline| now() >= deadline) {
        let reason = "generation timeout exceeded".to_owned();
        return Err(EngineError::Timeout(reason).into());
    }
    Ok(())
}

fn no_token() -> EngineError {
    EngineError::Internal("the grammar allows no token".to_owned())
}

/// Reads the clock; the only place in this crate that does.
#[allow(
    clippy::disallowed_methods,
    reason = "the timeout of a generation needs the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
