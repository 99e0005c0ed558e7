//! `POST /v1/messages` — spec §4.4 — and `POST /v1/messages/count_tokens` — wire-reference §3.6.

use bytes::Bytes;
use catalog::{Model, Protocol};
use http::Response;
use messages::{Request, Rules, TokenCount, ValidRequest, refusal};
use translate::inbound::Messages;
use translate::{outbound, relay};
use wire::{ApiError, Splice};

use super::text::TextEndpoint;
use super::{json, json_body};
use crate::body::{Body, plain};
use crate::gateway::Caller;
use crate::references;
use crate::refusal::Refusal;
use crate::routes::Server;

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

    /// Some versions refuse to be told how to draw.
    fn edit(server: &Server, splice: &mut Splice<'_>) {
        if !server.stated.sampling {
            splice.remove(&[], &["temperature", "top_p", "top_k"]);
        }
    }
}

/// Counts the tokens of a prompt, as the answer's usage would.
pub(crate) async fn count_tokens<B>(caller: Caller<'_>, request: http::Request<B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes>,
{
    let Caller { gateway, policy, key, record } = caller;
    let upload = json_body(request, gateway.limits.json_body, gateway).await?;
    let valid = Request::read(&upload.bytes).and_then(Request::validate_for_count).map_err(refusal)?;
    drop(upload);
    let model = policy.catalog.serves(&valid.model, Protocol::Messages)?;
    if !key.may_use(&model.id) {
        return Err(Refusal::model(&model.id));
    }
    if let Some(record) = record {
        record.model = Some(model.id.clone());
    }
    let _permit = gateway.limiter.take(&key.name).ok_or_else(ApiError::concurrency_limit)?;
    let engine = gateway.local.as_ref().ok_or_else(Refusal::no_engine)?;
    let mut inbound = Messages::count(valid)?;
    references::inline(&mut inbound.request, &key.name, gateway).await?;
    let counted = engine.count_tokens(inbound.request).await;
    let input_tokens = counted.map_err(|error| plain::refuse(&error))?;
    json(&TokenCount { input_tokens, ..TokenCount::default() })
}
