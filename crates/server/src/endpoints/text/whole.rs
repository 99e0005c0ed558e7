//! Answering with one reply.

use std::sync::Arc;
use std::time::Duration;

use engine::TextStream;
use http::Response;
use tokio::time::timeout_at;
use translate::inbound::{Dialect, Reply};
use upstream::relay::Relayed;
use wire::ApiError;

use super::attempt::{Attempt, Begun, Coming};
use super::{Asked, TextEndpoint, ending};
use crate::body::{Body, plain};
use crate::clock;
use crate::endpoints::{add_dropped, json, json_bytes};
use crate::gateway::Gateway;
use crate::policy::Policy;
use crate::record::Record;
use crate::refusal::Refusal;

/// The reply: an upstream's own, or the fold of the stream that would have been.
pub(super) async fn answer<D: TextEndpoint>(
    asked: Asked<D>,
    gateway: &Arc<Gateway>,
    policy: &Arc<Policy>,
    key: &str,
    record: Option<&mut Record>,
) -> Result<Response<Body>, Refusal> {
    let deadline = asked.deadline;
    let reply = Reply::<D>::new(&asked.valid, &asked.stamp);
    let served = record.as_ref().map(|record| Arc::clone(&record.served)).unwrap_or_default();
    let Begun { dropped, answer, patience } = Attempt::new(asked, gateway, policy, key, served).begin().await?;
    let mut response = match answer {
        Coming::Neutral(events) => {
            let reply = timeout_at(deadline, fold(events, patience, reply, record)).await;
            json(&reply.map_err(|_| Refusal::timeout())??)?
        }
        Coming::Relayed(relayed) => whole(*relayed, record)?,
    };
    add_dropped(response.headers_mut(), &dropped);
    Ok(response)
}

/// An upstream's own reply.
fn whole<S>(relayed: Relayed<S>, record: Option<&mut Record>) -> Result<Response<Body>, Refusal> {
    let Relayed::Whole(body, end) = relayed else { return Err(ApiError::server_error().into()) };
    if let Some(record) = record {
        record.finish(end.into());
    }
    Ok(json_bytes(body))
}

async fn fold<D: Dialect>(
    events: TextStream,
    patience: Option<Duration>,
    mut reply: Reply<D>,
    record: Option<&mut Record>,
) -> Result<D::Reply, Refusal> {
    let take = |event| {
        let ending = ending(&event);
        reply.event(event, clock::unix_seconds());
        ending
    };
    plain::gather(events, patience, record, take).await?;
    reply.finish().ok_or_else(|| ApiError::server_error().into())
}
