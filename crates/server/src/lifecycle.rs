//! How far the process is on its way out, told to everything that answers.

use tokio::sync::watch;

/// How far the process is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nobody asked it to stop.
    Serving,
    /// It still accepts, and is not ready.
    LameDuck,
    /// It accepts only who has begun to connect.
    Closing,
    /// It accepts no more; open answers go on.
    Draining,
    /// Everything that is still open must end.
    Aborting,
}

/// Tells everything that answers how far the process is on its way out.
#[derive(Clone, Debug)]
pub(crate) struct Lifecycle(watch::Sender<Phase>);

/// Comes when whatever is still open must end.
#[derive(Debug)]
pub(crate) struct AbortSignal(watch::Receiver<Phase>);

impl Lifecycle {
    /// A process that serves.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }

    /// Whether it is on its way out.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.borrow() > Phase::Serving
    }

    /// What comes when whatever is open must end.
    pub(crate) fn cut(&self) -> AbortSignal {
        AbortSignal(self.0.subscribe())
    }

    /// Waits until no newcomer is accepted any more.
    pub(crate) async fn closing(&self) {
        self.reached(Phase::Closing).await;
    }

    /// Waits until nobody is accepted any more.
    pub(crate) async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    async fn reached(&self, wanted: Phase) {
        // It is not closed while this can be asked.
        let _ = self.0.subscribe().wait_for(|phase| *phase >= wanted).await;
    }

    /// Goes on to the next phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }
}

impl AbortSignal {
    /// Waits for it.
    pub(crate) async fn wait(mut self) {
        // An error means that the whole process is being taken down, which is a cut too.
        let _ = self.0.wait_for(|phase| *phase == Phase::Aborting).await;
    }
}
