//! What the three text endpoints share: everything but how a request is read and validated.

use bytes::Bytes;
use catalog::{Model, Protocol};
use engine::{Generation, TextEvent, TextStream};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{Instant, timeout_at};
use translate::inbound::{Answer, Dialect, Reply, Stamp};
use wire::ApiError;

use super::json;
use crate::body::Body;
use crate::body::events::{Events, Timing, outcome_of, outcome_of_stop};
use crate::body::upload::{self, Upload};
use crate::clock;
use crate::gateway::Admitted;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::refusal::Refusal;

/// A text endpoint: how its requests are read, judged and refused.
pub(crate) trait TextEndpoint: Dialect + 'static {
    /// What the catalog calls it.
    const PROTOCOL: Protocol;
    /// Whether a stream over the concurrency limit is told so by an event (spec §7); the others get a 429.
    const LIMIT_IN_STREAM: bool;
    /// A request that was read and not yet judged.
    type Unchecked;

    /// Reads a body.
    fn read(body: &[u8]) -> Result<Self::Unchecked, ApiError>;

    /// The model that a request names, and whether it asks for a stream.
    fn asks(request: &Self::Unchecked) -> (&str, bool);

    /// Judges a request by the rules of its model.
    fn judge(request: Self::Unchecked, model: Option<&Model>) -> Result<Self::Request, ApiError>;
}

/// Answers a request: reads it, judges it, takes a permit, starts the engine, and streams or folds what comes.
pub(crate) async fn answer<D, B>(admitted: Admitted<'_, B>) -> Result<Response<Body>, Refusal>
where
    D: TextEndpoint,
    B: http_body::Body<Data = Bytes>,
{
    let deadline = Instant::now() + admitted.gateway.limits.request_timeout;
    let Admitted { gateway, catalog, key, request, record } = admitted;
    let upload = body(request, &gateway.limits, &gateway.budget).await?;
    let unchecked = D::read(&upload.bytes)?;
    drop(upload);
    let (id, streams) = D::asks(&unchecked);
    let (id, model) = (id.to_owned(), catalog.find(id));
    let valid = D::judge(unchecked, model)?;
    let model = catalog.serves(&id, D::PROTOCOL)?;
    if !key.may_use(&id) {
        return Err(Refusal::model(&id));
    }
    if let Some(record) = record {
        (record.model, record.stream) = (Some(id), streams);
    }
    let stamp = Stamp { bits: clock::random_bits(), created_at: clock::unix_seconds() };
    let Some(permit) = gateway.limiter.take(&key.name) else {
        return over_the_limit::<D>(streams, &valid, &stamp, record);
    };
    let (answer, reply) = (Answer::<D>::new(&valid, &stamp), Reply::<D>::new(&valid, &stamp));
    let mut inbound = D::request(valid)?;
    inbound.request.reasoning.by_default = model.reasoning;
    let engine = gateway.local.as_ref().ok_or_else(Refusal::no_engine)?;
    let started = timeout_at(deadline, engine.start(inbound.request)).await.map_err(|_| Refusal::timeout())?;
    let Generation { dropped, events } = started.map_err(|error| refuse(&error))?;
    inbound.dropped.extend(dropped);

    let mut response = if streams {
        let Some(mut record) = record.take() else { return Err(ApiError::server_error().into()) };
        record.status = 200;
        let timing = Timing { silence: gateway.limits.keep_alive, deadline };
        stream(Events::new(events, answer, &timing, gateway.lifecycle.cut(), record, permit))
    } else {
        let reply = timeout_at(deadline, fold(events, reply, record.as_mut())).await;
        reply.map_err(|_| Refusal::timeout()).flatten().and_then(|reply| json(&reply))?
    };
    add_dropped(response.headers_mut(), &inbound.dropped);
    Ok(response)
}

/// Checks what the head says of the body, and reads it.
pub(crate) async fn body<B>(
    request: http::Request<B>,
    limits: &crate::config::Limits,
    budget: &upload::Budget,
) -> Result<Upload, Refusal>
where
    B: http_body::Body<Data = Bytes>,
{
    let limit = limits.json_body_bytes();
    let headers = request.headers();
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(Refusal::too_large());
    }
    check_media_type(headers)?;
    upload::read(request.into_body(), limit, limits, budget).await
}

/// JSON by its own account, or without one, and not compressed (wire-reference §0.3).
fn check_media_type(headers: &HeaderMap) -> Result<(), Refusal> {
    if let Some(coding) = headers.get(CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Refusal::content_encoding());
    }
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let media_type = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let media_type = media_type.to_ascii_lowercase();
    if media_type == "application/json" || media_type.ends_with("+json") {
        Ok(())
    } else {
        Err(Refusal::media_type(&media_type))
    }
}

/// The answer to a request for which there is no permit (spec §7).
fn over_the_limit<D: TextEndpoint>(
    streams: bool,
    valid: &D::Request,
    stamp: &Stamp,
    record: &mut Option<Record>,
) -> Result<Response<Body>, Refusal> {
    let error = ApiError::concurrency_limit();
    if !(streams && D::LIMIT_IN_STREAM) {
        return Err(error.into());
    }
    if let Some(record) = record {
        record.code = Some(error.code);
        record.end(Outcome::Shed);
    }
    let mut bytes = Vec::new();
    Answer::<D>::new(valid, stamp).fail(&error, &mut bytes);
    // Without a length, as every stream.
    let whole = futures_util::stream::iter([Ok(Frame::data(Bytes::from(bytes)))]);
    Ok(stream(StreamBody::new(whole)))
}

pub(crate) fn refuse(error: &engine::EngineError) -> Refusal {
    Refusal { cause: Some(error.to_string()), ..translate::api_error(error).into() }
}

/// The whole reply: the fold of the stream that would have been.
async fn fold<D: Dialect>(
    mut events: TextStream,
    mut reply: Reply<D>,
    mut record: Option<&mut Record>,
) -> Result<D::Reply, Refusal> {
    while let Some(event) = std::future::poll_fn(|cx| events.as_mut().poll_next(cx)).await {
        let event = event.map_err(|error| {
            if let Some(record) = &mut record {
                record.end(outcome_of(&error));
            }
            refuse(&error)
        })?;
        if let (Some(record), TextEvent::Finished { stop, usage }) = (&mut record, &event) {
            record.usage = *usage;
            record.end(outcome_of_stop(stop));
        }
        reply.event(event, clock::unix_seconds());
    }
    let unfinished =
        || Refusal { cause: Some("the engine ended without an end".to_owned()), ..ApiError::server_error().into() };
    reply.finish().ok_or_else(unfinished)
}

fn stream<S>(events: S) -> Response<Body>
where
    S: http_body::Body<Data = Bytes, Error = std::convert::Infallible> + Send + 'static,
{
    let mut response = Response::new(events.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Names what could not be said to the engine.
fn add_dropped(headers: &mut HeaderMap, dropped: &[String]) {
    if dropped.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&dropped.join(", ")) {
        headers.insert(HeaderName::from_static("x-sluicegate-dropped"), value);
    }
}
