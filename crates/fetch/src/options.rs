//! What may be fetched, and how much of it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use tokio_rustls::rustls::RootCertStore;

use crate::target::Target;

/// How a [`Fetcher`](crate::Fetcher) fetches. The default is every public host, within limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// From whom.
    pub mode: Mode,
    /// For a whole fetch: names, connections, redirects, body.
    pub timeout: Duration,
    /// The largest body, in bytes.
    pub max_bytes: usize,
    /// The most redirects in a row.
    pub redirects: usize,
    /// The most fetches at once; one more is refused, not queued.
    pub at_once: usize,
    /// Where this process listens. Their IP addresses are not dialled, whatever the port.
    pub listeners: Vec<SocketAddr>,
    /// Who may vouch for a host.
    pub roots: RootCertStore,
}

/// From which hosts pictures are fetched. No mode opens an address that is not public.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// None.
    Off,
    /// Exactly these: names in lower case, without wildcards.
    AllowList(BTreeSet<String>),
    /// All that are public.
    #[default]
    Global,
}

impl Mode {
    pub(crate) fn allows(&self, target: &Target) -> bool {
        match self {
            Self::Off => false,
            Self::AllowList(hosts) => hosts.contains(target.host()),
            Self::Global => true,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            timeout: Duration::from_secs(15),
            max_bytes: 20 << 20,
            redirects: 3,
            at_once: 32,
            listeners: Vec::new(),
            roots: RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
        }
    }
}
