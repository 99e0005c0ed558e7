//! The network with what it has read: prompts that begin alike are read once.

use engine::EngineError;
use toktrie::TokenId;

use crate::model::{Cache, Model};

/// Tokens that were run, and what comes after them.
pub(crate) struct Session<'m> {
    model: &'m Model,
    cache: Cache,
    read: Vec<TokenId>,
}

impl<'m> Session<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        Self { model, cache: model.cache(), read: Vec::new() }
    }

    /// Begins anew with a prompt: the scores of what comes after it.
    ///
    /// `check` is asked between pieces of the prompt whether to go on.
    pub(crate) fn begin<E: From<EngineError>>(
        &mut self,
        prompt: &[TokenId],
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<f32>, E> {
        let alike = self.read.iter().zip(prompt).take_while(|(old, new)| old == new).count();
        // The last token is run even if it is known, for its scores.
        let known = alike.min(prompt.len().saturating_sub(1));
        self.cache.truncate(known).map_err(|why| failed(&why))?;
        self.read.truncate(known);
        let mut scores = Vec::new();
        for piece in prompt[known..].chunks(PIECE) {
            check()?;
            scores = self.run(piece)?;
        }
        Ok(scores)
    }

    /// Runs more tokens: the scores of what comes after them.
    pub(crate) fn run(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>, EngineError> {
        let scores = self.model.forward(tokens, &mut self.cache).map_err(|why| failed(&why))?;
        self.read.extend_from_slice(tokens);
        Ok(scores)
    }

    /// Whether a prompt leaves room for an answer.
    pub(crate) fn fits(&self, prompt: &[TokenId]) -> bool {
        prompt.len() < self.model.context()
    }

    /// How many more tokens fit.
    pub(crate) fn room(&self) -> usize {
        self.model.context().saturating_sub(self.cache.len())
    }
}

fn failed(why: &candle_core::Error) -> EngineError {
    EngineError::Internal(format!("the network: {}", why.to_string().lines().next().unwrap_or_default()))
}

/// Tokens of a prompt that are run at once: as long as it takes to notice that nobody waits any more.
const PIECE: usize = 32;
