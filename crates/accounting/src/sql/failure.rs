//! Failures inside a store, before they are returned to the caller.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// A failure of an operation. It does not know the file or the address of the store yet.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite has reported an error.
    #[cfg(feature = "sqlite")]
    Sqlite(rusqlite::Error),
    /// The server of PostgreSQL or the connection to it has reported an error.
    #[cfg(feature = "postgres")]
    Postgres(tokio_postgres::Error),
    /// The operation is refused, for this reason.
    Refused(String),
    /// The operation cannot be done now, for this reason.
    Unavailable(String),
    /// The caller asked for something impossible.
    Caller(StoreError),
}

impl Failure {
    /// Returns the error for the caller of the store with this path or address.
    pub(crate) fn at(self, store: &str) -> StoreError {
        let store = store.to_owned();
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(error) => sqlite::report(&error, store),
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => postgres::report(&error, store),
            Self::Refused(reason) => StoreError::Refused { store, reason },
            Self::Unavailable(reason) => StoreError::Unreachable { store, reason },
            Self::Caller(error) => error,
        }
    }

    /// Returns `reason` as an error of the caller if a write has violated a unique index, and the
    /// failure itself otherwise.
    pub(crate) fn taken(self, reason: impl FnOnce() -> StoreError) -> Self {
        let is_taken = match &self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(error) => {
                let code = error.sqlite_error_code();
                matches!(code, Some(rusqlite::ErrorCode::ConstraintViolation))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => matches!(error.code(), Some(&SqlState::UNIQUE_VIOLATION)),
            _ => false,
        };
        if is_taken { reason().into() } else { self }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Caller(error)
    }
}
