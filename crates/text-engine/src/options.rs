//! The configuration of the engine.

use std::path::PathBuf;
use std::time::Duration;

/// Configuration of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Path of the weights, a GGUF file of the llama family. Defaults to [`weights::default_path`](crate::weights::default_path).
    pub model: Option<PathBuf>,
    /// Number of threads that compute a forward pass.
    pub threads: usize,
    /// Maximum number of generations that run concurrently.
    pub generations: usize,
    /// Maximum number of queued generations; further ones fail with [`EngineError::Busy`](engine::EngineError::Busy).
    pub waiting: usize,
    /// Timeout of a generation, measured from when it leaves the queue. `None`: no timeout.
    pub timeout: Option<Duration>,
}

impl Default for Options {
    /// All cores but one, 4 concurrent generations, 256 queued ones, no timeout.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { model: None, threads: cores.saturating_sub(1).max(1), generations: 4, waiting: 256, timeout: None }
    }
}
