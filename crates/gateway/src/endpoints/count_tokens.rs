//! `POST /v1/messages/count_tokens`: [token
//! counting](https://docs.anthropic.com/en/api/messages-count-tokens).

use std::sync::Arc;

use answer::Answer;
use bytes::Bytes;
use catalog::{Model, Protocol};
use http::{HeaderMap, Response};
use messages::{Request, Rules, TokenCount, ValidCount, refusal};
use policy::limit::Reserved;
use policy::targets::{Backend, Target, UpstreamTarget};
use relay::seals::{self, Openable};
use tokio::time::{Instant, timeout_at};
use translate::inbound::Messages;
use upstream::{Effort, Outgoing, ResponseMeta};
use vendor::Protocol as Outbound;
use wire::{ApiError, ErrorKind, Splice};

use super::json_body;
use super::text::EndpointRules as _;
use crate::exchange::body::ClientBody;
use crate::exchange::body::budget::Share;
use crate::exchange::body::upload::Upload;
use crate::exchange::refusal::Refusal;
use crate::request::attempt;
use crate::request::attempt::TargetFailure;
use crate::request::image_urls;
use crate::request::outgoing::{self, Draft};
use crate::request::reply::{ReplyBody, json, json_bytes};
use crate::state::{Caller, GatewayState};

/// Counts the tokens of a prompt on the targets that would answer it, so that the count matches the
/// usage of the answer.
pub(crate) async fn answer(
    mut caller: Caller<'_>,
    request: http::Request<impl ClientBody>,
) -> Result<Response<ReplyBody>, Refusal> {
    let Caller {
        state, policy, key, ..
    } = caller;
    let headers = outgoing::forwarded(request.headers(), Messages::FORWARDED);
    let upload = json_body(request, state.limits.json_body, state, key).await?;
    let read = || Request::read(&upload.bytes);
    let read = state.long_work.run(upload.bytes.len(), read).await;
    let unchecked = read.map_err(refusal)?;
    let found = policy.catalog.find(&unchecked.model);
    let mut rules = found.map(Model::messages_rules).unwrap_or_default();
    rules.unknown_types =
        found.is_some_and(|model| policy.routes.may_relay(model, Protocol::Messages));
    let valid = unchecked.validate_for_count(&rules).map_err(refusal)?;
    let model = valid.model.clone();
    let entry = policy.catalog.serves(&model, Protocol::Messages)?;
    if !key.may_use(&model) {
        return Err(Refusal::model(&model));
    }
    image_urls::check_all(state, |visit| valid.addresses(visit))?;
    caller.record.set_model(&model, entry);
    // Counting uses no tokens.
    caller.take_permit(&model, Reserved::default).await?;
    let targets = policy.routes.select(entry, || None);
    let prompt = Prompt {
        valid,
        upload,
        headers,
        model,
    };
    prompt.count(targets, &caller).await
}

/// A valid request, and the values that its targets need.
struct Prompt {
    valid: ValidCount,
    upload: Upload,
    headers: HeaderMap,
    /// The client's name of the model.
    model: String,
}

impl Prompt {
    /// Asks the targets in order.
    async fn count(
        &self,
        targets: Vec<Target>,
        caller: &Caller<'_>,
    ) -> Result<Response<ReplyBody>, Refusal> {
        let (mut last, mut first) = (None, None);
        let mut targets = targets.into_iter();
        while let Some(target) = targets.next() {
            let effort = Effort {
                may_retry: last.is_none(),
                has_alternative: targets.len() > 0,
            };
            let counted = match &target.backend {
                Backend::Embedded => self.count_embedded(caller).await?,
                Backend::Upstream(server) if server.translation(Protocol::Messages).is_none() => {
                    let openable = server.openable(&mut first);
                    self.count_at(&target, server, openable, effort, caller)
                        .await?
                }
                // The other protocols have no such endpoint.
                Backend::Upstream(_) => continue,
            };
            match counted {
                Ok(reply) => return Ok(reply),
                Err(failure) if failure.may_fall_back => last = Some(*failure.refusal),
                Err(failure) => return Err(*failure.refusal),
            }
        }
        Err(last.unwrap_or_else(|| not_countable(&self.model)))
    }

