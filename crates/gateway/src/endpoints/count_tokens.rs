//! `POST /v1/messages/count_tokens` and `POST /v1/responses/input_tokens`: [token
//! counting](https://platform.claude.com/docs/en/build-with-claude/token-counting).

use std::sync::Arc;

use answer::Answer;
use bytes::Bytes;
use config::upstream::CountTokens;
use engine::EngineError;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use policy::limit::{Reserved, prompt_tokens};
use policy::targets::{Backend, Target, UpstreamTarget};
use relay::seals::{self, Openable};
use tokio::time::{Instant, timeout_at};
use translate::count::{self, CountRequest};
use upstream::{Effort, Outgoing, ResponseMeta};
use vendor::Protocol;
use wire::Splice;

use super::json_body;
use super::text::EndpointRules;
use crate::connection::client_body::ClientBody;
use crate::exchange::body::upload::Upload;
use crate::exchange::refusal::Refusal;
use crate::request::attempt;
use crate::request::attempt::TargetFailure;
use crate::request::image_urls;
use crate::request::outgoing::{self, Draft};
use crate::request::reply::{ReplyBody, json, json_bytes};
use crate::state::Caller;

/// Counts the tokens of a prompt on the targets that would answer it, so that the count matches the
/// usage of the answer.
pub(crate) async fn answer<D: EndpointRules>(
    mut caller: Caller<'_>,
    request: http::Request<ClientBody>,
) -> Result<Response<ReplyBody>, Refusal> {
    let Caller {
        state, policy, key, ..
    } = caller;
    let headers = outgoing::forwarded(request.headers(), D::FORWARDED);
    let upload = json_body(request, state.limits.json_body, state, key).await?;
    let rules = |id: &str| policy.count_rules(id, D::PROTOCOL);
    let read = || CountRequest::read(D::UPSTREAM_PROTOCOL, &upload.bytes, rules);
    let valid = state.long_work.run(upload.bytes.len(), read).await?;
    let model = valid.model().to_owned();
    let entry = policy.catalog.serves(&model, D::PROTOCOL)?;
    if !key.may_use(&model) {
        return Err(Refusal::model(&model));
    }
    image_urls::check_all(state, |visit| valid.addresses(visit))?;
    caller.record.set_model(&model, entry);
    // Counting uses no tokens.
    caller.take_permit(&model, Reserved::default).await?;
    let targets = policy.routes.select(entry, || None);
    let prompt = Prompt {
        protocol: D::UPSTREAM_PROTOCOL,
        valid,
        upload,
        headers,
        model,
        reasons_by_default: entry.reasoning,
    };
    prompt.count(targets, &caller).await
}

