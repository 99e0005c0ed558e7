//! The states of a [`LeasedShare`](super::LeasedShare): three states that are independent of each
//! other.
//!
//! ```text
//!                 poll                      on_grant
//!   Idle ─────────────────────► InFlight ──────────────► Idle; Granting or Quarantined; waiters served or not
//!                                   │ on_no_answer
//!                                   ├──────────────────► Idle; Unreachable; the next request a tenth of a renewal later
//!                                   │ end of the lease
//!                                   └──────────────────► Idle; everything is forfeited; the next request at once
//! ```
//!
//! | state of the store | begins with | ends with |
//! |---|---|---|
//! | `Granting` | a grant | a grant that says that the store is in quarantine, or no answer |
//! | `Quarantined` | a grant that says so | a grant that does not, or no answer |
//! | `Unreachable` | no answer | the next grant; it remains while a retry is in flight |
//!
//! | state of the waiters | begins with | ends with |
//! |---|---|---|
//! | `None` | the start, a request to the store, the end of the others | an exchange for waiters |
//! | `Unserved` | an empty grant, or no answer | the next request to the store, or a notice |
//! | `Served` | a grant | its use, a settlement, the next request, a five-hundredth of the lease |

/// The exchange of a share with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeState {
    /// No request is in flight.
    Idle,
    /// A request is unanswered.
    InFlight {
        /// True if requests of clients wait for its grant.
        for_waiters: bool,
        /// True if a notice has arrived since the request was sent: there may be an amount that the
        /// store did not have when it received the request.
        noticed: bool,
    },
}

/// The state of the store, as the last exchange has shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreState {
    /// It answers and grants.
    Granting,
    /// It answers, and grants nothing until all leases that it may have forgotten are over.
    Quarantined,
    /// It did not answer.
    Unreachable {
        /// True if it was in quarantine when it answered last. Refunds are not credited then,
        /// because the store may have counted the reservation in another way.
        was_quarantined: bool,
    },
}

/// Requests of clients that have found too little in a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaiterState {
    /// The next request to the store need not wait, and no grant is reserved for them.
    None,
    /// The store had nothing for them. It is asked again after a five-hundredth of the lease or a
    /// notice; and at the next renewal even without waiting requests, because the store has noted
    /// that this replica waits.
    Unserved,
    /// The last grant is for them, and is not returned until they have had the time to take it.
    Served,
}

impl ExchangeState {
    /// Returns the state of the waiters after the exchange; `has_granted` is true if the store has
    /// granted something for them.
    ///
    /// A notice that arrives during the exchange does not take the grant from the requests that
    /// wait for it. If they got nothing, the store is asked again at once.
    pub(super) fn waiters(self, has_granted: bool) -> WaiterState {
        match self {
            Self::InFlight {
                for_waiters: true,
                noticed,
            } => match (has_granted, noticed) {
                (true, _) => WaiterState::Served,
                (false, false) => WaiterState::Unserved,
                (false, true) => WaiterState::None,
            },
            Self::InFlight { .. } | Self::Idle => WaiterState::None,
        }
    }
}

impl StoreState {
    /// Returns the state after a request that was not answered.
    pub(super) fn after_no_answer(self) -> Self {
        Self::Unreachable {
            was_quarantined: self.is_quarantined(),
        }
    }

    /// Returns true if the store was in quarantine when it answered last.
    pub(super) fn is_quarantined(self) -> bool {
        let unreachable = Self::Unreachable {
            was_quarantined: true,
        };
        self == Self::Quarantined || self == unreachable
    }

    /// Returns true if the store did not answer the last request.
    pub(super) fn is_unreachable(self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}
