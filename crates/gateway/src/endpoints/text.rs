//! The handler that the three text endpoints share; they differ in how a request is read and
//! validated.

mod dispatch;
mod endpoint;
mod relocated;
mod request_body;
pub(crate) mod streaming;
mod unary;

use std::cell::LazyCell;

use auth::Scope;
use bytes::Bytes;
use catalog::Model;
use config::bytes;
use engine::{Stop, TextEvent};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use policy::Policy;
use policy::affinity::Conversation;
use policy::clock;
use policy::limit::{Answers, Reserved};
use policy::targets::Target;
use relay::End;
use telemetry::outcome::Outcome;
use translate::inbound::{Answer, Stamp};
use wire::{ApiError, ErrorKind};

use self::dispatch::TextDispatch;
pub(crate) use self::endpoint::{
    EndpointRules, ImageUse, Permissions, RelayNotes, RelayPolicy, RequestCodec, TextEndpoint,
};
use self::relocated::relocated;
use self::request_body::{Form, RequestBody};
use super::json_body;
use crate::connection::client_body::ClientBody;
use crate::exchange::body::upload::Upload;
use crate::exchange::record::Record;
use crate::exchange::refusal::Refusal;
use crate::request::image_urls;
use crate::request::outgoing;
use crate::request::references::References;
use crate::request::reply::{self, ReplyBody};
use crate::state::Caller;
use response_store::stored_input::StoredInput;

/// A request without violations.
struct Checked<D: TextEndpoint> {
    valid: Box<D::Request>,
    read_for: ReadFor,
    /// The id of the model in the client's request.
    model: String,
    answers: Answers,
    streams: bool,
    notes: RelayNotes,
    /// The references of the request, and the further handling of its response.
    resolved: References,
}

/// The targets for which a request was read and validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadFor {
    /// All targets: the gateway interprets the request for each of them.
    AllTargets,
    /// Upstreams of the same protocol, which interpret the request. For any other target it has to be
    /// validated again.
    Relays,
    /// As `Relays`, without building the messages, because no target needs them.
    RelaysWithoutMessages,
}

impl ReadFor {
    /// The permissions of the validation.
    fn permissions(self) -> Permissions {
        Permissions {
            unknown_types: self != Self::AllTargets,
            references: false,
        }
    }

    /// The parsed form of a request that was read in this way.
    fn form<D: TextEndpoint>(self, request: Box<D::Request>) -> Form<D> {
        match self {
            Self::AllTargets => Form::Interpreted(request),
            Self::Relays => Form::ForRelay(request),
            Self::RelaysWithoutMessages => Form::Bytes,
        }
    }
}

/// A validated request, and everything needed to send it to a target.
pub(crate) struct ParsedRequest<D: TextEndpoint> {
    body: RequestBody<D>,
    /// The id of the model in the client's request.
    model: String,
    /// True if the model reasons when the request does not specify it.
    reasons_by_default: bool,
    headers: HeaderMap,
    notes: RelayNotes,
    /// The hash of the conversation, if it is known and an upstream may need it.
    conversation: Option<u64>,
    streams: bool,
}

