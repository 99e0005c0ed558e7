//! `POST /v1/messages` — spec §4.4 — and `POST /v1/messages/count_tokens` — wire-reference §3.6.

use bytes::Bytes;
use catalog::{Model, Protocol};
use http::Response;
use messages::{Request, Rules, TokenCount, ValidRequest, refusal};
use translate::inbound::Messages;
use wire::ApiError;

use super::json;
use super::text::{self, TextEndpoint};
use crate::body::Body;
use crate::gateway::Admitted;
use crate::refusal::Refusal;

impl TextEndpoint for Messages {
    const PROTOCOL: Protocol = Protocol::Messages;
    const LIMIT_IN_STREAM: bool = false;
    type Unchecked = Request;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Request::read(body).map_err(refusal)
    }

    fn asks(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn judge(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        request.validate(&model.map_or_else(Rules::default, Model::messages_rules)).map_err(refusal)
    }
}

/// Counts the tokens of a prompt, as the answer's usage would.
pub(crate) async fn count_tokens<B>(admitted: Admitted<'_, B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes>,
{
    let Admitted { gateway, catalog, key, request, record } = admitted;
    let upload = text::body(request, &gateway.limits, &gateway.budget).await?;
    let valid = Request::read(&upload.bytes).and_then(Request::validate_for_count).map_err(refusal)?;
    drop(upload);
    let model = catalog.serves(&valid.model, Protocol::Messages)?;
    if !key.may_use(&model.id) {
        return Err(Refusal::model(&model.id));
    }
    if let Some(record) = record {
        record.model = Some(model.id.clone());
    }
    let _permit = gateway.limiter.take(&key.name).ok_or_else(ApiError::concurrency_limit)?;
    let engine = gateway.local.as_ref().ok_or_else(Refusal::no_engine)?;
    let counted = engine.count_tokens(Messages::count(valid)?.request).await;
    let input_tokens = counted.map_err(|error| text::refuse(&error))?;
    json(&TokenCount { input_tokens, ..TokenCount::default() })
}
