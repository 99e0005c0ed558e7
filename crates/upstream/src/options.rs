//! The settings of an upstream.

use std::fmt;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use url::Url;

use crate::breaker;
use crate::headers::{X_API_KEY, is_ours};

/// The settings of an upstream. Its `Debug` shows no secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// The URL that request paths are appended to: http or https, any host. Its query is kept after
    /// the path.
    pub base_url: Url,
    /// The base URL of the fallback host, which is used when the first host fails.
    pub fallback_base_url: Option<Url>,
    /// The credential of every request. Without it requests carry none.
    pub credential: Option<Credential>,
    /// Default headers: a request's own header of the same name replaces them.
    pub headers: HeaderMap,
    /// The connect timeout: DNS lookup, TCP and TLS.
    pub connect: Duration,
    /// The timeout for sending a request for a stream and receiving the head of the response. Other
    /// requests only have a deadline, because their head arrives with the last token.
    pub head: Duration,
    /// The timeout between two chunks of a response body, or two events or comments of a stream.
    pub idle: Duration,
    /// The settings of the circuit breakers. Each host has its own breaker.
    pub breaker: breaker::Options,
    /// Certificates of trusted CAs in PEM, in addition to the public CAs.
    pub roots: Option<Vec<u8>>,
}

/// An API key and the header that carries it. Its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
    /// The key without a prefix such as `Bearer`.
    pub(crate) key: Box<str>,
}

/// An invalid setting in [`Options`]. Its `Display` is a sentence for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The setting, and its URL scheme other than http and https.
    #[error("`{0}` has the scheme `{1}`; `http` and `https` are accepted.")]
    Scheme(&'static str, String),
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
    /// A key that is not a valid header value.
    #[error(
        "`api_key` is empty or has characters that a header cannot carry; visible ASCII characters are accepted."
    )]
    Credential,
    /// The problem of CA certificates that cannot be parsed.
    #[error("`roots` has {0}; certificates in PEM are accepted.")]
    Roots(&'static str),
}

impl Options {
    /// Returns the default settings for an upstream at `base_url`.
    #[must_use]
    pub fn new(base_url: Url) -> Self {
        Self {
            base_url,
            fallback_base_url: None,
            credential: None,
            headers: HeaderMap::new(),
            connect: Duration::from_secs(5),
            head: Duration::from_secs(120),
            idle: Duration::from_secs(300),
            breaker: breaker::Options::default(),
            roots: None,
        }
    }

    /// Validates all settings but the URLs and the CA certificates, which are validated when they
    /// are parsed.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        let times = [
            ("connect", self.connect),
            ("head", self.head),
            ("idle", self.idle),
            ("breaker.window", self.breaker.window),
            ("breaker.open", self.breaker.open),
        ];
        if let Some((field, found)) = times
            .into_iter()
            .find(|(_, time)| time.is_zero() || *time > DAY)
        {
            return Err(OptionsError::Time(field, found));
        }
        if self.breaker.attempts == 0 {
            return Err(OptionsError::Attempts);
        }
        if !(1..=100).contains(&self.breaker.failure_percent) {
            return Err(OptionsError::FailurePercent(self.breaker.failure_percent));
        }
        let is_credential =
            |name: &HeaderName| self.credential.as_ref().is_some_and(|own| own.name == name);
        match self
            .headers
            .keys()
            .find(|name| is_ours(name) || is_credential(name))
        {
            Some(name) => Err(OptionsError::Header(name.to_string())),
            None => Ok(()),
        }
    }

    /// Returns the trusted CAs: the public ones and those of the operator.
    pub(crate) fn trusted_roots(&self) -> Result<RootCertStore, OptionsError> {
        let mut store = net::public_roots();
        let Some(pem) = &self.roots else {
            return Ok(store);
        };
        let public = store.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|_| OptionsError::Roots("PEM that cannot be read"))?;
            store
                .add(certificate)
                .map_err(|_| OptionsError::Roots("a certificate that cannot be read"))?;
        }
        if store.len() == public {
            return Err(OptionsError::Roots("no certificate"));
        }
        Ok(store)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("host", &self.base_url.host_str())
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// A credential that is sent as `Authorization: Bearer …`.
    ///
    /// # Errors
    /// When the key is not a valid header value.
    pub fn bearer(key: &str) -> Result<Self, OptionsError> {
        Self::new(AUTHORIZATION, key, format!("Bearer {key}"))
    }

    /// A credential that is sent as `x-api-key: …`.
    ///
    /// # Errors
    /// When the key is not a valid header value.
    pub fn x_api_key(key: &str) -> Result<Self, OptionsError> {
        Self::new(X_API_KEY, key, key.to_owned())
    }

    fn new(name: HeaderName, key: &str, value: String) -> Result<Self, OptionsError> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OptionsError::Credential);
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| OptionsError::Credential)?;
        value.set_sensitive(true);
        Ok(Self {
            name,
            value,
            key: key.into(),
        })
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
