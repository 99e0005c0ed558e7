//! A request with resolved references.

use http::Response;

use crate::reply::ReplyBody;

/// A request whose references have been resolved.
pub(crate) struct Resolved<R> {
    pub(crate) request: R,
    /// The number of items that were put before those of the client.
    pub(crate) before: usize,
    /// True if the gateway keeps the answer.
    pub(crate) is_kept: bool,
    /// The further handling of the response to the request.
    pub(crate) attach: Option<Attach>,
    /// The upstream that keeps what the request refers to.
    pub(crate) upstream: Option<String>,
}

/// Takes a response, and returns the one that the client gets.
pub(crate) type Attach = Box<dyn FnOnce(Response<ReplyBody>) -> Response<ReplyBody> + Send>;

impl<R> Resolved<R> {
    /// A request that refers to nothing, and whose answer is not kept.
    pub(crate) fn unchanged(request: R) -> Self {
        Self {
            request,
            before: 0,
            is_kept: false,
            attach: None,
            upstream: None,
        }
    }
}
