//! A gateway embedded in another process, which passes it connections and dials its upstreams.
//!
//! It has no listener, no signal handlers and no embedded engine. Its timers use the clock of the
//! runtime that polls it, which tests may pause.

use std::future::pending;
use std::sync::Arc;

use config::{Config, ConfigError};
use gateway::state::{GatewayState, Parts};
use listen::serve_connection;
use policy::Policy;
use policy::lifecycle::Phase;
use tokio::io::{AsyncRead, AsyncWrite};
use upstream::Network;

/// A gateway embedded in another process.
#[derive(Clone)]
pub struct EmbeddedGateway {
    state: Arc<GatewayState>,
}

impl EmbeddedGateway {
    /// Creates a gateway from the text of a configuration file. Its upstreams are reached over
    /// `network`.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub fn new(config: &str, network: Network) -> Result<Self, ConfigError> {
        let config = Config::parse(config)?;
        if config.state.accounting.is_some() {
            let why = "state.accounting: an embedded gateway has no store";
            return Err(ConfigError::one(why.to_owned()));
        }
        let (policy, _) = Policy::read(&config, true, network)?;
        Ok(Self {
            state: Arc::new(GatewayState::new(Parts::new(&config, policy))),
        })
    }

    /// Serves one client connection to its end.
    pub async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(&self, socket: S) {
        serve_connection(&self.state, socket, |_| {}, pending()).await;
    }

    /// Begins a graceful shutdown: each response closes its connection.
    pub fn leave(&self) {
        self.state.lifecycle.enter(Phase::LameDuck);
    }

    /// Aborts all streams that are still open, as at the deadline of a drain.
    pub fn cut(&self) {
        self.state.lifecycle.enter(Phase::Aborting);
    }

    /// The number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.state.limiter.taken()
    }

    /// Renders every metric in the Prometheus text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.state.render_metrics()
    }
}
