//! A request as a part of its trace.

use super::context::TraceContext;
use super::state::TraceState;

/// A request as a part of its trace, with the parts of its head that only its span has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTrace {
    /// The ids.
    pub context: TraceContext,
    /// The data of other systems, if the trace is the client's.
    pub state: Option<TraceState>,
    /// The path, shortened.
    pub path: String,
    /// The host and the port by which the client has addressed the gateway.
    pub host: Option<(String, Option<u16>)>,
}
