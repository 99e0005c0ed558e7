//! The client of the Valkey or Redis that lends quotas.

use std::time::Duration;

#[cfg(not(feature = "valkey"))]
pub(crate) use self::absent::{Address, Valkey};
#[cfg(feature = "valkey")]
pub(crate) use lease::{Address, Valkey};
use lease::{Report, Unsuitable};

/// Creates the client of the store at an address. `replica` is the name of this process.
#[cfg(feature = "valkey")]
pub(crate) fn open(
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

#[cfg(not(feature = "valkey"))]
pub(crate) fn open(address: Address, _: String, _: &str, _: Duration) -> Result<Valkey, String> {
    match address {}
}

/// Checks that the store can be used. One that cannot be reached now may be reached later.
pub(crate) async fn check(store: &Valkey) -> Result<Option<Report>, String> {
    match store.check().await {
        Ok(report) => Ok(Some(report)),
        Err(Unsuitable::Unreachable(error)) => {
            tracing::error!(%error, "the lease store is away");
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Types without values, in a build that has no client: it accepts no address.
#[cfg(not(feature = "valkey"))]
mod absent {
    use std::str::FromStr;

    use lease::{Exchange, Holders, LeaseStore, Report, Unsuitable};
    use quota::Ask;

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Address {}

    #[derive(Debug)]
    pub(crate) enum Valkey {}

    impl FromStr for Address {
        type Err = &'static str;

        fn from_str(_: &str) -> Result<Self, Self::Err> {
            Err("this build has no client of Valkey and Redis: build it with the feature 'valkey'")
        }
    }

    impl Valkey {
        #[allow(
            clippy::unused_async,
            reason = "the client that this stands for is asked"
        )]
        pub(crate) async fn check(&self) -> Result<Report, Unsuitable> {
            match *self {}
        }
    }

    impl LeaseStore for Valkey {
        fn exchange<'a>(&'a self, _: &'a [Ask]) -> Exchange<'a> {
            match *self {}
        }

        fn holders<'a>(&'a self, _: &'a [String]) -> Holders<'a> {
            match *self {}
        }
    }
}
