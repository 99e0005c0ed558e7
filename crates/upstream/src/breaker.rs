//! The circuit breaker: a host that fails repeatedly gets no requests for some time.
//!
//! A state machine without a clock. Closed, it admits every request and counts consecutive
//! failures. Open, it admits none. After the open time it is half-open: it admits one request as a
//! probe, whose outcome closes or reopens it.

use std::time::{Duration, Instant};

/// The settings of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of consecutive failures that open it; at least 1.
    pub failures: u32,
    /// The time for which it stays open before it admits a probe.
    pub open: Duration,
}

/// The outcome of an admitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The host works. A request that it rejected with a 4xx status counts as a success.
    Success,
    /// No connection, a timeout, a truncated response, or a 5xx status.
    Failure,
    /// The request was cancelled before its end.
    Unknown,
}

/// The permission to send one request. It is returned by [`Breaker::settle`].
#[derive(Debug)]
#[must_use = "a probe that is never settled keeps the breaker half-open"]
pub(crate) struct Ticket {
    era: u64,
    /// True if this request is the probe of a half-open breaker.
    pub(crate) is_probe: bool,
}

/// The breaker of one host.
#[derive(Debug)]
pub(crate) struct Breaker {
    options: Options,
    state: State,
    /// Incremented with each change of state, so that requests admitted before a change do not
    /// count after it.
    era: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    HalfOpen { probing: bool },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            failures: 5,
            open: Duration::from_secs(10),
        }
    }
}

impl Breaker {
    /// Creates a closed breaker.
    pub(crate) const fn new(options: Options) -> Self {
        Self {
            options,
            state: State::Closed { failures: 0 },
            era: 0,
        }
    }

    /// Admits a request at `now`, or returns `None`.
    pub(crate) fn admit(&mut self, now: Instant) -> Option<Ticket> {
        let is_probe = match self.state {
            State::Closed { .. } => false,
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

    /// Records the outcome of an admitted request.
    pub(crate) fn settle(&mut self, ticket: Ticket, outcome: Outcome, now: Instant) {
        if ticket.era != self.era {
            return;
        }
        match (self.state, outcome) {
            (State::Closed { failures }, Outcome::Failure)
                if failures + 1 >= self.options.failures =>
            {
                self.open(now);
            }
            (State::Closed { failures }, Outcome::Failure) => {
                self.state = State::Closed {
                    failures: failures + 1,
                }
            }
            (State::Closed { .. }, Outcome::Success) => self.state = State::Closed { failures: 0 },
            (State::HalfOpen { .. }, Outcome::Success) => self.enter(State::Closed { failures: 0 }),
            (State::HalfOpen { .. }, Outcome::Failure) => self.open(now),
            (State::HalfOpen { .. }, Outcome::Unknown) => {
                self.state = State::HalfOpen { probing: false }
            }
            (State::Closed { .. }, Outcome::Unknown) | (State::Open { .. }, _) => {}
        }
    }

    fn open(&mut self, now: Instant) {
        self.enter(State::Open {
            until: now + self.options.open,
        });
    }

    fn enter(&mut self, state: State) {
        self.state = state;
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
                State::Closed { .. } => false,
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

    #[test]
    fn failures_in_a_row_open_it() {
        let now = start();
        let mut breaker = Breaker::new(Options::default());
        run(&mut breaker, now, &[Outcome::Failure; 4]);
        run(&mut breaker, now, &[Outcome::Success]);
        run(&mut breaker, now, &[Outcome::Failure; 2]);
        run(&mut breaker, now, &[Outcome::Unknown; 9]);
        run(&mut breaker, now, &[Outcome::Failure; 2]);
        assert!(!breaker.is_open(now));
        run(&mut breaker, now, &[Outcome::Failure]);
        assert!(breaker.is_open(now) && breaker.admit(now).is_none());
    }

    #[test]
    fn after_its_time_one_probe_decides() {
        let now = start();
        for outcome in [Outcome::Success, Outcome::Failure, Outcome::Unknown] {
            let mut breaker = Breaker::new(Options::default());
            run(&mut breaker, now, &[Outcome::Failure; 5]);
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
    fn what_began_before_a_change_does_not_count_after_it() {
        let now = start();
        let mut breaker = Breaker::new(Options::default());
        let (good, bad) = (breaker.admit(now).unwrap(), breaker.admit(now).unwrap());
        run(&mut breaker, now, &[Outcome::Failure; 5]);
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
        /// most one request in flight.
        #[test]
        fn it_is_never_wedged(steps in vec((0..4u8, 0..6_000u64), 0..200)) {
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
                    (1, Some(ticket)) => breaker.settle(ticket, Outcome::Success, now),
                    (2, Some(ticket)) => {
                        failures += 1;
                        breaker.settle(ticket, Outcome::Failure, now);
                    }
                    (_, Some(ticket)) => breaker.settle(ticket, Outcome::Unknown, now),
                    (_, None) => {}
                }
                let probes = tickets.iter().filter(|ticket| ticket.is_probe && ticket.era == breaker.era).count();
                prop_assert!(probes <= 1);
                prop_assert!(failures >= 5 || !breaker.is_open(now));
            }
            for ticket in tickets {
                breaker.settle(ticket, Outcome::Unknown, now);
            }
            prop_assert!(breaker.admit(now + Duration::from_secs(10)).is_some());
        }
    }
}
