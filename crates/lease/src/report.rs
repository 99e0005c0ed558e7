//! The settings of a store that matter for lending.

use std::fmt;

use crate::store::Unreachable;

/// The settings of a store that matter for lending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `min-replicas-to-write`, if the store permits reading it. While it is 0, a primary that has lost its
    /// replicas goes on lending what their new primary lends too.
    pub min_replicas_to_write: Option<u64>,
    /// `cluster-require-full-coverage`, if the store is a cluster and permits reading it. While it is true, all
    /// limits are out of reach when one part of the cluster is.
    pub requires_full_coverage: Option<bool>,
}

/// The reason why a store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsuitable {
    /// The store does not answer.
    Unreachable(Unreachable),
    /// The store drops data when its memory is full, and would then lend more than there is. Contains
    /// the policy.
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
