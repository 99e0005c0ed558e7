//! The places of token counts beside the usage.

use wire::lenient::CountKind::{CacheRead, Output, Uncached};
use wire::lenient::{OPENAI, Spelling, Table};

/// The member `x_groq`, which has the usage of a stream at Groq.
#[derive(Clone, Copy, Debug)]
pub(super) enum Groq {}

/// The member `timings` of llama.cpp, whose streams have a usage only if it is requested. See
/// <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>.
#[derive(Clone, Copy, Debug)]
pub(super) enum LlamaCpp {}

impl Table for Groq {
    const SPELLINGS: &'static [Spelling] = &[Spelling::object("usage", OPENAI)];
}

impl Table for LlamaCpp {
    const SPELLINGS: &'static [Spelling] = &[
        Spelling::count("cache_n", CacheRead),
        Spelling::count("prompt_n", Uncached),
        Spelling::count("predicted_n", Output),
    ];
}
