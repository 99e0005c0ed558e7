//! Failures inside the store, before they are returned to the caller.

use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// A failure of an operation. It does not know the address yet.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server or the connection has reported an error.
    Postgres(tokio_postgres::Error),
    /// The operation is refused, for this reason.
    Refused(String),
    /// The operation cannot be done now, for this reason.
    Unavailable(String),
    /// The caller asked for something impossible.
    Caller(StoreError),
}

impl Failure {
    /// Returns the error for the caller of the store at `address`.
    pub(super) fn at(self, address: &str) -> StoreError {
        let store = address.to_owned();
        let reason = self.reason();
        match &self {
            Self::Caller(error) => error.clone(),
            Self::Unavailable(_) => StoreError::Unreachable { store, reason },
            Self::Refused(_) => StoreError::Refused { store, reason },
            Self::Postgres(error) if is_of(MAY_PASS, error) => {
                StoreError::Unreachable { store, reason }
            }
            Self::Postgres(error) if is_of(UNFIT, error) => StoreError::Unfit { store, reason },
            // The connection is broken.
            Self::Postgres(error) if error.code().is_none() => {
                StoreError::Unreachable { store, reason }
            }
            Self::Postgres(_) => StoreError::Refused { store, reason },
        }
    }

    /// Returns the failure as text, with its causes.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Postgres(error) => {
                let text = match std::error::Error::source(error) {
                    Some(cause) => format!("{error}: {cause}"),
                    None => error.to_string(),
                };
                let advice = ADVICE.iter().find(|(end, _)| text.ends_with(end));
                text + advice.map_or("", |(_, advice)| advice)
            }
            Self::Refused(reason) | Self::Unavailable(reason) => reason.clone(),
            Self::Caller(error) => error.to_string(),
        }
    }

    /// Returns `reason` as an error of the caller if a unique index is violated, and the failure
    /// itself otherwise.
    pub(super) fn taken(error: tokio_postgres::Error, reason: impl FnOnce() -> StoreError) -> Self {
        match error.code() {
            Some(&SqlState::UNIQUE_VIOLATION) => Self::Caller(reason()),
            _ => Self::Postgres(error),
        }
    }
}

/// Returns true if the code of an error is of one of these classes.
fn is_of(classes: &[&str], error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| classes.iter().any(|class| code.code().starts_with(class)))
}

/// The classes of errors after which the same operation may succeed later: the connection is broken,
/// or the server is busy, full or restarting, or another gateway was in the way.
const MAY_PASS: &[&str] = &["08", "25006", "40", "53", "55", "57", "58"];

/// The classes of errors that the data causes: a value that does not fit in its column, a violated
/// constraint, and a value that is too long for an index.
const UNFIT: &[&str] = &["22", "23", "54000"];

/// Advice for failures of TLS, by the ends of their texts.
const ADVICE: [(&str, &str); 2] = [
    (
        "server does not support TLS",
        ": enable it there, or connect without it by sslmode=disable",
    ),
    (
        "UnknownIssuer",
        ": expected one of a CA that sslrootcert names, or of a public one without it",
    ),
];

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Caller(error)
    }
}
