//! Tries the targets of a request in order until one of them has started to answer.

mod hedge;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use answer::Asked;
use catalog::Protocol;
use engine::{EngineError, Rejection};
use http::{HeaderMap, HeaderValue};
use policy::limit::Permit;
use policy::targets::{Backend, Target};
use telemetry::outcome::Outcome;
use telemetry::requests::report::{AttemptReport, AttemptResult};
use telemetry::traces::context::TraceParent;
use telemetry::traces::request::RequestTrace;
use tokio::time::Instant;
use upstream::{Effort, ResponseMeta, Upstream};
use wire::{ErrorKind, Reported, Specifics};

use self::hedge::Hedge;
use crate::connection::timer::ConnectionTimer;
use crate::exchange::answer::started::Started;
use crate::exchange::record::{MAX_CAUSE, milliseconds, shortened};
use crate::exchange::refusal::Refusal;
use crate::exchange::targets::Targets;
use crate::request::outgoing::{TRACEPARENT, TRACESTATE};
use crate::state::{Caller, GatewayState};

/// A request that can be sent to any of its targets. It owns all its data, so that attempts can
/// continue within the body of the response.
pub(crate) trait Dispatch: Send + 'static {
    /// The client's protocol.
    const PROTOCOL: Protocol;
    /// An answer that has started.
    type Answer: Send;

    /// Sends the request to a target, and waits until it has started to answer.
    fn start(
        &mut self,
        target: &Target,
        turn: Turn,
    ) -> impl Future<Output = StartResult<Self::Answer>> + Send;

    /// Returns the same request for a hedge, whose attempt has the state `asked`, after `first`, the first
    /// target. `None` if it must not be sent twice.
    fn hedged(&self, first: &Target, asked: Arc<Asked>) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = (first, asked);
        None
    }

    /// Leaves the opaque data of earlier reasoning out of the request for this target, which has refused
    /// some. Returns false if it is left out already.
    fn leave_out_seals(&mut self, target: &Target) -> bool {
        let _ = target;
        false
    }

    /// Takes the part of the last response's head that is for the log and for the client.
    fn take_meta(&mut self) -> ResponseMeta;
}

/// The position of a target among the targets of a request.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// True for the first target: only it may be retried.
    pub(crate) first: bool,
    /// True for the last target: the request is not needed after it.
    pub(crate) last: bool,
    /// True if it is left alone while its circuit breaker is open, because there is another one.
    pub(crate) has_alternative: bool,
    /// The trace, if the target gets it.
    pub(crate) trace: Option<AttemptTrace>,
}

/// An attempt as a part of the trace of its request.
#[derive(Clone, Debug)]
pub(crate) struct AttemptTrace {
    /// The span of the attempt.
    span: TraceParent,
    request: Arc<RequestTrace>,
}

impl Turn {
    /// The lengths to which an upstream goes for the request.
    pub(crate) const fn effort(&self) -> Effort {
        Effort {
            may_retry: self.first,
            has_alternative: self.has_alternative,
        }
    }

    /// Adds the trace to the headers of the request.
    pub(crate) fn traced(&self, mut headers: HeaderMap) -> HeaderMap {
        let Some(AttemptTrace { span, request }) = &self.trace else {
            return headers;
        };
        // Their texts can always be values.
        if let Ok(span) = HeaderValue::from_bytes(&span.to_header()) {
            headers.insert(TRACEPARENT, span);
        }
        let state = request.state.as_ref();
        if let Some(Ok(state)) = state.map(|state| HeaderValue::from_str(state.as_str())) {
            headers.insert(TRACESTATE, state);
        }
        headers
    }
}

/// An answer that has started, or the reason why this target failed.
pub(crate) type StartResult<A> = Result<Started<A>, TargetFailure>;

pub(crate) struct TargetFailure {
    /// The error response that the client gets if this is the last target.
    pub(crate) refusal: Box<Refusal>,
    /// True if the next target is tried.
    pub(crate) may_fall_back: bool,
    /// True if the target has refused the opaque data of earlier reasoning, without which it may answer.
    pub(crate) refused_seal: bool,
    /// True if the request was not sent, because the circuit breaker is open.
    pub(crate) was_left_alone: bool,
    /// True if the target did not respond in time, and may still work on the request.
    pub(crate) may_work: bool,
    /// True if the target has begun to respond.
    pub(crate) was_cut: bool,
}

