//! The errors of a store.

use thiserror::Error;

/// The reason why an operation of a store has failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached or is not able to do the operation now: it is busy, gone, full
    /// or read-only. The network or the store's machine is at fault, or the address in the
    /// configuration: the same operation may succeed later, and a journal repeats it.
    #[error("the accounting store {store} is not available: {reason}")]
    Unreachable {
        /// The file or address of the store, without credentials.
        store: String,
        /// The report of the store or the system.
        reason: String,
    },
    /// The store has refused the operation, as it would refuse others: its tables are not as they
    /// should be, or this gateway has no right to use it. The operator is at fault and has to mend
    /// that: repeating the operation does not help before, and a journal waits until then.
    #[error("the accounting store {store} refuses the operation: {reason}")]
    Refused {
        /// The file or address of the store, without credentials.
        store: String,
        /// The reason, with what was found and what is accepted.
        reason: String,
    },
    /// The store cannot hold the data of the operation, but takes other data. The gateway is at
    /// fault for making such data: repeating the operation does not help, and a journal sets the
    /// entry aside for the operator to look at.
    #[error("the accounting store {store} cannot hold the data: {reason}")]
    Unfit {
        /// The file or address of the store, without credentials.
        store: String,
        /// The report of the store.
        reason: String,
    },
    /// A property of a key is not valid. The caller is at fault and has to correct it: `Display`
    /// states what was found and what is accepted.
    #[error("the key cannot be stored: {0}")]
    Invalid(String),
    /// There is no key with this id, or it is revoked. The caller is at fault and has to name a key
    /// that is in use.
    #[error("the key {0:?} is unknown or revoked: expected the id of a key that is in use")]
    UnknownKey(String),
    /// A key that is not revoked has this name. The caller is at fault and has to choose another
    /// name.
    #[error("the name {0:?} is in use: expected a name that no other key has")]
    NameTaken(String),
    /// A key already has this hash. The caller is at fault and has to generate a new key: random
    /// keys do not repeat.
    #[error("the hash belongs to another key: expected a newly generated key")]
    HashTaken,
}

impl StoreError {
    /// Returns true if the same operation may succeed later.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Returns true if the store refuses this data, and not the gateway or every operation.
    #[must_use]
    pub const fn is_unfit(&self) -> bool {
        matches!(self, Self::Unfit { .. })
    }
}
