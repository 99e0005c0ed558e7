//! `sluicegate health`: asks a running gateway if it is ready, for a container without a shell.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use config::{Config, ConfigError, DEFAULT_ADMIN};
use http::Request;
use http::header::HOST;
use http_body_util::Full;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::admin_client::{connect, exchange};

// A doc comment here would replace the help of the command.
#[derive(Debug, Args)]
pub(super) struct Health {
    /// The configuration file of the gateway, which has its admin address and whether that has TLS.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask at this admin address instead. Without a file: 127.0.0.1:9090.
    #[arg(long, value_name = "ADDRESS", value_parser = super::address)]
    admin: Option<SocketAddr>,
    /// The PEM file with a client certificate and its key, if the admin address wants one.
    #[arg(long, value_name = "FILE", requires = "config")]
    admin_certificate: Option<PathBuf>,
}

impl Health {
    /// Succeeds if `/readyz` answers with status 200 within three seconds.
    pub(super) fn run(&self) -> Result<(), ConfigError> {
        let file = self.config.as_deref();
        let config = file.map(Config::load).transpose()?.unwrap_or_default();
        let address = reachable(self.admin.or(config.admin).unwrap_or(DEFAULT_ADMIN));
        let has_tls = config.admin_tls.is_some();
        let tls = has_tls.then(|| self.tls()).transpose()?;
        let scheme = if has_tls { "https" } else { "http" };
        super::block_on(async {
            let asked = timeout(TIMEOUT, ask(address, tls.as_ref())).await;
            let answered = asked.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
            let answered = answered.and_then(|(status, body)| match status {
                200 => Ok(()),
                _ => {
                    let body = String::from_utf8_lossy(&body);
                    Err(format!("status {status}: {}", body.trim_end()))
                }
            });
            answered.map_err(|problem| {
                ConfigError::one(format!("{scheme}://{address}/readyz: {problem}"))
            })
        })
    }

    /// The certificate of the gateway is not checked, as Kubernetes does not check it for its probes. The
    /// request has no secret, and a gateway is ready also if its certificate has expired, is for another
    /// name, or was replaced in its file and not been read again.
    fn tls(&self) -> Result<Arc<ClientConfig>, ConfigError> {
        let file = self.admin_certificate.as_deref();
        let config = net::client_config_without_verification(file);
        config
            .map(Arc::new)
            .map_err(|problem| ConfigError::one(format!("--admin-certificate: {problem}")))
    }
}

/// Sends the request, and returns the status and the body of the response.
async fn ask(address: SocketAddr, tls: Option<&Arc<ClientConfig>>) -> Result<(u16, Bytes), String> {
    let request = Request::get("/readyz").header(HOST, address.to_string());
    let request = request.body(Full::<Bytes>::default());
    let request = request.map_err(|error| error.to_string())?;
    let socket = connect(vec![address], tls, address.ip().into()).await;
    exchange(socket.map_err(|error| error.to_string())?, request).await
}

/// The address at which a gateway of this machine is reached: one that listens on all addresses also
/// listens on the loopback address.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The time for the answer.
const TIMEOUT: Duration = Duration::from_secs(3);
