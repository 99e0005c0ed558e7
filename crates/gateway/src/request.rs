//! The steps that a request passes, shared by all endpoints.

// The HTTP rules of a request head.
pub(crate) mod head;

// Paths, methods and scopes of the endpoints.
pub mod routing;

// A reply before it becomes the body of a response.
pub(crate) mod reply;

// The stage that a response passes on its way to the client.
pub(crate) mod response_stage;

// The references of a request to earlier responses.
pub(crate) mod references;

// The targets of a request, one after the other.
pub(crate) mod attempt;

// A request to an upstream.
pub mod outgoing;

// Pictures that a request names by their URL.
pub(crate) mod image_urls;
