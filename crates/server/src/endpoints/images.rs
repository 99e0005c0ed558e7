//! `POST /v1/images/generations` — spec §4.5 — and `POST /v1/images/edits` — spec §4.6.

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
use crate::gateway::Caller;
use crate::refusal::Refusal;

/// Answers a request for generations.
pub(crate) async fn generate<B>(caller: Caller<'_>, request: Request<B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes, Error: Error>,
{
    let deadline = Instant::now() + caller.gateway.limits.request_timeout;
    let asked = read::generation(request, &caller).await?;
    answer(caller, asked, deadline).await
}

/// Answers a request for edits.
pub(crate) async fn edit<B>(caller: Caller<'_>, request: Request<B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes, Error: Error> + Send,
{
    let deadline = Instant::now() + caller.gateway.limits.request_timeout;
    let is_form = read::is_form(request.headers());
    let answered = async {
        let asked = read::edit(request, &caller).await?;
        answer(caller, asked, deadline).await
    };
    answered.await.map_err(|refusal| if is_form { in_form(refusal) } else { refusal })
}

/// The same refusal with the names that the parts of a form have: `images[0].image_url` came as `image`.
fn in_form(mut refusal: Refusal) -> Refusal {
    if refusal.error.param.as_deref().is_some_and(|param| param.starts_with("images")) {
        refusal.error.param = Some("image".to_owned());
    }
    refusal
}

/// Answers either: looks the model up, takes a permit, asks the targets in order, and streams or folds what comes.
async fn answer(caller: Caller<'_>, asked: ParsedRequest, deadline: Instant) -> Result<Response<Body>, Refusal> {
    let Caller { gateway, policy, key, record } = caller;
    policy.catalog.serves(&asked.model, read::protocol(asked.operation))?;
    if !key.may_use(&asked.model) {
        return Err(Refusal::model(&asked.model));
    }
    let streams = asked.generation.streams();
    if let Some(record) = record.as_mut() {
        (record.model, record.stream) = (Some(asked.model.clone()), streams);
        record.permit = Some(gateway.limiter.take(&key.name).ok_or_else(ApiError::concurrency_limit)?);
    }
    let caller = Caller { gateway, policy, key, record };
    if streams { stream(caller, asked, deadline).await } else { unary::answer(caller, asked, deadline).await }
}

async fn stream(caller: Caller<'_>, asked: ParsedRequest, deadline: Instant) -> Result<Response<Body>, Refusal> {
    let Caller { gateway, policy, key, record } = caller;
    let served = record.as_ref().map(|record| Arc::clone(&record.served)).unwrap_or_default();
    let targets = policy.routes.of(&asked.model);
    let asking = ImageDispatch::new(asked, gateway, &key.name, deadline);
    let attempt = Box::pin(attempt::begin(asking, targets, Arc::clone(gateway), served, deadline));
    voice::stream::<Drawing>(attempt, (), gateway, record, deadline).await
}

#[cfg(test)]
mod tests;
