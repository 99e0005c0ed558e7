//! The problems of the settings of an upstream.

use std::time::Duration;

use thiserror::Error;

/// An invalid setting in [`Options`](crate::Options). Its `Display` is a sentence for the operator,
/// who has to correct the setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The URL of this setting has this scheme, which is neither `http` nor `https`. The operator
    /// is at fault, and has to use one of them.
    #[error("`{0}` has the scheme `{1}`; `http` and `https` are accepted.")]
    Scheme(&'static str, String),
    /// The URL of the proxy has this scheme, which is not `http`. The operator is at fault, and has
    /// to use `http`: the tunnel to an `https` host is encrypted all the same.
    #[error("`proxy` has the scheme `{0}`; `http` is accepted.")]
    ProxyScheme(String),
    /// The URL of this setting has this component, which a base URL must not have. The operator is
    /// at fault, and has to remove it; a key belongs in
    /// [`Options::credential`](crate::Options::credential).
    #[error("`{0}` has a {1}; it must not have one.")]
    Part(&'static str, &'static str),
    /// The URL of this setting has no host that can be connected to. The operator is at fault, and
    /// has to name a host by a DNS name or an IP address.
    #[error("`{0}` has no host that can be connected to.")]
    Host(&'static str),
    /// The time of this setting is zero or more than a day. The operator is at fault, and has to
    /// set a time in between, or a day.
    #[error("`{0}` is {1:?}; a time above 0 and of a day at most is accepted.")]
    Time(&'static str, Duration),
    /// The number of attempts is 0, so that the circuit breaker would open without any. The
    /// operator is at fault, and has to set 1 or more.
    #[error("`breaker.attempts` is 0; 1 and more are accepted.")]
    Attempts,
    /// The share of failures that opens a circuit breaker is 0 or above 100. The operator is at
    /// fault, and has to set a percentage from 1 to 100.
    #[error("`breaker.failure_percent` is {0}; 1 to 100 are accepted.")]
    FailurePercent(u32),
    /// The default headers have this header, which only the gateway sets, or which carries the
    /// credential. The operator is at fault, and has to remove it.
    #[error("`headers` has `{0}`, which the gateway sets itself.")]
    Header(String),
    /// The key is to be sent in this header, which only the gateway sets. The operator is at fault,
    /// and has to name another header.
    #[error("`auth` has the header `{0}`, which the gateway sets itself.")]
    KeyHeader(String),
    /// This response header is to be passed on, and is not for clients. The operator is at fault,
    /// and has to remove it from the list.
    #[error(
        "`pass_headers` has `{0}`, which is not passed on: it concerns the connection, the content or a session, or the gateway sets it itself."
    )]
    Passed(String),
    /// The key is empty, or has characters other than visible ASCII, such as a space or a line end.
    /// The operator is at fault, and has to provide the key as the vendor has issued it.
    #[error(
        "`api_key` is empty or has characters that a header cannot carry; visible ASCII characters are accepted."
    )]
    Credential,
    /// The CA certificates cannot be parsed or are absent. The operator is at fault, and has
    /// to provide certificates in PEM.
    #[error("`ca_file` has {0}; certificates in PEM are accepted.")]
    Roots(&'static str),
}
