//! `sluicegate health`: asks a running gateway if it is ready, for a container without a shell.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use config::ConfigError;
use http::Request;
use http::header::HOST;
use http_body_util::Full;
use tokio::time::timeout;

use super::admin_client::exchange;

// A doc comment here would replace that of the command.
#[derive(Debug, Args)]
pub(super) struct Health {
    /// The admin address of the gateway.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    admin: SocketAddr,
}

impl Health {
    /// Succeeds if `/readyz` answers with status 200 within three seconds.
    pub(super) fn run(&self) -> Result<(), ConfigError> {
        super::block_on(async {
            let address = self.admin;
            let problem = |problem| ConfigError::one(format!("http://{address}/readyz: {problem}"));
            let request = Request::get("/readyz").header(HOST, address.to_string());
            let request = request.body(Full::<Bytes>::default());
            let request = request.map_err(|error| problem(error.to_string()))?;
            let asked = timeout(TIMEOUT, async {
                let socket = net::connect(address)
                    .await
                    .map_err(|error| error.to_string())?;
                exchange(socket, request).await
            })
            .await;
            let answered = asked.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
            match answered.map_err(problem)? {
                (200, _) => Ok(()),
                (status, body) => {
                    let body = String::from_utf8_lossy(&body);
                    Err(problem(format!("status {status}: {}", body.trim_end())))
                }
            }
        })
    }
}

/// The time for the answer.
const TIMEOUT: Duration = Duration::from_secs(3);