impl TargetFailure {
    /// The failure of an engine or upstream. The next target is tried, unless every target would refuse
    /// the request.
    pub(crate) fn of(error: EngineError) -> Self {
        Self {
            may_fall_back: error.may_succeed_elsewhere(),
            refused_seal: matches!(
                error,
                EngineError::Rejected {
                    why: Rejection::Signature,
                    ..
                }
            ),
            was_left_alone: matches!(error, EngineError::Unavailable(_)),
            may_work: matches!(error, EngineError::Unanswered(_)),
            was_cut: matches!(
                error,
                EngineError::Unanswered(_) | EngineError::Truncated(_)
            ),
            refusal: Box::new(error.into()),
        }
    }

    /// Without the words by which the upstream has named the error, for a client of another
    /// protocol.
    pub(crate) fn without_reported(mut self) -> Self {
        self.refusal.error.forget_reported();
        self
    }

    /// Removes the upstream's API key from all texts, because some upstreams repeat it in their
    /// errors.
    pub(crate) fn without_key(mut self, upstream: &Upstream) -> Self {
        let Refusal { error, cause, .. } = &mut *self.refusal;
        let words = match error.specifics.as_deref_mut() {
            Some(Specifics::Reported(Reported {
                code,
                kind,
                message,
            })) => Some([code, kind, message].map(Option::as_mut)),
            _ => None,
        };
        for text in [Some(&mut error.message), error.param.as_mut()]
            .into_iter()
            .chain(words.into_iter().flatten())
            .flatten()
        {
            upstream.redact(text);
        }
        *cause = cause.take().map(|cause| {
            let mut cause = cause.into_string();
            upstream.redact(&mut cause);
            cause.into()
        });
        self
    }

    /// The failure of a target that cannot serve this request, for example because its protocol
    /// lacks a field. Another target may be able to.
    pub(crate) fn fall_back(refusal: impl Into<Refusal>) -> Self {
        Self {
            refusal: Box::new(refusal.into()),
            may_fall_back: true,
            refused_seal: false,
            was_left_alone: false,
            may_work: false,
            was_cut: false,
        }
    }

    /// A failure that every target would have.
    pub(crate) fn fatal(refusal: impl Into<Refusal>) -> Self {
        Self {
            may_fall_back: false,
            ..Self::fall_back(refusal)
        }
    }

    /// The end of an attempt at the deadline of its request, or at the timeout for its first content, after
    /// which the next target is tried.
    fn timeout(may_fall_back: bool) -> Self {
        Self {
            may_fall_back,
            may_work: true,
            was_cut: true,
            ..Self::fatal(Refusal::timeout())
        }
    }
}

