//! What upstreams are reached over.

use std::fmt;
use std::sync::Arc;

use crate::dial::{Dial, Tcp};
use crate::resolve::{Resolve, System};

/// Names and connections: those of the system by default, others for tests and for gateways inside another process.
#[derive(Clone)]
pub struct Network {
    /// Looks names up.
    pub resolver: Arc<dyn Resolve>,
    /// Opens connections.
    pub dialer: Arc<dyn Dial>,
}

impl Default for Network {
    fn default() -> Self {
        Self { resolver: Arc::new(System::default()), dialer: Arc::new(Tcp) }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}
