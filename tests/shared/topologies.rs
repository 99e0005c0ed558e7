//! Stores of several servers.

use std::time::Duration;

use testkit::await_that;

use crate::faults::{CAP, QUOTA, await_full};
use crate::fleet::{self, status};
use crate::judge::{Judge, now};
use crate::load::Load;
use crate::store::Store;

/// Leases that still run when another server has taken over, so that their shares must not be lent
/// again.
const LEASE: Duration = Duration::from_secs(5);

/// The primary is killed while requests are in progress, and a sentinel makes its replica the new one,
/// which knows nothing of these requests.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_failover_lends_no_more_than_there_is() {
    let judge = Judge::start();
    let (mut primary, port) = Store::start_on_port(|_| String::new());
    let (replica, _) = Store::start_on_port(|_| format!("--replicaof 127.0.0.1 {port}"));
    await_that("the replica has the data", || {
        replica
            .run("INFO replication")
            .contains("master_link_status:up")
    });
    let file = crate::GATEWAY.file(
        "sentinel.conf",
        &format!(
            "sentinel monitor main 127.0.0.1 {port} 1\nsentinel down-after-milliseconds main 1000\n\
             sentinel failover-timeout main 5000\n"
        ),
    );
    let file = file.0.display().to_string();
    let (sentinel, sentinel_port) = Store::start_on_port(|_| format!("{file} --sentinel"));
    await_that("the sentinel knows the replica", || {
        sentinel.run("INFO sentinel").contains("slaves=1")
    });
    let address = format!("redis+sentinel://127.0.0.1:{sentinel_port}/main");
    let fleet = fleet::start_at(
        &[address.clone(), address.clone(), address],
        LEASE,
        &judge,
        QUOTA,
    );
    await_that("the store lends", || status(&fleet[0]) == 200);
    // The primary has no password, and refuses a replica with one.
    replica.run("CONFIG SET masterauth none");
    primary.run("CLIENT KILL TYPE replica");
    await_that("the replica is cut off", || {
        replica
            .run("INFO replication")
            .contains("master_link_status:down")
    });
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    Load::run(&all, 8, |_| {
        await_full(&judge, from);
        primary.kill();
        await_that("the replica is the primary", || {
            // A sentinel closes the connections of clients when it promotes.
            let info = replica.try_run("INFO replication");
            info.is_ok_and(|info| info.contains("role:master"))
        });
        // By then, all leases of the old one are over.
        await_full(&judge, now() + LEASE);
    });
    assert_eq!(judge.most_at_once(from), CAP);
}

/// Each of three nodes of a cluster is killed while requests are in progress, and starts again without
/// its data.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_cluster_whose_nodes_die_lends_no_more_than_there_is() {
    let judge = Judge::start();
    let mut nodes = cluster();
    let address = format!(
        "redis+cluster://127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}",
        nodes[0].1, nodes[1].1, nodes[2].1
    );
    let fleet = fleet::start_at(
        &[address.clone(), address.clone(), address],
        LEASE,
        &judge,
        QUOTA,
    );
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    Load::run(&all, 8, |_| {
        await_full(&judge, from);
        for (node, _) in &mut nodes {
            node.kill();
            node.restart();
            // By then, all earlier leases are over.
            await_full(&judge, now() + LEASE);
        }
    });
    assert_eq!(judge.most_at_once(from), CAP);
}

/// Starts a cluster, and returns its nodes with their ports.
fn cluster() -> Vec<(Store, u16)> {
    let options =
        "--cluster-enabled yes --cluster-node-timeout 2000 --cluster-require-full-coverage no";
    let nodes: Vec<_> = (0..3)
        .map(|_| Store::start_on_port(|_| options.to_owned()))
        .collect();
    let slots = ["0 5000", "5001 10000", "10001 16383"];
    for (number, ((node, _), slots)) in (1..).zip(nodes.iter().zip(slots)) {
        assert_eq!(node.run(&format!("CLUSTER ADDSLOTSRANGE {slots}")), "OK");
        assert_eq!(
            node.run(&format!("CLUSTER SET-CONFIG-EPOCH {number}")),
            "OK"
        );
    }
    for (_, port) in &nodes[1..] {
        let bus = port + 10_000;
        assert_eq!(
            nodes[0]
                .0
                .run(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}")),
            "OK"
        );
    }
    for (node, _) in &nodes {
        await_that("the cluster is complete", || {
            let info = node.run("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        });
    }
    nodes
}
