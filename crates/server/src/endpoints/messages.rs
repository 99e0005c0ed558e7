//! `POST /v1/messages`: [messages](https://docs.anthropic.com/en/api/messages).

use catalog::{Model, Protocol};
use messages::{Request, Rules, ValidRequest, refusal};
use translate::inbound::Messages;
use translate::{outbound, relay};
use wire::{ApiError, Path, Splice};

use super::text::TextEndpoint;
use crate::targets::UpstreamTarget;

impl TextEndpoint for Messages {
    const PROTOCOL: Protocol = Protocol::Messages;
    const UPSTREAM_PROTOCOL: outbound::Protocol = outbound::Protocol::Messages;
    const FORWARDED: &'static [&'static str] = &["anthropic-version", "anthropic-beta"];
    type Unchecked = Request;
    type Relay = relay::Messages;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Request::read(body).map_err(refusal)
    }

    fn model_and_stream(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn validate(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        request
            .validate(&model.map_or_else(Rules::default, Model::messages_rules))
            .map_err(refusal)
    }

    fn image_urls(request: &ValidRequest, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(visit);
    }

    /// Removes the sampling parameters for upstreams whose models refuse them.
    fn edit(server: &UpstreamTarget, splice: &mut Splice<'_>) {
        if !server.config.sampling {
            splice.remove(&[], &["temperature", "top_p", "top_k"]);
        }
    }
}
