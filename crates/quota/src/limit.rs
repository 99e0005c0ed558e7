//! The definition of a limit.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Budget;
use crate::bucket::MAX_PER_MINUTE;
use crate::leased_share::LeaseSettings;

/// The caps of a limit for each of its scopes. `None` does not limit.
/// In a document, absent fields do not limit, and unknown fields are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    /// Requests that are answered at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Requests that begin in a minute. Unused ones add up to one minute's worth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Tokens of prompts and answers in a minute. Unused ones add up to one minute's worth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Money in a calendar window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// The caps of a limit, and the way in which it is shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The caps.
    pub caps: Caps,
    /// The settings by which the limit is leased from a store. `None` if all of it belongs to this
    /// process.
    pub lending: Option<LeaseSettings>,
}

/// The dimension of a limit: the kind of usage that a cap is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Requests at the same time.
    Concurrency,
    /// Requests per minute.
    Requests,
    /// Tokens per minute.
    Tokens,
    /// Money in a calendar window.
    Budget,
}

impl From<Caps> for Terms {
    fn from(caps: Caps) -> Self {
        Self {
            caps,
            lending: None,
        }
    }
}

impl Caps {
    /// Limits nothing but the requests that are answered at the same time.
    #[must_use]
    pub fn concurrency(cap: u64) -> Self {
        Self {
            concurrency: Some(cap),
            ..Self::default()
        }
    }

    /// Returns true if requests or tokens per minute are limited.
    pub(crate) fn has_rates(&self) -> bool {
        self.requests_per_minute.is_some() || self.tokens_per_minute.is_some()
    }

    /// Returns the cap of a dimension; 0 if it is not limited.
    pub(crate) fn cap(&self, dimension: Dimension) -> u64 {
        let budget = || {
            let nanos = self.budget.as_ref()?.amount.nanos();
            u64::try_from(nanos).ok()
        };
        let cap = match dimension {
            Dimension::Concurrency => self.concurrency,
            Dimension::Requests => self.requests_per_minute,
            Dimension::Tokens => self.tokens_per_minute,
            Dimension::Budget => budget(),
        };
        cap.unwrap_or(0)
    }

    /// Returns the problems of these caps; each problem names its field. A cap of zero is a
    /// problem, because it would refuse every request.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let caps = [
            ("concurrency", self.concurrency),
            ("requests_per_minute", self.requests_per_minute),
            ("tokens_per_minute", self.tokens_per_minute),
        ];
        let wrong = caps
            .iter()
            .filter_map(|(name, cap)| cap.map(|cap| (name, cap)))
            .filter(|(_, cap)| !(1..=MAX_PER_MINUTE).contains(cap));
        wrong
            .map(|(name, cap)| format!("{name}: is {cap}, but must be 1 to {MAX_PER_MINUTE}"))
            .collect()
    }
}

impl Dimension {
    /// Converts an amount in the unit of a [`LeaseRequest`](crate::LeaseRequest) to the unit of the
    /// cap; a budget amount stays in nano-units of money.
    #[must_use]
    pub fn units(self, amount: u64) -> u64 {
        match self {
            Self::Requests | Self::Tokens => amount / MICRO,
            Self::Concurrency | Self::Budget => amount,
        }
    }

    /// Returns the name of the dimension in configurations, metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Concurrency => "concurrency",
            Self::Requests => "requests_per_minute",
            Self::Tokens => "tokens_per_minute",
            Self::Budget => "budget",
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The micro-units of a request or a token, in which rates are leased.
pub(crate) const MICRO: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_that_is_zero_or_too_large_is_named() {
        let caps = Caps {
            concurrency: Some(0),
            requests_per_minute: Some(1),
            tokens_per_minute: Some(50_000_000_001),
            budget: None,
        };
        assert_eq!(
            caps.problems(),
            [
                "concurrency: is 0, but must be 1 to 50000000000",
                "tokens_per_minute: is 50000000001, but must be 1 to 50000000000"
            ]
        );
        assert_eq!(Caps::concurrency(50_000_000_000).problems(), [""; 0]);
    }
}
