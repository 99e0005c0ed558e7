//! The loaded model, which all generations share.

use std::path::Path;

use crate::constrain::Grammars;
use crate::gguf::Gguf;
use crate::model::Model;
use crate::tokenizer::Tokenizer;
use crate::weights::{self, LoadError};

/// The model with its vocabulary and the compiler of its grammars.
pub(crate) struct LoadedModel {
    pub(crate) model: Model,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) grammars: Grammars,
}

impl LoadedModel {
    /// Loads the weights, and starts `threads` threads for the forward passes.
    pub(crate) fn load(path: &Path, threads: usize) -> Result<Self, LoadError> {
        let mut file = Gguf::open(path)?;
        let tokenizer = Tokenizer::load(&file)?;
        let model = Model::load(&mut file, threads)?;
        let grammars = Grammars::new(&tokenizer)
            .map_err(|why| file.damaged(format!("invalid vocabulary: {why}")))?;
        // The checksum of the default weights is known. Without it, a corrupt tensor would only
        // show as bad output.
        if path.file_name().is_some_and(|name| name == weights::NAME) {
            weights::verify(path)?;
        }
        Ok(Self {
            model,
            tokenizer,
            grammars,
        })
    }
}
