//! The state that all connections of a server share.

use tokio::sync::Semaphore;

use crate::log::Log;
use crate::play::Play;
use crate::request::Request;

/// The behavior, the log and the gates of a server.
pub(crate) struct Shared {
    pub(crate) behave: Box<dyn Fn(&Request) -> Play + Send + Sync>,
    pub(crate) log: Log,
    /// One permit for each gate that may be passed.
    pub(crate) gates: Semaphore,
}

impl Shared {
    pub(crate) fn new(behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> Self {
        Self { behave: Box::new(behave), log: Log::default(), gates: Semaphore::new(0) }
    }
}
