//! `POST /v1/responses`:
//! [responses](https://platform.openai.com/docs/api-reference/responses/create).

use catalog::{Model, Protocol};
use responses::{Request, Rules, ValidRequest};
use translate::inbound::Responses;
use translate::{outbound, relay};
use wire::{ApiError, Path, Splice};

use super::text::TextEndpoint;
use crate::targets::UpstreamTarget;

impl TextEndpoint for Responses {
    const PROTOCOL: Protocol = Protocol::Responses;
    const UPSTREAM_PROTOCOL: outbound::Protocol = outbound::Protocol::Responses;
    const LIMIT_IN_STREAM: bool = true;
    const USES_ENVELOPES: bool = true;
    type Unchecked = Request;
    type Relay = relay::Responses;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Ok(Request::read(body)?)
    }

    fn model_and_stream(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn validate(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        Ok(request.validate(&model.map_or_else(lenient, Model::responses_rules))?)
    }

    fn image_urls(request: &ValidRequest, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(visit);
    }

    /// Removes `metadata`: the client's notes are not for the upstream.
    fn edit(_: &UpstreamTarget, splice: &mut Splice<'_>) {
        splice.remove(&[], &["metadata"]);
    }
}

/// Returns the rules for an unknown model. They are lenient, so that the client gets the error
/// about the model and not one about a field that another model would refuse.
fn lenient() -> Rules {
    let mut rules = Rules::default();
    rules.string_input = true;
    rules
}
