//! DNS lookup, TCP connect and TLS handshake to an origin, within one deadline.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use engine::EngineError;
use net::{
    Connection, Dial, RESOLVE_TIMEOUT, Resolve, SystemResolver, Tcp, client_config, dial_any,
};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::{TlsConnector, TlsStream};

use crate::event_memory::EventMemory;
use crate::failure::Failure;
use crate::origin::Origin;
use crate::proxy::Proxy;

/// A resolver and a dialer, the system's by default, others for tests and for embedded gateways;
/// and the memory for the long events of all upstreams that use them.
#[derive(Clone)]
pub struct Network {
    /// The DNS resolver.
    pub resolver: Arc<dyn Resolve>,
    /// The dialer.
    pub dialer: Arc<dyn Dial>,
    /// The memory for long events.
    pub event_memory: EventMemory,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver::per_name(MAX_THREADS)),
            dialer: Arc::new(Tcp),
            event_memory: EventMemory::default(),
        }
    }
}

pub(crate) struct Connector {
    network: Network,
    tls: TlsConnector,
    proxy: Option<Proxy>,
}

impl Connector {
    pub(crate) fn new(network: &Network, roots: RootCertStore, proxy: Option<Proxy>) -> Self {
        Self {
            network: network.clone(),
            tls: TlsConnector::from(Arc::new(client_config(roots))),
            proxy,
        }
    }

    /// Connects to `origin`, over the proxy if it applies, and with TLS if its scheme is https, until
    /// `deadline` at the latest.
    pub(crate) async fn connect(
        &self,
        origin: &Origin,
        deadline: Instant,
    ) -> Result<Box<dyn Connection>, Failure> {
        let proxy = self.proxy.as_ref();
        let proxy = proxy.filter(|proxy| proxy.applies_to(origin));
        let (host, port) = proxy.map_or((&origin.host, origin.port), |proxy| {
            (&proxy.host, proxy.port)
        });
        let addresses = self.resolve(host, port, deadline).await?;
        let dialed = timeout_at(deadline, dial_any(&*self.network.dialer, addresses)).await;
        let mut connection = dialed
            .map_err(|_| timed_out("connect timeout"))?
            .map_err(|error| failed("connect failed", &error))?;
        if let Some(proxy) = proxy {
            let opened = timeout_at(deadline, proxy.open(connection, origin)).await;
            connection = opened
                .map_err(|_| timed_out("proxy timeout"))?
                .map_err(|error| failed("proxy failed", &error))?;
        }
        let Some(name) = &origin.tls else {
            return Ok(connection);
        };
        let secured = timeout_at(deadline, self.tls.connect(name.clone(), connection)).await;
        let connection = secured
            .map_err(|_| timed_out("TLS handshake timeout"))?
            .map_err(|error| failed("TLS handshake failed", &error))?;
        Ok(Box::new(TlsStream::from(connection)))
    }

    async fn resolve(
        &self,
        host: &str,
        port: u16,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![(address, port).into()]);
        }
        let deadline = deadline.min(Instant::now() + RESOLVE_TIMEOUT);
        timeout_at(deadline, self.network.resolver.resolve(host, port))
            .await
            .map_err(|_| timed_out("DNS lookup timeout"))?
            .map_err(|error| failed("DNS lookup failed", &error))
    }
}

fn timed_out(what: &str) -> Failure {
    Failure::unsent(EngineError::Timeout(what.to_owned()))
}

fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::unsent(EngineError::Upstream(format!("{what}: {error}")))
}

/// The maximum number of blocked lookup threads per name.
const MAX_THREADS: usize = 16;
