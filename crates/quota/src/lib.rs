#![doc = include_str!("../README.md")]

mod bucket;
mod budget;
mod decimal;
mod exchange;
mod holding;
mod import;
#[cfg(test)]
mod interleavings;
mod ledger;
mod lent;
mod limit;
mod limiter;
mod money;
mod price;
mod queue;
mod request;
mod slot;
mod usage;
mod window;
mod zone;

pub use budget::{Budget, BudgetError};
pub use decimal::DecimalError;
pub use exchange::{Ask, Loan, MAX_AMOUNT, Reply, USED_MODULUS};
pub use holding::{CHECKS_OF_LEASE, FailMode, Holding, Lending, LostLease, Taken};
pub use import::{Import, ImportError, PerTokenError, SkipReason, Skipped, import_litellm};
pub use ledger::{Admission, Ledger, LentAsk, Status};
pub use lent::{LeaseLoss, LentPart};
pub use limit::{Caps, Dimension, Terms};
pub use limiter::{Limiter, Permit};
pub use money::{Currency, CurrencyError, Money};
pub use price::{
    MissingPrices, NoPrice, PicoPrice, PicturePrice, Price, PriceEntry, PriceError, PriceKind,
    PriceTable, RepeatedPrice, Tier, UnknownPrice,
};
pub use queue::FairQueue;
pub use request::{Claim, Demand, Level, LimitId, Now, Refused, Remaining, Used};
pub use usage::{Picture, Usage};
pub use window::{Period, Window};
pub use zone::{Zone, ZoneError};
