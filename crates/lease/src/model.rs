//! The rules of a lease store, in memory. `exchange.lua` states the same rules for a server.

mod limit;

use std::collections::BTreeMap;

use crate::clock::Proof;
use limit::Limit;
use quota::{Ask, Reply};

/// The asks of one replica that reach a store together.
#[derive(Clone, Debug)]
pub struct Call {
    /// The replica, by a random number that each process draws when it starts.
    pub replica: u64,
    /// The time that has passed in the store, as the replica can prove.
    pub proof: Proof,
    /// The duration of leases in milliseconds.
    pub lease: u64,
    /// The asks.
    pub asks: Vec<Ask>,
}

/// The answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The life of the store.
    pub life: u64,
    /// The time in it, in milliseconds.
    pub at: u64,
    /// The number of this answer in it.
    pub event: u64,
    /// The replies, in the order of the asks.
    pub replies: Vec<Reply>,
}

/// A lease store in memory.
///
/// A *life* of a store is a time in which it forgets nothing. It begins when the store finds no mark of
/// an earlier life, or the mark of another server. All that was lent in an earlier life is over after
/// one lease; until then the store believes the claims of the replicas, and lends only rates,
/// because it can have forgotten no more than one bucket of each rate.
#[derive(Clone, Debug, Default)]
pub struct Model {
    mark: Option<Mark>,
    limits: BTreeMap<String, Limit>,
    notices: Vec<String>,
}

#[derive(Clone, Debug)]
struct Mark {
    server: u64,
    life: u64,
    /// The event with which the life began.
    born: u64,
    /// The latest event.
    event: u64,
    /// The proven time in milliseconds. It lags behind the true time, and can catch up at once.
    at: u64,
    /// The time in milliseconds by which buckets flow. It passes with the server's clock, but never
    /// gets ahead of the proven time, whatever the clock does.
    flowed: u64,
    /// The server's clock at the latest event, in milliseconds.
    wall: u64,
    /// The latest event that is one lease ago.
    over: u64,
}

impl Model {
    /// Creates a store that knows that nothing was lent before, as within one process.
    #[must_use]
    pub fn settled() -> Self {
        let mark = Mark {
            server: 0,
            life: SETTLED_LIFE,
            born: 0,
            event: 1,
            at: 0,
            flowed: 0,
            wall: 0,
            over: 0,
        };
        Self {
            mark: Some(mark),
            ..Self::default()
        }
    }

    /// Returns the limits, by their names in the store, about which the latest call lets the other
    /// replicas know: one replica waits for something of them, or there is something again for which
    /// others wait.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Answers a call. `server` identifies the run of the server, and `now` is its clock in
    /// microseconds, which may be set at any time.
    pub fn exchange(&mut self, call: &Call, server: u64, now: u64) -> Answer {
        let mut mark = match self.mark.take() {
            Some(mark) if mark.server == server => mark,
            other => Mark::new(other.as_ref(), server, now),
        };
        mark.advance(call.proof, now / 1000);
        self.notices.clear();
        let replies = call.asks.iter().map(|ask| {
            let limit = self.limits.entry(ask.key()).or_default();
            let (reply, noticed) = limit.exchange(ask, call, &mark);
            if limit.is_empty(&mark) {
                self.limits.remove(&ask.key());
            }
            self.notices.extend(noticed.then(|| ask.key()));
            reply
        });
        let answer = Answer {
            replies: replies.collect(),
            life: mark.life,
            at: mark.at,
            event: mark.event,
        };
        self.mark = Some(mark);
        answer
    }
}

impl Mark {
    /// Counts one event, and the time that has passed before it.
    fn advance(&mut self, proof: Proof, wall: u64) {
        self.event += 1;
        if proof.life == self.life {
            self.at = self.at.max(proof.at);
            self.over = self.over.max(proof.over);
        }
        let passed = wall.saturating_sub(self.wall);
        self.flowed = self.at.min(self.flowed.saturating_add(passed));
        self.wall = wall;
    }

    /// Begins a new life. Time and events go on if an earlier one is known.
    fn new(before: Option<&Self>, server: u64, life: u64) -> Self {
        let event = before.map_or(0, |mark| mark.event) + 1;
        Self {
            server,
            life,
            born: event,
            event,
            at: before.map_or(0, |mark| mark.at),
            flowed: before.map_or(0, |mark| mark.flowed),
            wall: life / 1000,
            over: 0,
        }
    }
}

/// The life of a store within the process, which never loses its data.
pub(crate) const SETTLED_LIFE: u64 = 1;

#[cfg(test)]
mod tests;
