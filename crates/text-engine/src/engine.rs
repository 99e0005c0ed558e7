//! The embedded text engine behind the `TextEngine` trait.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use engine::{EngineError, Generation, TextEngine, TextEvent, TextRequest};
use futures_core::Stream;
use futures_core::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::generate::{Generate, closed};
use crate::loaded_model::LoadedModel;
use crate::pool::{Job, Pool};
use crate::prepare::{PreparedRequest, prepare};
use crate::weights::{self, LoadError};

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
    /// All cores but one, or both of two; 4 concurrent generations, 256 queued ones, no timeout.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            model: None,
            threads: threads(cores),
            generations: 4,
            waiting: 256,
            timeout: None,
        }
    }
}

/// The embedded text engine.
///
/// Dropping it stops its threads within one token; running generations fail with
/// [`EngineError::Unavailable`].
pub struct EmbeddedTextEngine {
    loaded: Arc<LoadedModel>,
    /// Prepares requests. Generations have separate threads, because they run for a long time.
    readers: Pool,
    writers: Pool,
    timeout: Option<Duration>,
    closed: Arc<AtomicBool>,
}

impl EmbeddedTextEngine {
    /// Loads the weights and starts the threads. Blocks for about a second.
    ///
    /// # Errors
    /// If the weights are missing, damaged or of an unsupported kind, or if the threads cannot be
    /// started.
    pub fn load(options: Options) -> Result<Self, LoadError> {
        let path = options.model.unwrap_or_else(weights::default_path);
        let loaded = LoadedModel::load(&path, options.threads)?;
        let pool = |name, threads| {
            let failed = |why| {
                LoadError::Setting(format!(
                    "cannot start the threads of the text engine: {why}"
                ))
            };
            Pool::new(name, threads, options.waiting).map_err(failed)
        };
        Ok(Self {
            loaded: Arc::new(loaded),
            readers: pool("text-read", 2)?,
            writers: pool("text-write", options.generations)?,
            timeout: options.timeout,
            closed: Arc::default(),
        })
    }

    /// Prepares a request on a reader thread, because compiling its schemas can take long.
    async fn prepare(&self, request: TextRequest) -> Result<PreparedRequest, EngineError> {
        let (reply, outcome) = oneshot::channel();
        self.readers.submit(Box::new(Prepare {
            loaded: Arc::clone(&self.loaded),
            request,
            reply,
        }))?;
        outcome.await.unwrap_or_else(|_| {
            Err(EngineError::Internal(
                "request preparation panicked".to_owned(),
            ))
        })
    }
}

impl TextEngine for EmbeddedTextEngine {
    fn start(&self, request: TextRequest) -> BoxFuture<'_, Result<Generation, EngineError>> {
        Box::pin(async move {
            let mut prepared = self.prepare(request).await?;
            let dropped = std::mem::take(&mut prepared.prompt.dropped);
            let (events, receiver) = mpsc::channel(self.loaded.model.context() + SPARE_EVENTS);
            let job = Generate {
                loaded: Arc::clone(&self.loaded),
                prepared,
                events,
                timeout: self.timeout,
                closed: Arc::clone(&self.closed),
            };
            self.writers.submit(Box::new(job))?;
            Ok(Generation {
                dropped,
                events: Box::pin(EventStream {
                    receiver: Some(receiver),
                }),
            })
        })
    }

    fn count_tokens(&self, request: TextRequest) -> BoxFuture<'_, Result<u64, EngineError>> {
        Box::pin(async move { Ok(self.prepare(request).await?.prompt.tokens) })
    }
}

impl Drop for EmbeddedTextEngine {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

struct Prepare {
    loaded: Arc<LoadedModel>,
    request: TextRequest,
    reply: oneshot::Sender<Result<PreparedRequest, EngineError>>,
}

impl Job for Prepare {
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(self: Box<Self>) {
        // Fails if the caller has gone away, which is fine.
        let _ = self.reply.send(prepare(&self.loaded, self.request));
    }

    fn refuse(self: Box<Self>) {
        // Fails if the caller has gone away, which is fine.
        let _ = self.reply.send(Err(closed()));
    }
}

/// The events of a generation, up to the terminal event or the first error. Dropping it cancels the
/// generation.
///
/// The channel holds one complete answer, so that a slow client does not block a generation slot.
struct EventStream {
    /// `None` after the last event.
    receiver: Option<mpsc::Receiver<Result<TextEvent, EngineError>>>,
}

impl Stream for EventStream {
    type Item = Result<TextEvent, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.receiver else {
            return Poll::Ready(None);
        };
        let missing_end = || {
            Err(EngineError::Internal(
                "generation ended without a terminal event".to_owned(),
            ))
        };
        let event = ready!(receiver.poll_recv(context)).unwrap_or_else(missing_end);
        if matches!(event, Err(_) | Ok(TextEvent::Finished { .. })) {
            self.receiver = None;
        }
        Poll::Ready(Some(event))
    }
}

/// The number of threads of a forward pass: one core is left for requests, but not one of two, where
/// it would be half of them.
fn threads(cores: usize) -> usize {
    if cores > 2 { cores - 1 } else { cores }
}

/// Channel capacity for events in addition to one per token: the plan, the calls and the terminal
/// event.
const SPARE_EVENTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cores_are_all_used() {
        assert_eq!([1, 2, 3, 8].map(threads), [1, 2, 2, 7]);
    }
}
