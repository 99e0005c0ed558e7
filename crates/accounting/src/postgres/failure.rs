//! Failures inside the store, before they are returned to the caller.

use tokio_postgres::error::SqlState;

use crate::store::StoreError;

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
        let may_pass = match &self {
            Self::Caller(error) => return error.clone(),
            Self::Postgres(error) => may_pass(error),
            Self::Refused(_) => false,
            Self::Unavailable(_) => true,
        };
        let reason = self.reason();
        match may_pass {
            true => StoreError::Unreachable { store, reason },
            false => StoreError::Refused { store, reason },
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

    /// Returns the reason of the caller if the failure is that of a unique index.
    pub(super) fn taken(error: tokio_postgres::Error, reason: impl FnOnce() -> StoreError) -> Self {
        match error.code() {
            Some(&SqlState::UNIQUE_VIOLATION) => Self::Caller(reason()),
            _ => Self::Postgres(error),
        }
    }
}

/// Returns true if the same operation may succeed later: the connection is broken, or the server is
/// busy, full or restarting, or another gateway was in the way.
fn may_pass(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        return true;
    };
    let of_class = |class: &&str| code.code().starts_with(*class);
    ["08", "25006", "40", "53", "55", "57", "58"]
        .iter()
        .any(of_class)
}

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
