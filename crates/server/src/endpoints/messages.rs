//! `POST /v1/messages` — spec §4.4.

use catalog::{Model, Protocol};
use messages::{Request, Rules, ValidRequest, refusal};
use translate::inbound::Messages;
use translate::{outbound, relay};
use wire::{ApiError, Path, Splice};

use super::text::TextEndpoint;
use crate::targets::UpstreamTarget;

impl TextEndpoint for Messages {
    const PROTOCOL: Protocol = Protocol::Messages;
    const SPOKEN: outbound::Protocol = outbound::Protocol::Messages;
    const UPSTREAM_PATH: &'static str = "/messages";
    const LIMIT_IN_STREAM: bool = false;
    const FORWARDED: &'static [&'static str] = &["anthropic-version", "anthropic-beta"];
    type Unchecked = Request;
    type Relay = relay::Messages;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Request::read(body).map_err(refusal)
    }

    fn asks(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn judge(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        request.validate(&model.map_or_else(Rules::default, Model::messages_rules)).map_err(refusal)
    }

    fn addresses(request: &ValidRequest, tell: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(tell);
    }

    /// Some versions refuse to be told how to draw.
    fn edit(server: &UpstreamTarget, splice: &mut Splice<'_>) {
        if !server.stated.sampling {
            splice.remove(&[], &["temperature", "top_p", "top_k"]);
        }
    }
}
