//! An HTTP proxy between the gateway and an upstream, which is asked for a tunnel to the host
//! (`CONNECT`, <https://www.rfc-editor.org/rfc/rfc9110#section-9.3.6>).

use std::{fmt, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use net::Connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::{Host, Url};

use crate::options_error::OptionsError;
use crate::origin::Origin;
use crate::proxy_exception::ProxyException;

/// An HTTP proxy. Its `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// A DNS name, or an IP address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The header with the user and password, and its line end; or nothing.
    authorization: String,
    /// The hosts that are connected to without the proxy; see [`Proxy::except`].
    exceptions: Vec<ProxyException>,
}

impl Proxy {
    /// A proxy at an `http` URL such as `http://10.0.0.1:3128`, with a user and password if the URL
    /// has them.
    ///
    /// # Errors
    /// When the scheme is another one, or the URL has no host.
    pub fn new(url: &Url) -> Result<Self, OptionsError> {
        if url.scheme() != "http" {
            return Err(OptionsError::ProxyScheme(url.scheme().to_owned()));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(OptionsError::Host("proxy")),
        };
        let authorization = match (url.username(), url.password()) {
            ("", None) => String::new(),
            (user, password) => {
                let credentials = [
                    decoded(user).as_str(),
                    ":",
                    &decoded(password.unwrap_or("")),
                ]
                .concat();
                format!(
                    "Proxy-Authorization: Basic {}\r\n",
                    STANDARD.encode(credentials)
                )
            }
        };
        Ok(Self {
            host,
            port: url.port_or_known_default().unwrap_or(80),
            authorization,
            exceptions: Vec::new(),
        })
    }

    /// Excludes the hosts of a list as in the variable `NO_PROXY`, in the forms of curl and Go: names,
    /// which stand for their subdomains too, `.domain`, `*.domain`, IP addresses, networks such as
    /// `10.0.0.0/8`, each of these with a port, and `*` for all hosts.
    #[must_use]
    pub fn except(mut self, list: &str) -> Self {
        self.exceptions.extend(ProxyException::list(list));
        self
    }

    /// Returns true if this host is connected to over the proxy.
    pub(crate) fn applies_to(&self, origin: &Origin) -> bool {
        let mut exceptions = self.exceptions.iter();
        !exceptions.any(|exception| exception.has(&origin.host, origin.port))
    }

    /// Asks for a tunnel to `origin` over a connection to the proxy.
    pub(crate) async fn open(
        &self,
        mut connection: Box<dyn Connection>,
        origin: &Origin,
    ) -> io::Result<Box<dyn Connection>> {
        let (host, port) = (&origin.host, origin.port);
        let authority = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let request = format!(
            "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{}\r\n",
            self.authorization
        );
        connection.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        // The host does not send first, neither with TLS nor with HTTP, so that nothing follows the
        // head yet.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= MAX_HEAD {
                return Err(io::Error::other("the response of the proxy is too long"));
            }
            head.push(connection.read_u8().await?);
        }
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let status = line.split(' ').nth(1).unwrap_or_default();
        if line.starts_with("HTTP/1.") && status.len() == 3 && status.starts_with('2') {
            Ok(connection)
        } else {
            let status: String = status.chars().take(3).collect();
            Err(io::Error::other(format!(
                "the proxy responds with status '{status}'"
            )))
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({}:{})", self.host, self.port)
    }
}

/// Decodes the percent-encoding of a part of a URL.
fn decoded(part: &str) -> String {
    let pair = format!("a={}", part.replace('+', "%2B").replace('&', "%26"));
    let mut pairs = url::form_urlencoded::parse(pair.as_bytes());
    pairs
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// The longest head of the proxy's response, in bytes.
const MAX_HEAD: usize = 16 << 10;
