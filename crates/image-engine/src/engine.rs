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
        Self { threads: std::thread::available_parallelism().map_or(1, usize::from), waiting: 64 }
    }
}

/// The embedded image engine.
///
/// It draws on the blocking threads of the current tokio runtime. A thread is held for one picture or preview at a
/// time, never while a reader is slow.
pub struct EmbeddedImageEngine {
    permits: Semaphores,
}

/// The permits that a request acquires, in this order; each semaphore is fair.
struct Semaphores {
    /// Permits to run or to wait.
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
        let threads = options.threads.clamp(1, MOST);
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(MOST)));
        let permits = Semaphores {
            admission: semaphore(threads.saturating_add(options.waiting)),
            memory: semaphore(threads.saturating_mul(REQUESTS_PER_THREAD)),
            threads: semaphore(threads),
        };
        Self { permits }
    }
}

impl ImageEngine for EmbeddedImageEngine {
    fn most_references(&self) -> usize {
        MOST_REFERENCES
    }

    fn start(&self, request: ImageRequest) -> BoxFuture<'_, Result<ImageGeneration, EngineError>> {
        Box::pin(async move {
            let admission = Arc::clone(&self.permits.admission).try_acquire_owned().map_err(|_| EngineError::Busy)?;
            // A request without pictures takes next to no memory while it waits.
            let memory = if request.edit.is_some() { Some(permit(&self.permits.memory).await?) } else { None };
            let permits = (admission, memory);
            let (job, permits) = on_thread(&self.permits.threads, move || {
                // The permits move into the work, which continues even if the request is dropped.
                Job::open(request).map(|job| (job, permits))
            })
            .await??;
            let (events, receiver) = mpsc::channel(1);
            let (traits, left) = (job.traits(), job.steps());
            let threads = Arc::clone(&self.permits.threads);
            tokio::spawn(draw(job, threads, events, permits));
            Ok(ImageGeneration { traits, events: Box::pin(Events { receiver: Some(receiver), left }) })
        })
    }
}

type Event = Result<ImageEvent, EngineError>;
type Permits = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

/// Makes the events one after the other, until the receiver is dropped.
async fn draw(job: Job, threads: Arc<Semaphore>, events: Sender<Event>, permits: Permits) {
    let last = job.steps();
    let mut held = Some((Arc::new(job), permits));
    for step in 0..last {
        let Some((job, _)) = &held else { return };
        let job = Arc::clone(job);
        let event = tokio::select! {
            biased;
            () = events.closed() => return,
            event = on_thread(&threads, move || job.step(step)) => event.and_then(|event| event),
        };
        let failed = event.is_err();
        if failed || step + 1 == last {
            // Nothing is held while a slow reader takes the last event.
            held = None;
        }
        if events.send(event).await.is_err() || failed {
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
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(thread);
        done
    });
    done.await.map_err(|failed| match failed.is_panic() {
        true => EngineError::Internal("the image engine panicked".to_owned()),
        false => EngineError::Unavailable("the image engine is stopping".to_owned()),
    })
}

async fn permit(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, EngineError> {
    let closed = |_| EngineError::Unavailable("the image engine is stopping".to_owned());
    Arc::clone(permits).acquire_owned().await.map_err(closed)
}

/// The events of a request, up to the last or the first error. Dropping it cancels the rest.
struct Events {
    /// Absent after the last event.
    receiver: Option<Receiver<Event>>,
    /// The number of events still to come.
    left: u32,
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let Some(receiver) = &mut self.receiver else { return Poll::Ready(None) };
        let lost = || Err(EngineError::Unavailable("the image engine is stopping".to_owned()));
        let event = ready!(receiver.poll_recv(context)).unwrap_or_else(lost);
        self.left = self.left.saturating_sub(1);
        if event.is_err() || self.left == 0 {
            self.receiver = None;
        }
        Poll::Ready(Some(event))
    }
}

/// The requests with pictures in memory for each thread: one is drawn while another is read by its caller.
const REQUESTS_PER_THREAD: usize = 2;
/// More permits than can ever be used, and fewer than a semaphore can count.
const MOST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic of one work ends it alone, and its place comes back.
    #[tokio::test]
    async fn e06_i03_a_panic_ends_its_own_work_alone() {
        let threads = Arc::new(Semaphore::new(1));
        let failed: Result<(), _> = on_thread(&threads, || panic!("expected")).await;
        assert!(matches!(failed, Err(EngineError::Internal(_))), "{failed:?}");
        assert_eq!(on_thread(&threads, || 7).await.unwrap(), 7);
        assert_eq!(threads.available_permits(), 1);
    }
}
