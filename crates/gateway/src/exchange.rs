//! The parts of one exchange of a request and its response.

// The attempts at the targets of a request.
pub(crate) mod targets;

// The outcome, the permit and the access line of a request.
pub mod record;

// Errors that are answered in the style of the protocol.
pub mod refusal;

// The headers of quotas.

// Answers of engines and upstreams before they become a body.
pub mod answer;

// Bodies of requests and responses.
pub mod body;
