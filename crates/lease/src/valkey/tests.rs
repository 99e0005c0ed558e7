//! Tests against real servers, whose programs `SLUICEGATE_VALKEY` and `SLUICEGATE_REDIS` name.

mod differential;
mod faults;
mod notices;
mod server;
mod topologies;

use std::time::Duration;

use super::{Settings, Valkey};

/// An exchange that fails leaves most of the lease for others.
#[test]
fn an_exchange_takes_at_most_a_tenth_of_the_lease() {
    let timeout = |timeout: u64| {
        let settings = Settings {
            address: "redis://127.0.0.1:1".parse().unwrap(),
            name: "a".to_owned(),
            namespace: "sluicegate".to_owned(),
            lease: Duration::from_secs(2),
            timeout: Duration::from_millis(timeout),
            connect_timeout: Duration::from_secs(5),
        };
        Valkey::new(&settings).unwrap().timeout
    };
    assert_eq!(timeout(500), Duration::from_millis(200));
    assert_eq!(timeout(50), Duration::from_millis(50));
}
