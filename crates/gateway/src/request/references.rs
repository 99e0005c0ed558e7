//! The references of a request to earlier responses, and the stage of its own response.

use crate::request::response_stage::ResponseStage;
use response_store::stored_input::StoredInput;

/// The references of a request, found but not read yet, and the further handling of its response.
#[derive(Default)]
pub(crate) struct References {
    /// The parts of the input that the gateway keeps, if the request refers to some.
    pub(crate) stored: Option<StoredInput>,
    /// True if the gateway keeps the answer.
    pub(crate) is_stored: bool,
    /// The further handling of the response to the request.
    pub(crate) attach: Option<ResponseStage>,
    /// The upstream that keeps the previous response of the request.
    pub(crate) upstream: Option<String>,
}
