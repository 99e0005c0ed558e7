//! From a URL to a picture.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use picture::{Format, Head};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::address::{self, Refused};
use crate::dial::{Connection, Dial, Tcp};
use crate::exchange::{Answer, exchange};
use crate::resolve::{Resolve, System};
use crate::target::Target;
use crate::{FetchError, Mode, Options};

/// Fetches pictures for strangers. Clones share their limits.
#[derive(Clone)]
pub struct Fetcher {
    inner: Arc<Inner>,
}

/// A picture as its host sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The file.
    pub bytes: Bytes,
    /// What it says of itself: its format is PNG, JPEG or WebP.
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
    /// Fetches over the network, with the names of the system's resolver.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::with(options, Arc::new(System::new()), Arc::new(Tcp))
    }

    /// Fetches with other names and connections. All checks stay.
    #[must_use]
    pub fn with(options: Options, resolver: Arc<dyn Resolve>, dialer: Arc<dyn Dial>) -> Self {
        let tls = TlsConnector::from(Arc::new(tls(options.roots.clone())));
        let slots = Semaphore::new(options.at_once.min(Semaphore::MAX_PERMITS));
        Self { inner: Arc::new(Inner { options, tls, slots, resolver, dialer }) }
    }

    /// Fetches the picture at `url`. Dropping the future ends the fetch and closes its connection.
    ///
    /// # Errors
    /// When the URL may not be followed, leads nowhere, or to something else than a picture that is taken.
    pub async fn fetch(&self, url: &str) -> Result<Picture, FetchError> {
        let inner = &*self.inner;
        let target = inner.admit(url)?;
        let _slot = inner.slots.try_acquire().map_err(|_| FetchError::Busy)?;
        let body = timeout(inner.options.timeout, inner.follow(target)).await.map_err(|_| FetchError::Timeout)??;
        picture(body)
    }
}

impl Inner {
    /// What can be said of a URL without asking anybody.
    fn admit(&self, url: &str) -> Result<Target, FetchError> {
        if self.options.mode == Mode::Off {
            return Err(FetchError::Off);
        }
        let target = Target::parse(url)?;
        if self.options.mode.allows(&target) { Ok(target) } else { Err(FetchError::NotListed) }
    }

    /// Follows redirects to a body. Each target goes through every step anew.
    async fn follow(&self, mut target: Target) -> Result<Bytes, FetchError> {
        for _ in 0..=self.options.redirects {
            match self.ask(&target).await? {
                Answer::Body(bytes) => return Ok(bytes),
                Answer::Elsewhere(location) => target = self.redirect(&target, &location)?,
            }
        }
        Err(FetchError::Redirect("there are too many"))
    }

    fn redirect(&self, from: &Target, location: &str) -> Result<Target, FetchError> {
        let target = from.join(location).map_err(|_| FetchError::Redirect("its URL is not allowed"))?;
        let is_listed = self.options.mode.allows(&target);
        if is_listed { Ok(target) } else { Err(FetchError::Redirect("its host is not on the list")) }
    }

    async fn ask(&self, target: &Target) -> Result<Answer, FetchError> {
        let addresses = self.resolve(target).await?;
        let connection = self.dial(&addresses).await?;
        let name = ServerName::try_from(target.host().to_owned()).map_err(|_| FetchError::Tls)?;
        let stream = self.tls.connect(name, connection).await.map_err(no_tls)?;
        exchange(stream, target, self.options.max_bytes).await
    }

    /// Looks the name up, once. One address that is refused refuses the name: which of them answers is for others
    /// to decide.
    async fn resolve(&self, target: &Target) -> Result<Vec<SocketAddr>, FetchError> {
        let found = timeout(RESOLVE, self.resolver.resolve(target.host(), PORT)).await;
        let Ok(Ok(found)) = found else { return Err(FetchError::Unreachable("its name is not found")) };
        // Built anew, so that no scope, port or mapped form of the resolver's is dialled.
        let mut addresses: Vec<_> =
            found.iter().map(|found| SocketAddr::new(address::canonical(found.ip()), PORT)).collect();
        addresses.iter().try_for_each(|address| self.check(*address))?;
        addresses.truncate(MAX_ADDRESSES);
        Ok(addresses)
    }

    fn check(&self, address: SocketAddr) -> Result<(), Refused> {
        address::check(address.ip())?;
        let is_own = |own: &SocketAddr| address::unwrapped(own.ip()) == address::unwrapped(address.ip());
        if self.options.listeners.iter().any(is_own) { Err(Refused("where this gateway listens")) } else { Ok(()) }
    }

    /// Connects to the first of the addresses that answers.
    async fn dial(&self, addresses: &[SocketAddr]) -> Result<Box<dyn Connection>, FetchError> {
        for address in addresses {
            let Ok(Ok(connection)) = timeout(CONNECT, self.dialer.dial(*address)).await else { continue };
            let peer = connection.peer().map_err(|_| FetchError::Unreachable("it hung up"))?;
            let is_dialled = (address::canonical(peer.ip()), peer.port()) == (address.ip(), address.port());
            return if is_dialled { Ok(connection) } else { Err(Refused("not the one that was dialled").into()) };
        }
        Err(FetchError::Unreachable("no address of its answers"))
    }
}

/// What a body is, is told by its bytes alone.
fn picture(bytes: Bytes) -> Result<Picture, FetchError> {
    let head = Head::read(&bytes).map_err(|_| FetchError::Kind)?;
    match head.format {
        Format::Png | Format::Jpeg | Format::Webp => Ok(Picture { bytes, head }),
        _ => Err(FetchError::Kind),
    }
}

/// Without a certificate of ours, and without tickets that would tell a host that two fetches are ours.
fn tls(roots: RootCertStore) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks the versions of TLS that are safe")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    config
}

fn no_tls(error: std::io::Error) -> FetchError {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    if cause.is_some() { FetchError::Tls } else { FetchError::Unreachable("it hung up") }
}

/// The port of https.
const PORT: u16 = 443;
/// For looking a name up.
const RESOLVE: Duration = Duration::from_secs(2);
/// For one address to answer, so that there is time left for the next.
const CONNECT: Duration = Duration::from_secs(5);
/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 16;