/// Answers a request: reads and validates it, takes a permit, tries the targets in order, and
/// streams or folds the answer.
pub(crate) async fn answer<D: TextEndpoint>(
    mut caller: Caller<'_>,
    request: Request<ClientBody>,
) -> Result<Response<ReplyBody>, Refusal> {
    let Caller {
        state, policy, key, ..
    } = caller;
    let headers = outgoing::forwarded(request.headers(), D::FORWARDED);
    let mut upload = json_body(request, state.limits.json_body, state, key).await?;
    let Checked {
        mut valid,
        read_for,
        model: id,
        answers,
        streams,
        mut notes,
        resolved,
    } = {
        let check = || checked::<D>(&upload.bytes, &caller);
        state.long_work.run(upload.bytes.len(), check).await?
    };
    let References {
        stored,
        mut attach,
        upstream,
        ..
    } = resolved;
    let model = policy.catalog.serves(&id, D::PROTOCOL)?;
    notes.hides_image_tools = check_access::<D>(&caller, &id, &valid)?;
    caller.record.set_model(&id, model);
    caller.record.stream = streams;
    let stored_tokens = stored.as_ref().map_or(0, StoredInput::tokens);
    let reserve = || {
        let mut reserved = Reserved::of_text(&upload.bytes, answers);
        reserved.prompt = reserved.prompt.saturating_add(stored_tokens);
        reserved
    };
    if let Err(refusal) = caller.take_permit(&id, reserve).await {
        return over_the_limit::<D>(refusal, streams.then_some(&*valid), caller.record);
    }
    if let Some(stored) = stored {
        valid = expanded::<D>(stored, &mut upload, read_for, &caller).await?;
    }
    if let Some(attach) = &mut attach {
        attach.set_request(&upload);
    }
    let (mut targets, conversation) = targets::<D>(&caller, model, &valid);
    if let Some(name) = upstream {
        only(&name, &mut targets);
    }
    notes.has_store |= model.keeps_responses();
    let encoder = streams.then(|| Answer::<D>::new(&valid, &stamp()));
    let parsed = ParsedRequest {
        notes,
        body: RequestBody::new(upload, read_for.form(valid)),
        model: id,
        reasons_by_default: model.reasoning,
        headers,
        conversation,
        streams,
    };
    let dispatch = TextDispatch::new(parsed, &caller);
    let response = match encoder {
        Some(encoder) => streaming::answer(dispatch, targets, encoder, &caller).await?,
        None => unary::answer(dispatch, targets, caller).await?,
    };
    Ok(match attach {
        Some(attach) => attach.attach(response),
        None => response,
    })
}

/// Checks that a key may send a validated request for a model, with all that it asks for. Returns true if
/// it may not use the tools that make images.
fn check_access<D: TextEndpoint>(
    caller: &Caller<'_>,
    model: &str,
    request: &D::Request,
) -> Result<bool, Refusal> {
    let Caller { state, key, .. } = caller;
    if !key.may_use(model) {
        return Err(Refusal::model(model));
    }
    let hides_image_tools = match D::image_use(request) {
        ImageUse::Offered => !key.scopes.contains(Scope::Images),
        ImageUse::Required if !key.scopes.contains(Scope::Images) => {
            return Err(Refusal::capability(Scope::Images.as_str()));
        }
        ImageUse::None | ImageUse::Required => false,
    };
    image_urls::check_all(state, |visit| D::image_urls(request, visit))
        .map_err(|error| error.with_image_url_code(D::IMAGE_URL_CODE))?;
    Ok(hides_image_tools)
}

/// Reads and validates a request. Its references are found here, but read only once it is admitted.
fn checked<D: TextEndpoint>(body: &[u8], caller: &Caller<'_>) -> Result<Checked<D>, Refusal> {
    let policy = caller.policy;
    let (read, read_for) = read::<D>(body, policy)?;
    let resolved = D::resolve(&read, caller)?;
    let (id, streams) = D::model_and_stream(&read);
    let id = id.to_owned();
    let mut permissions = read_for.permissions();
    if let Some(stored) = &resolved.stored {
        if body.len().saturating_add(stored.length()) > bytes(caller.state.limits.json_body) {
            return Err(Refusal::too_large());
        }
        permissions.references = true;
    }
    let valid = Box::new(D::validate(read, policy.catalog.find(&id), permissions)?);
    let mut notes = D::notes(&valid);
    notes.is_stored = resolved.is_stored;
    Ok(Checked {
        answers: D::answers(&valid),
        valid,
        read_for,
        model: id,
        streams,
        notes,
        resolved,
    })
}

/// Replaces the references in the body of an admitted request with the stored items, and returns
/// the whole request, validated.
async fn expanded<D: TextEndpoint>(
    stored: StoredInput,
    upload: &mut Upload,
    read_for: ReadFor,
    caller: &Caller<'_>,
) -> Result<Box<D::Request>, Refusal> {
    upload.share.grow(stored.length())?;
    let length = upload.bytes.len() + stored.length();
    let expand = || -> Result<_, Refusal> {
        upload.bytes = Bytes::from(stored.expand(&upload.bytes));
        let request = D::read(&upload.bytes)?;
        let model = caller.policy.catalog.find(D::model_and_stream(&request).0);
        let valid = D::validate(request, model, read_for.permissions());
        let valid = valid.map_err(|error| relocated(error, stored.before()))?;
        Ok(Box::new(valid))
    };
    caller.state.long_work.run(length, expand).await
}

