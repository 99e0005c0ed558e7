//! `POST /v1/chat/completions`: [chat
//! completions](https://platform.openai.com/docs/api-reference/chat/create).

use catalog::{Model, Protocol};
use chat::{Request, Rules, ValidRequest};
use translate::inbound::Chat;
use translate::{outbound, relay};
use wire::{ApiError, Path};

use super::text::TextEndpoint;

impl TextEndpoint for Chat {
    const PROTOCOL: Protocol = Protocol::Chat;
    const UPSTREAM_PROTOCOL: outbound::Protocol = outbound::Protocol::Chat;
    type Unchecked = Request;
    type Relay = relay::Chat;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Ok(Request::read(body)?)
    }

    fn model_and_stream(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn validate(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        Ok(request.validate(&model.map_or_else(Rules::default, Model::chat_rules))?)
    }

    fn image_urls(request: &ValidRequest, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(visit);
    }
}
