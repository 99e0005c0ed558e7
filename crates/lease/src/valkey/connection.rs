//! The connection of a store, which is replaced when it fails.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionLike as _, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, RedisResult, Value};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::Settings;
use crate::address::{Address, Kind};

/// A connection to a store, opened when it is needed.
pub(super) struct ValkeyConnection {
    connector: Arc<Connector>,
    state: Mutex<State>,
    /// The number of the last connection that has failed.
    broken: AtomicU64,
}

/// The reason why a command has no reply.
#[derive(Debug)]
pub(super) enum Failure {
    Timeout,
    Server(RedisError),
}

struct Connector {
    address: Address,
    timeout: Duration,
    connect_timeout: Duration,
}

#[derive(Default)]
struct State {
    /// Counts the connections.
    number: u64,
    open: Option<Open>,
    /// An attempt to connect, which goes on when the callers that wait for it give up.
    opening: Option<JoinHandle<RedisResult<Open>>>,
}

/// An open connection. All clones share it.
#[derive(Clone)]
enum Open {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ValkeyConnection {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            connector: Arc::new(Connector {
                address: settings.address.clone(),
                timeout: settings.timeout,
                connect_timeout: settings.connect_timeout,
            }),
            state: Mutex::default(),
            broken: AtomicU64::new(0),
        }
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.connector.address.kind == Kind::Cluster
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        self.connector.connect_timeout
    }

    /// Opens the connection if it is not open.
    pub(super) async fn connect(&self, deadline: Instant) -> Result<(), Failure> {
        let opened = tokio::time::timeout_at(deadline, self.open());
        opened.await.map_err(|_| Failure::Timeout)??;
        Ok(())
    }

    /// Sends a command. A connection on which there is no reply by the deadline, or which fails, is
    /// not used again: if the peer has vanished, no error would ever be reported.
    pub(super) async fn query(&self, deadline: Instant, command: &Cmd) -> Result<Value, Failure> {
        let mut used = 0;
        let sent = tokio::time::timeout_at(deadline, async {
            let (number, mut open) = self.open().await?;
            used = number;
            match &mut open {
                Open::One(connection) => connection.req_packed_command(command).await,
                Open::Cluster(connection) => connection.req_packed_command(command).await,
            }
        });
        let failure = match sent.await {
            Ok(Ok(Value::ServerError(error))) => Failure::Server(error.into()),
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => Failure::Server(error),
            Err(_) => Failure::Timeout,
        };
        if failure.is_of_connection() {
            self.broken.fetch_max(used, Ordering::Relaxed);
        }
        Err(failure)
    }

    /// Opens a connection for a subscription.
    pub(super) async fn subscriber(&self) -> RedisResult<PubSub> {
        let subscriber = self.connector.subscriber();
        let opened = tokio::time::timeout(self.connect_timeout(), subscriber).await;
        opened.unwrap_or_else(|_| Err(timed_out()))
    }

    async fn open(&self) -> RedisResult<(u64, Open)> {
        let mut state = self.state.lock().await;
        if state.number <= self.broken.load(Ordering::Relaxed) {
            state.open = None;
        }
        if let Some(open) = &state.open {
            return Ok((state.number, open.clone()));
        }
        let connector = Arc::clone(&self.connector);
        let opening = state
            .opening
            .get_or_insert_with(|| tokio::spawn(async move { connector.connect().await }));
        let opened = opening.await;
        state.opening = None;
        let opened = opened.unwrap_or_else(|_| Err(std::io::Error::other("no runtime").into()))?;
        state.number += 1;
        state.open = Some(opened.clone());
        Ok((state.number, opened))
    }
}

impl Connector {
    async fn connect(&self) -> RedisResult<Open> {
        let connecting = async {
            match &self.address.kind {
                Kind::Single => self.connect_to_one().await,
                Kind::Sentinel { name } => self.connect_to_primary(name).await,
                Kind::Cluster => self.connect_to_cluster().await,
            }
        };
        let connected = tokio::time::timeout(self.connect_timeout, connecting);
        connected.await.unwrap_or_else(|_| Err(timed_out()))
    }

    /// Connects to a server that forwards the messages of all servers: in a cluster, any server
    /// does.
    async fn subscriber(&self) -> RedisResult<PubSub> {
        if let Kind::Sentinel { name } = &self.address.kind {
            let primary = self.sentinels(name)?.async_get_client().await?;
            return primary.get_async_pubsub().await;
        }
        let mut failed = std::io::Error::other("no server").into();
        for server in &self.address.servers {
            let client = Client::open(server.clone())?;
            match client.get_async_pubsub().await {
                Ok(open) => return Ok(open),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(Some(self.connect_timeout.max(self.timeout)))
    }

    async fn connect_to_one(&self) -> RedisResult<Open> {
        let server = self.address.servers.first().cloned();
        let server = server.ok_or(std::io::Error::other("no server"))?;
        let client = Client::open(server)?;
        let config = self.config();
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        connection.await.map(Open::One)
    }

    async fn connect_to_primary(&self, name: &str) -> RedisResult<Open> {
        let mut client = self.sentinels(name)?;
        let config = self.config();
        let connection = client.get_async_connection_with_config(&config);
        connection.await.map(Open::One)
    }

    fn sentinels(&self, name: &str) -> RedisResult<SentinelClient> {
        let settings = self.address.settings.clone();
        let mut server = SentinelNodeConnectionInfo::default().set_redis_connection_info(settings);
        if let Some(tls) = self.address.tls() {
            server = server.set_tls_mode(tls);
        }
        let sentinels = self.address.servers.clone();
        let kind = SentinelServerType::Master;
        SentinelClient::build(sentinels, name, Some(server), kind)
    }

    async fn connect_to_cluster(&self) -> RedisResult<Open> {
        let servers = self.address.servers.clone();
        let client = ClusterClient::builder(servers)
            .connection_timeout(self.connect_timeout)
            .response_timeout(self.connect_timeout.max(self.timeout))
            // For MOVED and ASK, after which the script was not run.
            .retries(2)
            .build()?;
        client.get_async_connection().await.map(Open::Cluster)
    }
}

fn timed_out() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

impl Failure {
    /// Returns true if another connection may do better: in particular, a primary that has become a
    /// replica refuses to write, and sentinels know the new one.
    fn is_of_connection(&self) -> bool {
        match self {
            Self::Timeout => true,
            Self::Server(error) => {
                use redis::ErrorKind::Server;
                use redis::ServerErrorKind::{NoPerm, NoScript, ResponseError};
                !matches!(error.kind(), Server(NoPerm | NoScript | ResponseError))
            }
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::Server(error)
    }
}

impl fmt::Debug for ValkeyConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connector.address.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use redis::ServerErrorKind::{BusyLoading, NoPerm, NoScript, ReadOnly, ResponseError};
    use redis::{ErrorKind, ServerErrorKind};

    use super::*;

    #[test]
    fn a_connection_is_kept_after_errors_of_a_command() {
        let is_of_connection = |kind: ServerErrorKind| {
            let error = RedisError::from((ErrorKind::Server(kind), "refused"));
            Failure::Server(error).is_of_connection()
        };
        assert!(
            ![NoPerm, NoScript, ResponseError]
                .into_iter()
                .any(is_of_connection)
        );
        assert!([BusyLoading, ReadOnly].into_iter().all(is_of_connection));
        assert!(Failure::Timeout.is_of_connection());
        assert!(Failure::Server(timed_out()).is_of_connection());
    }
}
