//! `POST /v1/responses` — spec §4.2.

use catalog::{Model, Protocol};
use responses::{Request, Rules, ValidRequest};
use translate::inbound::Responses;
use wire::ApiError;

use super::text::TextEndpoint;

impl TextEndpoint for Responses {
    const PROTOCOL: Protocol = Protocol::Responses;
    const LIMIT_IN_STREAM: bool = true;
    type Unchecked = Request;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Ok(Request::read(body)?)
    }

    fn asks(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn judge(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        Ok(request.validate(&model.map_or_else(Rules::default, Model::responses_rules))?)
    }
}
