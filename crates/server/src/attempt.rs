//! Getting an answer to a request: its targets are asked in order until one has begun to answer.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use tokio::time::{Instant, timeout_at};
use translate::relay::End;
use upstream::relay::Relay;

use crate::body::plain::{self, Steps};
use crate::body::voice::Manner;
use crate::gateway::Gateway;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::routes::{Chosen, Place, Server};

/// A request that can be put to whoever serves its model. It owns all it needs, so that asking can go on within the
/// body of the answer.
pub(crate) trait Asking: Send + 'static {
    /// How the answer is told.
    type Manner: Manner;

    /// Asks the embedded engine.
    fn embedded(&mut self) -> impl Future<Output = Begins<Self::Manner>> + Send;

    /// Asks an upstream, which calls the model what `target` says. Only the `first` one of a request may be asked again.
    fn upstream(
        &mut self,
        server: &Server,
        target: &Chosen,
        first: bool,
    ) -> impl Future<Output = Begins<Self::Manner>> + Send;
}

/// An answer that has begun, or why this target gives none.
pub(crate) type Begins<M> = Result<Begun<M>, Fallen>;

/// An answer that has begun.
pub(crate) struct Begun<M: Manner> {
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
    Neutral(Steps<M::Event>, M::Settled),
    /// A stream of an upstream that speaks the client's own protocol.
    Relay(Box<Relay<M::Relay>>),
    /// All of a stream that such an upstream told at once.
    Told(Bytes, End),
    /// A whole reply of such an upstream.
    Whole(M::Whole),
}

/// A target that gave no answer.
pub(crate) struct Fallen {
    /// What the client would be told.
    pub(crate) refusal: Refusal,
    /// Whether the next target is asked.
    pub(crate) may_fall_back: bool,
}

impl Fallen {
    /// The failure of an engine or upstream: the next one is asked, unless it is the request that is wrong.
    pub(crate) fn of(error: EngineError) -> Self {
        let is_callers = Outcome::of_failure(&error) == Outcome::Refused;
        Self { refusal: plain::refuse(&error), may_fall_back: !is_callers }
    }

    /// A target that cannot be asked.
    pub(crate) fn here(refusal: Refusal) -> Self {
        Self { refusal, may_fall_back: true }
    }

    /// A failure that any target would have.
    pub(crate) fn finally(refusal: impl Into<Refusal>) -> Self {
        Self { refusal: refusal.into(), may_fall_back: false }
    }
}

/// Asks the targets in order until `deadline`, and notes in `served` who answers.
///
/// # Errors
/// The failure of the last one that was asked: the others are not asked when it is the request that is wrong.
pub(crate) async fn begin<A: Asking>(
    mut asking: A,
    targets: Vec<Chosen>,
    gateway: Arc<Gateway>,
    served: Arc<OnceLock<String>>,
    deadline: Instant,
) -> Result<Begun<A::Manner>, Refusal> {
    let mut last = None;
    for target in targets {
        let asked = timeout_at(deadline, ask(&mut asking, &target, last.is_none())).await;
        match asked.unwrap_or_else(|_| Err(Fallen::finally(Refusal::timeout()))) {
            Ok(begun) => {
                // Set once: a request is answered by one target.
                let _ = served.set(target.label().to_owned());
                return Ok(begun);
            }
            Err(fallen) => {
                note(&gateway, &target, &fallen.refusal);
                if !fallen.may_fall_back {
                    return Err(fallen.refusal);
                }
                last = Some(fallen.refusal);
            }
        }
    }
    Err(last.unwrap_or_else(Refusal::no_engine))
}

async fn ask<A: Asking>(asking: &mut A, target: &Chosen, first: bool) -> Begins<A::Manner> {
    match &target.place {
        Place::Embedded => asking.embedded().await,
        Place::Upstream(server) => asking.upstream(server, target, first).await,
    }
}

/// Tells operators of an upstream that gave no answer.
fn note(gateway: &Gateway, target: &Chosen, refusal: &Refusal) {
    if let Place::Upstream(_) = target.place {
        let (upstream, code) = (target.label(), refusal.error.code);
        gateway.metrics.upstream_failed(upstream, code);
        tracing::warn!(upstream, code, cause = refusal.cause, "an upstream gave no answer");
    }
}
