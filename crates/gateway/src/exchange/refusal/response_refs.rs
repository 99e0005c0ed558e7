//! The errors for requests about a response that exists, or that is made in the background.

use wire::{ApiError, Code, ErrorKind};

use super::Refusal;

impl Refusal {
    /// The id of a response that is unknown, or belongs to another key: 404.
    pub(crate) fn unknown_response(id: &str) -> Self {
        let id = wire::truncate_for_error(id);
        let sentence = format!("Response with id '{id}' not found.");
        ApiError::new(ErrorKind::NotFound, Code::NotFound.as_str(), sentence).into()
    }

    /// A response that was not made in the background cannot be cancelled: 400.
    pub(crate) fn synchronous_response() -> Self {
        invalid(Code::InvalidValue, "Cannot cancel a synchronous response.")
    }

    /// The events of a response that exists cannot be sent again: 400.
    pub(crate) fn no_replay() -> Self {
        let sentence = "Unsupported parameter: 'stream' is not supported for a response that exists; \
                        leave it out.";
        invalid(Code::UnsupportedParameter, sentence).of("stream")
    }

    /// A response in the background has no events to send over a WebSocket: 400.
    pub fn no_background() -> Self {
        let sentence = "Unsupported parameter: 'background' is not supported over a WebSocket; leave it \
                        out, or send a POST request.";
        invalid(Code::UnsupportedParameter, sentence).of("background")
    }

    /// Sets the field that is at fault.
    fn of(mut self, param: &str) -> Self {
        self.error.param = Some(param.to_owned());
        self
    }
}

fn invalid(code: Code, sentence: &str) -> Refusal {
    ApiError::new(ErrorKind::InvalidRequest, code.as_str(), sentence).into()
}
