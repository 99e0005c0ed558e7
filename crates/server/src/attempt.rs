//! Getting an answer to a request: its targets are asked in order until one has begun to answer.

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

use crate::body::format::Manner;
use crate::body::plain::{self, Steps};
use crate::gateway::Gateway;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::targets::{Backend, SelectedTarget, UpstreamTarget};

/// A request that can be put to whoever serves its model. It owns all it needs, so that asking can go on within the
/// body of the answer.
pub(crate) trait Dispatch: Send + 'static {
    /// How the answer is told.
    type Manner: Manner;

    /// Asks the embedded engine.
    fn embedded(&mut self, turn: Turn) -> impl Future<Output = StartResult<Self::Manner>> + Send;

    /// Asks an upstream, which calls the model what `target` says.
    fn upstream(
        &mut self,
        server: &UpstreamTarget,
        target: &SelectedTarget,
        turn: Turn,
    ) -> impl Future<Output = StartResult<Self::Manner>> + Send;
}

/// Whose turn it is among the targets of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// The first: it alone may be asked again.
    pub(crate) first: bool,
    /// The last: nobody needs the request after it.
    pub(crate) last: bool,
}

/// An answer that has begun, or why this target gives none.
pub(crate) type StartResult<M> = Result<Started<M>, TargetFailure>;

/// An answer that has begun.
pub(crate) struct Started<M: Manner> {
    /// What of the request is lost on the way.
    pub(crate) dropped: Vec<String>,
    /// What comes.
    pub(crate) answer: Coming<M>,
    /// How long it may go without an event.
    pub(crate) patience: Option<Duration>,
}

/// What comes of an answer.
pub(crate) enum Coming<M: Manner> {
    /// What a model does, step by step.
    Neutral(Steps<M::Event>, M::Traits),
    /// A stream of an upstream that speaks the client's own protocol.
    Relay(Box<Relay<M::Relay>>),
    /// All of a stream that such an upstream told at once.
    Told(Bytes, End),
    /// A whole reply of such an upstream.
    Whole(M::Whole),
}

/// A target that gave no answer.
pub(crate) struct TargetFailure {
    /// What the client would be told.
    pub(crate) refusal: Box<Refusal>,
    /// Whether the next target is asked.
    pub(crate) may_fall_back: bool,
}

impl TargetFailure {
    /// The failure of an engine or upstream: the next one is asked, unless it is the request that is wrong.
    pub(crate) fn of(error: EngineError) -> Self {
        let is_callers = Outcome::of_failure(&error) == Outcome::Refused;
        Self { refusal: Box::new(plain::refuse(&error)), may_fall_back: !is_callers }
    }

    /// The same without the key that this upstream was shown, which some repeat.
    pub(crate) fn without_key(mut self, upstream: &Upstream) -> Self {
        let Refusal { error, cause, .. } = &mut *self.refusal;
        for text in [Some(&mut error.message), error.param.as_mut(), cause.as_mut()].into_iter().flatten() {
            upstream.redact(text);
        }
        self
    }

    /// A target that cannot be asked this: what it has no words for another may have.
    pub(crate) fn here(refusal: impl Into<Refusal>) -> Self {
        Self { refusal: Box::new(refusal.into()), may_fall_back: true }
    }

    /// A failure that any target would have.
    pub(crate) fn finally(refusal: impl Into<Refusal>) -> Self {
        Self { refusal: Box::new(refusal.into()), may_fall_back: false }
    }
}

/// Asks the targets in order until `deadline`, and notes in `served` who answers.
///
/// # Errors
/// The failure of the last one that was asked: the others are not asked when it is the request that is wrong.
pub(crate) async fn begin<A: Dispatch>(
    mut asking: A,
    targets: Vec<SelectedTarget>,
    gateway: Arc<Gateway>,
    served: Arc<OnceLock<String>>,
    deadline: Instant,
) -> Result<Started<A::Manner>, Refusal> {
    let mut failure = None;
    let count = targets.len();
    for (place, target) in targets.into_iter().enumerate() {
        let turn = Turn { first: failure.is_none(), last: place + 1 == count };
        let asked = timeout_at(deadline, ask(&mut asking, &target, turn)).await;
        match asked.unwrap_or_else(|_| Err(TargetFailure::finally(Refusal::timeout()))) {
            Ok(begun) => {
                // Set once: a request is answered by one target.
                let _ = served.set(target.label().to_owned());
                return Ok(begun);
            }
            Err(fallen) => {
                note(&gateway, &target, &fallen.refusal);
                if !fallen.may_fall_back {
                    return Err(*fallen.refusal);
                }
                failure = Some(*fallen.refusal);
            }
        }
    }
    Err(failure.unwrap_or_else(Refusal::no_engine))
}

async fn ask<A: Dispatch>(asking: &mut A, target: &SelectedTarget, turn: Turn) -> StartResult<A::Manner> {
    match &target.place {
        // Boxed, because it is large with the fetching of pictures in it: every request would have room for it.
        Backend::Embedded => Box::pin(asking.embedded(turn)).await,
        Backend::Upstream(server) => {
            let begins = asking.upstream(server, target, turn).await;
            begins.map_err(|fallen| fallen.without_key(&server.upstream))
        }
    }
}

/// Tells operators of an upstream that gave no answer; a wrong request is nothing that they could mend.
pub(crate) fn note(gateway: &Gateway, target: &SelectedTarget, refusal: &Refusal) {
    let is_callers = Outcome::of_refusal(&refusal.error) == Outcome::Refused;
    if matches!(target.place, Backend::Upstream(_)) && !is_callers {
        let (upstream, code) = (target.label(), refusal.error.code);
        gateway.metrics.upstream_failed(upstream, code);
        let cause = refusal.cause.as_deref();
        // What it answered was wrong, or the operator's key: nothing that passes by itself.
        if refusal.error.kind == ErrorKind::Upstream {
            tracing::error!(upstream, code, cause, "an upstream gave no answer");
        } else {
            tracing::warn!(upstream, code, cause, "an upstream gave no answer");
        }
    }
}
