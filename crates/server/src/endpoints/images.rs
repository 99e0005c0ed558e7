//! `POST /v1/images/generations` — spec §4.5 — and `POST /v1/images/edits` — spec §4.6.

mod read;
mod tell;

use bytes::Bytes;
use engine::{ImageEdit, Making};
use http::{Request, Response};
use images::Source;
use tokio::time::{Instant, timeout_at};
use translate::inbound::{Pictures, image_request};
use wire::ApiError;

use self::read::{Asked, Start};
use self::tell::{Steps, Telling};
use crate::body::events::{self, Events, Timing};
use crate::body::{Body, plain};
use crate::clock;
use crate::gateway::{Caller, Gateway};
use crate::references;
use crate::refusal::Refusal;

/// Answers a request for generations.
pub(crate) async fn generate<B>(caller: Caller<'_>, request: Request<B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes>,
{
    let deadline = Instant::now() + caller.gateway.limits.request_timeout;
    let asked = read::generation(request, &caller).await?;
    answer(caller, asked, deadline).await
}

/// Answers a request for edits.
pub(crate) async fn edit<B>(caller: Caller<'_>, request: Request<B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes> + Send,
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

/// Answers either: looks the model up, takes a permit, starts the engine, and streams or folds what comes.
async fn answer(caller: Caller<'_>, asked: Asked, deadline: Instant) -> Result<Response<Body>, Refusal> {
    let Caller { gateway, policy, key, record } = caller;
    let Asked { model, operation, generation, start, share } = asked;
    policy.catalog.serves(&model, read::protocol(operation))?;
    if !key.may_use(&model) {
        return Err(Refusal::model(&model));
    }
    let streams = generation.streams();
    if let Some(record) = record {
        (record.model, record.stream) = (Some(model.clone()), streams);
    }
    let permit = gateway.limiter.take(&key.name).ok_or_else(ApiError::concurrency_limit)?;
    let engine = gateway.easel.as_ref().ok_or_else(Refusal::no_engine)?;
    let making = async {
        let edit = match start {
            Some(start) => Some(fetch(start, &key.name, gateway).await?),
            None => None,
        };
        let request = image_request(&generation, &model, edit);
        let count = request.count;
        let making = engine.start(request).await.map_err(|error| plain::refuse(&error))?;
        Ok::<_, Refusal>((count, making))
    };
    let (count, making) = timeout_at(deadline, making).await.map_err(|_| Refusal::timeout())??;
    let Making { traits, events } = making;
    drop(share);

    let telling = Telling::new(Pictures::new(operation, &traits, count, clock::random_bits()));
    if !streams {
        let reply = tell::reply(events, telling, (operation, count), record.as_mut());
        return timeout_at(deadline, reply).await.map_err(|_| Refusal::timeout())?;
    }
    let Some(mut record) = record.take() else { return Err(ApiError::server_error().into()) };
    record.status = 200;
    let timing = Timing { silence: gateway.limits.keep_alive, deadline };
    Ok(events::response(Events::new(Steps(events), telling, &timing, gateway.lifecycle.cut(), record, permit)))
}

/// What an edit starts from, as bytes.
async fn fetch(start: Start, key: &str, gateway: &Gateway) -> Result<ImageEdit, Refusal> {
    let mut references = Vec::new();
    for (i, source) in start.references.into_iter().enumerate() {
        references.push(match source {
            Source::Inline { bytes, .. } => bytes,
            Source::Url(url) => {
                let param = format!("images[{i}].image_url");
                references::picture(&url, Some(&param), key, gateway).await?.bytes
            }
        });
    }
    Ok(ImageEdit { references, mask: start.mask })
}
