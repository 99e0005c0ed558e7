//! The upstream that keeps the response of a request, for later requests.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use crate::exchange::targets::Targets;
use crate::state::{Caller, GatewayState};
use response_store::origins::ResponseOrigin;

/// How to note the upstream that keeps the response of a request.
pub(crate) struct OriginPlan {
    state: Arc<GatewayState>,
    /// The id of the key.
    key: String,
    model: String,
    /// The target that answers, once known.
    targets: Arc<Targets>,
}

#[derive(Deserialize)]
struct ResponseView<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    /// True if the response is made in the background.
    #[serde(default)]
    background: Option<bool>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
}

#[derive(Deserialize)]
struct EventView<'a> {
    #[serde(borrow)]
    response: ResponseView<'a>,
}

impl OriginPlan {
    pub(crate) fn new(caller: &Caller<'_>, model: &str) -> Self {
        Self {
            state: Arc::clone(caller.state),
            key: caller.key.id.clone(),
            model: model.to_owned(),
            targets: Arc::clone(&caller.record.targets),
        }
    }

    /// Notes the origin of a plain reply.
    pub(super) fn reply(&self, body: &[u8]) {
        if let Ok(view) = serde_json::from_slice::<ResponseView<'_>>(body) {
            let is_finished = !matches!(&*view.status, "queued" | "in_progress");
            self.note(&view, is_finished);
        }
    }

    /// Notes the origin of a stream by the data of an event. Returns false if the event has no response.
    pub(super) fn event(&self, data: &str) -> bool {
        let Ok(view) = serde_json::from_str::<EventView<'_>>(data) else {
            return false;
        };
        // Each stream begins with an unfinished response.
        self.note(&view.response, true);
        true
    }

    /// Notes a response, and whether it goes on in the background.
    fn note(&self, view: &ResponseView<'_>, is_finished: bool) {
        let ResponseView { id, background, .. } = view;
        if *background == Some(true) || !is_finished {
            let background = Arc::clone(&self.state.background);
            self.targets.set_in_background(background, id);
        }
        if let Some(served_by) = self.targets.served_by.get() {
            let origin = ResponseOrigin {
                upstream: served_by.target.clone(),
                model: self.model.clone(),
            };
            self.state.origins.insert(&self.key, id, origin);
        }
    }
}
