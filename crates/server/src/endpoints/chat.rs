//! `POST /v1/chat/completions` — spec §4.3.

use catalog::{Model, Protocol};
use chat::{Request, Rules, ValidRequest};
use translate::inbound::Chat;
use wire::ApiError;

use super::text::TextEndpoint;

impl TextEndpoint for Chat {
    const PROTOCOL: Protocol = Protocol::Chat;
    const LIMIT_IN_STREAM: bool = false;
    type Unchecked = Request;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Ok(Request::read(body)?)
    }

    fn asks(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn judge(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        Ok(request.validate(&model.map_or_else(Rules::default, Model::chat_rules))?)
    }
}
