//! The time of a lease store, as far as one replica can prove it.

use std::collections::VecDeque;
use std::time::Duration;

/// The knowledge of one replica about the time that has passed in a store.
///
/// A store does not rely on the clock of its machine, because that clock can be set. Instead, the
/// replicas prove to the store how much time has passed: a replica that received a response `d` ago
/// knows that everything that the store did before this response is at least `d` old.
///
/// ```
/// # use std::time::Duration;
/// # use sluicegate_lease::{ElapsedProof, StoreClock};
/// let seconds = Duration::from_secs;
/// let lease = seconds(10);
/// let mut clock = StoreClock::default();
/// // The response of event 40 had the time 5 s of the store, and came 100 s after the start here.
/// clock.observe(7, 5_000, 40, lease, seconds(100));
/// // The lease of that event and a tenth have passed. The first millisecond cannot be proved.
/// let proof = clock.proof(seconds(111), lease);
/// assert_eq!(proof, ElapsedProof { epoch: 7, elapsed_ms: 15_999, expired_event: 40 });
/// ```
#[derive(Clone, Debug, Default)]
pub struct StoreClock {
    epoch: u64,
    /// The greatest difference, in milliseconds, between the time in a response of the store and
    /// the replica's own time when the response arrived.
    ahead: i64,
    /// Events of the store, each with the time at which the replica knew that the event was past.
    past: VecDeque<(u64, Duration)>,
}

/// The elapsed time of a store that a replica can prove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElapsedProof {
    /// The epoch of the store for which the other fields are valid, or 0 if the replica knows none.
    pub epoch: u64,
    /// The least time that has passed in the store, in milliseconds: since the epoch began, or
    /// since an earlier epoch if the store still knew its time. Buckets drain for no longer than
    /// this.
    pub elapsed_ms: u64,
    /// The last event of the store that the replica knew of a lease and a tenth ago, or 0. Leases
    /// that began with this event or an earlier one are over.
    pub expired_event: u64,
}

impl StoreClock {
    /// Returns the time that can be proved at `now` about a store whose leases have the duration
    /// `lease`.
    #[must_use]
    pub fn proof(&self, now: Duration, lease: Duration) -> ElapsedProof {
        let old = |(_, known): &&(u64, Duration)| *known + lease + lease / LATER <= now;
        ElapsedProof {
            epoch: self.epoch,
            elapsed_ms: match self.epoch {
                0 => 0,
                _ => u64::try_from(millis(now).saturating_add(self.ahead)).unwrap_or(0),
            },
            expired_event: self
                .past
                .iter()
                .rev()
                .find(old)
                .map_or(0, |(event, _)| *event),
        }
    }

    /// Updates the clock with a response of the store that arrived at `now`. Returns true if the
    /// store has lost its data since the response before.
    pub fn observe(
        &mut self,
        epoch: u64,
        at: u64,
        event: u64,
        lease: Duration,
        now: Duration,
    ) -> bool {
        let has_lost_data = ![0, epoch].contains(&self.epoch);
        // Rounded up: the response did not arrive later than this.
        let ahead = i64::try_from(at)
            .unwrap_or(0)
            .saturating_sub(millis(now).saturating_add(1));
        if self.epoch != epoch {
            *self = Self {
                epoch,
                ahead,
                past: VecDeque::new(),
            };
        }
        self.ahead = self.ahead.max(ahead);
        let last = self.past.back();
        if last.is_none_or(|(last, known)| *last < event && *known + lease / STEPS <= now) {
            self.past.push_back((event, now));
        }
        while self.past.len() > MAX_PAST {
            self.past.pop_front();
        }
        has_lost_data
    }
}

/// Returns the time since the machine started, including the time in which it was suspended. It is
/// the clock for [`LeasedShare`](quota::LeasedShare).
#[must_use]
#[cfg(target_os = "linux")]
pub fn boottime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the time since the first call. This system has no clock that goes on while the machine
/// is suspended: after a suspension, a share can outlive its lease.
#[must_use]
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "row 4 reads the clock")]
pub fn boottime() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The part of a lease for which a store waits after the lease has ended, so that requests that
/// were on their way at the end have expired as well.
const LATER: u32 = 10;
/// The number of events that are retained for each lease.
const STEPS: u32 = 16;
/// The number of events that are retained: enough for the time that a store waits, and one more.
const MAX_PAST: usize = 19;

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn fastest_reply_bounds_elapsed_time_within_an_epoch() {
        let mut clock = StoreClock::default();
        assert_eq!(clock.proof(at(50), LEASE), ElapsedProof::default());
        let proof = |clock: &StoreClock, now| {
            let proof = clock.proof(at(now), LEASE);
            (proof.epoch, proof.elapsed_ms)
        };
        clock.observe(7, 1_000, 1, LEASE, at(100));
        assert_eq!(proof(&clock, 101), (7, 1_000));
        assert_eq!(proof(&clock, 600), (7, 1_499));
        // This response was on its way for a long time.
        clock.observe(7, 1_500, 2, LEASE, at(900));
        assert_eq!(proof(&clock, 900), (7, 1_799));
        clock.observe(8, 0, 1, LEASE, at(1_000));
        assert_eq!(proof(&clock, 1_000), (8, 0));
        assert_eq!(proof(&clock, 1_011), (8, 10));
    }

    #[test]
    fn another_epoch_is_a_loss_of_data() {
        let mut clock = StoreClock::default();
        let has_lost = [7, 7, 8, 8].map(|epoch| clock.observe(epoch, 0, 1, LEASE, at(0)));
        assert_eq!(has_lost, [false, false, true, false]);
    }

    #[test]
    fn an_event_is_over_a_lease_and_a_tenth_after_its_answer() {
        let mut clock = StoreClock::default();
        clock.observe(7, 0, 40, LEASE, at(1_000));
        clock.observe(7, 0, 41, LEASE, at(1_001));
        clock.observe(7, 0, 50, LEASE, at(3_000));
        let over = |clock: &StoreClock, now| clock.proof(at(now), LEASE).expired_event;
        assert_eq!(over(&clock, 11_999), 0);
        assert_eq!(over(&clock, 12_000), 40);
        assert_eq!(over(&clock, 13_999), 40);
        assert_eq!(over(&clock, 14_000), 50);
        // Repeated responses do not displace the events that are retained.
        for step in 1..=30 {
            clock.observe(7, 0, 50, LEASE, at(3_000 + 625 * step));
        }
        assert_eq!(over(&clock, 14_000), 50);
        // The events that are retained reach back far enough, however many there are.
        for event in 0..5_000 {
            clock.observe(7, 0, 100 + event, LEASE, at(20_000 + 10 * event));
        }
        assert_eq!(over(&clock, 70_000), 3_943);
        clock.observe(8, 0, 1, LEASE, at(80_000));
        assert_eq!(over(&clock, 90_000), 0);
    }
}
