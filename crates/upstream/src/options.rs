//! What an operator says of an upstream.

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

/// What an operator says of an upstream. Its `Debug` shows no secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// Its name, for logs and metrics.
    pub name: String,
    /// What the paths of requests are appended to: http or https, of any host. A query is kept behind the path.
    pub base_url: Url,
    /// The same at another host, which is asked when the first one fails.
    pub fallback_base_url: Option<Url>,
    /// Who we are. Without it no request has a credential at all.
    pub credential: Option<Credential>,
    /// Headers of every request that does not bring its own of the same name.
    pub headers: HeaderMap,
    /// For a connection to stand: looking the name up, TCP and TLS.
    pub connect: Duration,
    /// From a connection to the head of the answer; sending the request is in it.
    pub head: Duration,
    /// Between two pieces of a body.
    pub idle: Duration,
    /// How much of the body of an error is worth reading, in bytes.
    pub error_body: usize,
    /// When its hosts are left alone. Each has a breaker of its own.
    pub breaker: breaker::Options,
    /// Certificates, in PEM, of who may vouch for a host beside the public authorities.
    pub roots: Option<Vec<u8>>,
}

/// What shows an upstream who we are. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
    /// The key alone.
    pub(crate) key: Box<str>,
}

/// What is wrong with [`Options`], in sentences for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Neither http nor https.
    #[error("`{field}` has the scheme `{found}`; `http` and `https` are accepted.")]
    Scheme {
        /// The setting.
        field: &'static str,
        /// The scheme.
        found: String,
    },
    /// A part of a URL that does not belong into a base URL.
    #[error("`{field}` has a {part}; it must not have one.")]
    Part {
        /// The setting.
        field: &'static str,
        /// What should not be there.
        part: &'static str,
    },
    /// Nobody to connect to.
    #[error("`{field}` has no host that can be connected to.")]
    Host {
        /// The setting.
        field: &'static str,
    },
    /// A time that lets nothing through, or has no end.
    #[error("`{field}` is {found:?}; a time above 0 and of a day at most is accepted.")]
    Time {
        /// The setting.
        field: &'static str,
        /// The time.
        found: Duration,
    },
    /// A breaker that nothing could open or close.
    #[error("`breaker.failures` is 0; 1 and more are accepted.")]
    Failures,
    /// A header that is not the operator's to set.
    #[error("`headers` has `{found}`, which the gateway sets itself.")]
    Header {
        /// The name of the header.
        found: String,
    },
    /// A key that cannot be sent in a header.
    #[error("`api_key` is empty or has characters that a header cannot carry; visible ASCII characters are accepted.")]
    Credential,
    /// Certificates that cannot be read.
    #[error("`roots` has {found}; certificates in PEM are accepted.")]
    Roots {
        /// What is there instead.
        found: &'static str,
    },
}

impl Options {
    /// The defaults for an upstream at `base_url`.
    #[must_use]
    pub fn new(name: impl Into<String>, base_url: Url) -> Self {
        Self {
            name: name.into(),
            base_url,
            fallback_base_url: None,
            credential: None,
            headers: HeaderMap::new(),
            connect: Duration::from_secs(5),
            head: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            error_body: 64 << 10,
            breaker: breaker::Options::default(),
            roots: None,
        }
    }

    /// Checks all but the URLs and the roots, which are checked as they are read.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        let times =
            [("connect", self.connect), ("head", self.head), ("idle", self.idle), ("breaker.open", self.breaker.open)];
        if let Some((field, found)) = times.into_iter().find(|(_, time)| time.is_zero() || *time > DAY) {
            return Err(OptionsError::Time { field, found });
        }
        if self.breaker.failures == 0 {
            return Err(OptionsError::Failures);
        }
        let is_credential = |name: &HeaderName| self.credential.as_ref().is_some_and(|own| own.name == name);
        match self.headers.keys().find(|name| is_ours(name) || is_credential(name)) {
            Some(name) => Err(OptionsError::Header { found: name.to_string() }),
            None => Ok(()),
        }
    }

    /// Who may vouch for a host.
    pub(crate) fn trusted(&self) -> Result<RootCertStore, OptionsError> {
        let mut trusted = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let Some(pem) = &self.roots else { return Ok(trusted) };
        let public = trusted.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| OptionsError::Roots { found: "PEM that cannot be read" })?;
            trusted.add(certificate).map_err(|_| OptionsError::Roots { found: "a certificate that cannot be read" })?;
        }
        if trusted.len() == public {
            return Err(OptionsError::Roots { found: "no certificate" });
        }
        Ok(trusted)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("name", &self.name)
            .field("host", &self.base_url.host_str())
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// Shown as `Authorization: Bearer …`.
    ///
    /// # Errors
    /// When the key cannot be sent in a header.
    pub fn bearer(key: &str) -> Result<Self, OptionsError> {
        Self::new(AUTHORIZATION, key, format!("Bearer {key}"))
    }

    /// Shown as `x-api-key: …`.
    ///
    /// # Errors
    /// When the key cannot be sent in a header.
    pub fn x_api_key(key: &str) -> Result<Self, OptionsError> {
        Self::new(X_API_KEY, key, key.to_owned())
    }

    fn new(name: HeaderName, key: &str, value: String) -> Result<Self, OptionsError> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OptionsError::Credential);
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| OptionsError::Credential)?;
        value.set_sensitive(true);
        Ok(Self { name, value, key: key.into() })
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
