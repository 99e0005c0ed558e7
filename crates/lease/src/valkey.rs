//! A lease store in Valkey or Redis.

mod connection;
mod settings;
mod subscription;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use quota::{LeaseGrant, LeaseRequest};
use redis::{ErrorKind, ServerErrorKind, cmd};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::address::Address;
use crate::clock::{StoreClock, boottime};
use crate::reference::{ExchangeRequest, ExchangeResponse};
use crate::report::{Report, Unsuitable};
use crate::script::{
    ExchangeScript, PARTITIONS, TEXT, channel, limit_key, partition, read, read_holders,
    replica_name,
};
use crate::store::{
    DataLossFuture, ExchangeFuture, LeaseStore, NoticeFuture, ShareInfo, SharesFuture, Unreachable,
};
use connection::{Failure, ValkeyConnection};
use settings::{evicting, setting};
use subscription::Subscription;

/// The settings of a [`Valkey`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address.
    pub address: Address,
    /// The name of this replica, for [`LeaseStore::holders`]. Several replicas can have the same
    /// name.
    pub name: String,
    /// The first part of all keys. Gateways that share limits have the same.
    pub namespace: String,
    /// The duration of leases, which has to be the same for all gateways that share limits.
    pub lease: Duration,
    /// The time after which an exchange has failed, including the time to connect if needed: at
    /// most a tenth of the lease.
    pub timeout: Duration,
    /// The time after which an attempt to connect has failed. It may be longer than `timeout`,
    /// because the attempt goes on when an exchange has failed.
    pub connect_timeout: Duration,
}

/// A lease store in Valkey or Redis, which several gateways share.
///
/// Connections are opened when they are needed, and replaced when an exchange fails.
pub struct Valkey {
    namespace: String,
    lease: Duration,
    timeout: Duration,
    replica: u64,
    /// The name of this replica in the store.
    name: Arc<str>,
    script: ExchangeScript,
    link: ValkeyConnection,
    subscription: tokio::sync::Mutex<Subscription>,
    /// Set when a partition was found without its data.
    lost_data: Notify,
    partitions: [Mutex<Partition>; PARTITIONS],
}

/// The state of one partition of the store.
#[derive(Debug, Default)]
struct Partition {
    clock: StoreClock,
    asked: Option<Duration>,
}

impl Settings {
    /// Returns the default settings for `address`: no name, the namespace `sg:1`, leases of 10 s,
    /// 100 ms for an exchange and 2 s to connect.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self {
            address,
            name: String::new(),
            namespace: "sg:1".into(),
            lease: Duration::from_secs(10),
            timeout: Duration::from_millis(100),
            connect_timeout: Duration::from_secs(2),
        }
    }
}

impl Valkey {
    /// Creates the client of a store, and opens no connection yet.
    ///
    /// # Errors
    /// Returns an error if the system has no random number for the name of this replica.
    pub fn new(settings: &Settings) -> Result<Self, getrandom::Error> {
        Self::with_script(settings, TEXT)
    }

    fn with_script(settings: &Settings, text: &str) -> Result<Self, getrandom::Error> {
        let replica = getrandom::u64()?;
        let timeout = settings.timeout.min(settings.lease / 10);
        let channel = channel(&settings.namespace);
        let name: Arc<str> = replica_name(&settings.name, replica).into();
        let subscription = Subscription::new(channel, Arc::clone(&name), settings.lease, timeout);
        Ok(Self {
            namespace: settings.namespace.clone(),
            lease: settings.lease,
            timeout,
            replica,
            name,
            script: ExchangeScript::new(text),
            link: ValkeyConnection::new(settings),
            subscription: subscription.into(),
            lost_data: Notify::new(),
            partitions: std::array::from_fn(|_| Mutex::default()),
        })
    }

    /// Checks that the store can be used, and reports its settings.
    ///
    /// # Errors
    /// Returns an error if the store does not answer, or drops data when its memory is full.
    pub async fn check(&self) -> Result<Report, Unsuitable> {
        let deadline = Instant::now() + self.timeout + self.link.connect_timeout();
        let request = async |words: &[&str]| {
            let mut command = cmd(words[0]);
            command.arg(&words[1..]);
            self.link.query(deadline, &command).await
        };
        let info = request(&["INFO", "memory"]).await;
        let info = info.map_err(|failure| Unsuitable::Unreachable(failure.into()))?;
        if let Some(policy) = evicting(&info) {
            return Err(Unsuitable::Evicts(policy));
        }
        // Some providers forbid this command; then the setting is not known.
        let get = async |name| {
            let value = request(&["CONFIG", "GET", name]).await.ok()?;
            setting(&value, name)
        };
        let replicas = get("min-replicas-to-write").await;
        let coverage = match self.link.is_cluster() {
            true => get("cluster-require-full-coverage").await,
            false => None,
        };
        Ok(Report {
            min_replicas_to_write: replicas.and_then(|count| count.parse().ok()),
            requires_full_coverage: coverage.map(|coverage| coverage == "yes"),
        })
    }

