//! Answers a text request that is not streamed.

use std::sync::Arc;

use answer::{Asked, Reported, read_stream};
use bytes::Bytes;
use engine::{EngineError, TextEvent, TextStream};
use http::Response;
use policy::clock;
use policy::targets::Target;
use relay::seals::Marker;
use relay::{End, RelayProtocol};
use tokio::time::timeout_at;
use translate::inbound::{ClientProtocol, Reply};
use translate::outbound;
use upstream::ResponseMeta;
use vendor::Protocol;
use wire::ApiError;

use super::dispatch::{TextAnswer, TextDispatch};
use super::{ParsedRequest, TextEndpoint, ending};
use crate::exchange::answer::engine_events::{fold, fold_recorded};
use crate::exchange::answer::started::Started;
use crate::exchange::record::Record;
use crate::exchange::refusal::Refusal;
use crate::request::attempt::{self, Dispatch, StartResult, TargetFailure, Turn};
use crate::request::reply::{ReplyBody, json, json_bytes, name_dropped};
use crate::state::Caller;

struct UnaryDispatch<D: TextEndpoint>(TextDispatch<D>);

enum UnaryAnswer<D: TextEndpoint> {
    /// The events of a model, and the reply that they are folded into.
    Translated(TextStream, Box<Reply<D>>),
    /// The complete reply of an upstream that uses the client's protocol, and the length of its content
    /// if it reports no usage.
    Relayed(Bytes, End, u64),
}

impl<D: TextEndpoint> Dispatch for UnaryDispatch<D> {
    const PROTOCOL: catalog::Protocol = D::PROTOCOL;
    type Answer = UnaryAnswer<D>;

    async fn start(&mut self, target: &Target, turn: Turn) -> StartResult<Self::Answer> {
        let Started { dropped, answer } = self.0.start_on(target, turn).await?;
        let answer = match answer {
            TextAnswer::Translated(events) => {
                let events = self.0.noted(events);
                self.translated(events)?
            }
            TextAnswer::Relayed(answer::Answer::Json(body)) => {
                let (parsed, reported) = (&self.0.parsed, &self.0.asked.reported);
                let marker = self.0.marker.as_ref();
                let relay = || relayed(parsed, &body, marker, reported).map_err(TargetFailure::of);
                self.0.long_work().run(body.len(), relay).await?
            }
            TextAnswer::Relayed(stream) => {
                // Read to its end, because another target can be tried until then.
                let asked = Arc::clone(&self.0.asked);
                let events = read_stream(stream, D::UPSTREAM_PROTOCOL, asked).await;
                let events = self.0.noted(events.map_err(TargetFailure::of)?);
                let events = collect(events).await;
                self.translated(events.map_err(TargetFailure::of)?)?
            }
        };
        Ok(Started { dropped, answer })
    }

    fn hedged(&self, first: &Target, asked: Arc<Asked>) -> Option<Self> {
        self.0.hedged(first, asked).map(Self)
    }

    fn leave_out_seals(&mut self, target: &Target) -> bool {
        self.0.leave_out_seals(target)
    }

    fn take_meta(&mut self) -> ResponseMeta {
        std::mem::take(&mut self.0.meta)
    }
}

impl<D: TextEndpoint> UnaryDispatch<D> {
    fn translated(&mut self, events: TextStream) -> Result<UnaryAnswer<D>, TargetFailure> {
        let reply = self.0.reply().map_err(TargetFailure::fall_back)?;
        Ok(UnaryAnswer::Translated(events, reply))
    }
}

/// Returns the reply of a relayed upstream, or folds the events of a model into one.
pub(super) async fn answer<D: TextEndpoint>(
    dispatch: TextDispatch<D>,
    targets: Vec<Target>,
    caller: Caller<'_>,
) -> Result<Response<ReplyBody>, Refusal> {
    let attempt = attempt::first_successful_target(UnaryDispatch(dispatch), targets, &caller);
    let Started { dropped, answer } = attempt.await?;
    let mut response = match answer {
        UnaryAnswer::Translated(events, reply) => {
            let folded = fold_reply(events, reply, caller.record);
            let reply = timeout_at(caller.deadline, folded).await;
            json(&reply.map_err(|_| Refusal::timeout())??)?
        }
        UnaryAnswer::Relayed(body, end, content) => {
            caller.record.counts.content = content;
            caller.record.finish(end);
            json_bytes(body)
        }
    };
    name_dropped(response.headers_mut(), &dropped);
    Ok(response)
}

/// Checks the complete reply of an upstream. Notes the usage that a rejected reply reports.
fn relayed<D: TextEndpoint>(
    parsed: &ParsedRequest<D>,
    body: &[u8],
    marker: Option<&Marker>,
    reported: &Reported,
) -> Result<UnaryAnswer<D>, EngineError> {
    let reply = D::relayed_reply(parsed.notes, body, &parsed.model);
    let (relayed, end) =
        reply.inspect_err(|_| reported.set_usage(D::Relay::usage_of_reply(body)))?;
    let content = match end.usage {
        Some(_) => 0,
        None => content_length(D::UPSTREAM_PROTOCOL, body),
    };
    let relayed = match marker {
        Some(marker) => marker.marked(relayed),
        None => relayed,
    };
    Ok(UnaryAnswer::Relayed(relayed.into(), end, content))
}

/// Returns the events of an answer once all of them have been read.
async fn collect(events: TextStream) -> Result<TextStream, EngineError> {
    let mut collected = Vec::new();
    let take = |event| {
        let ending = ending(&event);
        collected.push(event);
        ending
    };
    fold(events, take).await?;
    Ok(answer::from_events(collected))
}

/// Returns the length of the content of a reply, in bytes.
fn content_length(protocol: Protocol, body: &[u8]) -> u64 {
    let events = outbound::reply(protocol, body).unwrap_or_default();
    events.iter().map(TextEvent::length).sum()
}

async fn fold_reply<D: ClientProtocol>(
    events: TextStream,
    mut reply: Box<Reply<D>>,
    record: &mut Record,
) -> Result<D::Reply, Refusal> {
    let take = |event| {
        let ending = ending(&event);
        reply.event(event, clock::unix_seconds());
        ending
    };
    fold_recorded(events, record, take).await?;
    reply
        .finish()
        .ok_or_else(|| ApiError::server_error().into())
}
