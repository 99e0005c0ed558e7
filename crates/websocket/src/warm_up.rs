//! Requests that only prepare a response (`"generate": false`). No target generates anything for them.

use std::sync::Arc;
use std::time::Duration;

use gateway::connection::state::ConnectionState;
use gateway::service;
use gateway::state::GatewayState;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use policy::clock;
use responses::{Echo, Encoder, Event, Finish, Head, Request, Usage};
use tokio::time::timeout;
use translate::count;
use vendor::Protocol;
use wire::ApiError;

use crate::request::{Turn, post};

/// Returns the events of a response without output, which can be continued. Its usage has the tokens
/// of the input, or 0 if no server counts them.
///
/// # Errors
/// Returns the violations of a request that cannot be read.
pub(crate) async fn answer(
    turn: &Turn,
    headers: HeaderMap,
    state: &Arc<GatewayState>,
    connection: &Arc<ConnectionState>,
) -> Result<Vec<Event>, ApiError> {
    let request = Request::read(&turn.text)?;
    let mut input_tokens = None;
    if is_countable(turn, &request.model, state) {
        let counted = count(turn, headers, state, connection);
        input_tokens = timeout(COUNT_TIMEOUT, counted).await.ok().flatten();
    }
    Ok(empty_response(&request, input_tokens.unwrap_or_default()))
}

/// True if a target counts the tokens of its input, and the input is known here.
fn is_countable(turn: &Turn, model: &str, state: &GatewayState) -> bool {
    let policy = state.policies.current();
    let model = policy.catalog.find(model);
    model.is_some_and(|model| policy.routes.counts_tokens(model)) && !turn.before.refers_elsewhere()
}

/// Counts the tokens of the input by a request of its own. Returns `None` if that is refused.
async fn count(
    turn: &Turn,
    headers: HeaderMap,
    state: &Arc<GatewayState>,
    connection: &Arc<ConnectionState>,
) -> Option<u64> {
    let counted = count::counted(Protocol::Responses, &turn.body()).ok()?;
    let request = post("/v1/responses/input_tokens", counted, headers);
    let response = service::answer(state, request, connection).await;
    if response.status() != StatusCode::OK {
        return None;
    }
    let body = Limited::new(response.into_body(), MAX_COUNT).collect();
    count::read_reply(&body.await.ok()?.to_bytes()).ok()
}

fn empty_response(request: &Request, input_tokens: u64) -> Vec<Event> {
    let now = clock::unix_seconds();
    let head = Head {
        id: wire::id("resp", clock::random_bits()),
        created_at: now,
        model: request.model.clone(),
    };
    let mut encoder = Encoder::new(head, Echo::of(request));
    let mut events = Vec::new();
    let usage = Usage::new(input_tokens, 0);
    encoder.finish(Finish::Completed, Some(usage), now, &mut events);
    events
}

/// The time that a client waits for a count, which it can do without.
const COUNT_TIMEOUT: Duration = Duration::from_secs(5);
/// The size of the reply with a count, in bytes.
const MAX_COUNT: usize = 64 << 10;
