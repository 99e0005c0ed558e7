//! The messages about one limit between a replica and the store from which the limit is leased.
//!
//! For each limit, the store knows a *level*: the amount that was spent and has not drained yet.
//! For each replica, it knows the amount that the replica *holds* and may still give out. It keeps
//! `level + Σ held ≤ capacity`. All amounts are whole numbers of at most [`MAX_AMOUNT`].

use std::sync::Arc;
use std::time::Duration;

/// The largest amount, 2⁵³ − 1: a Lua script computes in doubles, which are exact up to here.
pub const MAX_AMOUNT: u64 = (1 << 53) - 1;

/// [`LeaseRequest::used`] is counted modulo this number, 2⁵², so that the sum never overflows.
pub const USED_MODULUS: u64 = 1 << 52;

/// The kind of a leased limit, with its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeasedLimitSpec {
    /// Permits of concurrent requests, which are returned when the request has ended.
    Permits {
        /// The number of permits of all replicas together.
        cap: u64,
    },
    /// Requests or tokens at a rate, in micro-units. A full bucket can be spent at once.
    Bucket {
        /// The rate: the micro-units that drain in one minute.
        per_minute: u64,
        /// The micro-units that a bucket holds.
        capacity: u64,
    },
    /// An amount of money for one window of the calendar, in nano-units.
    Budget {
        /// The amount that may be spent in the window.
        amount: u64,
        /// The window, as a number that differs from window to window, such as its first second.
        window: u64,
        /// The amount that is known to be spent in the window already. A store that does not know
        /// the limit, for example because it has lost its data, starts with at least this amount.
        accounted: u64,
    },
}

/// The request of a replica to the lease store for one limit.
///
/// A replica has at most one unanswered request for each limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The limit, a short text such as `q0/team-a`.
    pub limit: Arc<str>,
    /// The kind and the terms of the limit.
    pub spec: LeasedLimitSpec,
    /// The number of this request, which rises with each request of the replica for this limit.
    pub seq: u64,
    /// The number of the last request of this incarnation whose grant has arrived, or 0 before the
    /// first grant.
    pub acked: u64,
    /// The number of leases that the replica has lost for this limit. After a loss the replica
    /// starts over: it holds nothing, and `used` begins with the spending above the lost share.
    pub incarnation: u64,
    /// The part of the held amount that the replica keeps. The rest was spent or is returned.
    pub retained: u64,
    /// The amount spent since the incarnation began, modulo [`USED_MODULUS`]; 0 for permits. It can
    /// exceed the granted amount.
    pub used: u64,
    /// The part of `used` that was spent after the request `acked`. A store that no longer knows
    /// the replica counts only this part: it has counted the rest, even if it has forgotten that.
    pub unacked: u64,
    /// The amount that the replica wants to hold in addition to `retained`.
    pub wanted: u64,
    /// The part of `wanted` for which requests are waiting.
    pub waiting: u64,
    /// The smallest amount that lets one of these requests go on. The store grants at least this
    /// amount, or nothing.
    pub smallest_waiting: u64,
}

/// The response of the store to a [`LeaseRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseGrant {
    /// The number of the request. A different number means that the request came too late.
    pub seq: u64,
    /// The amount that the replica holds now: its retained amount and the amount granted in
    /// addition.
    pub held: u64,
    /// The amount that is still available to any replica.
    pub available: u64,
    /// The spent amount that has not drained yet.
    pub level: u64,
    /// The number of replicas that take part in the limit, including the requesting one.
    pub replicas: u64,
    /// The number of other replicas at which requests are waiting for this limit.
    pub waiting_replicas: u64,
    /// True while the store is in quarantine: it grants nothing, because it may have forgotten
    /// leases. Never true for buckets, which are granted even then.
    pub quarantined: bool,
    /// The duration of the lease, which began when the store received the request.
    pub duration: Duration,
}

impl LeasedLimitSpec {
    /// Returns the amount that can be held and spent in all.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        match *self {
            Self::Permits { cap } => cap,
            Self::Bucket { capacity, .. } => capacity,
            Self::Budget { amount, .. } => amount,
        }
    }

    /// Returns the amount that drains in one minute; 0 for permits and budgets.
    #[must_use]
    pub fn per_minute(&self) -> u64 {
        match *self {
            Self::Bucket { per_minute, .. } => per_minute,
            Self::Permits { .. } | Self::Budget { .. } => 0,
        }
    }

    /// Returns the name under which the store keeps a limit with these terms.
    pub(crate) fn key(&self, limit: &str) -> String {
        match self {
            Self::Budget { window, .. } => format!("{limit}@{window}"),
            Self::Permits { .. } | Self::Bucket { .. } => limit.to_owned(),
        }
    }

    /// Returns true if spent amounts drain again.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        matches!(self, Self::Bucket { .. })
    }

    /// Returns true if taken amounts are spent, and false if they are returned.
    #[must_use]
    pub fn is_consumed(&self) -> bool {
        !matches!(self, Self::Permits { .. })
    }
}

impl LeaseRequest {
    /// Returns the name under which the store keeps the limit. Each window of a budget has its own.
    ///
    /// ```
    /// use sluicegate_quota::{LeaseRequest, LeasedLimitSpec};
    ///
    /// let spec = LeasedLimitSpec::Budget { amount: 50, window: 1793491200, accounted: 0 };
    /// let request = LeaseRequest {
    ///     limit: "q0/team-a".into(), spec, seq: 1, acked: 0, incarnation: 0,
    ///     retained: 0, used: 0, unacked: 0, wanted: 0, waiting: 0, smallest_waiting: 0,
    /// };
    /// assert_eq!(request.key(), "q0/team-a@1793491200");
    /// ```
    #[must_use]
    pub fn key(&self) -> String {
        self.spec.key(&self.limit)
    }
}
