//! Tests of the client with a cluster and with sentinels.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::time::Duration;

use tokio::time::Instant;

use super::server::{Server, permits};
use crate::report::Report;
use crate::store::LeaseStore as _;
use crate::valkey::{Settings, Valkey};

/// Returns a port that was free a moment ago. The cluster needs another one, 10,000 above it.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if port < 55_000 {
            return port;
        }
    }
}

fn settings(address: &str) -> Settings {
    let mut settings = Settings::new(address.parse().unwrap());
    settings.lease = Duration::from_secs(200);
    settings.timeout = Duration::from_secs(20);
    settings.connect_timeout = Duration::from_secs(20);
    settings
}

/// Starts a server with a free port. Another process can take the port first, so this tries several
/// times.
fn start_with_port(options: impl Fn(&str) -> Vec<String>) -> (Server, u16) {
    for _ in 0..20 {
        let port = free_port();
        let options = options(&port.to_string());
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        if let Some(server) = Server::try_start("SLUICEGATE_VALKEY", &options) {
            return (server, port);
        }
    }
    panic!("no port was free in 20 attempts");
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Waits until the store answers for all of many limits, which are spread over all partitions.
async fn answers(store: &Valkey) {
    let requests: Vec<_> = (1..100)
        .map(|i| {
            let mut request = permits(10, i, i % 11, 0);
            request.limit = format!("q0/{i}").into();
            request
        })
        .collect();
    let start = Instant::now();
    loop {
        let replies = store.exchange(&requests).await;
        match replies.iter().find_map(|reply| reply.as_ref().err()) {
            Some(error) => assert!(start.elapsed() < Duration::from_secs(60), "{error}"),
            None => {
                for (i, reply) in (1..).zip(replies) {
                    assert_eq!(reply.map(|reply| reply.held), Ok(i % 11));
                }
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn a_cluster_lends_all_limits() {
    let options = "--cluster-enabled yes --bind 127.0.0.1 --port";
    let nodes = [(); 3].map(|()| start_with_port(|port| words(&format!("{options} {port}"))));
    for ((node, _), slots) in
        nodes
            .iter()
            .zip([("0", "5000"), ("5001", "10000"), ("10001", "16383")])
    {
        let words = ["CLUSTER", "ADDSLOTSRANGE", slots.0, slots.1];
        node.run(&words).await.unwrap();
    }
    for (number, (node, _)) in (1..).zip(&nodes) {
        let epoch = format!("{number}");
        node.run(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])
            .await
            .unwrap();
    }
    for (_, port) in &nodes[1..] {
        let (port, bus) = (port.to_string(), (port + 10_000).to_string());
        let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
        nodes[0].0.run(&meet).await.unwrap();
    }
    for (node, _) in &nodes {
        node.wait_for("CLUSTER INFO", "cluster_state:ok").await;
        node.wait_for("CLUSTER INFO", "cluster_known_nodes:3").await;
    }
    let address = format!(
        "redis+cluster://127.0.0.1:{},127.0.0.1:{}",
        nodes[0].1, nodes[1].1
    );
    let store = Valkey::new(&settings(&address)).unwrap();
    answers(&store).await;
    let report = store.check().await;
    let expected = Report {
        min_replicas_to_write: Some(0),
        requires_full_coverage: Some(true),
    };
    assert_eq!(report, Ok(expected));
}

#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn sentinels_name_the_primary_and_later_the_new_one() {
    let (mut primary, port) =
        start_with_port(|port| words(&format!("--port {port} --bind 127.0.0.1")));
    let (replica, _) = start_with_port(|other| {
        words(&format!(
            "--port {other} --bind 127.0.0.1 --replicaof 127.0.0.1"
        ))
        .into_iter()
        .chain([port.to_string()])
        .collect()
    });
    let mut configuration = String::new();
    writeln!(configuration, "sentinel monitor main 127.0.0.1 {port} 1").unwrap();
    writeln!(configuration, "sentinel down-after-milliseconds main 1000").unwrap();
    writeln!(configuration, "sentinel failover-timeout main 5000").unwrap();
    let folder = std::env::temp_dir().join(format!("sluicegate-sentinel-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("sentinel.conf");
    let (sentinel, sentinel_port) = start_with_port(|port| {
        std::fs::write(&file, &configuration).unwrap();
        let file = file.display().to_string();
        [file, "--sentinel".into()]
            .into_iter()
            .chain(words(&format!("--port {port} --bind 127.0.0.1")))
            .collect()
    });
    replica
        .wait_for("INFO replication", "master_link_status:up")
        .await;
    sentinel.wait_for("INFO sentinel", "slaves=1").await;
    let address = format!("redis+sentinel://127.0.0.1:{sentinel_port}/main");
    let store = Valkey::new(&settings(&address)).unwrap();
    answers(&store).await;
    primary.kill();
    replica.wait_for("INFO replication", "role:master").await;
    // A new epoch: the store accepts the retained amount. The number of the request is above the
    // numbers that it has handled already.
    let mut request = permits(10, 1_000, 4, 3);
    request.limit = "q0/1".into();
    let start = Instant::now();
    let reply = loop {
        match store
            .exchange(std::slice::from_ref(&request))
            .await
            .remove(0)
        {
            Ok(reply) => break reply,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(60), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!((reply.held, reply.quarantined), (4, true));
    drop(sentinel);
    std::fs::remove_dir_all(folder).unwrap();
}
