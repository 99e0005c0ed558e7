//! From an origin to a connection that can be trusted, within one deadline.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use engine::EngineError;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::dial::{Connection, dial_any};
use crate::origin::Origin;
use crate::{Failure, Network, Stage};

pub(crate) struct Connector {
    network: Network,
    tls: TlsConnector,
}

impl Connector {
    pub(crate) fn new(network: &Network, trusted: RootCertStore) -> Self {
        Self { network: network.clone(), tls: TlsConnector::from(Arc::new(tls(trusted))) }
    }

    /// Connects to `origin`, with TLS where it says so, until `deadline`.
    pub(crate) async fn connect(&self, origin: &Origin, deadline: Instant) -> Result<Box<dyn Connection>, Failure> {
        let addresses = self.resolve(origin, deadline).await?;
        let dialled = timeout_at(deadline, dial_any(&*self.network.dialer, addresses)).await;
        let connection = dialled
            .map_err(|_| late(Stage::Connect, "no connection"))?
            .map_err(|error| failed(Stage::Connect, "no connection", &error))?;
        let Some(name) = &origin.tls else { return Ok(connection) };
        let secured = timeout_at(deadline, self.tls.connect(name.clone(), connection)).await;
        let connection = secured
            .map_err(|_| late(Stage::Tls, "no end of the TLS handshake"))?
            .map_err(|error| failed(Stage::Tls, "no TLS", &error))?;
        Ok(Box::new(connection))
    }

    async fn resolve(&self, origin: &Origin, deadline: Instant) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(address) = origin.host.parse::<IpAddr>() {
            return Ok(vec![(address, origin.port).into()]);
        }
        let deadline = deadline.min(Instant::now() + RESOLVE);
        timeout_at(deadline, self.network.resolver.resolve(&origin.host, origin.port))
            .await
            .map_err(|_| late(Stage::Connect, "no answer about its name"))?
            .map_err(|error| failed(Stage::Connect, "no such name", &error))
    }
}

/// Without a certificate of ours, and for HTTP/1.1 alone.
fn tls(trusted: RootCertStore) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks the versions of TLS that are safe")
        .with_root_certificates(trusted)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

fn late(stage: Stage, what: &str) -> Failure {
    Failure::unsent(stage, EngineError::Timeout(what.to_owned()))
}

fn failed(stage: Stage, what: &str, error: &std::io::Error) -> Failure {
    Failure::unsent(stage, EngineError::Upstream(format!("{what}: {error}")))
}

/// For looking a name up.
const RESOLVE: Duration = Duration::from_secs(2);
