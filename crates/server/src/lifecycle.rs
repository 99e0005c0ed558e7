//! The phases of a shutdown, which every task can observe.

use tokio::sync::watch;

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

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.borrow() > Phase::Serving
    }

    /// Waits until this phase, or a later one, is reached.
    pub(crate) fn reached(&self, wanted: Phase) -> impl Future<Output = ()> + Send + use<> {
        let mut phases = self.0.subscribe();
        async move {
            // An error means that the sender is gone with the process, which is after all phases.
            let _ = phases.wait_for(|phase| *phase >= wanted).await;
        }
    }

    /// Waits until everything that is still open must be aborted.
    pub(crate) fn aborting(&self) -> impl Future<Output = ()> + Send + use<> {
        self.reached(Phase::Aborting)
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }
}
