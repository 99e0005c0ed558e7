//! The circuit breaker: a host that fails too often gets no requests for some time.
//!
//! A state machine without a clock. Closed, it admits every request and measures the share of
//! failures among the last ones. Open, it admits only requests that no other host can serve. After
//! the open time it is half-open: it also admits one request as a probe, whose outcome closes or
//! reopens it.

mod recent;

use std::time::{Duration, Instant};

use self::recent::{Count, Recent};
use crate::health::Circuit;

/// The settings of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of attempts within the window below which it never opens; at least 1.
    pub attempts: u32,
    /// The share of failures among them that opens it, in percent; 1 to 100.
    pub failure_percent: u32,
    /// The time within which attempts are counted together.
    pub window: Duration,
    /// The time for which it stays open before it admits a probe.
    pub open: Duration,
}

/// The outcome of an admitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The host has answered.
    Success,
    /// No connection, one that ended before the head of a response, or the status 502, 503 or 504.
    Failure,
    /// The request was cancelled, or it failed in a way that may be its own fault: the status 500,
    /// or no head in time. One client with such requests must not shut out the others.
    Unknown,
}

/// The permission to send one request. It is returned by [`Breaker::settle`].
#[derive(Debug)]
#[must_use = "a probe that is never settled keeps the breaker half-open"]
pub(crate) struct Ticket {
    era: u64,
    /// True if this request is the probe of a half-open breaker.
    is_probe: bool,
}

/// The breaker of one host.
#[derive(Debug)]
pub(crate) struct Breaker {
    options: Options,
    state: State,
    /// The outcomes while it is closed.
    recent: Recent,
    /// Incremented with each change of state, so that requests admitted before a change do not
    /// count after it.
    era: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    Open { until: Instant },
    HalfOpen { probing: bool },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            attempts: 20,
            failure_percent: 50,
            window: Duration::from_secs(10),
            open: Duration::from_secs(10),
        }
    }
}

