//! What a base URL says: whom to connect to, and what to ask there.

use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Url};

use crate::OptionsError;

/// A host with the path under which its model server is.
pub(crate) struct Origin {
    /// A name, or an address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Who the certificate must name, where there is TLS.
    pub(crate) tls: Option<ServerName<'static>>,
    /// The header `Host`.
    pub(crate) authority: HeaderValue,
    path: String,
    query: String,
}

impl Origin {
    /// Reads the base URL that is the setting `field`.
    pub(crate) fn new(url: &Url, field: &'static str) -> Result<Self, OptionsError> {
        let is_tls = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(OptionsError::Scheme { field, found: other.to_owned() }),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OptionsError::Part { field, part: "user or password" });
        }
        if url.fragment().is_some() {
            return Err(OptionsError::Part { field, part: "fragment" });
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(OptionsError::Host { field }),
        };
        let no_host = |_| OptionsError::Host { field };
        let tls = is_tls.then(|| ServerName::try_from(host.clone())).transpose().map_err(no_host)?;
        Ok(Self {
            port: url.port_or_known_default().ok_or(OptionsError::Host { field })?,
            tls,
            authority: authority(url).ok_or(OptionsError::Host { field })?,
            path: url.path().trim_end_matches('/').to_owned(),
            query: url.query().map(|query| format!("?{query}")).unwrap_or_default(),
            host,
        })
    }

    /// The target of a request for `path`.
    pub(crate) fn target(&self, path: &str) -> Result<Uri, http::Error> {
        let target = [self.path.as_str(), path, self.query.as_str()].concat();
        Ok(PathAndQuery::try_from(target)?.into())
    }
}

/// The host as the URL writes it, and the port when it is not the scheme's own.
fn authority(url: &Url) -> Option<HeaderValue> {
    let host = url.host_str()?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    HeaderValue::try_from(format!("{host}{port}")).ok()
}
