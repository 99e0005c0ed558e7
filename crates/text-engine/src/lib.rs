#![doc = include_str!("../README.md")]

mod constrain;
mod conversation;
mod generate;
mod gguf;
mod matrix;
mod model;
mod picture;
mod pool;
mod prepare;
mod prompt;
mod sample;
mod session;
mod stop;
mod stream;
mod tokenizer;
mod tools;
pub mod weights;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{EngineError, Generation, TextEngine, TextRequest};
use futures_core::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::constrain::Grammars;
use crate::generate::{Generate, closed};
use crate::gguf::Gguf;
use crate::model::Model;
use crate::pool::{Job, Pool};
use crate::prepare::{Prepared, prepare};
use crate::stream::Events;
use crate::tokenizer::Tokenizer;
pub use crate::weights::LoadError;

/// Configuration of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Path of the weights, a GGUF file of the llama family. Defaults to [`weights::default_path`].
    pub model: Option<PathBuf>,
    /// Number of threads that compute a forward pass.
    pub threads: usize,
    /// Maximum number of generations that run concurrently.
    pub generations: usize,
    /// Maximum number of queued generations; further ones fail with [`EngineError::Busy`].
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

/// The embedded text engine.
///
/// Dropping it stops its threads within one token; running generations fail with [`EngineError::Unavailable`].
pub struct EmbeddedTextEngine {
    engine: Arc<Engine>,
    /// Prepares requests, on threads separate from those of the generations, which run for a long time.
    readers: Pool,
    writers: Pool,
    timeout: Option<Duration>,
    closed: Arc<AtomicBool>,
}

/// The state shared by all generations.
pub(crate) struct Engine {
    pub(crate) model: Model,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) grammars: Grammars,
}

impl EmbeddedTextEngine {
    /// Loads the weights and starts the threads. Blocks for about a second.
    ///
    /// # Errors
    /// If the weights are missing, damaged or of an unsupported kind, or if the threads cannot be started.
    pub fn load(options: Options) -> Result<Self, LoadError> {
        let path = options.model.unwrap_or_else(weights::default_path);
        let mut file = Gguf::open(&path)?;
        let tokenizer = Tokenizer::load(&file)?;
        let model = Model::load(&mut file, options.threads)?;
        let grammars = Grammars::new(&tokenizer).map_err(|why| file.damaged(format!("invalid vocabulary: {why}")))?;
        // The checksum of the default weights is known. Without it, a corrupt tensor would only show as bad output.
        if path.file_name().is_some_and(|name| name == weights::NAME) {
            weights::verify(&path)?;
        }
        let pool = |name, threads| {
            let failed = |why| LoadError::Setting(format!("cannot start the threads of the text engine: {why}"));
            Pool::new(name, threads, options.waiting).map_err(failed)
        };
        Ok(Self {
            engine: Arc::new(Engine { model, tokenizer, grammars }),
            readers: pool("local-read", 2)?,
            writers: pool("local", options.generations)?,
            timeout: options.timeout,
            closed: Arc::default(),
        })
    }

    /// Prepares a request on a reader thread, because compiling its schemas can take long.
    async fn prepare(&self, request: TextRequest) -> Result<Prepared, EngineError> {
        let (reply, outcome) = oneshot::channel();
        self.readers.submit(Box::new(Prepare { engine: Arc::clone(&self.engine), request, reply }))?;
        outcome.await.unwrap_or_else(|_| Err(EngineError::Internal("request preparation panicked".to_owned())))
    }
}

impl TextEngine for EmbeddedTextEngine {
    fn start(&self, request: TextRequest) -> BoxFuture<'_, Result<Generation, EngineError>> {
        Box::pin(async move {
            let mut prepared = self.prepare(request).await?;
            let dropped = std::mem::take(&mut prepared.dropped);
            let (events, receiver) = mpsc::channel(self.engine.model.context() + SPARE_EVENTS);
            let (engine, closed) = (Arc::clone(&self.engine), Arc::clone(&self.closed));
            self.writers.submit(Box::new(Generate { engine, prepared, events, timeout: self.timeout, closed }))?;
            Ok(Generation { dropped, events: Box::pin(Events::new(receiver)) })
        })
    }

    fn count_tokens(&self, request: TextRequest) -> BoxFuture<'_, Result<u64, EngineError>> {
        Box::pin(async move { Ok(self.prepare(request).await?.tokens) })
    }
}

impl Drop for EmbeddedTextEngine {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// The job of preparing a request.
struct Prepare {
    engine: Arc<Engine>,
    request: TextRequest,
    reply: oneshot::Sender<Result<Prepared, EngineError>>,
}

impl Job for Prepare {
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(self: Box<Self>) {
        // Fails if the caller has gone away, which is fine.
        let _ = self.reply.send(prepare(&self.engine, self.request));
    }

    fn refuse(self: Box<Self>) {
        // As above.
        let _ = self.reply.send(Err(closed()));
    }
}

/// Channel capacity for events in addition to one per token: the plan, the calls and the terminal event.
const SPARE_EVENTS: usize = 256;
