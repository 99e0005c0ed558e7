//! Tries the targets of a request in order until one of them has started to answer.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use tokio::time::{Instant, timeout_at};
use translate::relay::End;
use upstream::Upstream;
use upstream::relay::Relay;
use wire::ErrorKind;

use crate::answer::engine_events::Steps;
use crate::body::format::Manner;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::state::ServerState;
use crate::targets::{Backend, SelectedTarget, UpstreamTarget};

/// A request that can be sent to the embedded engine or to an upstream. It owns all its data, so that attempts can
/// continue within the body of the response.
pub(crate) trait Dispatch: Send + 'static {
    /// The format of the response.
    type Manner: Manner;

    /// Sends the request to the embedded engine.
    fn embedded(&mut self, turn: Turn) -> impl Future<Output = StartResult<Self::Manner>> + Send;

    /// Sends the request to an upstream, which knows the model by the name in `target`.
    fn upstream(
        &mut self,
        server: &UpstreamTarget,
        target: &SelectedTarget,
        turn: Turn,
    ) -> impl Future<Output = StartResult<Self::Manner>> + Send;
}

/// The position of a target among the targets of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// True for the first target: only it may be retried.
    pub(crate) first: bool,
    /// True for the last target: the request is not needed after it.
    pub(crate) last: bool,
}

/// An answer that has started, or the reason why this target failed.
pub(crate) type StartResult<M> = Result<Started<M>, TargetFailure>;

/// An answer that has started.
pub(crate) struct Started<M: Manner> {
    /// The fields of the request that were dropped.
    pub(crate) dropped: Vec<String>,
    /// The source of the answer.
    pub(crate) answer: Coming<M>,
    /// The longest time without an event before the answer times out.
    pub(crate) idle_timeout: Option<Duration>,
}

/// The source of an answer.
pub(crate) enum Coming<M: Manner> {
    /// Neutral events of an engine.
    Neutral(Steps<M::Event>, M::Traits),
    /// A stream of an upstream of the client's own protocol.
    Relay(Box<Relay<M::Relay>>),
    /// A stream of such an upstream that is already complete.
    Told(Bytes, End),
    /// A complete, unary reply of such an upstream.
    Whole(M::Whole),
}

/// The failure of one target.
pub(crate) struct TargetFailure {
    /// The error response that the client gets if this is the last target.
    pub(crate) refusal: Box<Refusal>,
    /// True if the next target is tried.
    pub(crate) may_fall_back: bool,
}

impl TargetFailure {
    /// The failure of an engine or upstream. The next target is tried, unless the request itself is at fault.
    pub(crate) fn of(error: EngineError) -> Self {
        let is_client_error = Outcome::of_failure(&error) == Outcome::Refused;
        Self { refusal: Box::new(error.into()), may_fall_back: !is_client_error }
    }

    /// Removes the upstream's API key from all texts, because some upstreams repeat it in their errors.
    pub(crate) fn without_key(mut self, upstream: &Upstream) -> Self {
        let Refusal { error, cause, .. } = &mut *self.refusal;
        for text in [Some(&mut error.message), error.param.as_mut(), cause.as_mut()].into_iter().flatten() {
            upstream.redact(text);
        }
        self
    }

    /// The failure of a target that cannot serve this request, for example because its protocol lacks a field. Another
    /// target may be able to.
    pub(crate) fn fall_back(refusal: impl Into<Refusal>) -> Self {
        Self { refusal: Box::new(refusal.into()), may_fall_back: true }
    }

    /// A failure that every target would have.
    pub(crate) fn fatal(refusal: impl Into<Refusal>) -> Self {
        Self { refusal: Box::new(refusal.into()), may_fall_back: false }
    }
}

/// Sends the request to the targets in order until one starts to answer or `deadline` passes. Sets `served_by` to the
/// name of the target that answers.
///
/// # Errors
/// The failure of the last target that was tried. No further target is tried if the request itself is at fault.
pub(crate) async fn first_successful_target<A: Dispatch>(
    mut dispatch: A,
    targets: Vec<SelectedTarget>,
    state: Arc<ServerState>,
    served_by: Arc<OnceLock<String>>,
    deadline: Instant,
) -> Result<Started<A::Manner>, Refusal> {
    let mut last_failure = None;
    let count = targets.len();
    for (index, target) in targets.into_iter().enumerate() {
        let turn = Turn { first: last_failure.is_none(), last: index + 1 == count };
        let attempted = timeout_at(deadline, send(&mut dispatch, &target, turn)).await;
        match attempted.unwrap_or_else(|_| Err(TargetFailure::fatal(Refusal::timeout()))) {
            Ok(started) => {
                // It cannot be set already: a request is answered by one target.
                let _ = served_by.set(target.label().to_owned());
                return Ok(started);
            }
            Err(failure) => {
                report_failure(&state, &target, &failure.refusal);
                if !failure.may_fall_back {
                    return Err(*failure.refusal);
                }
                last_failure = Some(*failure.refusal);
            }
        }
    }
    Err(last_failure.unwrap_or_else(Refusal::no_engine))
}

async fn send<A: Dispatch>(dispatch: &mut A, target: &SelectedTarget, turn: Turn) -> StartResult<A::Manner> {
    match &target.backend {
        // Boxed because its future is large, with the state for fetching images in it, and would enlarge every request.
        Backend::Embedded => Box::pin(dispatch.embedded(turn)).await,
        Backend::Upstream(server) => {
            let result = dispatch.upstream(server, target, turn).await;
            result.map_err(|failure| failure.without_key(&server.upstream))
        }
    }
}

/// Logs and counts the failure of an upstream, unless the client's request was at fault.
pub(crate) fn report_failure(state: &ServerState, target: &SelectedTarget, refusal: &Refusal) {
    let is_client_error = Outcome::of_refusal(&refusal.error) == Outcome::Refused;
    if matches!(target.backend, Backend::Upstream(_)) && !is_client_error {
        let (upstream, code) = (target.label(), refusal.error.code);
        state.metrics.upstream_failed(upstream, code);
        let cause = refusal.cause.as_deref();
        // An invalid response, or a rejected API key: an error that does not pass by itself.
        if refusal.error.kind == ErrorKind::Upstream {
            tracing::error!(upstream, code, cause, "upstream request failed");
        } else {
            tracing::warn!(upstream, code, cause, "upstream request failed");
        }
    }
}
