//! Keeps the answer to a request, and resolves what the request refers to.

mod expand;
mod stream;

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use responses::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::{ApiError, Splice};

pub(crate) use self::expand::no_response;
use self::expand::{expand, items, refers};
use self::stream::KeptStream;
use crate::body::budget::Share;
use crate::body::upload::Upload;
use crate::config::bytes;
use crate::kept::{Answer, Kept};
use crate::policy::Policy;
use crate::record::Targets;
use crate::refusal::Refusal;
use crate::reply::ReplyBody;
use crate::resolved::{Attach, Resolved};
use crate::state::Caller;

/// The state for keeping the answer to a request, and for reporting in the answer that it is kept.
pub(crate) struct Keeping {
    kept: Arc<Kept>,
    policy: Arc<Policy>,
    /// The name of the key.
    key: String,
    /// The response that the request continues.
    previous: Option<String>,
    /// The request, and its share of the memory. `None` if the answer is not to be kept.
    request: Option<(Bytes, Share)>,
    /// The target that answers, once known.
    targets: Arc<Targets>,
}

#[derive(Deserialize)]
struct OutputView<'a> {
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
}

/// Replaces the references in a request, in its body too, and prepares to keep its answer.
pub(crate) fn resolve(
    mut request: Request,
    upload: &mut Upload,
    kept: &Arc<Kept>,
    caller: &Caller<'_>,
) -> Result<Resolved<Request>, Refusal> {
    let key = &caller.key.name;
    let is_stored = request.store != Some(false);
    let previous = request.previous_response_id.clone();
    let mut before = 0;
    if refers(&request) {
        let body;
        (body, before) = expand(kept, key, &upload.bytes, &request)?;
        if body.len() > bytes(caller.state.limits.json_body) {
            return Err(Refusal::too_large());
        }
        let more = body.len().saturating_sub(upload.bytes.len());
        upload.share.grow(more)?;
        upload.bytes = body.into();
        request = Request::read(&upload.bytes).map_err(ApiError::from)?;
    }
    let keeping = (is_stored || previous.is_some()).then(|| Keeping {
        kept: Arc::clone(kept),
        policy: Arc::clone(caller.policy),
        key: key.clone(),
        previous,
        request: is_stored.then(|| (upload.bytes.clone(), upload.share.clone())),
        targets: Arc::clone(&caller.record.targets),
    });
    Ok(Resolved {
        before,
        is_kept: is_stored,
        attach: keeping.map(|keeping| -> Attach { Box::new(|response| keeping.attach(response)) }),
        ..Resolved::unchanged(request)
    })
}

impl Keeping {
    /// Returns true if the answer is to be kept.
    fn is_stored(&self) -> bool {
        self.request.is_some()
    }

    /// Returns the response to the request, which is kept once it is complete.
    fn attach(self, response: Response<ReplyBody>) -> Response<ReplyBody> {
        response.map(|body| match body {
            ReplyBody::Buffered(body) => ReplyBody::Buffered(self.reply(&body.into_bytes()).into()),
            ReplyBody::Stream(stream) => {
                ReplyBody::Stream(Box::new(KeptStream::new(stream, Box::new(self))))
            }
            forwarded @ ReplyBody::Forwarded(_) => forwarded,
        })
    }

    /// Keeps a plain reply, and returns it as the client gets it.
    fn reply(&self, body: &Bytes) -> Bytes {
        let is_kept = std::str::from_utf8(body).is_ok_and(|response| self.keep(response, &[]));
        let mut splice = Splice::new(body);
        self.mark(&mut splice, &[], is_kept);
        splice.to_vec().into()
    }

    /// Keeps a complete response. `done` are the output items of its stream, which some servers
    /// leave out of the response itself. Returns false if it is not kept.
    fn keep(&self, response: &str, done: &[Box<str>]) -> bool {
        let Some((request, _)) = &self.request else {
            return false;
        };
        let mut splice = Splice::new(response.as_bytes());
        self.mark(&mut splice, &[], true);
        let view = serde_json::from_str::<OutputView<'_>>(response);
        if view.is_ok_and(|view| view.output.is_none_or(|output| output.is_empty())) {
            splice.set("output", format!("[{}]", done.join(",")).as_bytes());
        }
        let Ok(response) = String::from_utf8(splice.to_vec()) else {
            return false;
        };
        let input = items(request).into_iter();
        let input = input.map(|item| item.into_owned().into());
        let answer = Answer::new(input.collect(), response, self.is_relayed());
        answer.is_some_and(|answer| self.kept.insert(&self.key, answer))
    }

    /// Sets the members of the response object at `path` that are about the store.
    fn mark(&self, splice: &mut Splice<'_>, path: &[&str], is_kept: bool) {
        let previous = self.previous.as_deref();
        let previous = previous.map(|id| serde_json::Value::from(id).to_string());
        let store = is_kept.to_string();
        let members = [
            ("store", Some(&store)),
            ("previous_response_id", previous.as_ref()),
        ];
        let mut missing = Vec::new();
        for (name, value) in members {
            let Some(value) = value else { continue };
            if !splice.replace(&[path, &[name]].concat(), value.as_bytes()) {
                missing.push((name, value.as_str()));
            }
        }
        splice.add_missing(path, &missing);
    }

    /// Returns true if an upstream wrote the answer, and not the gateway.
    fn is_relayed(&self) -> bool {
        let target = self.targets.served_by.get();
        target.is_some_and(|by| self.policy.routes.relays_responses(&by.target))
    }
}

#[cfg(test)]
mod tests;
