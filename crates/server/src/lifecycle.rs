//! The phases of a shutdown, which every task can observe.

use tokio::sync::watch;

/// The phase of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Serving, without a request to shut down.
    Serving,
    /// Still accepting, but not ready.
    LameDuck,
    /// Accepting only handshakes in progress.
    Closing,
    /// Not accepting any more; open responses continue.
    Draining,
    /// Aborting everything that is still open.
    Aborting,
}

/// The current phase of the process, shared by all tasks.
#[derive(Clone, Debug)]
pub(crate) struct Lifecycle(watch::Sender<Phase>);

/// Fires when everything that is still open must be aborted.
#[derive(Debug)]
pub(crate) struct AbortSignal(watch::Receiver<Phase>);

impl Lifecycle {
    /// Starts in the serving phase.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }

    /// True once the shutdown has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.borrow() > Phase::Serving
    }

    /// Returns a signal that fires in the aborting phase.
    pub(crate) fn abort_signal(&self) -> AbortSignal {
        AbortSignal(self.0.subscribe())
    }

    /// Waits until new handshakes are not accepted any more.
    pub(crate) async fn closing(&self) {
        self.reached(Phase::Closing).await;
    }

    /// Waits until no connection is accepted any more.
    pub(crate) async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    async fn reached(&self, wanted: Phase) {
        // `self` holds the sender, so the channel cannot be closed here.
        let _ = self.0.subscribe().wait_for(|phase| *phase >= wanted).await;
    }

    /// Enters the next phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }
}

impl AbortSignal {
    /// Waits for the signal.
    pub(crate) async fn wait(mut self) {
        // An error means that the sender is gone with the process: abort too.
        let _ = self.0.wait_for(|phase| *phase == Phase::Aborting).await;
    }
}
