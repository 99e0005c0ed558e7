//! Tests of the notices of other replicas.

use std::time::Duration;

use quota::LeaseGrant;
use tokio::time::timeout;

use super::server::{Server, permits};
use crate::store::LeaseStore as _;
use crate::valkey::Valkey;

const LONG: Duration = Duration::from_secs(30);

/// Sends a lease request until it is answered, which takes several attempts on a busy machine: a
/// repeated request changes nothing.
async fn request(store: &Valkey, seq: u64, retained: u64, waiting: u64) -> LeaseGrant {
    let requests = [permits(10, seq, retained, waiting)];
    loop {
        if let Ok(reply) = store.exchange(&requests).await[0] {
            return reply;
        }
    }
}

/// Returns the clients of two replicas. The first one holds all permits, the quarantine of the new
/// store is over, and the second one has had an exchange.
async fn replicas(server: &Server) -> (Valkey, Valkey) {
    let mut settings = server.settings();
    settings.lease = Duration::from_secs(6);
    let [first, second] = [(); 2].map(|()| Valkey::new(&settings).unwrap());
    let mut seq = 0;
    loop {
        seq += 1;
        if request(&first, seq, 0, 10).await.held == 10 {
            request(&second, 1, 0, 0).await;
            return (first, second);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The replica that holds permits receives a notice when requests of the other one wait, and the
/// waiting replica receives a notice when permits are returned; also after the connections of both
/// were cut.
#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn notices_reach_waiting_replicas_after_reconnects() {
    let server = Server::start("SLUICEGATE_VALKEY", &[]);
    let (first, second) = replicas(&server).await;
    for round in 0..2 {
        let noticed = async {
            tokio::join!(
                timeout(LONG, first.notice()),
                timeout(LONG, second.notice())
            )
        };
        let asked = async {
            server
                .wait_for("PUBSUB NUMSUB sg:1:notices", "int(2)")
                .await;
            let seq = 10_000 + 10 * round;
            request(&second, seq, 0, 2).await;
            request(&first, seq, 10, 0).await;
            request(&first, seq + 1, 8, 0).await;
            assert_eq!(request(&second, seq + 1, 0, 2).await.held, 2);
            request(&second, seq + 2, 0, 0).await;
            assert_eq!(request(&first, seq + 2, 8, 2).await.held, 10);
        };
        let ((of_first, of_second), ()) = tokio::join!(noticed, asked);
        assert_eq!(of_first.unwrap(), "q0/team-a");
        assert_eq!(of_second.unwrap(), "q0/team-a");
        server
            .run(&["CLIENT", "KILL", "TYPE", "pubsub"])
            .await
            .unwrap();
    }
}

/// A user without the right to publish sends no notices; the exchange itself is answered.
#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn a_user_without_the_right_to_publish_has_no_notices() {
    let server = Server::start("SLUICEGATE_VALKEY", &[]);
    let (first, second) = replicas(&server).await;
    drop(first);
    let words = "ACL SETUSER default resetchannels";
    let words: Vec<&str> = words.split(' ').collect();
    server.run(&words).await.unwrap();
    let reply = request(&second, 2, 0, 2).await;
    assert_eq!((reply.held, reply.available, reply.replicas), (0, 0, 2));
}

/// The second replica publishes that it waits. It receives this notice as well, and ignores it.
#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn a_replica_passes_over_its_own_notices() {
    let server = Server::start("SLUICEGATE_VALKEY", &[]);
    let (first, second) = replicas(&server).await;
    drop(first);
    let noticed = timeout(LONG, second.notice());
    let asked = async {
        server
            .wait_for("PUBSUB NUMSUB sg:1:notices", "int(1)")
            .await;
        request(&second, 2, 0, 2).await;
        let other = ["PUBLISH", "sg:1:notices", "other#1 q0/team-b"];
        server.run(&other).await.unwrap();
    };
    let (noticed, ()) = tokio::join!(noticed, asked);
    assert_eq!(noticed.unwrap(), "q0/team-b");
}
