//! Classifies the errors of PostgreSQL for the caller.

use tokio_postgres::Error;

use super::Failure;
use crate::error::StoreError;

/// Returns an error for the caller of the store at this address, with its causes.
pub(super) fn report(error: &Error, store: String) -> StoreError {
    let text = match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    let advice = ADVICE.iter().find(|(end, _)| text.ends_with(end));
    let reason = text + advice.map_or("", |(_, advice)| advice);
    // Without a code the connection is broken.
    if error.code().is_none() || is_of(MAY_PASS, error) {
        StoreError::Unreachable { store, reason }
    } else if is_of(UNFIT, error) {
        StoreError::Unfit { store, reason }
    } else {
        StoreError::Refused { store, reason }
    }
}

/// Returns true if the code of an error is of one of these classes.
fn is_of(classes: &[&str], error: &Error) -> bool {
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Postgres(error)
    }
}
