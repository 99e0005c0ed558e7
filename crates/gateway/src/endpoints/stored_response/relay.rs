//! Requests about a single response that an upstream keeps, relayed to that upstream: [get, delete,
//! cancel](https://platform.openai.com/docs/api-reference/responses/get) and the list of its input
//! items.

use std::sync::Arc;

use answer::Answer;
use bytes::Bytes;
use engine::EngineError;
use http::{HeaderMap, Method, Response, StatusCode};
use policy::limit::Reserved;
use policy::targets::{Target, UpstreamTarget};
use upstream::{Effort, Outgoing, ResponseMeta};
use wire::Splice;

use crate::exchange::refusal::Refusal;
use crate::exchange::targets::ServedBy;
use crate::request::attempt::{self, TargetFailure};
use crate::request::outgoing;
use crate::request::reply::{ReplyBody, json_bytes};
use crate::state::Caller;

/// An operation on a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Retrieve,
    Delete,
    Cancel,
    InputItems,
}

impl Action {
    fn method(self) -> Method {
        match self {
            Self::Retrieve | Self::InputItems => Method::GET,
            Self::Delete => Method::DELETE,
            Self::Cancel => Method::POST,
        }
    }

    /// The path behind the id of the response.
    const fn path(self) -> &'static str {
        match self {
            Self::Retrieve | Self::Delete => "",
            Self::Cancel => "/cancel",
            Self::InputItems => "/input_items",
        }
    }
}

/// Relays a request to the upstream that keeps the response, if this key has made it.
pub(super) async fn relay(
    mut caller: Caller<'_>,
    action: Action,
    id: &str,
    query: &str,
) -> Result<Response<ReplyBody>, Refusal> {
    let Caller { state, policy, .. } = caller;
    let query = known_parameters(query)?;
    let origin = state.origins.get(&caller.key.id, id);
    let origin = origin.ok_or_else(|| Refusal::unknown_response(id))?;
    if !caller.key.may_use(&origin.model) {
        return Err(Refusal::model(&origin.model));
    }
    let server = policy.routes.upstream(&origin.upstream);
    let server = server.ok_or_else(|| Refusal::unknown_response(id))?;
    caller.take_permit(&origin.model, Reserved::default).await?;
    let key = Arc::clone(&caller.key.name);
    let outgoing = Outgoing {
        method: action.method(),
        path: format!("/responses/{id}{}{query}", action.path()).into(),
        ..outgoing::json(&key, "", HeaderMap::new(), Bytes::new(), false)
    };
    let mut meta = ResponseMeta::default();
    let asked = ask(server, &outgoing, &caller, &mut meta).await;
    let asked = asked.map_err(|error| failure(server, error, &caller, &meta));
    let target = origin.upstream;
    // It cannot be set already.
    let _ = caller.record.targets.served_by.set(ServedBy {
        target,
        provider: server.config.provider(),
        meta,
    });
    let body = asked?.ok_or_else(|| Refusal::unknown_response(id))?;
    match action {
        Action::Retrieve | Action::Cancel => state.background.retrieved(id, &body),
        Action::Delete => {
            state.origins.remove(&caller.key.id, id);
            state.background.deleted(id);
        }
        Action::InputItems => {}
    }
    let mut splice = Splice::new(&body);
    let model = serde_json::Value::from(origin.model.as_str()).to_string();
    splice.replace(&["model"], model.as_bytes());
    let body = splice.to_vec();
    caller.record.model = Some(origin.model);
    Ok(json_bytes(body.into()))
}

/// Returns the reply of the upstream, or `None` if it does not know the response.
async fn ask(
    server: &UpstreamTarget,
    outgoing: &Outgoing,
    caller: &Caller<'_>,
    meta: &mut ResponseMeta,
) -> Result<Option<Bytes>, EngineError> {
    let effort = Effort {
        may_retry: outgoing.method == Method::GET,
        has_alternative: false,
    };
    let mut incoming = server
        .send_to_upstream(outgoing, caller.deadline, effort)
        .await?;
    *meta = std::mem::take(&mut incoming.meta);
    if incoming.status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    match Answer::read(incoming, outgoing::MAX_REPLY).await? {
        Answer::Json(body) => match serde_json::from_slice::<serde::de::IgnoredAny>(&body) {
            Ok(_) => Ok(Some(body)),
            Err(error) => Err(EngineError::Upstream(format!(
                "malformed reply: {}",
                wire::json_fault(&error)
            ))),
        },
        Answer::Events(..) => Err(EngineError::Upstream(
            "an event stream instead of JSON".to_owned(),
        )),
    }
}

fn failure(
    server: &Arc<UpstreamTarget>,
    error: EngineError,
    caller: &Caller<'_>,
    meta: &ResponseMeta,
) -> Refusal {
    let failure = TargetFailure::of(error).without_key(&server.upstream);
    let target = Target::at(server);
    attempt::report_failure(caller.state, &target, &failure.refusal, meta);
    *failure.refusal
}

/// Returns the parameters that are relayed, as a query. Events cannot be replayed.
fn known_parameters(query: &str) -> Result<String, Refusal> {
    let pairs = || query.split('&').filter(|pair| !pair.is_empty());
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
    if pairs().any(|pair| pair == "stream=true") {
        return Err(Refusal::no_replay());
    }
    let known: Vec<_> = pairs()
        .filter(|pair| PARAMETERS.contains(&name(pair).as_str()))
        .collect();
    Ok(if known.is_empty() {
        String::new()
    } else {
        format!("?{}", known.join("&"))
    })
}

const PARAMETERS: [&str; 7] = [
    "after",
    "before",
    "include",
    "include[]",
    "include%5B%5D",
    "limit",
    "order",
];
