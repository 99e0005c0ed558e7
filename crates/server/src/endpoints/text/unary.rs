//! Answers a text request that is not streamed.

use std::sync::Arc;
use std::time::Duration;

use engine::TextStream;
use http::Response;
use tokio::time::timeout_at;
use translate::inbound::{ClientProtocol, Reply};
use wire::ApiError;

use super::dispatch::TextDispatch;
use super::{ParsedRequest, TextEndpoint, ending};
use crate::answer::engine_events;
use crate::attempt::{self, Coming, Started};
use crate::body::{Body, name_dropped};
use crate::clock;
use crate::endpoints::{json, json_bytes};
use crate::policy::Policy;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::state::ServerState;

/// Returns the reply of a relayed upstream, or folds the events of a model into one.
pub(super) async fn answer<D: TextEndpoint>(
    parsed: ParsedRequest<D>,
    reply: Reply<D>,
    state: &Arc<ServerState>,
    policy: &Arc<Policy>,
    key: &str,
    record: Option<&mut Record>,
) -> Result<Response<Body>, Refusal> {
    let deadline = parsed.deadline;
    let served = record.as_ref().map(|record| Arc::clone(&record.served_by)).unwrap_or_default();
    let targets = policy.routes.select(&parsed.model);
    let text = TextDispatch::new(parsed, state, key);
    let started = attempt::first_successful_target(text, targets, Arc::clone(state), served, deadline).await?;
    let Started { dropped, answer, idle_timeout } = started;
    let mut response = match answer {
        Coming::Neutral(events, ()) => {
            let reply = timeout_at(deadline, fold(events, idle_timeout, reply, record)).await;
            json(&reply.map_err(|_| Refusal::timeout())??)?
        }
        Coming::Whole((body, end)) => {
            if let Some(record) = record {
                record.finish(end.into());
            }
            json_bytes(body)
        }
        // A request that is not streamed never gets a stream.
        Coming::Relay(_) | Coming::Told(..) => return Err(ApiError::server_error().into()),
    };
    name_dropped(response.headers_mut(), &dropped);
    Ok(response)
}

async fn fold<D: ClientProtocol>(
    events: TextStream,
    idle_timeout: Option<Duration>,
    mut reply: Reply<D>,
    record: Option<&mut Record>,
) -> Result<D::Reply, Refusal> {
    let take = |event| {
        let ending = ending(&event);
        reply.event(event, clock::unix_seconds());
        ending
    };
    engine_events::gather(events, idle_timeout, record, take).await?;
    reply.finish().ok_or_else(|| ApiError::server_error().into())
}
