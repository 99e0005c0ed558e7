//! `POST /v1/responses` — spec §4.2.

use catalog::{Model, Protocol};
use responses::{Request, Rules, ValidRequest};
use translate::inbound::Responses;
use translate::{outbound, relay};
use wire::{ApiError, Path, Splice};

use super::text::TextEndpoint;
use crate::targets::UpstreamTarget;

impl TextEndpoint for Responses {
    const PROTOCOL: Protocol = Protocol::Responses;
    const SPOKEN: outbound::Protocol = outbound::Protocol::Responses;
    const UPSTREAM_PATH: &'static str = "/responses";
    const LIMIT_IN_STREAM: bool = true;
    const SEALS: bool = true;
    type Unchecked = Request;
    type Relay = relay::Responses;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Ok(Request::read(body)?)
    }

    fn asks(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn judge(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        Ok(request.validate(&model.map_or_else(lenient, Model::responses_rules))?)
    }

    fn addresses(request: &ValidRequest, tell: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(tell);
    }

    /// Notes of a client are its own.
    fn edit(_: &UpstreamTarget, splice: &mut Splice<'_>) {
        splice.remove(&[], &["metadata"]);
    }
}

/// The rules for a model that is not known: who asks for it is told that, and not what another model would not take.
fn lenient() -> Rules {
    let mut rules = Rules::default();
    rules.string_input = true;
    rules
}
