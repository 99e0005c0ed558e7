//! The statements of the stores, which are the same in SQLite and in PostgreSQL.
//!
//! An operation is a function here. It runs in a transaction that the store has begun, a
//! [`Session`], which also supplies what the two dialects of SQL say in different ways. Placeholders
//! are `$1`, `$2` and so on. Values are [`Value`]s, and rows are read by functions of a [`Row`].
//!
//! Functions are asynchronous because PostgreSQL is. In SQLite they never wait, so that the thread
//! of the connection runs them as ordinary calls.

pub(crate) mod audit;
mod columns;
mod failure;
pub(crate) mod keys;
pub(crate) mod rollup;
pub(crate) mod rows;
mod session;
pub(crate) mod sums;
pub(crate) mod usage;

pub(crate) use failure::Failure;
pub(crate) use session::{Read, Row, Session, Value};