/// Returns the identity of a new answer.
fn stamp() -> Stamp {
    Stamp {
        bits: clock::random_bits(),
        created_at: clock::unix_seconds(),
    }
}

/// Reads a request, as far as its targets need it.
fn read<D: TextEndpoint>(
    body: &[u8],
    policy: &Policy,
) -> Result<(D::Unchecked, ReadFor), ApiError> {
    if body.len() >= LONG
        && let Some(skimmed) = D::skim(body)
        && let Some(model) = policy.catalog.find(D::model_and_stream(&skimmed).0)
        && policy.routes.relays_all(model, D::PROTOCOL)
    {
        return Ok((skimmed, ReadFor::RelaysWithoutMessages));
    }
    let request = D::read(body)?;
    let model = policy.catalog.find(D::model_and_stream(&request).0);
    let may_relay = model.is_some_and(|model| policy.routes.may_relay(model, D::PROTOCOL));
    Ok(match may_relay {
        true => (request, ReadFor::Relays),
        false => (request, ReadFor::AllTargets),
    })
}

/// The length from which on it pays to look at the messages of a request first, in bytes.
const LONG: usize = 8 << 10;

/// Returns the targets in the order in which they are tried, and the hash of the conversation if it
/// is known and one of them gets it in a header.
fn targets<D: TextEndpoint>(
    caller: &Caller<'_>,
    model: &Model,
    request: &D::Request,
) -> (Vec<Target>, Option<u64>) {
    let conversation = LazyCell::new(|| {
        let mut conversation = Conversation::of(&caller.key.id);
        D::identify(request, &mut conversation);
        conversation.hash()
    });
    let targets = caller.policy.routes.select(model, || *conversation);
    let is_needed = targets.iter().any(Target::binds_conversations);
    (targets, is_needed.then(|| *conversation).flatten())
}

/// Leaves only the upstream of this name, which keeps the previous response of the request, if it
/// is still a target.
fn only(name: &str, targets: &mut Vec<Target>) {
    if targets.iter().any(|target| target.label() == name) {
        targets.retain(|target| target.label() == name);
    }
}

/// Answers a request over a limit: a `streaming` one of some protocols with a failure event, and all
/// others with a 429.
fn over_the_limit<D: TextEndpoint>(
    refusal: Refusal,
    streaming: Option<&D::Request>,
    record: &mut Record,
) -> Result<Response<ReplyBody>, Refusal> {
    let is_limited = refusal.error.kind == ErrorKind::RateLimit;
    let Some(valid) = streaming.filter(|_| D::LIMIT_IN_STREAM && is_limited) else {
        return Err(refusal);
    };
    let error = refusal.error;
    record.code = Some(error.code);
    record.cause = refusal.cause.map(String::from);
    record.end(Outcome::Shed);
    let mut bytes = Vec::new();
    Answer::<D>::new(valid, &stamp()).fail(&error, &mut bytes);
    // Like every stream, the response has no length.
    let frames = futures_util::stream::iter([Ok(Frame::data(Bytes::from(bytes)))]);
    Ok(reply::event_stream(ReplyBody::Forwarded(
        StreamBody::new(frames).boxed_unsync(),
    )))
}

/// Returns how an answer has ended, if this event is its last.
pub fn ending(event: &TextEvent) -> Option<End> {
    let TextEvent::Finished { stop, usage } = event else {
        return None;
    };
    Some(End {
        incomplete: matches!(stop, Stop::MaxTokens | Stop::ContextFull),
        usage: *usage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_a_limit_cut_are_incomplete() {
        let is_incomplete = |stop| {
            ending(&TextEvent::Finished { stop, usage: None })
                .unwrap()
                .incomplete
        };
        assert!(is_incomplete(Stop::MaxTokens));
        assert!(is_incomplete(Stop::ContextFull));
        assert!(!is_incomplete(Stop::End));
        assert!(!is_incomplete(Stop::ToolCalls));
        assert!(!is_incomplete(Stop::StopText("END".to_owned())));
    }
}
