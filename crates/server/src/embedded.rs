//! A gateway inside another process: connections are brought to it, and its upstreams are dialled for it.
//!
//! It has no listener, no signals and no embedded engine, and keeps time by the clock of the runtime that it is awaited
//! on, which tests may pause.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use upstream::Network;

use crate::config::{Config, ConfigError};
use crate::gateway::Gateway;
use crate::lifecycle::Phase;
use crate::policy::Policy;
use crate::serve::{attend, connection};
use crate::start::{Engines, assemble};

/// A gateway inside another process.
#[derive(Clone)]
pub struct EmbeddedGateway {
    gateway: Arc<Gateway>,
}

impl EmbeddedGateway {
    /// A gateway as the text of a configuration file wants it, whose upstreams are reached over `network`.
    ///
    /// # Errors
    /// When the configuration is wrong.
    pub fn new(config: &str, network: Network) -> Result<Self, ConfigError> {
        let config = Config::parse(config)?;
        let (policy, _) = Policy::read(&config, true, network)?;
        Ok(Self { gateway: Arc::new(assemble(config, policy, Engines::default(), &[])) })
    }

    /// Serves one connection of a client to its end.
    pub async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(&self, socket: S) {
        let line = Arc::default();
        attend(&self.gateway, &line, connection(&self.gateway, socket, &line, |_| {})).await;
    }

    /// StartResult to leave: each answer closes its connection.
    pub fn leave(&self) {
        self.gateway.lifecycle.enter(Phase::LameDuck);
    }

    /// Ends all streams that are still open, as at the end of a drain.
    pub fn cut(&self) {
        self.gateway.lifecycle.enter(Phase::Aborting);
    }

    /// Requests that are being answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.gateway.limiter.taken()
    }

    /// Every metric in Prometheus' text form.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.gateway.render_metrics()
    }
}
