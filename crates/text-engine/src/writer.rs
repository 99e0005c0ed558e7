//! The loop of every generation: score, draw, hand out, run.

use std::ops::ControlFlow;
use std::time::Instant;

use engine::EngineError;
use toktrie::TokenId;

use crate::constrain::Constraint;
use crate::sample::{Purpose, Sampler};
use crate::session::Session;
use crate::tokenizer::Tokenizer;

/// Why nothing more is written at all.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Nobody waits for it any more.
    Cancelled,
    Failed(EngineError),
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

/// Why a piece of writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The model, or its grammar, came to the end.
    Done,
    /// The reader wants no more.
    Enough,
    /// The cap.
    Cut,
    /// The context is full.
    Full,
}

/// Writes after prompts, one token at a time, as long as somebody waits for it.
pub(crate) struct Writer<'m> {
    pub(crate) tokenizer: &'m Tokenizer,
    pub(crate) session: Session<'m>,
    pub(crate) sampler: Sampler,
    /// Tokens written so far.
    pub(crate) written: u64,
    pub(crate) deadline: Option<Instant>,
    /// Whether nobody waits any more.
    pub(crate) cancelled: Box<dyn Fn() -> bool + 'm>,
}

impl Writer<'_> {
    /// Writes after a prompt, at most `cap` tokens. Each token's bytes go to the reader.
    pub(crate) fn write(
        &mut self,
        prompt: &[TokenId],
        mut constraint: Option<Constraint>,
        cap: u64,
        mut reader: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Ended, Halt> {
        if !self.session.fits(prompt) {
            return Ok(Ended::Full);
        }
        let mut scores = self.begin(prompt)?;
        let end = self.written.saturating_add(cap);
        loop {
            let tokens = self.next(&scores, constraint.as_mut())?;
            for token in &tokens {
                if *token == self.tokenizer.end() {
                    return Ok(Ended::Done);
                }
                if self.written >= end {
                    return Ok(Ended::Cut);
                }
                self.written += 1;
                if reader(self.tokenizer.bytes(*token)).is_break() {
                    return Ok(Ended::Enough);
                }
            }
            if constraint.as_ref().is_some_and(Constraint::is_done) {
                return Ok(Ended::Done);
            }
            if self.written >= end {
                return Ok(Ended::Cut);
            }
            if tokens.len() >= self.session.room() {
                return Ok(Ended::Full);
            }
            self.check()?;
            scores = self.session.run(&tokens)?;
        }
    }

    /// The scores of what comes after a prompt.
    pub(crate) fn begin(&mut self, prompt: &[TokenId]) -> Result<Vec<f32>, Halt> {
        let (cancelled, deadline) = (&self.cancelled, self.deadline);
        self.session.begin(prompt, || go_on(cancelled, deadline))
    }

    /// What comes next: one token that was drawn, or several that the grammar leaves no choice about.
    fn next(&mut self, scores: &[f32], constraint: Option<&mut Constraint>) -> Result<Vec<TokenId>, Halt> {
        let (tokenizer, end) = (self.tokenizer, self.tokenizer.end());
        let Some(constraint) = constraint else {
            let text = |token| token == end || !tokenizer.is_control(token);
            return drawn(self.sampler.draw(scores, Purpose::Free, text)).map(|token| vec![token]);
        };
        let forced = constraint.forced();
        if !forced.is_empty() {
            forced.iter().for_each(|token| self.sampler.note(*token));
            return Ok(forced);
        }
        let allowed = constraint.allowed()?;
        let token = drawn(self.sampler.draw(scores, Purpose::Grammar, |token| allowed.is_allowed(token)))?;
        constraint.take(token)?;
        Ok(vec![token])
    }

    fn check(&self) -> Result<(), Halt> {
        go_on(&self.cancelled, self.deadline)
    }
}

fn go_on(cancelled: &dyn Fn() -> bool, deadline: Option<Instant>) -> Result<(), Halt> {
    if cancelled() {
        return Err(Halt::Cancelled);
    }
    if deadline.is_some_and(|deadline| now() >= deadline) {
        let reason = "the generation took longer than it may".to_owned();
        return Err(EngineError::Timeout(reason).into());
    }
    Ok(())
}

fn drawn(token: Option<TokenId>) -> Result<TokenId, Halt> {
    token.ok_or_else(|| EngineError::Internal("the grammar allows no token".to_owned()).into())
}

/// The clock of this crate.
#[allow(clippy::disallowed_methods, reason = "a generation that takes too long can only be told by the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
