//! The resolver and the dialer that connect to upstreams.

use std::sync::Arc;

use net::{Dial, Resolve, SystemResolver, Tcp};

/// A resolver and a dialer: the system's by default, others for tests and for embedded gateways.
#[derive(Clone)]
pub struct Network {
    /// The DNS resolver.
    pub resolver: Arc<dyn Resolve>,
    /// The dialer.
    pub dialer: Arc<dyn Dial>,
}

impl Default for Network {
    fn default() -> Self {
        Self { resolver: Arc::new(SystemResolver::per_name(MAX_THREADS)), dialer: Arc::new(Tcp) }
    }
}

/// The maximum number of blocked lookup threads per name.
const MAX_THREADS: usize = 16;
