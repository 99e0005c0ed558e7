//! The settings of a fetcher.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use tokio_rustls::rustls::RootCertStore;

use crate::target::Target;

/// The settings of a [`Fetcher`](crate::Fetcher). The default allows every public host, within
/// limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// The hosts that are allowed.
    pub mode: Mode,
    /// The timeout of a complete fetch: DNS lookups, connections, redirects and body.
    pub timeout: Duration,
    /// The maximum size of a body, in bytes.
    pub max_bytes: usize,
    /// The maximum number of consecutive redirects.
    pub redirects: usize,
    /// The maximum number of concurrent fetches; more are rejected, not queued.
    pub at_once: usize,
    /// The addresses on which this process listens. Their IP addresses are not dialed, whatever the
    /// port.
    pub listeners: Vec<SocketAddr>,
    /// The trusted CAs.
    pub roots: RootCertStore,
}

/// The hosts that are allowed. In every mode only public addresses are dialed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// None.
    Off,
    /// Exactly these names, in lower case, without wildcards.
    AllowList(BTreeSet<String>),
    /// All public hosts.
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
            roots: net::public_roots(),
        }
    }
}