    async fn exchange_all(
        &self,
        requests: &[LeaseRequest],
    ) -> Vec<Result<LeaseGrant, Unreachable>> {
        let deadline = Instant::now() + self.timeout;
        // Once for all calls, so that each of them does not try on its own.
        if let Err(failure) = self.link.connect(deadline).await {
            return vec![Err(failure.into()); requests.len()];
        }
        let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, request) in requests.iter().enumerate() {
            places
                .entry(partition(&request.key()))
                .or_default()
                .push(place);
        }
        for number in 0..PARTITIONS {
            if !places.contains_key(&number) && self.is_due(number) {
                places.insert(number, Vec::new());
            }
        }
        let calls = places.iter().flat_map(|(number, places)| {
            let empty = places.is_empty().then_some(&places[..]);
            let chunks = empty.into_iter().chain(places.chunks(MAX_REQUESTS));
            chunks.map(|places| (*number, places))
        });
        let calls = calls.map(async |(number, places)| {
            let requests = places
                .iter()
                .map(|place| requests[*place].clone())
                .collect();
            (places, self.call(number, requests, deadline).await)
        });
        let none = Unreachable("no reply".into());
        let mut results = vec![Err(none); requests.len()];
        for (places, answer) in join_all(calls).await {
            for (i, place) in places.iter().enumerate() {
                results[*place] = match &answer {
                    Ok(answer) => Ok(answer.replies[i]),
                    Err(error) => Err(error.clone()),
                };
            }
        }
        results
    }

    /// Returns true if a partition has had no exchange for a quarter of a lease, so that a loss of
    /// its data would go unnoticed.
    fn is_due(&self, number: usize) -> bool {
        let asked = self.partition(number).asked;
        asked.is_none_or(|asked| asked + self.lease / 4 <= boottime())
    }

    async fn call(
        &self,
        number: usize,
        requests: Vec<LeaseRequest>,
        deadline: Instant,
    ) -> Result<ExchangeResponse, Unreachable> {
        let now = boottime();
        let call = {
            let mut partition = self.partition(number);
            partition.asked = Some(now);
            ExchangeRequest {
                replica: self.replica,
                proof: partition.clock.proof(now, self.lease),
                lease: u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX),
                requests,
            }
        };
        let [by_hash, by_text] = self
            .script
            .commands(&self.namespace, number, &self.name, &call);
        let value = match self.link.query(deadline, &by_hash).await {
            // The script was not run, so this does not run it twice.
            Err(Failure::Server(error)) if error.kind() == NO_SCRIPT => {
                self.link.query(deadline, &by_text).await
            }
            other => other,
        }?;
        let answer = read(&value, &call).ok_or(Unreachable("unexpected reply".into()))?;
        let (epoch, at, event) = (answer.epoch, answer.at, answer.event);
        let clock = &mut self.partition(number).clock;
        if clock.observe(epoch, at, event, self.lease, boottime()) {
            self.lost_data.notify_one();
        }
        Ok(answer)
    }

    async fn all_holders(&self, limits: &[String]) -> Result<Vec<Vec<ShareInfo>>, Unreachable> {
        let deadline = Instant::now() + self.timeout + self.link.connect_timeout();
        let mut all = Vec::with_capacity(limits.len());
        for limits in limits.chunks(MAX_REQUESTS) {
            let asked = limits.iter().map(async |limit| {
                let mut command = cmd("HGETALL");
                command.arg(limit_key(&self.namespace, partition(limit), limit));
                self.link.query(deadline, &command).await
            });
            for value in join_all(asked).await {
                let holders = read_holders(value?);
                all.push(holders.ok_or(Unreachable("unexpected reply".into()))?);
            }
        }
        Ok(all)
    }

    fn partition(&self, number: usize) -> std::sync::MutexGuard<'_, Partition> {
        let partition = &self.partitions[number];
        partition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseStore for Valkey {
    fn exchange<'a>(&'a self, requests: &'a [LeaseRequest]) -> ExchangeFuture<'a> {
        Box::pin(self.exchange_all(requests))
    }

    fn notice(&self) -> NoticeFuture<'_> {
        Box::pin(async { self.subscription.lock().await.next(&self.link).await })
    }

    fn lost_data(&self) -> DataLossFuture<'_> {
        Box::pin(self.lost_data.notified())
    }

    fn holders<'a>(&'a self, limits: &'a [String]) -> SharesFuture<'a> {
        Box::pin(self.all_holders(limits))
    }
}

impl fmt::Debug for Valkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Valkey")
            .field("link", &self.link)
            .field("replica", &self.replica)
            .finish_non_exhaustive()
    }
}

impl From<Failure> for Unreachable {
    fn from(failure: Failure) -> Self {
        Self(match failure {
            Failure::Timeout => "it took too long".into(),
            Failure::Server(error) => Arc::from(error.to_string()),
        })
    }
}

const NO_SCRIPT: ErrorKind = ErrorKind::Server(ServerErrorKind::NoScript);
/// The most lease requests in one call: a server does nothing else while it runs a script.
const MAX_REQUESTS: usize = 64;