/// Sends the request to the targets in order until one starts to answer or the deadline passes, and
/// notes in the record which target answers. A target whose circuit breaker is open comes after all
/// others, and is asked then: a breaker never keeps a request from its only target. Otherwise
/// returns the failure of the last target that was tried; no further target is tried if the request
/// itself is at fault.
pub(crate) fn first_successful_target<A: Dispatch>(
    mut dispatch: A,
    targets: Vec<Target>,
    caller: &Caller<'_>,
) -> impl Future<Output = Result<Started<A::Answer>, Refusal>> + Send + use<A> {
    let attempts = Attempts::new(caller);
    let mut hedge = Hedge::new(&dispatch, &targets, caller);
    async move {
        let record = &attempts.record;
        let mut last_failure = None;
        let mut targets = VecDeque::from(targets);
        let mut untried = targets.len();
        while let Some(target) = targets.pop_front() {
            let last = targets.is_empty();
            let has_alternative = untried > 0 && !last;
            untried = untried.saturating_sub(1);
            record.show_target(&target);
            let turn = Turn {
                first: last_failure.is_none(),
                last,
                has_alternative,
                trace: attempts.next_trace(&target),
            };
            let mut attempt = attempts.begin(target, A::PROTOCOL, &record.asked);
            let (result, meta) = match hedge.take() {
                // Boxed, because the second attempt would enlarge the future of every request.
                Some(hedge) => {
                    let attempt = &mut attempt;
                    let hedged = attempts.hedged(&mut dispatch, attempt, turn, hedge, &mut targets);
                    Box::pin(hedged).await
                }
                None => {
                    let result = attempts.start(&mut dispatch, &attempt, turn).await;
                    (result, dispatch.take_meta())
                }
            };
            untried = untried.min(targets.len());
            let target = attempts.report(attempt, result.as_ref().err(), &meta, Instant::now());
            match result {
                Ok(started) => {
                    record.set_served_by(&target, meta);
                    return Ok(started);
                }
                Err(failure) => {
                    if failure.was_left_alone && has_alternative {
                        targets.push_back(target);
                        continue;
                    }
                    if failure.refused_seal && dispatch.leave_out_seals(&target) {
                        targets.push_front(target);
                        untried += 1;
                        continue;
                    }
                    record.set_failed_head(meta);
                    if let Some(overflow) = failure.refusal.error.overflow() {
                        targets.retain(|next| next.may_be_larger(&target, overflow.limit));
                        untried = untried.min(targets.len());
                    }
                    // After the deadline no target could answer in time.
                    if !failure.may_fall_back || Instant::now() >= attempts.deadline {
                        return Err(*failure.refusal);
                    }
                    last_failure = Some(*failure.refusal);
                }
            }
        }
        Err(last_failure.unwrap_or_else(Refusal::no_engine))
    }
}

/// The attempts of one request: their deadlines, and where they are recorded.
struct Attempts {
    state: Arc<GatewayState>,
    record: Arc<Targets>,
    timer: ConnectionTimer,
    trace: Option<Arc<RequestTrace>>,
    /// The number of attempts that have begun.
    begun: AtomicUsize,
    received: Instant,
    deadline: Instant,
    /// The deadline of a stream that has begun.
    end: Instant,
    streams: bool,
    /// True if a target may go on with the work on an answer that nobody reads.
    may_go_on: bool,
}

/// An attempt at a target.
struct Attempt {
    target: Target,
    asked: Arc<Asked>,
    report: AttemptReport,
}

/// The result of an attempt, and the head of its response.
type Ended<A> = (StartResult<A>, ResponseMeta);

impl Attempts {
    fn new(caller: &Caller<'_>) -> Self {
        let record = &*caller.record;
        // A model notices that nobody reads its text, and stops.
        let makes_pictures = record.permit.as_ref().is_some_and(Permit::makes_pictures);
        Self {
            state: Arc::clone(caller.state),
            record: Arc::clone(&record.targets),
            timer: record.connection.timer.clone(),
            trace: record.trace.clone(),
            begun: AtomicUsize::new(0),
            received: record.started,
            deadline: caller.deadline,
            end: record.started + caller.state.limits.stream_timeout,
            streams: record.stream,
            may_go_on: !record.stream || makes_pictures,
        }
    }

