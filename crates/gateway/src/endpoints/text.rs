//! The handler that the three text endpoints share; they differ in how a request is read and
//! validated.

mod dispatch;
mod relocated;
pub(crate) mod streaming;
mod unary;

use std::cell::LazyCell;

use auth::Scope;
use bytes::Bytes;
use catalog::{Model, Protocol};
use config::bytes;
use engine::{EngineError, Stop, TextEvent};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use policy::Policy;
use policy::affinity::Conversation;
use policy::clock;
use policy::limit::{Answers, Reserved};
use policy::targets::{Target, UpstreamTarget};
use translate::inbound::{Answer, ClientProtocol, Stamp};
use translate::relay::{End, RelayProtocol};
use wire::{ApiError, ErrorKind, Path, Splice};

use self::dispatch::TextDispatch;
use self::relocated::relocated;
use super::json_body;
use crate::exchange::body::ClientBody;
use crate::exchange::body::upload::Upload;
use crate::exchange::record::Record;
use crate::exchange::refusal::Refusal;
use crate::outcome::Outcome;
use crate::request::image_urls;
use crate::request::outgoing;
use crate::request::references::References;
use crate::request::reply::{self, ReplyBody};
use crate::response_store::stored_input::StoredInput;
use crate::state::Caller;

/// A text endpoint: the reading, validating and relaying of its requests.
pub(crate) trait TextEndpoint:
    ClientProtocol<Request: Send + Sync> + Send + Sync + 'static
{
    /// The endpoint's protocol in the catalog.
    const PROTOCOL: Protocol;
    /// The same protocol, as an upstream protocol.
    const UPSTREAM_PROTOCOL: translate::outbound::Protocol;
    /// True if a streaming request over a limit gets a failure event; otherwise it
    /// gets a 429.
    const LIMIT_IN_STREAM: bool = false;
    /// True if the signatures of reasoning are passed to clients in envelopes, which clients send
    /// back unchanged (see [`translate::envelope`]).
    const USES_ENVELOPES: bool = false;
    /// The headers of a client that are forwarded to an upstream of the same protocol.
    const FORWARDED: &'static [&'static str] = &[];
    /// A parsed request that is not validated yet.
    type Unchecked;
    /// The protocol that checks a relayed answer.
    type Relay: RelayProtocol + Default + Unpin + 'static;

    fn read(body: &[u8]) -> Result<Self::Unchecked, ApiError>;

    /// Reads a request without building its messages, if they have no violations and no URLs. It is
    /// enough for a request that is only relayed.
    fn skim(_: &[u8]) -> Option<Self::Unchecked> {
        None
    }

    /// Returns the model that a request names, and true if it requests a stream.
    fn model_and_stream(request: &Self::Unchecked) -> (&str, bool);

    /// Validates a request by the rules of its model. With `is_relayed`, types and roles may be
    /// unknown, because the upstream interprets them.
    fn validate(
        request: Self::Unchecked,
        model: Option<&Model>,
        is_relayed: bool,
    ) -> Result<Self::Request, ApiError>;

    /// Returns a validated request for another validation.
    fn unchecked(request: Self::Request) -> Self::Unchecked;

    /// As [`validate`](Self::validate), for a request that refers to parts of its input which the
    /// gateway keeps.
    fn validate_referring(
        request: Self::Unchecked,
        model: Option<&Model>,
        is_relayed: bool,
    ) -> Result<Self::Request, ApiError> {
        Self::validate(request, model, is_relayed)
    }

    /// Finds the references of a request, and prepares to keep its answer, or to note which
    /// upstream keeps it.
    fn resolve(_: &Self::Unchecked, _: &Caller<'_>) -> Result<References, Refusal> {
        Ok(References::default())
    }

    /// Returns the complete reply of an upstream to a request that is relayed, for the client.
    fn relayed_reply(
        _: RelayNotes,
        body: &[u8],
        model: &str,
    ) -> Result<(Vec<u8>, End), EngineError> {
        translate::relay::reply::<Self::Relay>(body, model)
    }

    /// Visits every image URL of a request, with its path in the document.
    fn image_urls(request: &Self::Request, visit: &mut dyn FnMut(&Path<'_>, &str));

    /// Returns the answers that a request asks for.
    fn answers(request: &Self::Request) -> Answers;

    /// Returns true if a request offers a hosted tool that makes images.
    fn makes_images(_: &Self::Request) -> bool {
        false
    }

    /// Adds the values that identify the conversation of a request: its cache key, else its end
    /// user, else its system instructions and its first message.
    fn identify(request: &Self::Request, conversation: &mut Conversation);

    /// Returns the facts that the relaying of a request depends on.
    fn notes(_: &Self::Request) -> RelayNotes {
        RelayNotes::default()
    }

    /// Edits the fields of a request that is relayed to this upstream.
    fn edit(_: &UpstreamTarget, _: RelayNotes, _: &mut Splice<'_>) {}

    /// Creates the protocol that checks the answer to a relayed request.
    fn relay(_: RelayNotes) -> Self::Relay {
        Self::Relay::default()
    }
}

/// The facts about a request that its relaying depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RelayNotes {
    /// True if the client requests a stream without the usage, which the log needs.
    pub(crate) hides_usage: bool,
    /// True if the request has options of the stream.
    pub(crate) has_stream_options: bool,
    /// True if the request has a value for `store`, or leaves it to a server that keeps responses.
    pub(crate) has_store: bool,
    /// True if the gateway keeps the answer, so that no upstream needs to.
    pub(crate) is_kept: bool,
    /// The number of choices that it asks for, if it has one.
    pub(crate) choices: usize,
    /// True if it is processed in the background.
    pub(crate) is_in_background: bool,
}

/// A request without violations.
struct Checked<D: TextEndpoint> {
    valid: Box<D::Request>,
    /// True if `valid` lacks its messages, because they are only relayed.
    is_skimmed: bool,
    /// The id of the model in the client's request.
    model: String,
    answers: Answers,
    streams: bool,
    notes: RelayNotes,
    /// True if it was validated for an upstream that interprets it itself: for any other target it
    /// has to be validated again.
    is_lenient: bool,
    /// The references of the request, and the further handling of its response.
    resolved: References,
}

/// A validated request, and everything needed to send it to a target.
pub(crate) struct ParsedRequest<D: TextEndpoint> {
    /// `Some` until it is converted to a `TextRequest`, or relayed; `None` if it or its messages
    /// were not built. Boxed, because it is large and moved from one future to the next.
    valid: Option<Box<D::Request>>,
    upload: Upload,
    /// The id of the model in the client's request.
    model: String,
    /// True if the model reasons when the request does not specify it.
    reasons_by_default: bool,
    headers: HeaderMap,
    notes: RelayNotes,
    /// The hash of the conversation, if it is known and an upstream may need it.
    conversation: Option<u64>,
    streams: bool,
    /// As in [`Checked`].
    is_lenient: bool,
}

/// Answers a request: reads and validates it, takes a permit, tries the targets in order, and
/// streams or folds the answer.
pub(crate) async fn answer<D: TextEndpoint>(
    mut caller: Caller<'_>,
    request: Request<impl ClientBody>,
) -> Result<Response<ReplyBody>, Refusal> {
    let Caller {
        state, policy, key, ..
    } = caller;
    let headers = outgoing::forwarded(request.headers(), D::FORWARDED);
    let mut upload = json_body(request, state.limits.json_body, state, key).await?;
    let Checked {
        mut valid,
        is_skimmed,
        model: id,
        answers,
        streams,
        mut notes,
        is_lenient,
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
    check_access::<D>(&caller, &id, &valid)?;
    caller.record.model = Some(id.clone());
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
        valid = expanded::<D>(stored, &mut upload, is_lenient, &caller).await?;
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
        valid: (!is_skimmed).then_some(valid),
        upload,
        model: id,
        reasons_by_default: model.reasoning,
        headers,
        conversation,
        streams,
        is_lenient,
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

/// Checks that a key may send a validated request for a model, with all that it asks for.
fn check_access<D: TextEndpoint>(
    caller: &Caller<'_>,
    model: &str,
    request: &D::Request,
) -> Result<(), Refusal> {
    let Caller { state, key, .. } = caller;
    if !key.may_use(model) {
        return Err(Refusal::model(model));
    }
    if D::makes_images(request) && !key.scopes.contains(Scope::Images) {
        return Err(Refusal::capability(Scope::Images.as_str()));
    }
    image_urls::check_all(state, |visit| D::image_urls(request, visit))
}

/// Reads and validates a request. Its references are found here, but read only once it is admitted.
fn checked<D: TextEndpoint>(body: &[u8], caller: &Caller<'_>) -> Result<Checked<D>, Refusal> {
    let policy = caller.policy;
    let (read, is_skimmed) = read::<D>(body, policy)?;
    let resolved = D::resolve(&read, caller)?;
    let (id, streams) = D::model_and_stream(&read);
    let id = id.to_owned();
    let model = policy.catalog.find(&id);
    let is_lenient = model.is_some_and(|model| policy.routes.may_relay(model, D::PROTOCOL));
    let valid = Box::new(match &resolved.stored {
        None => D::validate(read, model, is_lenient)?,
        Some(stored) => {
            if body.len().saturating_add(stored.length()) > bytes(caller.state.limits.json_body) {
                return Err(Refusal::too_large());
            }
            D::validate_referring(read, model, is_lenient)?
        }
    });
    let mut notes = D::notes(&valid);
    notes.is_kept = resolved.is_kept;
    Ok(Checked {
        answers: D::answers(&valid),
        valid,
        is_skimmed,
        model: id,
        streams,
        notes,
        is_lenient,
        resolved,
    })
}

/// Replaces the references in the body of an admitted request with the stored items, and returns
/// the whole request, validated.
async fn expanded<D: TextEndpoint>(
    stored: StoredInput,
    upload: &mut Upload,
    is_lenient: bool,
    caller: &Caller<'_>,
) -> Result<Box<D::Request>, Refusal> {
    upload.share.grow(stored.length())?;
    let length = upload.bytes.len() + stored.length();
    let expand = || -> Result<_, Refusal> {
        upload.bytes = Bytes::from(stored.expand(&upload.bytes));
        let request = D::read(&upload.bytes)?;
        let model = caller.policy.catalog.find(D::model_and_stream(&request).0);
        let valid = D::validate(request, model, is_lenient);
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

/// Reads a request. Returns true with a long one whose messages were not built, because they are
/// only relayed.
fn read<D: TextEndpoint>(body: &[u8], policy: &Policy) -> Result<(D::Unchecked, bool), ApiError> {
    if body.len() >= LONG
        && let Some(skimmed) = D::skim(body)
        && let Some(model) = policy.catalog.find(D::model_and_stream(&skimmed).0)
        && policy.routes.relays_all(model, D::PROTOCOL)
    {
        return Ok((skimmed, true));
    }
    Ok((D::read(body)?, false))
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
