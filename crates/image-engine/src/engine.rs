//! The engine: its limits, its threads, and the stream of a request's events.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use engine::{EngineError, ImageEngine, ImageEvent, ImageGeneration, ImageRequest};
use futures_core::Stream;
use futures_core::future::BoxFuture;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::inputs::MOST_REFERENCES;
use crate::job::Job;

/// The limits of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The pictures that are drawn or decoded at once, at least one.
    pub threads: usize,
    /// The requests that wait for a thread; more are [`EngineError::Busy`].
    pub waiting: usize,
}

impl Default for Options {
    /// All cores, 64 waiting.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            waiting: 64,
        }
    }
}

/// The embedded image engine.
///
/// It draws on the blocking threads of the current tokio runtime. A thread is held for one picture
/// or preview at a time, never while a reader is slow.
pub struct EmbeddedImageEngine {
    /// Permits to run or to wait. A request acquires its permits in the order of the fields; each
    /// semaphore is fair.
    admission: Arc<Semaphore>,
    /// Permits to have pictures in memory.
    memory: Arc<Semaphore>,
    /// Permits to draw or decode.
    threads: Arc<Semaphore>,
}

impl EmbeddedImageEngine {
    /// Creates an idle engine.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let threads = options.threads.clamp(1, Semaphore::MAX_PERMITS);
        let semaphore =
            |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Self {
            admission: semaphore(threads.saturating_add(options.waiting)),
            memory: semaphore(threads.saturating_mul(REQUESTS_PER_THREAD)),
            threads: semaphore(threads),
        }
    }
}

impl ImageEngine for EmbeddedImageEngine {
    fn most_references(&self) -> usize {
        MOST_REFERENCES
    }

    fn start(&self, request: ImageRequest) -> BoxFuture<'_, Result<ImageGeneration, EngineError>> {
        Box::pin(async move {
            let admission = Arc::clone(&self.admission)
                .try_acquire_owned()
                .map_err(|_| EngineError::Busy)?;
            // A request without pictures takes next to no memory while it waits.
            let memory = if request.edit.is_some() {
                Some(permit(&self.memory).await?)
            } else {
                None
            };
            let permits = (admission, memory);
            // The permits move into the work, which continues even if the request is dropped.
            let open = move || Job::open(request).map(|job| (job, permits));
            let (job, permits) = on_thread(&self.threads, open).await??;
            let (events, receiver) = mpsc::channel(1);
            let traits = job.traits;
            let left = job.steps();
            tokio::spawn(draw(job, Arc::clone(&self.threads), events, permits));
            Ok(ImageGeneration {
                traits,
                events: Box::pin(Events { receiver, left }),
            })
        })
    }
}

type Event = Result<ImageEvent, EngineError>;
type Permits = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

/// Makes the events one after the other, until the receiver is dropped.
async fn draw(job: Job, threads: Arc<Semaphore>, events: Sender<Event>, permits: Permits) {
    let steps = job.steps();
    let job = Arc::new(job);
    for step in 0..steps {
        let work = Arc::clone(&job);
        let event = tokio::select! {
            biased;
            () = events.closed() => return,
            event = on_thread(&threads, move || work.step(step)) => event.flatten(),
        };
        if event.is_err() || step + 1 == steps {
            // Nothing is held while a slow reader takes the last event.
            drop((job, permits));
            let _ = events.send(event).await;
            return;
        }
        if events.send(event).await.is_err() {
            return;
        }
    }
}

/// Runs blocking work as soon as a thread is free. A panic ends the work alone.
async fn on_thread<T: Send + 'static>(
    threads: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    let thread = permit(threads).await?;
    let work = move || {
        let _thread = thread;
        work()
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|failed| match failed.is_panic() {
            true => EngineError::Internal("the image engine panicked".to_owned()),
            false => stopping(),
        })
}

async fn permit(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, EngineError> {
    Arc::clone(permits)
        .acquire_owned()
        .await
        .map_err(|_| stopping())
}

fn stopping() -> EngineError {
    EngineError::Unavailable("the image engine is stopping".to_owned())
}

/// The events of a request, up to the last or the first error. Dropping it cancels the rest.
struct Events {
    receiver: Receiver<Event>,
    /// The number of events still to come.
    left: u32,
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let event = ready!(self.receiver.poll_recv(context)).unwrap_or_else(|| Err(stopping()));
        self.left = if event.is_ok() { self.left - 1 } else { 0 };
        Poll::Ready(Some(event))
    }
}

/// The requests with pictures in memory for each thread: one is drawn while another is read by its
/// caller.
const REQUESTS_PER_THREAD: usize = 2;

#[cfg(test)]
mod tests {
    use engine::{ImageFormat, Pixels, Size};

    use super::*;

    fn request() -> ImageRequest {
        ImageRequest {
            model: "model-image-2.5-flare".to_owned(),
            prompt: "a red circle".to_owned(),
            count: 2,
            size: Size::Exact(Pixels::new(16, 16)),
            quality: None,
            background: None,
            format: ImageFormat::Png,
            compression: None,
            previews: 0,
            seed: Some(1),
            edit: None,
        }
    }

    #[test]
    fn the_limits_follow_from_the_options() {
        let limits = |threads, waiting| {
            let engine = EmbeddedImageEngine::new(Options { threads, waiting });
            [&engine.admission, &engine.memory, &engine.threads]
                .map(|permits| permits.available_permits())
        };
        assert_eq!(limits(3, 64), [67, 6, 3]);
        assert_eq!(limits(0, 0), [1, 2, 1]);
        assert_eq!(limits(1, usize::MAX), [Semaphore::MAX_PERMITS, 2, 1]);
    }

    #[tokio::test]
    async fn a_request_whose_reader_is_gone_waits_for_no_thread() {
        let engine = EmbeddedImageEngine::new(Options {
            threads: 1,
            waiting: 0,
        });
        let making = engine.start(request()).await.unwrap();
        let _thread = permit(&engine.threads).await.unwrap();
        drop(making);
        tokio::task::yield_now().await;
        assert_eq!(engine.admission.available_permits(), 1);
    }

    /// A panic of one work ends it alone, and its place comes back.
    #[tokio::test]
    async fn e06_i03_a_panic_ends_its_own_work_alone() {
        let threads = Arc::new(Semaphore::new(1));
        let failed: Result<(), _> = on_thread(&threads, || panic!("expected")).await;
        assert!(
            matches!(failed, Err(EngineError::Internal(_))),
            "{failed:?}"
        );
        assert_eq!(on_thread(&threads, || 7).await.unwrap(), 7);
        assert_eq!(threads.available_permits(), 1);
    }
}
