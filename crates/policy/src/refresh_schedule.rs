//! The times at which something of an upstream is refreshed in the background: the API key that a
//! command prints, or the list of its models.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The times at which a value is refreshed.
pub struct RefreshSchedule {
    interval: Duration,
    times: Mutex<Times>,
}

struct Times {
    /// `None` while it is refreshed.
    due: Option<Instant>,
    /// True if it is wanted again as soon as that has ended.
    wanted: bool,
    /// The last time at which a rejected key was refreshed early.
    rejected: Option<Instant>,
}

impl RefreshSchedule {
    /// The refreshes of a value that was read just now, or that is `stale`.
    pub fn new(interval: Duration, stale: bool) -> Self {
        let now = Instant::now();
        let due = Some(if stale { now } else { now + interval });
        Self {
            interval,
            times: Mutex::new(Times {
                due,
                wanted: false,
                rejected: None,
            }),
        }
    }

    /// Refreshes the value soon.
    pub fn request(&self) {
        self.times().request();
    }

    /// Refreshes the key soon, because the upstream has rejected it: once a minute at most, so that
    /// an upstream that rejects every key does not make the command run all the time.
    pub fn rejected(&self) {
        let now = Instant::now();
        let mut times = self.times();
        if times
            .rejected
            .is_none_or(|last| now - last >= MIN_BETWEEN_REJECTED)
        {
            times.rejected = Some(now);
            times.request();
        }
    }

    /// Returns true if the value has to be read now; it is due again once that has `ended`.
    pub fn start(&self) -> bool {
        let mut times = self.times();
        let is_due = times.due.is_some_and(|due| due <= Instant::now());
        if is_due {
            times.due = None;
        }
        is_due
    }

    /// The refresh has ended, with a value or without.
    pub fn ended(&self, has_value: bool) {
        let mut times = self.times();
        let delay = match () {
            () if std::mem::take(&mut times.wanted) => Duration::ZERO,
            () if has_value => self.interval,
            () => self.interval.min(RETRY),
        };
        times.due = Some(Instant::now() + delay);
    }

    /// Locks the times. A panic cannot leave them in an inconsistent state.
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Times {
    fn request(&mut self) {
        match &mut self.due {
            Some(due) => *due = Instant::now(),
            None => self.wanted = true,
        }
    }
}

/// The longest delay after a failure.
const RETRY: Duration = Duration::from_secs(60);
/// The minimum time between two refreshes of rejected keys.
const MIN_BETWEEN_REJECTED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(600);

    #[tokio::test(start_paused = true)]
    async fn a_key_is_due_after_its_interval() {
        let schedule = RefreshSchedule::new(INTERVAL, false);
        assert!(!schedule.start());
        advance(INTERVAL).await;
        assert!(schedule.start());
        assert!(!schedule.start(), "the command runs");
        schedule.ended(true);
        assert!(!schedule.start());
        advance(INTERVAL).await;
        assert!(schedule.start());
        schedule.ended(false);
        advance(Duration::from_secs(59)).await;
        assert!(!schedule.start());
        advance(Duration::from_secs(1)).await;
        assert!(schedule.start(), "a failure is retried after a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_key_is_due_at_once_but_once_a_minute() {
        let schedule = RefreshSchedule::new(INTERVAL, false);
        schedule.rejected();
        assert!(schedule.start());
        schedule.rejected();
        schedule.ended(true);
        advance(Duration::from_secs(59)).await;
        schedule.rejected();
        assert!(!schedule.start());
        advance(Duration::from_secs(1)).await;
        schedule.rejected();
        assert!(schedule.start());
        schedule.request();
        schedule.ended(true);
        assert!(schedule.start(), "a reload came while the command ran");
    }
}
