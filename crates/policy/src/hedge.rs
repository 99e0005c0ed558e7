//! Hedges: a request is sent to a second target while the first one is slow, and the first of the two
//! that answers is taken.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::Instant;

use crate::limit::{Limiter, Permit, Reservation};
use crate::policy::Policy;
use crate::targets::{Hedge, Target};

wire::text_enum! {
    /// The events of hedges, for the metrics.
    pub enum HedgeEvent {
        /// A hedge was sent.
        Sent = "sent",
        /// It was answered before the first target.
        Won = "won",
        /// It was not sent, because no other target could be asked at once.
        Unavailable = "unavailable",
        /// It was not sent, because the budget of its model was used up.
        OverBudget = "over_budget",
        /// It was not sent, because a limit had no room for it.
        Limited = "limited",
    }
}

/// The admission of a hedge.
pub struct HedgeAdmission {
    hedge: Arc<Hedge>,
    limiter: Arc<Limiter>,
    policy: Arc<Policy>,
    key: Arc<str>,
    model: String,
    reservation: Reservation,
}

impl HedgeAdmission {
    /// Prepares to admit a hedge of a request for `model`, which was itself admitted with `permit`. `None`
    /// if its targets have no hedges.
    pub fn new(
        targets: &[Target],
        policy: &Arc<Policy>,
        limiter: &Arc<Limiter>,
        key: &Arc<str>,
        model: &str,
        permit: &Permit,
    ) -> Option<Self> {
        let [first, _, ..] = targets else { return None };
        let hedge = Arc::clone(first.hedge.as_ref()?);
        hedge.earn();
        Some(Self {
            hedge,
            limiter: Arc::clone(limiter),
            policy: Arc::clone(policy),
            key: Arc::clone(key),
            model: model.to_owned(),
            reservation: permit.reservation(),
        })
    }

    /// The time after which the hedge is sent.
    pub fn after(&self) -> Duration {
        self.hedge.after()
    }

    /// Takes the first target that is available out of `targets`, and a permit for the hedge.
    ///
    /// # Errors
    /// Returns the reason for which the hedge is not sent.
    pub fn admit(&self, targets: &mut VecDeque<Target>) -> Result<(Target, Permit), HedgeEvent> {
        let place = targets.iter().position(Target::is_available);
        let place = place.ok_or(HedgeEvent::Unavailable)?;
        if !self.hedge.spend() {
            return Err(HedgeEvent::OverBudget);
        }
        let (quotas, reservation) = (&self.policy.quotas, self.reservation.clone());
        let permit = self
            .limiter
            .take_another(&self.key, &self.model, quotas, reservation);
        match permit {
            Some(permit) => {
                let target = targets.remove(place).ok_or(HedgeEvent::Unavailable)?;
                Ok((target, permit))
            }
            None => {
                self.hedge.refund();
                Err(HedgeEvent::Limited)
            }
        }
    }
}

/// The permit of a hedge, which the request has besides its own until it ends.
#[derive(Debug)]
pub struct HedgePermit(Mutex<Option<Permit>>);

impl From<Permit> for HedgePermit {
    fn from(permit: Permit) -> Self {
        Self(Mutex::new(Some(permit)))
    }
}

impl HedgePermit {
    /// Releases its place, once one of the two attempts goes on alone. Its reservation stays.
    pub fn release_place(&self) {
        if let Some(permit) = &mut *self.lock() {
            permit.release_place();
        }
    }

    /// Releases it. The own permit of the request is charged for both attempts.
    pub fn end(&self) {
        if let Some(permit) = self.lock().take() {
            permit.end(&[]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Permit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of the attempt that decides on a request, and the failure of the other one.
pub struct Race<T, E> {
    /// The first answer, or the last failure.
    pub result: Result<T, E>,
    /// True if it is the result of the second attempt.
    pub is_second: bool,
    /// The failure after which the deciding attempt went on, and its time. `None`: the other one is
    /// cancelled.
    pub failed: Option<(E, Instant)>,
}

impl<T, E> Race<T, E> {
    /// The race of an attempt without a second one.
    pub fn alone(result: Result<T, E>) -> Self {
        Self {
            result,
            is_second: false,
            failed: None,
        }
    }

    /// Runs two attempts. The first answer decides, or a failure for which `goes_on` is false: it gets the
    /// failure, and true if that is of the second attempt. After any other failure the other attempt
    /// decides.
    pub async fn run(
        one: impl Future<Output = Result<T, E>>,
        other: impl Future<Output = Result<T, E>>,
        goes_on: impl Fn(&E, bool) -> bool,
    ) -> Self {
        let (result, is_second, failed) = match select(pin!(one), pin!(other)).await {
            Either::Left((Err(failure), other)) if goes_on(&failure, false) => {
                let failed = (failure, Instant::now());
                (other.await, true, Some(failed))
            }
            Either::Left((result, _)) => (result, false, None),
            Either::Right((Err(failure), one)) if goes_on(&failure, true) => {
                let failed = (failure, Instant::now());
                (one.await, false, Some(failed))
            }
            Either::Right((result, _)) => (result, true, None),
        };
        Self {
            result,
            is_second,
            failed,
        }
    }
}
