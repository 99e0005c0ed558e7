//! The steps that a request passes, shared by all endpoints.

// The HTTP rules of a request head.
pub(crate) mod head;

// Paths, methods and scopes of the endpoints.
pub mod routing;

// A reply before it becomes the body of a response.
pub(crate) mod reply;

// Whether and how the response of a request is stored.
pub(crate) mod keeping;

// The upstream that keeps a response, for later requests.
pub(crate) mod tracking;

// A request with resolved references.
pub(crate) mod resolved;

// The targets of a request, one after the other.
pub(crate) mod attempt;

// A request to an upstream.
pub mod outgoing;

// Pictures that a request names by their URL.
pub(crate) mod image_urls;
