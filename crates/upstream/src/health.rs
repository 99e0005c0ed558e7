//! The health of the hosts of an upstream, for operators.

use std::time::Duration;

/// The health of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostHealth {
    /// The name or address of the host, with its port if that is not the usual one.
    pub host: String,
    /// The state of its circuit breaker.
    pub circuit: Circuit,
    /// The idle connections in the pool.
    pub idle_connections: usize,
}

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    /// Requests are admitted.
    Closed,
    /// Requests go to other hosts or upstreams, if there are any.
    Open {
        /// The time until a request is admitted as a probe.
        probe_in: Duration,
    },
    /// A request is admitted as a probe, whose outcome closes or reopens the circuit breaker.
    HalfOpen,
}
