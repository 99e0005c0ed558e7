//! The references of a request, and the further handling of its response.

use http::Response;

use crate::exchange::body::upload::Upload;
use crate::request::keeping::Keeping;
use crate::request::reply::ReplyBody;
use crate::request::tracking::Tracking;
use crate::response_store::stored_input::StoredInput;

/// The references of a request, found but not read yet, and the further handling of its response.
#[derive(Default)]
pub(crate) struct Resolved {
    /// The parts of the input that the gateway keeps, if the request refers to some.
    pub(crate) stored: Option<StoredInput>,
    /// True if the gateway keeps the answer.
    pub(crate) is_kept: bool,
    /// The further handling of the response to the request.
    pub(crate) attach: Option<Attach>,
    /// The upstream that keeps the previous response of the request.
    pub(crate) upstream: Option<String>,
}

/// The further handling of a response.
pub(crate) enum Attach {
    /// The gateway keeps the answer, or states that it continues a kept one.
    Keep(Keeping),
    /// The gateway notes which upstream keeps the answer.
    Track(Tracking),
}

impl Attach {
    /// Sets the request whose response this is, with all that it refers to.
    pub(crate) fn set_request(&mut self, upload: &Upload) {
        if let Self::Keep(keeping) = self {
            keeping.set_request(upload);
        }
    }

    /// Takes a response, and returns the one that the client gets.
    pub(crate) fn attach(self, response: Response<ReplyBody>) -> Response<ReplyBody> {
        match self {
            Self::Keep(keeping) => keeping.attach(response),
            Self::Track(tracking) => tracking.attach(response),
        }
    }
}
