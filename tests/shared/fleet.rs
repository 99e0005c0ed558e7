//! Gateways that share their quotas.

use std::thread::scope;
use std::time::Duration;

use simulator::{Protocol, Simulator};
use testkit::requests::{ask, request};
use testkit::{Config, Connection, Gateway, Response};

use crate::GATEWAY;
use crate::judge::Judge;
use crate::store::Store;

/// The duration of leases in most tests.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// Starts so many gateways with a quota, as lines of TOML, which the store lends.
pub(crate) fn start(count: usize, store: &Store, judge: &Judge, quota: &str) -> Vec<Gateway> {
    start_at(&vec![store.address(); count], LEASE, judge, quota)
}

/// Starts a gateway with a quota and leases of this duration for each of these addresses of a store.
pub(crate) fn start_at(
    addresses: &[String],
    lease: Duration,
    judge: &Judge,
    quota: &str,
) -> Vec<Gateway> {
    start_with(addresses, lease, "", &judge.simulator, quota)
}

/// Starts gateways as [`start_at`] does, in front of this model server, with further lines of TOML for
/// their state.
pub(crate) fn start_with(
    addresses: &[String],
    lease: Duration,
    settings: &str,
    server: &Simulator,
    quota: &str,
) -> Vec<Gateway> {
    let start = |address| {
        let state = format!(
            "[state]\nlimits = \"{address}\"\nlease = \"{}s\"\n{settings}\n[[quotas]]\n{quota}",
            lease.as_secs()
        );
        Config::before(server, "concurrency_per_key = 256", "")
            .section(&state)
            .start(GATEWAY)
    };
    addresses.iter().map(start).collect()
}

/// Sends one request, and returns the head of its response, if the gateway answers.
pub(crate) fn answer(gateway: &Gateway) -> Option<Response> {
    let body = ask(Protocol::Chat, "chat", "Hello.", false);
    let mut connection = Connection::try_open(gateway.address())?;
    let sent = connection.try_send(request(Protocol::Chat, &body).bytes());
    sent.then(|| connection.head().ok()).flatten()
}

/// Sends one request, and returns the status of its response; 0 if the gateway does not answer.
pub(crate) fn status(gateway: &Gateway) -> u16 {
    answer(gateway).map_or(0, |head| head.status)
}

/// Sends so many requests at the same time, and returns the number of those that were answered.
pub(crate) fn burst(gateway: &Gateway, count: usize) -> usize {
    scope(|scope| {
        let requests: Vec<_> = (0..count)
            .map(|_| scope.spawn(|| status(gateway)))
            .collect();
        let statuses = requests.into_iter().map(|request| request.join().unwrap());
        statuses.filter(|status| *status == 200).count()
    })
}
