//! The interface of a lease store.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use quota::{LeaseGrant, LeaseRequest};

/// A store from which replicas lease shares of limits.
pub trait LeaseStore: Send + Sync + fmt::Debug {
    /// Sends lease requests to the store, and returns the result of each one in their order.
    ///
    /// Call it once per renewal even without lease requests: a store that has lost its data notices
    /// the loss only in an exchange, and grants only rates for the first lease after that.
    fn exchange<'a>(&'a self, requests: &'a [LeaseRequest]) -> ExchangeFuture<'a>;

    /// Waits for the next notice of another replica about a limit, and returns the name of the
    /// limit in the store ([`LeaseRequest::key`]). The other replica waits for an amount that may
    /// be idle here, or it has returned an amount for which requests wait here. Pass the name to
    /// the ledger ([`quota::Ledger::on_notice`]).
    ///
    /// Notices can be lost; then idle amounts are returned with the next renewal. A store within
    /// the process has no other replicas, and no notices.
    fn notice(&self) -> NoticeFuture<'_> {
        Box::pin(std::future::pending())
    }

    /// Waits until the store is found without its data, because it was restarted or flushed. Set the
    /// spending of budgets again then ([`quota::Ledger::add_spent`]): the store has forgotten it, and
    /// grants no money for one lease.
    ///
    /// A store within the process loses nothing.
    fn lost_data(&self) -> DataLossFuture<'_> {
        Box::pin(std::future::pending())
    }

    /// Returns the shares of all replicas in each of these limits, which are named as in the store
    /// ([`LeaseRequest::key`]). A replica whose lease is over may still be among them.
    ///
    /// # Errors
    /// Returns an error if the store does not answer.
    fn holders<'a>(&'a self, limits: &'a [String]) -> SharesFuture<'a>;
}

/// The share that a replica has of a limit. Amounts are in the unit of a [`LeaseRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareInfo {
    /// The name of the replica, or its number if it has none.
    pub replica: String,
    /// The amount that the replica holds.
    pub held: u64,
    /// The amount for which requests of the replica wait.
    pub short: u64,
}

/// The future of the shares of limits.
pub type SharesFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Vec<ShareInfo>>, Unreachable>> + Send + 'a>>;

/// The future of a notice.
pub type NoticeFuture<'a> = Pin<Box<dyn Future<Output = String> + Send + 'a>>;

/// The future of a loss of data.
pub type DataLossFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The future of an exchange. It never fails as a whole, since a store can be spread over servers.
pub type ExchangeFuture<'a> =
    Pin<Box<dyn Future<Output = Vec<Result<LeaseGrant, Unreachable>>> + Send + 'a>>;

/// The error for a store that did not answer in time, or not with a grant. The network, the store
/// or its settings are at fault: it is not known whether the store has received the request. A
/// limit whose lease is over before the store answers goes on by its [`FailMode`](quota::FailMode).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable(pub(crate) Arc<str>);

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lease store did not answer: {}", self.0)
    }
}

impl std::error::Error for Unreachable {}
