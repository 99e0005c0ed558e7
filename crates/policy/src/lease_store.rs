//! The client of the Valkey or Redis from which quotas are leased.

use std::time::Duration;

use lease::{Address, Report, Unsuitable, Valkey};

/// Creates the client of the store at an address. `replica` is the name of this process.
#[cfg(feature = "valkey")]
pub fn open(
    address: Address,
    replica: String,
    namespace: &str,
    lease: Duration,
) -> Result<Valkey, String> {
    let settings = lease::Settings {
        name: replica,
        namespace: namespace.to_owned(),
        lease,
        ..lease::Settings::new(address)
    };
    Valkey::new(&settings).map_err(|error| format!("cannot read random bytes: {error}"))
}

/// Opens no store: without its feature there is no address of one.
///
/// # Errors
/// None.
#[cfg(not(feature = "valkey"))]
pub fn open(address: Address, _: String, _: &str, _: Duration) -> Result<Valkey, String> {
    match address {}
}

/// Checks that the store can be used. One that cannot be reached now may be reached later.
pub async fn check(store: &Valkey) -> Result<Option<Report>, String> {
    match store.check().await {
        Ok(report) => Ok(Some(report)),
        Err(Unsuitable::Unreachable(error)) => {
            tracing::error!(%error, "the lease store is away");
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}
