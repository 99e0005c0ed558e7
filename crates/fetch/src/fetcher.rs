//! Fetches an image from an untrusted URL.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use net::{Connection, Dial, MAX_ADDRESSES, RESOLVE_TIMEOUT, Resolve, SystemResolver};
use picture::{Format, Head};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::address::{self, Refused};
use crate::dial::RemoteTcp;
use crate::error::FetchError;
use crate::exchange::{Answer, exchange};
use crate::options::{Mode, Options};
use crate::target::Target;

/// Fetches images from untrusted URLs. Clones share the limit of concurrent fetches.
#[derive(Clone)]
pub struct Fetcher {
    inner: Arc<Inner>,
}

/// An image as its host sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The file.
    pub bytes: Bytes,
    /// The format and the size, from the header of the file. The format is PNG, JPEG or WebP.
    pub head: Head,
}

struct Inner {
    options: Options,
    tls: TlsConnector,
    slots: Semaphore,
    resolver: Arc<dyn Resolve>,
    dialer: Arc<dyn Dial>,
}

impl Fetcher {
    /// Creates a fetcher that uses the system's resolver and TCP.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::with(
            options,
            Arc::new(SystemResolver::new(MAX_THREADS)),
            Arc::new(RemoteTcp),
        )
    }

    /// Creates a fetcher with another resolver and dialer. All checks apply.
    #[must_use]
    pub fn with(options: Options, resolver: Arc<dyn Resolve>, dialer: Arc<dyn Dial>) -> Self {
        let tls = TlsConnector::from(Arc::new(tls(options.roots.clone())));
        let slots = Semaphore::new(options.at_once.min(Semaphore::MAX_PERMITS));
        Self {
            inner: Arc::new(Inner {
                options,
                tls,
                slots,
                resolver,
                dialer,
            }),
        }
    }

    /// Fetches the image at `url`. Dropping the future cancels the fetch and closes its connection.
    ///
    /// # Errors
    /// When the URL is not allowed, cannot be reached, or does not lead to a supported image.
    pub async fn fetch(&self, url: &str) -> Result<Picture, FetchError> {
        let inner = &*self.inner;
        let target = inner.admit(url)?;
        let _slot = inner.slots.try_acquire().map_err(|_| FetchError::Busy)?;
        let body = timeout(inner.options.timeout, inner.follow(target))
            .await
            .map_err(|_| FetchError::Timeout)??;
        decode_head(body)
    }
}

impl Inner {
    /// Validates a URL without any I/O.
    fn admit(&self, url: &str) -> Result<Target, FetchError> {
        if self.options.mode == Mode::Off {
            return Err(FetchError::Off);
        }
        let target = Target::parse(url)?;
        if self.options.mode.allows(&target) {
            Ok(target)
        } else {
            Err(FetchError::NotListed)
        }
    }

    /// Follows redirects until a body. Every target goes through all checks.
    async fn follow(&self, mut target: Target) -> Result<Bytes, FetchError> {
        for _ in 0..=self.options.redirects {
            match self.get(&target).await? {
                Answer::Body(bytes) => return Ok(bytes),
                Answer::Redirect(location) => target = self.redirect(&target, &location)?,
            }
        }
        Err(FetchError::Redirect("too many redirects"))
    }

    fn redirect(&self, from: &Target, location: &str) -> Result<Target, FetchError> {
        let target = from
            .join(location)
            .map_err(|_| FetchError::Redirect("its URL is not allowed"))?;
        let is_listed = self.options.mode.allows(&target);
        if is_listed {
            Ok(target)
        } else {
            Err(FetchError::Redirect("its host is not on the allow list"))
        }
    }

    async fn get(&self, target: &Target) -> Result<Answer, FetchError> {
        let addresses = self.resolve(target).await?;
        let connection = self.dial(&addresses).await?;
        let name = ServerName::try_from(target.host().to_owned()).map_err(|_| FetchError::Tls)?;
        let stream = self
            .tls
            .connect(name, connection)
            .await
            .map_err(tls_error)?;
        exchange(stream, target, self.options.max_bytes).await
    }

    /// Resolves the name, once. One rejected address rejects the name, because the network decides
    /// which of the addresses responds.
    async fn resolve(&self, target: &Target) -> Result<Vec<SocketAddr>, FetchError> {
        let found = timeout(RESOLVE_TIMEOUT, self.resolver.resolve(target.host(), PORT)).await;
        let Ok(Ok(found)) = found else {
            return Err(FetchError::Unreachable("DNS lookup failed"));
        };
        // Rebuilt, so that no scope, port or IPv4-mapped form of the resolver is used.
        let mut addresses: Vec<_> = found
            .iter()
            .map(|found| SocketAddr::new(found.ip().to_canonical(), PORT))
            .collect();
        addresses
            .iter()
            .try_for_each(|address| self.check(*address))?;
        addresses.truncate(MAX_ADDRESSES);
        Ok(addresses)
    }

    fn check(&self, address: SocketAddr) -> Result<(), Refused> {
        address::check(address.ip())?;
        let is_own =
            |own: &SocketAddr| address::unwrapped(own.ip()) == address::unwrapped(address.ip());
        if self.options.listeners.iter().any(is_own) {
            Err(Refused("where this gateway listens"))
        } else {
            Ok(())
        }
    }

    /// Connects to the first of the addresses that accepts a connection.
    async fn dial(&self, addresses: &[SocketAddr]) -> Result<Box<dyn Connection>, FetchError> {
        for address in addresses {
            let Ok(Ok(connection)) = timeout(CONNECT_TIMEOUT, self.dialer.dial(*address)).await
            else {
                continue;
            };
            let peer = connection
                .peer()
                .map_err(|_| FetchError::Unreachable("connection reset"))?;
            let is_dialed =
                (peer.ip().to_canonical(), peer.port()) == (address.ip(), address.port());
            return if is_dialed {
                Ok(connection)
            } else {
                Err(Refused("not the one that was dialed").into())
            };
        }
        Err(FetchError::Unreachable("connect failed"))
    }
}

/// Detects the format of an image by its bytes alone, without its media type.
fn decode_head(bytes: Bytes) -> Result<Picture, FetchError> {
    let head = Head::read(&bytes).map_err(|_| FetchError::Kind)?;
    match head.format {
        Format::Png | Format::Jpeg | Format::Webp => Ok(Picture { bytes, head }),
        _ => Err(FetchError::Kind),
    }
}

/// The TLS configuration, without session tickets, by which a host could link two fetches.
fn tls(roots: RootCertStore) -> ClientConfig {
    let mut config = net::client_config(roots);
    config.resumption = Resumption::disabled();
    config
}

fn tls_error(error: std::io::Error) -> FetchError {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    if cause.is_some() {
        FetchError::Tls
    } else {
        FetchError::Unreachable("connection reset")
    }
}

/// The only allowed port.
const PORT: u16 = 443;
/// The maximum number of threads that DNS lookups block. A lookup that gets none in time fails.
const MAX_THREADS: usize = 32;
/// The connect timeout per address, so that there is time left for the next one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
