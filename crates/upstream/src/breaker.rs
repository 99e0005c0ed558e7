//! The circuit breaker: a host that fails again and again is left alone for a while.
//!
//! A state machine without a clock. Closed, it lets everybody through and counts failures in a row. Open, it lets nobody
//! through. When that time is over it is half open: one request goes through as a probe, and its outcome decides.

use std::time::{Duration, Instant};

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// So many failures in a row open it; at least one.
    pub failures: u32,
    /// After this time a probe is let through.
    pub open: Duration,
}

/// How a request that was let through ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The host does its work. That it refused a request is no failure of its.
    Success,
    /// No connection, no answer in time, half an answer, or one that says that the host has failed.
    Failure,
    /// Nobody waited for the end.
    Unknown,
}

/// Leave to ask, for one request. It is given back by [`Breaker::settle`].
#[derive(Debug)]
#[must_use = "a probe that is never settled keeps everybody out"]
pub struct Ticket {
    era: u64,
    is_probe: bool,
}

/// The breaker of one host.
#[derive(Debug)]
pub struct Breaker {
    options: Options,
    state: State,
    /// One more with each change of state, so that what began before it is not counted after it.
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
        Self { failures: 5, open: Duration::from_secs(10) }
    }
}

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        Self { options, state: State::Closed { failures: 0 }, era: 0 }
    }

    /// Leave to ask the host at `now`, if there is any.
    pub fn admit(&mut self, now: Instant) -> Option<Ticket> {
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
        Some(Ticket { era: self.era, is_probe })
    }

    /// Takes note of how a request ended.
    pub fn settle(&mut self, ticket: Ticket, outcome: Outcome, now: Instant) {
        if ticket.era != self.era {
            return;
        }
        match (self.state, outcome) {
            (State::Closed { failures }, Outcome::Failure) if failures + 1 >= self.options.failures => self.open(now),
            (State::Closed { failures }, Outcome::Failure) => self.state = State::Closed { failures: failures + 1 },
            (State::Closed { .. }, Outcome::Success) => self.state = State::Closed { failures: 0 },
            (State::HalfOpen { .. }, Outcome::Success) => self.enter(State::Closed { failures: 0 }),
            (State::HalfOpen { .. }, Outcome::Failure) => self.open(now),
            (State::HalfOpen { .. }, Outcome::Unknown) => self.state = State::HalfOpen { probing: false },
            (State::Closed { .. }, Outcome::Unknown) | (State::Open { .. }, _) => {}
        }
    }

    /// Whether a request at `now` would be turned away.
    #[must_use]
    pub fn is_open(&self, now: Instant) -> bool {
        match self.state {
            State::Closed { .. } => false,
            State::Open { until } => now < until,
            State::HalfOpen { probing } => probing,
        }
    }

    fn open(&mut self, now: Instant) {
        self.enter(State::Open { until: now + self.options.open });
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.era += 1;
    }
}

impl Ticket {
    /// Whether everybody else waits for the outcome of this request.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        self.is_probe
    }
}
