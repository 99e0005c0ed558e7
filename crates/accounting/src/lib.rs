#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(any(feature = "postgres", feature = "sqlite")),
    allow(
        dead_code,
        reason = "without a store, what the stores share is not used"
    )
)]

mod audit;
mod error;
mod journal;
mod key;
#[cfg(feature = "postgres")]
mod postgres;
mod query;
mod record;
mod segment;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod tokens;
mod usage;

pub use audit::{AuditAction, AuditEntry, AuditQuery};
pub use error::StoreError;
pub use journal::{Journal, JournalOptions, JournalStats, JournalSync};
pub use key::{By, KeyChange, LiveKeys, NewKey, StoredHash, StoredKey};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresAddress, PostgresAddressError};
pub use query::{Granularity, RowQuery, Totals, UsageQuery, UsageSum};
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use store::{AccountingStore, StoreFuture};
pub use tokens::TokenCounts;
pub use usage::{Batch, Closed, Entry, MAX_COUNT, MAX_NANOS, Opened, Shipped, State, UsageRow};
