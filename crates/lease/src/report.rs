//! The settings of a lease store that matter for leases.

use std::fmt;

use crate::store::Unreachable;

/// The settings of a lease store that matter for leases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `min-replicas-to-write`, if the store permits reading it. While it is 0, a primary that has
    /// lost its replicas goes on granting amounts that their new primary grants too.
    pub min_replicas_to_write: Option<u64>,
    /// `cluster-require-full-coverage`, if the store is a cluster and permits reading it. While it
    /// is true, all limits are out of reach when one part of the cluster is.
    pub requires_full_coverage: Option<bool>,
}

/// The reason why a store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsuitable {
    /// The store does not answer. The network, the store or its settings are at fault: the store
    /// may be used as soon as it answers.
    Unreachable(Unreachable),
    /// The store drops data when its memory is full, by the policy in this variant, and would then
    /// grant more than is available. The operator is at fault and has to set its `maxmemory-policy`
    /// to `noeviction`.
    Evicts(String),
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => error.fmt(f),
            Self::Evicts(policy) => write!(
                f,
                "the lease store has the maxmemory-policy {policy:?}: expected \"noeviction\""
            ),
        }
    }
}

impl std::error::Error for Unsuitable {}