/// A valid request, and the values that its targets need.
struct Prompt {
    /// The client's protocol.
    protocol: Protocol,
    valid: CountRequest,
    upload: Upload,
    headers: HeaderMap,
    /// The client's name of the model.
    model: String,
    /// True if the model reasons when the request does not specify it.
    reasons_by_default: bool,
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
                Backend::Embedded => timeout_at(caller.deadline, self.count_embedded(caller))
                    .await
                    .map_err(|_| Refusal::timeout())?,
                Backend::Upstream(server) => {
                    let protocol = match server.config.count_tokens() {
                        CountTokens::Messages => Protocol::Messages,
                        CountTokens::Responses => Protocol::Responses,
                        CountTokens::Estimate => return self.estimated(&target, caller),
                        CountTokens::Off => continue,
                    };
                    let openable = server.openable(&mut first);
                    self.count_at(protocol, &target, server, openable, effort, caller)
                        .await?
                }
            };
            match counted {
                Ok(reply) => return Ok(reply),
                Err(failure) if failure.may_fall_back => last = Some(*failure.refusal),
                Err(failure) => return Err(*failure.refusal),
            }
        }
        Err(last.unwrap_or_else(|| Refusal::not_countable(&self.model)))
    }

    async fn count_embedded(&self, caller: &Caller<'_>) -> Counted {
        let engine = caller.state.text_engine.as_ref();
        let engine = engine.ok_or_else(|| TargetFailure::fall_back(Refusal::no_engine()))?;
        let neutral = self.valid.clone().neutral();
        let mut request = neutral.map_err(TargetFailure::fall_back)?;
        request.reasoning.by_default = self.reasons_by_default;
        let share = &self.upload.share;
        image_urls::inline(&mut request, &caller.key.name, caller.state, share)
            .await
            .map_err(TargetFailure::fatal)?;
        let counted = engine.count_tokens(request).await;
        self.reply(counted.map_err(TargetFailure::fall_back)?)
            .map_err(TargetFailure::fatal)
    }

    /// Answers with an estimate, which the operator has permitted, and names it as one.
    fn estimated(
        &self,
        target: &Target,
        caller: &Caller<'_>,
    ) -> Result<Response<ReplyBody>, Refusal> {
        let meta = ResponseMeta::default();
        caller.record.targets.set_served_by(target, meta);
        let mut reply = self.reply(prompt_tokens(&self.upload.bytes))?;
        let value = HeaderValue::from_static("input_tokens");
        reply.headers_mut().insert(ESTIMATED, value);
        Ok(reply)
    }

    fn reply(&self, input_tokens: u64) -> Result<Response<ReplyBody>, Refusal> {
        json(&count::reply(self.protocol, input_tokens))
    }

    /// Sends a request to the endpoint of `protocol` that counts.
    async fn count_at(
        &self,
        protocol: Protocol,
        target: &Target,
        server: &UpstreamTarget,
        openable: Openable,
        effort: Effort,
        caller: &Caller<'_>,
    ) -> Result<Counted, Refusal> {
        let (is_relayed, mut meta) = (protocol == self.protocol, ResponseMeta::default());
        let counted = async {
            let outgoing = self.outgoing(protocol, target, server, openable, caller);
            counted(server, &outgoing.await?, caller.deadline, effort, &mut meta).await
        };
        let counted = timeout_at(caller.deadline, counted).await;
        let failure = match counted.map_err(|_| Refusal::timeout())? {
            Ok((body, input_tokens)) => {
                caller.record.targets.set_served_by(target, meta);
                return Ok(match is_relayed {
                    true => Ok(json_bytes(body)),
                    false => self.reply(input_tokens).map_err(TargetFailure::fatal),
                });
            }
            Err(failure) => failure.without_key(&server.upstream),
        };
        attempt::report_failure(caller.state, target, &failure.refusal, &meta);
        caller.record.targets.set_failed_head(meta);
        Ok(Err(match is_relayed {
            true => failure,
            false => failure.without_reported(),
        }))
    }

    /// Returns the request to an upstream: the client's own, with the upstream's name of the model and
    /// without members and seals that it refuses, or one of another protocol.
    async fn outgoing(
        &self,
        protocol: Protocol,
        target: &Target,
        server: &UpstreamTarget,
        openable: Openable,
        caller: &Caller<'_>,
    ) -> Result<Outgoing, TargetFailure> {
        let model = target.model.as_deref().unwrap_or(&self.model);
        let is_relayed = protocol == self.protocol;
        let adapt = || {
            let whole = match is_relayed {
                true => self.upload.bytes.clone(),
                false => self.encoded(protocol, server, model)?,
            };
            let mut splice = Splice::new(&whole);
            if is_relayed {
                seals::leave_out_foreign(protocol, &openable, &mut splice);
                outgoing::replace_model(&mut splice, &self.model, model);
            }
            let draft = Draft {
                protocol,
                model,
                is_relayed,
            };
            Ok(outgoing::adapted(server, draft, &splice, &whole).0)
        };
        let length = self.upload.bytes.len();
        let body = caller.state.long_work.run(length, adapt).await?;
        let headers = match is_relayed {
            true => server.config.without_fixed(self.headers.clone()),
            false => HeaderMap::new(),
        };
        let (key, path) = (Arc::clone(&caller.key.name), count::path(protocol));
        Ok(outgoing::json(&key, path, headers, body, false))
    }

    /// Encodes the prompt in the protocol of an endpoint that counts.
    fn encoded(
        &self,
        protocol: Protocol,
        server: &UpstreamTarget,
        model: &str,
    ) -> Result<Bytes, TargetFailure> {
        let neutral = self.valid.clone().neutral();
        let mut request = neutral.map_err(TargetFailure::fall_back)?;
        model.clone_into(&mut request.model);
        server.envelope.unseal(&mut request);
        let settings = server.settings(model, false, true);
        let encoded = count::encode(protocol, &request, &settings);
        Ok(encoded.map_err(TargetFailure::fall_back)?.into())
    }
}

/// The reply, or the failure of a target.
type Counted = Result<Response<ReplyBody>, TargetFailure>;

/// Requests the count from an upstream, and returns its reply and the number in it.
async fn counted(
    server: &UpstreamTarget,
    outgoing: &Outgoing,
    deadline: Instant,
    effort: Effort,
    meta: &mut ResponseMeta,
) -> Result<(Bytes, u64), TargetFailure> {
    let invalid =
        |why: &str| TargetFailure::of(EngineError::Upstream(format!("invalid token count: {why}")));
    match outgoing::send_and_classify(server, outgoing, deadline, effort, meta).await? {
        Answer::Json(body) => match count::read_reply(&body) {
            Ok(input_tokens) => Ok((body, input_tokens)),
            Err(error) => Err(invalid(&wire::json_fault(&error))),
        },
        Answer::Events(..) => Err(invalid("an event stream instead of JSON")),
    }
}

/// The header that names the numbers of a reply that are estimates.
const ESTIMATED: HeaderName = HeaderName::from_static("x-sluicegate-estimated");
