//! `POST /v1/images/generations` and `POST /v1/images/edits`:
//! [images](https://platform.openai.com/docs/api-reference/images).

mod dispatch;
mod encode;
mod read;
mod unary;

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::Instant;
use wire::ApiError;

use self::dispatch::ImageDispatch;
use self::encode::Drawing;
use self::read::ParsedRequest;
use crate::attempt;
use crate::body::{Body, voice};
use crate::refusal::Refusal;
use crate::state::Caller;

/// Answers an image generation request.
pub(crate) async fn generate<B>(caller: Caller<'_>, request: Request<B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes, Error: Error>,
{
    let deadline = Instant::now() + caller.state.limits.request_timeout;
    let parsed = read::generation(request, &caller).await?;
    answer(caller, parsed, deadline).await
}

/// Answers an image edit request.
pub(crate) async fn edit<B>(caller: Caller<'_>, request: Request<B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes, Error: Error> + Send,
{
    let deadline = Instant::now() + caller.state.limits.request_timeout;
    let is_form = read::is_form(request.headers());
    let response = async {
        let parsed = read::edit(request, &caller).await?;
        answer(caller, parsed, deadline).await
    };
    response.await.map_err(|refusal| if is_form { with_part_name(refusal) } else { refusal })
}

/// Renames the refused field from its JSON name to that of the form's part: `images[0].image_url` was sent as `image`.
fn with_part_name(mut refusal: Refusal) -> Refusal {
    if refusal.error.param.as_deref().is_some_and(|param| param.starts_with("images")) {
        refusal.error.param = Some("image".to_owned());
    }
    refusal
}

/// Answers a parsed request: looks up the model, takes a permit, tries the targets in order, and streams or folds the
/// answer.
async fn answer(caller: Caller<'_>, parsed: ParsedRequest, deadline: Instant) -> Result<Response<Body>, Refusal> {
    let Caller { state, policy, key, record } = caller;
    policy.catalog.serves(&parsed.model, read::protocol(parsed.operation))?;
    if !key.may_use(&parsed.model) {
        return Err(Refusal::model(&parsed.model));
    }
    let streams = parsed.generation.streams();
    if let Some(record) = record.as_mut() {
        (record.model, record.stream) = (Some(parsed.model.clone()), streams);
        record.permit = Some(state.limiter.take(&key.name).ok_or_else(ApiError::concurrency_limit)?);
    }
    let caller = Caller { state, policy, key, record };
    if streams { stream(caller, parsed, deadline).await } else { unary::answer(caller, parsed, deadline).await }
}

async fn stream(caller: Caller<'_>, parsed: ParsedRequest, deadline: Instant) -> Result<Response<Body>, Refusal> {
    let Caller { state, policy, key, record } = caller;
    let served = record.as_ref().map(|record| Arc::clone(&record.served_by)).unwrap_or_default();
    let targets = policy.routes.select(&parsed.model);
    let dispatch = ImageDispatch::new(parsed, state, &key.name, deadline);
    let attempt = Box::pin(attempt::first_successful_target(dispatch, targets, Arc::clone(state), served, deadline));
    voice::stream::<Drawing>(attempt, (), state, record, deadline).await
}

#[cfg(test)]
mod tests;
