//! Helpers for requests to upstreams.

use std::borrow::Cow;
use std::sync::Arc;

use answer::Answer;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use policy::targets::UpstreamTarget;
use tokio::time::Instant;
use upstream::{Effort, Outgoing, Payload, ResponseMeta};
use vendor::Protocol;
use wire::{Piece, Splice};

use crate::request::attempt::TargetFailure;

/// Sends a request to an upstream, and reads its response until it is known to be JSON or an event
/// stream. `meta` gets the part of the head that is for the log and for the client.
pub(crate) async fn send_and_classify(
    server: &UpstreamTarget,
    outgoing: &Outgoing,
    deadline: Instant,
    effort: Effort,
    meta: &mut ResponseMeta,
) -> Result<Answer, TargetFailure> {
    let incoming = server.send_to_upstream(outgoing, deadline, effort).await;
    let mut incoming = incoming.map_err(TargetFailure::of)?;
    *meta = std::mem::take(&mut incoming.meta);
    Answer::read(incoming, MAX_REPLY)
        .await
        .map_err(TargetFailure::of)
}

/// Returns a request with a JSON body, for the key of this name.
pub fn json(
    key: &Arc<str>,
    path: &'static str,
    headers: HeaderMap,
    body: impl Into<Payload>,
    accept_stream: bool,
) -> Outgoing {
    let content_type = HeaderValue::from_static("application/json");
    Outgoing {
        method: Method::POST,
        path: path.into(),
        content_type,
        headers,
        body: body.into(),
        accept_stream,
        client: Arc::clone(key),
        sockets: None,
    }
}

/// Returns the headers of a client with these `names`, which are the ones that are forwarded.
pub(crate) fn forwarded(headers: &HeaderMap, names: &[&'static str]) -> HeaderMap {
    let mut all = HeaderMap::new();
    for name in names {
        for value in headers.get_all(*name) {
            all.append(*name, value.clone());
        }
    }
    all
}

/// The path of a text protocol, relative to the base URL.
pub const fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "/responses",
        Protocol::Chat => "/chat/completions",
        Protocol::Messages => "/messages",
    }
}

/// Replaces the client's name of the model with the upstream's.
pub(crate) fn replace_model(splice: &mut Splice<'_>, from: &str, to: &str) {
    if from != to {
        // A text can always be written.
        let to = serde_json::to_vec(to).unwrap_or_default();
        splice.replace(&["model"], &to);
    }
}

/// A request to an upstream, before the edits that its server needs.
#[derive(Clone, Copy)]
pub struct Draft<'a> {
    /// The upstream's protocol.
    pub protocol: Protocol,
    /// The upstream's name of the model.
    pub model: &'a str,
    /// True if it was written by a client of the upstream's protocol.
    pub is_relayed: bool,
}

/// Returns a request body in the form that an upstream accepts, and the names of the members that
/// were left out or changed for that. `splice` has the other edits of the document `whole`.
pub fn adapted(
    server: &UpstreamTarget,
    draft: Draft<'_>,
    splice: &Splice<'_>,
    whole: &Bytes,
) -> (Payload, Vec<String>) {
    let (quirks, rules) = (&server.config.quirks, &server.config.rules);
    let has_rules =
        (!draft.is_relayed || server.config.rules_on_relay) && rules.edits_requests(draft.model);
    if !quirks.edits_requests() && !has_rules {
        let body = if splice.is_empty() {
            whole.clone().into()
        } else {
            edited_chunks(splice, whole).into()
        };
        return (body, Vec::new());
    }
    let mut body = Cow::Borrowed(whole.as_ref());
    if !splice.is_empty() {
        body = splice.to_vec().into();
    }
    let mut changed = Vec::new();
    if has_rules {
        let (edited, names) = rules.edit(draft.model, &body);
        changed = names;
        body = edited.map_or(body, Cow::Owned);
    }
    if quirks.edits_requests() {
        let (edited, names) = quirks.edit(draft.protocol, &body);
        changed.extend(names.into_iter().map(str::to_owned));
        body = edited.into();
    }
    let body = match body {
        Cow::Borrowed(_) => whole.clone(),
        Cow::Owned(edited) => Bytes::from(edited),
    };
    (body.into(), changed)
}

/// Returns the chunks of an edited document, without copying the parts that were kept.
pub(crate) fn edited_chunks(splice: &Splice<'_>, whole: &Bytes) -> Vec<Bytes> {
    let piece = |piece| match piece {
        Piece::Kept(range) => whole.slice(range),
        Piece::New(bytes) => Bytes::copy_from_slice(bytes),
    };
    splice.pieces().into_iter().map(piece).collect()
}

/// The header with the ids of a trace: <https://www.w3.org/TR/trace-context/>.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// The largest unary reply of a text protocol, in bytes.
pub const MAX_REPLY: usize = 32 << 20;
/// The longest stream of a text protocol, in bytes. An event is many times as long as its text, and
/// the text is buffered to the end, for the terminal event or for a unary reply.
pub(crate) const MAX_STREAM: usize = 4 * MAX_REPLY;
