//! The settings of an upstream.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use url::Url;

use crate::breaker;
use crate::credential::Credential;
use crate::headers::{is_ours, may_pass};
use crate::options_error::OptionsError;
use crate::proxy::Proxy;

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
    /// The headers of responses that [`ResponseMeta`](crate::ResponseMeta) has for the client.
    pub pass_headers: Vec<HeaderName>,
    /// The proxy that connects to the hosts.
    pub proxy: Option<Proxy>,
    /// The connect timeout: DNS lookup, TCP, the proxy and TLS.
    pub connect_timeout: Duration,
    /// The timeout for sending a request for a stream and receiving the head of the response. Other
    /// requests only have a deadline, because their head arrives with the last token.
    pub head_timeout: Duration,
    /// The timeout between two chunks of a response body, or two events or comments of a stream.
    pub event_idle: Duration,
    /// True if streams of Responses go over a WebSocket when the connection of their client can keep
    /// one.
    pub websocket: bool,
    /// True if it refuses `instructions` of Responses together with `previous_response_id`. A request with
    /// `instructions` then has the whole conversation over a WebSocket too.
    pub no_instructions_with_previous: bool,
    /// The settings of the circuit breakers. Each host has its own breaker.
    pub breaker: breaker::Options,
    /// Certificates of trusted CAs in PEM, in addition to the public CAs.
    pub roots: Option<Vec<u8>>,
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
            pass_headers: Vec::new(),
            proxy: None,
            connect_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(120),
            event_idle: Duration::from_secs(300),
            websocket: false,
            no_instructions_with_previous: false,
            breaker: breaker::Options::default(),
            roots: None,
        }
    }

    /// Validates all settings but the URLs and the CA certificates, which are validated when they
    /// are parsed.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        let times = [
            ("connect_timeout", self.connect_timeout),
            ("head_timeout", self.head_timeout),
            ("event_idle", self.event_idle),
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
        if let Some(name) = self.pass_headers.iter().find(|name| !may_pass(name)) {
            return Err(OptionsError::Passed(name.to_string()));
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

    /// Returns the trusted CAs: the public CAs and the operator's.
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

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
