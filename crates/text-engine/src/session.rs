//! The model with its key/value cache. A prefix that two consecutive prompts share is computed only
//! once.

use engine::EngineError;
use toktrie::TokenId;

use crate::model::{Cache, Model};

/// A cache and the tokens that it was computed from.
pub(crate) struct Session<'m> {
    model: &'m Model,
    cache: Cache,
    tokens: Vec<TokenId>,
}

impl<'m> Session<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        Self {
            model,
            cache: model.cache(),
            tokens: Vec::new(),
        }
    }

    /// Starts over with a prompt and returns the scores of the token after it.
    ///
    /// `check` is called before each chunk of the prompt and can stop the computation with an
    /// error.
    pub(crate) fn begin<E: From<EngineError>>(
        &mut self,
        prompt: &[TokenId],
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<f32>, E> {
        let shared = self
            .tokens
            .iter()
            .zip(prompt)
            .take_while(|(old, new)| old == new)
            .count();
        // The last token always runs, because its scores are needed.
        let known = shared.min(prompt.len().saturating_sub(1));
        self.model.truncate(&mut self.cache, known);
        self.tokens.truncate(known);
        let mut scores = Vec::new();
        for chunk in prompt[known..].chunks(PREFILL_CHUNK) {
            check()?;
            scores = self.run(chunk)?;
        }
        Ok(scores)
    }

    /// Runs more tokens and returns the scores of the token after them.
    pub(crate) fn run(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>, EngineError> {
        let scores = self
            .model
            .forward(tokens, &mut self.cache)
            .map_err(|why| EngineError::Internal(format!("model forward pass failed: {why}")))?;
        self.tokens.extend_from_slice(tokens);
        Ok(scores)
    }

    /// Returns true if a prompt leaves room for at least one more token in the context.
    pub(crate) fn fits(&self, prompt: &[TokenId]) -> bool {
        prompt.len() < self.model.context()
    }

    /// The number of tokens that still fit in the context.
    pub(crate) fn room(&self) -> usize {
        self.model.context().saturating_sub(self.cache.length)
    }
}

/// Number of prompt tokens that run at once. A cancellation or timeout is noticed between chunks.
const PREFILL_CHUNK: usize = 32;
