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

/// How the engine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The weights, a GGUF file of the llama family. Absent: [`weights::default_path`].
    pub model: Option<PathBuf>,
    /// Threads that share the work of one step.
    pub threads: usize,
    /// Generations at once.
    pub generations: usize,
    /// Generations that wait for a place; more are [`EngineError::Busy`].
    pub waiting: usize,
    /// The longest that a generation may take once it has its place. Absent: no limit.
    pub timeout: Option<Duration>,
}

impl Default for Options {
    /// All cores but one, 4 generations, 256 waiting, no limit.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { model: None, threads: cores.saturating_sub(1).max(1), generations: 4, waiting: 256, timeout: None }
    }
}

/// The embedded text engine.
///
/// Dropping it ends its threads within a token; what they were at ends as [`EngineError::Unavailable`].
pub struct EmbeddedTextEngine {
    engine: Arc<Engine>,
    /// Where requests are read: apart from the generations, which take long.
    readers: Pool,
    writers: Pool,
    timeout: Option<Duration>,
    closed: Arc<AtomicBool>,
}

/// What all generations share.
pub(crate) struct Engine {
    pub(crate) model: Model,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) grammars: Grammars,
}

impl EmbeddedTextEngine {
    /// Loads the weights and starts the threads. It takes a second or so, and blocks.
    ///
    /// # Errors
    /// When the weights are missing, damaged or of a kind that is not taken, or when there are no threads to be had.
    pub fn load(options: Options) -> Result<Self, LoadError> {
        let path = options.model.unwrap_or_else(weights::default_path);
        let mut file = Gguf::open(&path)?;
        let tokenizer = Tokenizer::load(&file)?;
        let model = Model::load(&mut file, options.threads)?;
        let grammars = Grammars::new(&tokenizer).map_err(|why| file.damaged(format!("its vocabulary: {why}")))?;
        // Of these it is known what each bit is; a wrong one in a tensor shows in nothing but what the model says.
        if path.file_name().is_some_and(|name| name == weights::NAME) {
            weights::verify(&path)?;
        }
        let pool = |name, threads| {
            let failed = |why| LoadError::Setting(format!("cannot start the threads of the embedded model: {why}"));
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

    /// Reads a request on a thread apart, for it can take long.
    async fn prepare(&self, request: TextRequest) -> Result<Prepared, EngineError> {
        let (told, outcome) = oneshot::channel();
        self.readers.submit(Box::new(Prepare { engine: Arc::clone(&self.engine), request, told }))?;
        outcome.await.unwrap_or_else(|_| Err(EngineError::Internal("the request could not be read".to_owned())))
    }
}

impl TextEngine for EmbeddedTextEngine {
    fn start(&self, request: TextRequest) -> BoxFuture<'_, Result<Generation, EngineError>> {
        Box::pin(async move {
            let mut prepared = self.prepare(request).await?;
            let dropped = std::mem::take(&mut prepared.dropped);
            let (events, told) = mpsc::channel(self.engine.model.context() + SPARE);
            let (engine, closed) = (Arc::clone(&self.engine), Arc::clone(&self.closed));
            self.writers.submit(Box::new(Generate { engine, prepared, events, timeout: self.timeout, closed }))?;
            Ok(Generation { dropped, events: Box::pin(Events::new(told)) })
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

/// A request that waits to be read.
struct Prepare {
    engine: Arc<Engine>,
    request: TextRequest,
    told: oneshot::Sender<Result<Prepared, EngineError>>,
}

impl Job for Prepare {
    fn is_wanted(&self) -> bool {
        !self.told.is_closed()
    }

    fn run(self: Box<Self>) {
        // Nobody may be left to hear it.
        let _ = self.told.send(prepare(&self.engine, self.request));
    }

    fn refuse(self: Box<Self>) {
        // As above.
        let _ = self.told.send(Err(closed()));
    }
}

/// Room for the events of an answer beyond one a token: the plan, the calls and the end.
const SPARE: usize = 256;
