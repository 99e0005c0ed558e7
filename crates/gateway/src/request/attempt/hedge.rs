//! Hedges a request: sends it to another target as well while the first one is slow, and takes the
//! answer that starts first.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use answer::Asked;
use policy::hedge::{HedgeAdmission, HedgeEvent, Race};
use policy::targets::Target;
use telemetry::requests::report::AttemptResult;
use tokio::time::Instant;

use super::{Attempt, Attempts, Dispatch, Ended, TargetFailure, Turn};
use crate::exchange::answer::started::Started;
use crate::exchange::targets::SentHedge;
use crate::state::Caller;

/// A hedge that a request may need. It is rare, and boxed because it has a second request.
pub(super) struct Hedge<A> {
    /// The same request.
    dispatch: A,
    asked: Arc<Asked>,
    admission: HedgeAdmission,
}

impl<A: Dispatch> Hedge<A> {
    /// Prepares the hedge of a request, if its model has hedges and it may be sent twice.
    pub(super) fn new(dispatch: &A, targets: &[Target], caller: &Caller<'_>) -> Option<Box<Self>> {
        let (record, state) = (&*caller.record, caller.state);
        let admission = HedgeAdmission::new(
            targets,
            caller.policy,
            &state.limiter,
            &caller.key.name,
            record.model.as_deref()?,
            record.permit.as_ref()?,
        )?;
        let asked = Arc::default();
        Some(Box::new(Self {
            dispatch: dispatch.hedged(targets.first()?, Arc::clone(&asked))?,
            asked,
            admission,
        }))
    }

    /// Begins the second attempt at one of the `targets`, if it is admitted.
    fn begin(
        &self,
        attempts: &Attempts,
        targets: &mut VecDeque<Target>,
    ) -> Option<(Attempt, Turn)> {
        let admitted = self.admission.admit(targets);
        let event = admitted.as_ref().err().copied();
        let metrics = &attempts.state.metrics;
        metrics.hedge(event.unwrap_or(HedgeEvent::Sent));
        let (target, permit) = admitted.ok()?;
        let sent = SentHedge {
            target: target.label().to_owned(),
            asked: Arc::clone(&self.asked),
            permit: permit.into(),
        };
        // A request has one hedge.
        let _ = attempts.record.hedge.set(Box::new(sent));
        let turn = Turn {
            first: false,
            last: targets.is_empty(),
            has_alternative: true,
            trace: attempts.next_trace(&target),
        };
        Some((attempts.begin(target, A::PROTOCOL, &self.asked), turn))
    }
}

impl Attempts {
    /// Asks the first target of a request, and another one as well if it has not started to answer in
    /// time. Returns the answer that starts first, or else the last failure, and leaves its attempt in `attempt`.
    pub(super) async fn hedged<A: Dispatch>(
        &self,
        dispatch: &mut A,
        attempt: &mut Attempt,
        turn: Turn,
        mut hedge: Box<Hedge<A>>,
        targets: &mut VecDeque<Target>,
    ) -> Ended<A::Answer> {
        let mut second = None;
        let race = self.race(dispatch, attempt, turn, &mut hedge, targets, &mut second);
        let race = race.await;
        let mut meta = dispatch.take_meta();
        let Some(mut other) = second else {
            return (race.result, meta);
        };
        let mut of_other = hedge.dispatch.take_meta();
        if race.is_second {
            std::mem::swap(attempt, &mut other);
            std::mem::swap(&mut meta, &mut of_other);
        }
        match &race.failed {
            Some((failure, at)) => self.report(other, Some(failure), &of_other, *at),
            None => {
                self.set_cancelled(&mut other);
                self.report(other, None, &of_other, Instant::now())
            }
        };
        if race.is_second && race.result.is_ok() {
            self.state.metrics.hedge(HedgeEvent::Won);
            self.record.show_target(&attempt.target);
        }
        if let Some(sent) = self.record.hedge.get() {
            sent.permit.release_place();
        }
        (race.result, meta)
    }

    /// Runs the attempt at the first target, and from the time of the hedge on a `second` one.
    async fn race<A: Dispatch>(
        &self,
        dispatch: &mut A,
        first: &Attempt,
        turn: Turn,
        hedge: &mut Hedge<A>,
        targets: &mut VecDeque<Target>,
        second: &mut Option<Attempt>,
    ) -> Race<Started<A::Answer>, TargetFailure> {
        let by = Instant::now() + hedge.admission.after();
        let mut one = pin!(self.start(dispatch, first, turn));
        if let Some(result) = self.timer.timeout_at(by, one.as_mut()).await {
            return Race::alone(result);
        }
        let Some((attempt, turn)) = hedge.begin(self, targets) else {
            return Race::alone(one.await);
        };
        let second = &*second.insert(attempt);
        let other = self.start(&mut hedge.dispatch, second, turn);
        let goes_on = |failure: &TargetFailure, is_second| {
            if failure.may_fall_back {
                self.set_failed(if is_second { second } else { first }, failure);
            }
            failure.may_fall_back
        };
        Race::run(one, other, goes_on).await
    }

    /// Notes that an attempt was cancelled, because the other one has decided. It is charged as one whose
    /// client has left.
    fn set_cancelled(&self, attempt: &mut Attempt) {
        attempt.report.result = AttemptResult::Cancelled;
        self.record.set_failed(&attempt.asked, self.may_go_on, true);
    }
}