    async fn count_embedded(&self, caller: &Caller<'_>) -> Result<Counted, Refusal> {
        let (state, share) = (caller.state, &self.upload.share);
        let counted = embedded(self.valid.clone(), &caller.key.name, state, share);
        let counted = timeout_at(caller.deadline, counted).await;
        counted.map_err(|_| Refusal::timeout())
    }

    async fn count_at(
        &self,
        target: &Target,
        server: &UpstreamTarget,
        openable: Openable,
        effort: Effort,
        caller: &Caller<'_>,
    ) -> Result<Counted, Refusal> {
        let headers = server.config.without_fixed(self.headers.clone());
        let key = Arc::clone(&caller.key.name);
        let outgoing = outgoing(
            &key,
            server,
            &self.upload.bytes,
            headers,
            &self.model,
            target,
            openable,
        );
        let mut meta = ResponseMeta::default();
        let counted = counted(server, &outgoing, caller.deadline, effort, &mut meta);
        let counted = timeout_at(caller.deadline, counted).await;
        let failure = match counted.map_err(|_| Refusal::timeout())? {
            Ok(body) => {
                caller.record.targets.set_served_by(target, meta);
                return Ok(Ok(json_bytes(body)));
            }
            Err(failure) => failure.without_key(&server.upstream),
        };
        attempt::report_failure(caller.state, target, &failure.refusal, &meta);
        caller.record.targets.set_failed_head(meta);
        Ok(Err(failure))
    }
}

/// The reply, or the failure of a target.
type Counted = Result<Response<ReplyBody>, TargetFailure>;

async fn embedded(valid: ValidCount, key: &str, state: &GatewayState, share: &Share) -> Counted {
    let engine = state
        .text_engine
        .as_ref()
        .ok_or_else(|| TargetFailure::fall_back(Refusal::no_engine()))?;
    // It may have been validated for an upstream.
    let valid = valid.into_inner().validate_for_count(&Rules::default());
    let valid = valid.map_err(|found| TargetFailure::fall_back(refusal(found)))?;
    let mut inbound = Messages::count(valid).map_err(TargetFailure::fall_back)?;
    image_urls::inline(&mut inbound.request, key, state, share)
        .await
        .map_err(TargetFailure::fatal)?;
    let counted = engine.count_tokens(inbound.request).await;
    let input_tokens = counted.map_err(TargetFailure::fall_back)?;
    json(&TokenCount::new(input_tokens)).map_err(TargetFailure::fatal)
}

/// Returns the request to an upstream, with the upstream's name of the model, and without members
/// and seals that it refuses.
fn outgoing(
    key: &Arc<str>,
    server: &UpstreamTarget,
    body: &Bytes,
    headers: HeaderMap,
    model: &str,
    target: &Target,
    openable: Openable,
) -> Outgoing {
    let mut splice = Splice::new(body);
    seals::leave_out_foreign(Outbound::Messages, &openable, &mut splice);
    let own = target.model.as_deref().unwrap_or(model);
    outgoing::replace_model(&mut splice, model, own);
    let draft = Draft {
        protocol: Outbound::Messages,
        model: own,
        is_relayed: true,
    };
    let (body, _) = outgoing::adapted(server, draft, &splice, body);
    outgoing::json(key, "/messages/count_tokens", headers, body, false)
}

/// Requests the count from an upstream, and returns its reply unchanged.
async fn counted(
    server: &UpstreamTarget,
    outgoing: &Outgoing,
    deadline: Instant,
    effort: Effort,
    meta: &mut ResponseMeta,
) -> Result<Bytes, TargetFailure> {
    let invalid = |why: &str| {
        TargetFailure::of(engine::EngineError::Upstream(format!(
            "invalid token count: {why}"
        )))
    };
    match outgoing::send_and_classify(server, outgoing, deadline, effort, meta).await? {
        Answer::Json(body) => match serde_json::from_slice::<TokenCount>(&body) {
            Ok(_) => Ok(body),
            Err(error) => Err(invalid(&wire::json_fault(&error))),
        },
        Answer::Events(..) => Err(invalid("an event stream instead of JSON")),
    }
}

fn not_countable(model: &str) -> Refusal {
    let sentence =
        format!("The tokens of a prompt for the model '{model}' cannot be counted ahead.");
    ApiError::new(ErrorKind::NotFound, "not_found", sentence).into()
}
