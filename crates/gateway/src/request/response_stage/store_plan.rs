//! Whether and how the response of a request is stored.

use std::sync::Arc;

use bytes::Bytes;
use policy::Policy;
use responses::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::Splice;

use crate::exchange::body::budget::Share;
use crate::exchange::body::upload::Upload;
use crate::exchange::targets::Targets;
use crate::state::Caller;
use response_store::store::{ResponseStore, StoredResponse};
use response_store::stored_input::items;

/// Whether and how to store the response of a request, and to report in it that it is stored.
pub(crate) struct StorePlan {
    kept: Arc<ResponseStore>,
    policy: Arc<Policy>,
    /// The id of the key.
    key: String,
    /// The response that the request continues.
    previous: Option<String>,
    /// True if the answer is to be kept.
    pub(super) is_stored: bool,
    /// The request, and its share of the memory, if the answer is to be kept.
    request: Option<(Bytes, Share)>,
    /// The target that answers, once known.
    targets: Arc<Targets>,
}

#[derive(Deserialize)]
struct OutputView<'a> {
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
}

impl StorePlan {
    /// Prepares to keep the answer to a request, or to state that it continues a kept one. Returns
    /// `None` if there is nothing to do.
    pub(crate) fn new(
        request: &Request,
        kept: &Arc<ResponseStore>,
        caller: &Caller<'_>,
    ) -> Option<Self> {
        let is_stored = request.store != Some(false);
        let previous = request.previous_response_id.clone();
        (is_stored || previous.is_some()).then(|| Self {
            kept: Arc::clone(kept),
            policy: Arc::clone(caller.policy),
            key: caller.key.id.clone(),
            previous,
            is_stored,
            request: None,
            targets: Arc::clone(&caller.record.targets),
        })
    }

    /// Sets the request, with all that it refers to, whose answer is to be kept.
    pub(crate) fn set_request(&mut self, upload: &Upload) {
        if self.is_stored {
            self.request = Some((upload.bytes.clone(), upload.share.clone()));
        }
    }

    /// Keeps a plain reply, and returns it as the client gets it.
    pub(super) fn reply(&self, body: &Bytes) -> Bytes {
        let is_kept = std::str::from_utf8(body).is_ok_and(|response| self.keep(response, &[]));
        let mut splice = Splice::new(body);
        self.mark(&mut splice, &[], is_kept);
        splice.to_vec().into()
    }

    /// Keeps a complete response. `done` are the output items of its stream, which some servers
    /// leave out of the response itself. Returns false if it is not kept.
    pub(super) fn keep(&self, response: &str, done: &[Box<str>]) -> bool {
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
        let answer = StoredResponse::new(input.collect(), response, self.is_relayed());
        answer.is_some_and(|answer| self.kept.insert(&self.key, answer))
    }

    /// Sets the members of the response object at `path` that are about the store.
    pub(super) fn mark(&self, splice: &mut Splice<'_>, path: &[&str], is_kept: bool) {
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
