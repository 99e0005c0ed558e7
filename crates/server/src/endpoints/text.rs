//! What the three text endpoints share: everything but how a request is read and validated.

mod dispatch;
mod unary;

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use catalog::{Model, Protocol};
use engine::TextEvent;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::time::Instant;
use translate::inbound::{Answer, ClientProtocol, Reply, Stamp};
use translate::relay::{End, RelayProtocol};
use wire::{ApiError, Path, Splice};

use self::dispatch::TextDispatch;
use super::json_body;
use crate::attempt;
use crate::body::Body;
use crate::body::events;
use crate::body::format::Manner;
use crate::body::upload::Upload;
use crate::body::voice;
use crate::clock;
use crate::gateway::Caller;
use crate::image_urls;
use crate::outcome::{Ending, Outcome};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::targets::UpstreamTarget;

/// A text endpoint: how its requests are read, judged and refused, and how they are relayed.
pub(crate) trait TextEndpoint: ClientProtocol<Request: Send + Sync> + Send + Sync + 'static {
    /// What the catalog calls it.
    const PROTOCOL: Protocol;
    /// The same among the protocols of upstreams.
    const SPOKEN: translate::outbound::Protocol;
    /// What is appended to the base URL of an upstream.
    const UPSTREAM_PATH: &'static str;
    /// Whether a stream over the concurrency limit is told so by an event (spec §7); the others get a 429.
    const LIMIT_IN_STREAM: bool;
    /// Whether a client keeps the seals on a model's thoughts in envelopes (wire-reference §9.2).
    const SEALS: bool = false;
    /// The headers of a client that go on to an upstream of its own protocol.
    const FORWARDED: &'static [&'static str] = &[];
    /// A request that was read and not yet judged.
    type Unchecked;
    /// What reads along when an answer is relayed.
    type Relay: RelayProtocol + Default + Unpin + 'static;

    /// Reads a body.
    fn read(body: &[u8]) -> Result<Self::Unchecked, ApiError>;

    /// The model that a request names, and whether it asks for a stream.
    fn asks(request: &Self::Unchecked) -> (&str, bool);

    /// Judges a request by the rules of its model.
    fn judge(request: Self::Unchecked, model: Option<&Model>) -> Result<Self::Request, ApiError>;

    /// Tells every address that a request names, and where.
    fn addresses(request: &Self::Request, tell: &mut dyn FnMut(&Path<'_>, &str));

    /// Marks what is taken out of a request that is relayed, beside the change of its model.
    fn edit(_: &UpstreamTarget, _: &mut Splice<'_>) {}
}

/// A request that keeps every rule, and all that it takes to ask for an answer to it.
pub(crate) struct ParsedRequest<D: TextEndpoint> {
    /// Until it is said in neutral words. Boxed, because it is large and handed on from one future to the next.
    valid: Option<Box<D::Request>>,
    upload: Upload,
    /// The id of the model, as the client said it.
    model: String,
    /// Whether the model thinks when nobody says anything of it.
    thinks: bool,
    headers: HeaderMap,
    streams: bool,
    deadline: Instant,
}

/// Answers a request: reads it, judges it, takes a permit, asks the targets in order, and streams or folds what comes.
pub(crate) async fn answer<D, B>(caller: Caller<'_>, request: Request<B>) -> Result<Response<Body>, Refusal>
where
    D: TextEndpoint,
    B: http_body::Body<Data = Bytes, Error: Error>,
{
    let deadline = Instant::now() + caller.gateway.limits.request_timeout;
    let Caller { gateway, policy, key, record } = caller;
    let headers = forwarded::<D>(request.headers());
    let upload = json_body(request, gateway.limits.json_body, gateway).await?;
    let unchecked = D::read(&upload.bytes)?;
    let (id, streams) = D::asks(&unchecked);
    let (id, model) = (id.to_owned(), policy.catalog.find(id));
    let valid = Box::new(D::judge(unchecked, model)?);
    let thinks = policy.catalog.serves(&id, D::PROTOCOL)?.reasoning;
    if !key.may_use(&id) {
        return Err(Refusal::model(&id));
    }
    image_urls::judge_all(gateway, |tell| D::addresses(&valid, tell))?;
    if let Some(record) = record {
        (record.model, record.stream) = (Some(id.clone()), streams);
    }
    let stamp = Stamp { bits: clock::random_bits(), created_at: clock::unix_seconds() };
    let Some(permit) = gateway.limiter.take(&key.name) else {
        return over_the_limit::<D>(streams, &valid, &stamp, record);
    };
    if let Some(record) = record {
        record.permit = Some(permit);
    }
    if !streams {
        let reply = Reply::<D>::new(&valid, &stamp);
        let asked = ParsedRequest { valid: Some(valid), upload, model: id, thinks, headers, streams, deadline };
        return unary::answer::<D>(asked, reply, gateway, policy, &key.name, record.as_mut()).await;
    }
    let answer = Answer::<D>::new(&valid, &stamp);
    let asked = ParsedRequest { valid: Some(valid), upload, model: id, thinks, headers, streams, deadline };
    let served = record.as_ref().map(|record| Arc::clone(&record.served)).unwrap_or_default();
    let targets = policy.routes.of(&asked.model);
    let text = TextDispatch::new(asked, gateway, &key.name);
    let attempt = Box::pin(attempt::begin(text, targets, Arc::clone(gateway), served, deadline));
    voice::stream::<D>(attempt, answer, gateway, record, deadline).await
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

/// The few headers of a client that an upstream of its own protocol gets to see.
pub(crate) fn forwarded<D: TextEndpoint>(headers: &HeaderMap) -> HeaderMap {
    let mut all = HeaderMap::new();
    for name in D::FORWARDED {
        for value in headers.get_all(*name) {
            all.append(*name, value.clone());
        }
    }
    all
}

impl<D: TextEndpoint> Manner for D {
    type Event = TextEvent;
    type Traits = ();
    type Waiting = Answer<D>;
    type Teller = Answer<D>;
    type Relay = <D as TextEndpoint>::Relay;
    type Whole = (Bytes, End);

    fn open(mut answer: Answer<D>, (): (), out: &mut Vec<u8>) -> Answer<D> {
        answer.open(out);
        answer
    }

    fn tell(answer: &mut Answer<D>, event: TextEvent, out: &mut Vec<u8>) -> Option<Ending> {
        let ending = ending(&event);
        answer.event(event, clock::unix_seconds(), out);
        ending
    }

    fn fail(answer: &mut Answer<D>, error: &ApiError, out: &mut Vec<u8>) {
        answer.fail(error, out);
    }

    fn fail_waiting(answer: &mut Answer<D>, error: &ApiError, out: &mut Vec<u8>) {
        answer.fail(error, out);
    }

    fn keep_alive(answer: &Answer<D>, out: &mut Vec<u8>) {
        answer.keep_alive(out);
    }
}

fn ending(event: &TextEvent) -> Option<Ending> {
    match event {
        TextEvent::Finished { stop, usage } => Some(Ending { outcome: Outcome::of_stop(stop), usage: *usage }),
        _ => None,
    }
}
