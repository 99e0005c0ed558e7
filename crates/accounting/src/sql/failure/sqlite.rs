//! Classifies the errors of SQLite for the caller.

use rusqlite::ErrorCode;

use super::Failure;
use crate::error::StoreError;

/// Returns an error for the caller of the store at this path.
pub(super) fn report(error: &rusqlite::Error, store: String) -> StoreError {
    let reason = error.to_string();
    if may_pass(error) {
        StoreError::Unreachable { store, reason }
    } else if is_unfit(error) {
        StoreError::Unfit { store, reason }
    } else {
        StoreError::Refused { store, reason }
    }
}

/// Returns true if the same operation may succeed once the machine is in a better state.
fn may_pass(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::CannotOpen
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OutOfMemory
                | ErrorCode::PermissionDenied
                | ErrorCode::ReadOnly
                | ErrorCode::SchemaChanged
                | ErrorCode::SystemIoFailure
        )
    )
}

/// Returns true if the data causes the error: a violated constraint, or a value that does not fit.
fn is_unfit(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
    )
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn an_error_is_of_the_machine_the_data_or_the_store() {
        let kind = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            match Failure::Sqlite(error).at("usage.db") {
                StoreError::Unreachable { .. } => "may pass",
                StoreError::Unfit { .. } => "unfit",
                StoreError::Refused { .. } => "refused",
                other => panic!("{other}"),
            }
        };
        assert_eq!(
            [ffi::SQLITE_BUSY, ffi::SQLITE_FULL, ffi::SQLITE_IOERR].map(kind),
            ["may pass"; 3]
        );
        assert_eq!(
            [
                ffi::SQLITE_CONSTRAINT,
                ffi::SQLITE_TOOBIG,
                ffi::SQLITE_MISMATCH
            ]
            .map(kind),
            ["unfit"; 3]
        );
        assert_eq!(
            [ffi::SQLITE_ERROR, ffi::SQLITE_CORRUPT].map(kind),
            ["refused"; 2]
        );
    }
}