    /// The trace of the next attempt, if its target gets it.
    fn next_trace(&self, target: &Target) -> Option<AttemptTrace> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let trace = self.trace.as_ref().filter(|_| target.is_traced())?;
        Some(AttemptTrace {
            span: trace.context.of_attempt(number),
            request: Arc::clone(trace),
        })
    }

    /// Begins an attempt, whose state is in `asked`.
    fn begin(&self, target: Target, client: Protocol, asked: &Arc<Asked>) -> Attempt {
        asked.begin(target.place);
        let began = milliseconds(self.received.elapsed());
        Attempt {
            asked: Arc::clone(asked),
            report: AttemptReport::new(&target, target.relays(client), began),
            target,
        }
    }

    /// Waits until an attempt has started to answer, has failed, or has timed out. Without a timeout for
    /// its first content it has until the deadline, or until the end of a stream if its target has sent
    /// events by then: one that thinks for long opens its stream first.
    async fn start<A: Dispatch>(
        &self,
        dispatch: &mut A,
        attempt: &Attempt,
        turn: Turn,
    ) -> StartResult<A::Answer> {
        let first_content = attempt.target.first_content_timeout;
        let first_content = first_content.filter(|_| !turn.last && self.streams);
        let mut work = pin!(start_redacted(dispatch, &attempt.target, turn));
        let earlier = first_content.map(|timeout| Instant::now() + timeout);
        let earlier = earlier.filter(|by| *by < self.deadline);
        let by = earlier.unwrap_or(self.deadline);
        let mut started = self.timer.timeout_at(by, work.as_mut()).await;
        if started.is_none() && earlier.is_none() && attempt.asked.has_opened() {
            started = self.timer.timeout_at(self.end, work).await;
        }
        let may_fall_back = first_content.is_some();
        started.unwrap_or_else(|| Err(TargetFailure::timeout(may_fall_back)))
    }

    /// Records that an attempt has ended at this time, and returns its target.
    fn report(
        &self,
        mut attempt: Attempt,
        failure: Option<&TargetFailure>,
        meta: &ResponseMeta,
        ended: Instant,
    ) -> Target {
        if let Some(failure) = failure {
            set_failure(&mut attempt.report, failure);
            self.set_failed(&attempt, failure);
            report_failure(&self.state, &attempt.target, &failure.refusal, meta);
        }
        let mut report = attempt.report;
        report.answered_ms = milliseconds(ended.duration_since(self.received));
        report.upstream_request_id = meta.request_id.as_deref().map(shortened);
        report.dropped = attempt.asked.losses();
        report.dropped.truncate(MAX_DROPPED);
        self.record.report_attempt(report);
        attempt.target
    }

    /// Notes that an attempt is charged for what is known of it.
    fn set_failed(&self, attempt: &Attempt, failure: &TargetFailure) {
        let may_work = failure.may_work && self.may_go_on;
        self.record
            .set_failed(&attempt.asked, may_work, failure.was_cut);
    }
}

/// The maximum number of dropped fields in a report.
const MAX_DROPPED: usize = 64;

/// Adds the failure of an attempt to its report.
fn set_failure(report: &mut AttemptReport, failure: &TargetFailure) {
    report.result = match failure.was_left_alone {
        true => AttemptResult::CircuitOpen,
        false => AttemptResult::Failed,
    };
    report.code = Some(failure.refusal.error.code);
    let cause = failure.refusal.cause.as_deref();
    report.cause = cause.map(|cause| cause[..cause.floor_char_boundary(MAX_CAUSE)].to_owned());
}

/// Starts an attempt. A failure does not contain the API key of the upstream.
async fn start_redacted<A: Dispatch>(
    dispatch: &mut A,
    target: &Target,
    turn: Turn,
) -> StartResult<A::Answer> {
    let result = dispatch.start(target, turn).await;
    match &target.backend {
        Backend::Embedded => result,
        Backend::Upstream(server) => {
            result.map_err(|failure| failure.without_key(&server.upstream))
        }
    }
}

/// Logs and counts the failure of an upstream, unless the client's request was at fault.
pub(crate) fn report_failure(
    state: &GatewayState,
    target: &Target,
    refusal: &Refusal,
    meta: &ResponseMeta,
) {
    let is_client_error = Outcome::of_refusal(&refusal.error) == Outcome::Refused;
    if matches!(target.backend, Backend::Upstream(_)) && !is_client_error {
        let upstream = target.label();
        let code = refusal.error.code;
        state.metrics.upstream_failed(upstream, code);
        let cause = refusal.cause.as_deref();
        let upstream_request_id = meta.request_id.as_deref();
        // An invalid response, a rejected API key or an account without credit: an error that does
        // not pass by itself.
        let kinds = [ErrorKind::Upstream, ErrorKind::Misconfigured];
        let is_used_up = code == "insufficient_quota";
        if is_used_up || kinds.contains(&refusal.error.kind) {
            tracing::error!(
                upstream,
                code,
                cause,
                upstream_request_id,
                "upstream request failed"
            );
        } else {
            tracing::warn!(
                upstream,
                code,
                cause,
                upstream_request_id,
                "upstream request failed"
            );
        }
    }
}
