//! A connection that is opened again when it breaks.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::error::Elapsed;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::PostgresAddress;
use crate::error::StoreError;
use crate::sql::Failure;

/// The longest time that an operation takes, connecting included.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The longest time for connecting, and for which sent bytes may stay unacknowledged.
const NETWORK_LIMIT: Duration = Duration::from_secs(5);

pub(super) struct Link {
    config: Config,
    tls: MakeRustlsConnect,
    schema: String,
    /// The hosts and the database, without credentials.
    shown: String,
    client: Mutex<Option<Client>>,
}

impl Link {
    pub(super) fn new(address: &PostgresAddress, tls: MakeRustlsConnect, schema: &str) -> Self {
        let mut config = address.config.clone();
        if config.get_application_name().is_none() {
            config.application_name("sluicegate");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(NETWORK_LIMIT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(NETWORK_LIMIT);
        }
        Self {
            config,
            tls,
            schema: schema.to_owned(),
            shown: address.to_string(),
            client: Mutex::new(None),
        }
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    pub(super) async fn lock(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock().await
    }

    /// Returns the client in `slot`, connected.
    pub(super) async fn connected<'a>(
        &self,
        slot: &'a mut Option<Client>,
    ) -> Result<&'a mut Client, Failure> {
        if slot.as_ref().is_none_or(Client::is_closed) {
            *slot = None;
        }
        match slot {
            Some(client) => Ok(client),
            None => Ok(slot.insert(self.connect().await?)),
        }
    }

    /// Returns the result of an operation; after one that took too long, the connection is given up.
    pub(super) fn settle<T>(
        &self,
        mut slot: MutexGuard<'_, Option<Client>>,
        done: Result<Result<T, Failure>, Elapsed>,
    ) -> Result<T, StoreError> {
        let result = done.unwrap_or_else(|_| {
            *slot = None;
            Err(Failure::Unavailable(format!(
                "no answer within {} s",
                TIME_LIMIT.as_secs()
            )))
        });
        result.map_err(|failure| failure.at(&self.shown))
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        // It ends with the client; errors are returned by the calls of the client.
        tokio::spawn(async {
            let _ = connection.await;
        });
        let schema = &self.schema;
        client
            .batch_execute(&format!(
                "SET search_path TO {schema}; SET synchronous_commit TO on;
                 SET statement_timeout TO '30s'; SET lock_timeout TO '10s'"
            ))
            .await?;
        Ok(client)
    }
}

/// Runs an operation in a transaction, all of whose statements see the same moment if it only reads.
macro_rules! transact {
    ($this:ident.$link:ident, $tx:ident => $work:expr) => {
        Box::pin(async move {
            let link = &$this.$link;
            let mut slot = link.lock().await;
            let work = async {
                let client = link.connected(&mut slot).await?;
                let $tx = client.transaction().await?;
                let result = $work.await?;
                $tx.commit().await?;
                Ok::<_, Failure>(result)
            };
            let done = tokio::time::timeout(link::TIME_LIMIT, work).await;
            link.settle(slot, done)
        })
    };
}

pub(super) use transact;
