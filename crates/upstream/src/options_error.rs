//! The problems of the settings of an upstream.

use std::time::Duration;

use thiserror::Error;

/// An invalid setting in [`Options`](crate::Options). Its `Display` is a sentence for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The setting, and its URL scheme other than http and https.
    #[error("`{0}` has the scheme `{1}`; `http` and `https` are accepted.")]
    Scheme(&'static str, String),
    /// The scheme of a proxy's URL, other than http.
    #[error("`proxy` has the scheme `{0}`; `http` is accepted.")]
    ProxyScheme(String),
    /// The setting, and the URL component that a base URL must not have.
    #[error("`{0}` has a {1}; it must not have one.")]
    Part(&'static str, &'static str),
    /// The base URL without a usable host.
    #[error("`{0}` has no host that can be connected to.")]
    Host(&'static str),
    /// The setting, and its duration of zero or of more than a day.
    #[error("`{0}` is {1:?}; a time above 0 and of a day at most is accepted.")]
    Time(&'static str, Duration),
    /// The number of attempts of a circuit breaker that opens without any.
    #[error("`breaker.attempts` is 0; 1 and more are accepted.")]
    Attempts,
    /// The share of failures that opens a circuit breaker, if it is no percentage.
    #[error("`breaker.failure_percent` is {0}; 1 to 100 are accepted.")]
    FailurePercent(u32),
    /// The name of a header that only the gateway sets.
    #[error("`headers` has `{0}`, which the gateway sets itself.")]
    Header(String),
    /// The name of a header that the key cannot be sent in.
    #[error("`auth` has the header `{0}`, which the gateway sets itself.")]
    KeyHeader(String),
    /// The name of a response header that is not for clients.
    #[error(
        "`pass_headers` has `{0}`, which is not passed on: it concerns the connection, the content or a session, or the gateway sets it itself."
    )]
    Passed(String),
    /// A key that is not a valid header value.
    #[error(
        "`api_key` is empty or has characters that a header cannot carry; visible ASCII characters are accepted."
    )]
    Credential,
    /// The problem of CA certificates that cannot be parsed.
    #[error("`roots` has {0}; certificates in PEM are accepted.")]
    Roots(&'static str),
}
