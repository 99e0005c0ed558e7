//! Types without values, for a build without a client of Valkey and Redis: it accepts no address.

use std::str::FromStr;

use quota::LeaseRequest;

use crate::report::{Report, Unsuitable};
use crate::store::{ExchangeFuture, LeaseStore, SharesFuture};

/// The address of a lease store. It has no value in a build without a client of Valkey and Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {}

/// The client of a lease store. It has no value in a build without a client of Valkey and Redis.
#[derive(Debug)]
pub enum Valkey {}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(_: &str) -> Result<Self, Self::Err> {
        Err("this build has no client of Valkey and Redis: build it with the feature 'valkey'")
    }
}

impl Valkey {
    /// Checks that the store can be used.
    ///
    /// # Errors
    /// Never returns an error, because this type has no value.
    #[allow(
        clippy::unused_async,
        reason = "the client that this stands for is asked"
    )]
    pub async fn check(&self) -> Result<Report, Unsuitable> {
        match *self {}
    }
}

impl LeaseStore for Valkey {
    fn exchange<'a>(&'a self, _: &'a [LeaseRequest]) -> ExchangeFuture<'a> {
        match *self {}
    }

    fn holders<'a>(&'a self, _: &'a [String]) -> SharesFuture<'a> {
        match *self {}
    }
}
