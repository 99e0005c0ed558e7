//! What the three text endpoints share: everything but how a request is read and validated.

use bytes::Bytes;
use catalog::{Model, Protocol};
use engine::{Generation, TextEvent, TextStream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::time::{Instant, timeout_at};
use translate::inbound::{Answer, Dialect, Reply, Stamp};
use wire::ApiError;

use super::{add_dropped, json, json_body};
use crate::body::events::{self, Ending, Events, Telling, Timing};
use crate::body::{Body, plain};
use crate::clock;
use crate::gateway::Caller;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::references;
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
pub(crate) async fn answer<D, B>(caller: Caller<'_>, request: Request<B>) -> Result<Response<Body>, Refusal>
where
    D: TextEndpoint,
    B: http_body::Body<Data = Bytes>,
{
    let deadline = Instant::now() + caller.gateway.limits.request_timeout;
    let Caller { gateway, catalog, key, record } = caller;
    let upload = json_body(request, gateway.limits.json_body, gateway).await?;
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
    references::inline(&mut inbound.request, &key.name, gateway).await?;
    let started = timeout_at(deadline, engine.start(inbound.request)).await.map_err(|_| Refusal::timeout())?;
    let Generation { dropped, events } = started.map_err(|error| plain::refuse(&error))?;
    inbound.dropped.extend(dropped);

    let mut response = if streams {
        let Some(mut record) = record.take() else { return Err(ApiError::server_error().into()) };
        record.status = 200;
        let timing = Timing { silence: gateway.limits.keep_alive, deadline };
        events::response(Events::new(events, answer, &timing, gateway.lifecycle.cut(), record, permit))
    } else {
        let reply = timeout_at(deadline, fold(events, reply, record.as_mut())).await;
        reply.map_err(|_| Refusal::timeout()).flatten().and_then(|reply| json(&reply))?
    };
    add_dropped(response.headers_mut(), &inbound.dropped);
    Ok(response)
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
    Ok(events::response(StreamBody::new(whole)))
}

/// The whole reply: the fold of the stream that would have been.
async fn fold<D: Dialect>(
    events: TextStream,
    mut reply: Reply<D>,
    record: Option<&mut Record>,
) -> Result<D::Reply, Refusal> {
    let take = |event: TextEvent| {
        let ending = ending(&event);
        reply.event(event, clock::unix_seconds());
        ending
    };
    plain::gather(events, record, take).await?;
    reply.finish().ok_or_else(|| ApiError::server_error().into())
}

impl<D: Dialect> Telling for Answer<D> {
    type Step = TextEvent;

    fn open(&mut self, out: &mut Vec<u8>) {
        self.open(out);
    }

    fn step(&mut self, step: TextEvent, out: &mut Vec<u8>) -> Option<Ending> {
        let ending = ending(&step);
        self.event(step, clock::unix_seconds(), out);
        ending
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        self.fail(error, out);
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        self.keep_alive(out);
    }
}

fn ending(event: &TextEvent) -> Option<Ending> {
    match event {
        TextEvent::Finished { stop, usage } => Some(Ending { outcome: Outcome::of_stop(stop), usage: *usage }),
        _ => None,
    }
}
