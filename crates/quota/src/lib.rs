#![doc = include_str!("../README.md")]

mod bucket;
mod budget;
mod decimal;
mod exchange;
mod import;
#[cfg(test)]
mod interleavings;
mod leased_limit;
mod leased_share;
mod ledger;
mod limit;
mod money;
mod picture;
mod price;
mod queue;
mod request;
mod scope_counters;
mod shared_ledger;
mod window;
mod zone;

pub use budget::{Budget, BudgetError};
pub use decimal::DecimalError;
pub use exchange::{LeaseGrant, LeaseRequest, LeasedLimitSpec, MAX_AMOUNT, USED_MODULUS};
pub use import::{Import, ImportError, PerTokenError, SkipReason, Skipped, import_litellm};
pub use leased_limit::{LeaseLoss, LeaseStatus};
pub use leased_share::{
    CHECKS_OF_LEASE, FailMode, LeaseSettings, LeasedShare, LostLease, ShareReservation,
};
pub use ledger::{Admission, Ledger, PendingRequest, Status};
pub use limit::{Caps, Dimension, Terms};
pub use money::{Currency, CurrencyError, Money};
pub use picture::Picture;
pub use price::{
    MissingPrices, NoPrice, PicoPrice, PicturePrice, Price, PriceEntry, PriceError, PriceKind,
    PriceTable, RepeatedPrice, Tier, UnknownPrice,
};
pub use queue::FairQueue;
pub use request::{Claim, Demand, Level, LimitId, Now, Refused, Remaining, Used};
pub use shared_ledger::{Permit, SharedLedger};
pub use window::{Period, Window};
pub use zone::{Zone, ZoneError};