impl Breaker {
    /// Creates a closed breaker.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            state: State::Closed,
            recent: Recent::default(),
            era: 0,
        }
    }

    /// Admits a request at `now`, or returns `None`.
    pub(crate) fn admit(&mut self, now: Instant) -> Option<Ticket> {
        let is_probe = match self.state {
            State::Closed => false,
            State::Open { until } if now >= until => {
                self.enter(State::HalfOpen { probing: true });
                true
            }
            State::HalfOpen { probing: false } => {
                self.state = State::HalfOpen { probing: true };
                true
            }
            State::Open { .. } | State::HalfOpen { probing: true } => return None,
        };
        Some(Ticket {
            era: self.era,
            is_probe,
        })
    }

    /// Admits a request at `now` in any state, because there is no other host for it.
    pub(crate) fn admit_always(&mut self, now: Instant) -> Ticket {
        self.admit(now).unwrap_or(Ticket {
            era: self.era,
            is_probe: false,
        })
    }

    /// The state for operators at `now`. A probe is due once the open time is over.
    pub(crate) fn circuit(&self, now: Instant) -> Circuit {
        match self.state {
            State::Closed => Circuit::Closed,
            State::Open { until } if now < until => Circuit::Open {
                probe_in: until.duration_since(now),
            },
            State::Open { .. } | State::HalfOpen { .. } => Circuit::HalfOpen,
        }
    }

    /// Records the outcome of an admitted request.
    pub(crate) fn settle(&mut self, ticket: Ticket, outcome: Outcome, now: Instant) {
        if ticket.era != self.era {
            return;
        }
        match (self.state, outcome) {
            (State::Closed, Outcome::Success | Outcome::Failure) => self.count(outcome, now),
            // A request that was admitted because no other host could serve it shows that the host
            // works, or that it still does not.
            (State::Open { .. } | State::HalfOpen { .. }, Outcome::Success) => {
                self.enter(State::Closed);
            }
            (State::HalfOpen { .. }, Outcome::Failure) => self.open(now),
            (State::HalfOpen { .. }, Outcome::Unknown) if ticket.is_probe => {
                self.state = State::HalfOpen { probing: false }
            }
            (_, Outcome::Unknown) | (State::Open { .. }, Outcome::Failure) => {}
        }
    }

    /// Counts an outcome, and opens if too many of the recent ones are failures.
    fn count(&mut self, outcome: Outcome, now: Instant) {
        let is_failure = outcome == Outcome::Failure;
        self.recent.record(is_failure, self.options.window, now);
        if is_failure {
            let Count { attempts, failures } = self.recent.sum();
            let share = u64::from(failures) * 100;
            let limit = u64::from(attempts) * u64::from(self.options.failure_percent);
            if attempts >= self.options.attempts && share >= limit {
                self.open(now);
            }
        }
    }

    fn open(&mut self, now: Instant) {
        self.enter(State::Open {
            until: now + self.options.open,
        });
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.recent = Recent::default();
        self.era += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[allow(
        clippy::disallowed_methods,
        reason = "the tests need some first instant"
    )]
    fn start() -> Instant {
        Instant::now()
    }

    impl Breaker {
        /// Returns true if a request at `now` would not be admitted.
        fn is_open(&self, now: Instant) -> bool {
            match self.state {
                State::Closed => false,
                State::Open { until } => now < until,
                State::HalfOpen { probing } => probing,
            }
        }
    }

    /// Admits one request for each outcome at `now`, and settles it.
    fn run(breaker: &mut Breaker, now: Instant, outcomes: &[Outcome]) {
        for outcome in outcomes {
            let ticket = breaker.admit(now).unwrap();
            breaker.settle(ticket, *outcome, now);
        }
    }

    /// Returns a breaker that has opened at `now`.
    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::new(Options::default());
        run(&mut breaker, now, &[Outcome::Failure; 20]);
        assert!(breaker.is_open(now));
        breaker
    }

    #[test]
    fn operators_see_an_open_circuit_breaker_until_its_probe_is_due() {
        let now = start();
        assert_eq!(
            Breaker::new(Options::default()).circuit(now),
            Circuit::Closed
        );
        let breaker = opened(now);
        let second = Duration::from_secs(1);
        let probe_in = Duration::from_secs(9);
        assert_eq!(breaker.circuit(now + second), Circuit::Open { probe_in });
        assert_eq!(breaker.circuit(now + 10 * second), Circuit::HalfOpen);
    }

    #[test]
    fn half_of_twenty_attempts_open_it() {
        let now = start();
        let mut breaker = Breaker::new(Options::default());
        run(&mut breaker, now, &[Outcome::Success; 10]);
        run(&mut breaker, now, &[Outcome::Failure; 9]);
        run(&mut breaker, now, &[Outcome::Unknown; 9]);
        assert!(!breaker.is_open(now));
        run(&mut breaker, now, &[Outcome::Failure]);
        assert!(breaker.is_open(now) && breaker.admit(now).is_none());
    }

    #[test]
    fn fewer_attempts_or_a_smaller_share_do_not() {
        let now = start();
        let mut few = Breaker::new(Options::default());
        run(&mut few, now, &[Outcome::Failure; 19]);
        assert!(!few.is_open(now));
        let mut less_than_half = Breaker::new(Options::default());
        run(&mut less_than_half, now, &[Outcome::Success; 11]);
        run(&mut less_than_half, now, &[Outcome::Failure; 10]);
        assert!(!less_than_half.is_open(now));
    }

    #[test]
    fn requests_that_may_be_at_fault_themselves_do_not_count() {
        let now = start();
        let mut breaker = Breaker::new(Options::default());
        run(&mut breaker, now, &[Outcome::Unknown; 100]);
        run(&mut breaker, now, &[Outcome::Failure; 19]);
        assert!(!breaker.is_open(now));
    }

    #[test]
    fn attempts_count_for_ten_seconds() {
        let now = start();
        let after = |millis| now + Duration::from_millis(millis);
        for (millis, opens) in [(0, true), (8_900, true), (10_000, false), (60_000, false)] {
            let mut breaker = Breaker::new(Options::default());
            run(&mut breaker, now, &[Outcome::Failure; 19]);
            run(&mut breaker, after(millis), &[Outcome::Failure]);
            assert_eq!(breaker.is_open(after(millis)), opens, "{millis}");
        }
        let mut breaker = Breaker::new(Options::default());
        run(&mut breaker, now, &[Outcome::Failure; 10]);
        run(&mut breaker, after(5_000), &[Outcome::Failure; 9]);
        run(&mut breaker, after(10_500), &[Outcome::Failure]);
        assert!(!breaker.is_open(after(10_500)), "the first ten are old");
        run(&mut breaker, after(14_000), &[Outcome::Failure; 10]);
        assert!(breaker.is_open(after(14_000)));
    }

    #[test]
    fn after_its_time_one_probe_decides() {
        let now = start();
        for outcome in [Outcome::Success, Outcome::Failure, Outcome::Unknown] {
            let mut breaker = opened(now);
            let just_before = now + Duration::from_millis(9_999);
            assert!(breaker.admit(just_before).is_none());
            let later = now + Duration::from_secs(10);
            let probe = breaker.admit(later).unwrap();
            assert!(probe.is_probe && breaker.admit(later).is_none());
            breaker.settle(probe, outcome, later);
            assert_eq!(breaker.is_open(later), outcome == Outcome::Failure);
            assert!(!breaker.is_open(later + Duration::from_secs(10)));
        }
    }

    #[test]
    fn forced_request_is_admitted_and_its_success_closes_breaker() {
        let now = start();
        for (outcome, is_open) in [
            (Outcome::Success, false),
            (Outcome::Failure, true),
            (Outcome::Unknown, true),
        ] {
            let mut breaker = opened(now);
            let ticket = breaker.admit_always(now);
            assert!(!ticket.is_probe);
            breaker.settle(ticket, outcome, now);
            assert_eq!(breaker.is_open(now), is_open, "{outcome:?}");
        }
        let mut probing = opened(now);
        let later = now + Duration::from_secs(10);
        let probe = probing.admit(later).unwrap();
        let ticket = probing.admit_always(later);
        probing.settle(ticket, Outcome::Unknown, later);
        assert!(probing.admit(later).is_none(), "there is a probe");
        probing.settle(probe, Outcome::Success, later);
        assert!(!probing.is_open(later));
    }

    #[test]
    fn outcomes_from_before_a_state_change_do_not_count() {
        let now = start();
        let mut breaker = Breaker::new(Options::default());
        let (good, bad) = (breaker.admit(now).unwrap(), breaker.admit(now).unwrap());
        run(&mut breaker, now, &[Outcome::Failure; 20]);
        let later = now + Duration::from_secs(10);
        let probe = breaker.admit(later).unwrap();
        breaker.settle(good, Outcome::Success, later);
        assert!(breaker.is_open(later));
        breaker.settle(bad, Outcome::Failure, later);
        breaker.settle(probe, Outcome::Success, later);
        assert!(!breaker.is_open(later));
    }

    proptest! {
        /// For any sequence of outcomes: once all tickets are settled it stays open no longer than
        /// its open time, it does not open below the limit of failures, and half-open it has at
        /// most one probe in flight.
        #[test]
        fn it_is_never_wedged(steps in vec((0..7u8, 0..400u64), 0..300)) {
            let mut now = start();
            let mut breaker = Breaker::new(Options::default());
            let mut tickets: Vec<Ticket> = Vec::new();
            let mut failures = 0;
            for (step, pause) in steps {
                now += Duration::from_millis(pause);
                let was_open = breaker.is_open(now);
                match (step, tickets.pop()) {
                    (0, last) => {
                        tickets.extend(last);
                        let ticket = breaker.admit(now);
                        prop_assert_eq!(ticket.is_none(), was_open);
                        tickets.extend(ticket);
                    }
                    (1, last) => {
                        tickets.extend(last);
                        tickets.push(breaker.admit_always(now));
                    }
                    (2, Some(ticket)) => breaker.settle(ticket, Outcome::Success, now),
                    (3, Some(ticket)) => breaker.settle(ticket, Outcome::Unknown, now),
                    (_, Some(ticket)) => {
                        failures += 1;
                        breaker.settle(ticket, Outcome::Failure, now);
                    }
                    (_, None) => {
                        let ticket = breaker.admit_always(now);
                        failures += 1;
                        breaker.settle(ticket, Outcome::Failure, now);
                    }
                }
                let is_probe = |ticket: &&Ticket| ticket.is_probe && ticket.era == breaker.era;
                prop_assert!(tickets.iter().filter(is_probe).count() <= 1);
                prop_assert!(failures >= 10 || !breaker.is_open(now));
            }
            for ticket in tickets {
                breaker.settle(ticket, Outcome::Unknown, now);
            }
            prop_assert!(breaker.admit(now + Duration::from_secs(10)).is_some());
        }
    }
}
