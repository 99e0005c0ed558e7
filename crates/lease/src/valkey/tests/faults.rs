//! Tests of the client with servers that forget, restart or fall silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quota::{FailMode, LeaseGrant, LeasedLimitSpec, LeasedShare};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::time::Instant;

use super::server::{Server, permits};
use crate::clock::boottime;
use crate::report::{Report, Unsuitable};
use crate::store::{LeaseStore as _, Unreachable};
use crate::valkey::{Settings, Valkey};

const LONG: Duration = Duration::from_secs(30);

async fn request(
    store: &Valkey,
    seq: u64,
    retained: u64,
    waiting: u64,
) -> Result<LeaseGrant, Unreachable> {
    let mut replies = store.exchange(&[permits(10, seq, retained, waiting)]).await;
    replies.remove(0)
}

/// Repeats an exchange until it succeeds.
async fn request_until(store: &Valkey, seq: u64, retained: u64) -> LeaseGrant {
    let start = Instant::now();
    loop {
        match request(store, seq, retained, 0).await {
            Ok(reply) => return reply,
            Err(error) => assert!(start.elapsed() < LONG, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Exchanges a share with the store until `wanted` returns true for it.
async fn drive_until(
    store: &Valkey,
    holding: &mut LeasedShare,
    wanted: impl Fn(&mut LeasedShare) -> bool,
) {
    let start = Instant::now();
    while !wanted(holding) {
        assert!(start.elapsed() < LONG, "{holding:?}");
        let requests: Vec<_> = holding.poll(boottime()).into_iter().collect();
        for (request, result) in requests.iter().zip(store.exchange(&requests).await) {
            match result {
                Ok(reply) => holding.on_grant(&reply, boottime()),
                Err(_) => holding.on_no_answer(request.seq, boottime()),
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn settings_with_short_leases(server: &Server) -> Settings {
    let mut settings = server.settings();
    settings.lease = Duration::from_secs(3);
    settings
}

/// The permits of a replica that was killed are granted to another one after its lease.
#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn permits_of_a_replica_that_is_gone_come_back() {
    let server = Server::start("SLUICEGATE_VALKEY", &[]);
    let settings = settings_with_short_leases(&server);
    let (first, second) = (
        Valkey::new(&settings).unwrap(),
        Valkey::new(&settings).unwrap(),
    );
    let new = || {
        let spec = LeasedLimitSpec::Permits { cap: 4 };
        LeasedShare::new("q0/team-a".into(), spec, FailMode::Closed, settings.lease)
    };
    let (mut one, mut other) = (new(), new());
    let take_all = |holding: &mut LeasedShare| holding.take(4, boottime()).is_some();
    drive_until(&first, &mut one, take_all).await;
    let leased_at = Instant::now();
    drop((first, one));
    drive_until(&second, &mut other, take_all).await;
    // Not before the lease of the first replica was over. The rest is for a slow machine.
    assert!(
        leased_at.elapsed() > Duration::from_secs(2),
        "{:?}",
        leased_at.elapsed()
    );
}

#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn held_permits_survive_store_flush_and_restart() {
    let mut server = Server::start("SLUICEGATE_VALKEY", &[]);
    let store = Valkey::new(&server.settings()).unwrap();
    assert!(request(&store, 1, 0, 5).await.unwrap().quarantined);
    for round in 0..3 {
        match round {
            0 => drop(server.run(&["FLUSHALL"]).await.unwrap()),
            1 => server.restart(),
            // The data are there, but the server may have been another one in between.
            _ => drop(server.run(&["DEBUG", "CHANGE-REPL-ID"]).await.unwrap()),
        }
        let reply = request_until(&store, 10 + round, 7).await;
        assert_eq!((reply.held, reply.quarantined), (7, true), "{round}");
        // The store grants nothing meanwhile.
        let other = Valkey::new(&server.settings()).unwrap();
        let reply = request(&other, 1, 0, 3).await.unwrap();
        assert_eq!((reply.held, reply.available), (0, 0), "{round}");
    }
}

#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn a_server_that_forgets_scripts_is_sent_the_text() {
    let server = Server::start("SLUICEGATE_VALKEY", &[]);
    let store = Valkey::new(&server.settings()).unwrap();
    for seq in 1..4 {
        server.run(&["SCRIPT", "FLUSH"]).await.unwrap();
        assert_eq!(request(&store, seq, 2, 0).await.unwrap().seq, seq);
    }
}

#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn a_large_batch_is_answered_in_its_order() {
    let server = Server::start("SLUICEGATE_VALKEY", &[]);
    let store = Valkey::new(&server.settings()).unwrap();
    let requests: Vec<_> = (1..2_001)
        .map(|i| {
            let mut request = permits(10, i, i % 11, 0);
            request.limit = format!("q0/{i}").into();
            request
        })
        .collect();
    let replies = store.exchange(&requests).await;
    assert_eq!(replies.len(), 2_000);
    for (i, reply) in (1..).zip(replies) {
        let reply = reply.unwrap();
        assert_eq!((reply.seq, reply.held), (i, i % 11));
    }
}

/// The first exchange contacts all partitions. Partitions without lease requests are not contacted
/// again for a quarter of a lease.
#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn a_partition_without_asks_is_asked_now_and_then() {
    let server = Server::start("SLUICEGATE_VALKEY", &[]);
    let store = Valkey::new(&server.settings()).unwrap();
    for seq in 1..4 {
        request(&store, seq, 0, 0).await.unwrap();
    }
    let calls = "cmdstat_evalsha:calls=18,";
    server.wait_for("INFO commandstats", calls).await;
}

/// An exchange fails in time if the server accepts connections and never answers.
#[tokio::test]
async fn an_exchange_with_a_black_hole_ends_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("redis://{}", listener.local_addr().unwrap());
    let hole = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    let mut settings = Settings::new(address.parse().unwrap());
    settings.connect_timeout = 2 * LONG;
    let store = Valkey::new(&settings).unwrap();
    for seq in 1..4 {
        let start = Instant::now();
        request(&store, seq, 0, 1).await.unwrap_err();
        // The bound is 100 ms; the rest is for a slow machine.
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    settings.connect_timeout = Duration::from_millis(100);
    let check = Valkey::new(&settings).unwrap().check().await;
    assert!(matches!(check, Err(Unsuitable::Unreachable(_))));
    hole.abort();
}

#[tokio::test]
async fn with_rediss_the_connection_begins_with_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("rediss://{}", listener.local_addr().unwrap());
    let mut settings = Settings::new(address.parse().unwrap());
    settings.timeout = LONG;
    settings.lease = 10 * LONG;
    settings.connect_timeout = LONG;
    let store = Valkey::new(&settings).unwrap();
    let first = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap()
    };
    let first = tokio::time::timeout(LONG, first);
    let (first, result) = tokio::join!(first, request(&store, 1, 0, 1));
    let error = result.unwrap_err();
    // The content type of a handshake.
    assert_eq!(first.ok(), Some(22), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_reported_at_once() {
    let settings = Settings::new("redis+unix:///nonexistent/socket".parse().unwrap());
    let error = request(&Valkey::new(&settings).unwrap(), 1, 0, 1)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the lease store did not answer: "),
        "{text}"
    );
}

/// A connection whose peer has vanished is replaced, although no error is ever reported on it.
#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn a_connection_that_has_fallen_silent_is_replaced() {
    let server = Server::start("SLUICEGATE_VALKEY", &[]);
    let socket = server
        .address()
        .trim_start_matches("redis+unix://")
        .to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("redis://{}", listener.local_addr().unwrap());
    let silent = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&silent);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = UnixStream::connect(&socket).await.unwrap();
            let ((mut near_in, mut near_out), (mut far_in, mut far_out)) =
                (near.into_split(), far.into_split());
            let flag = Arc::clone(&flag);
            tokio::spawn(async move {
                let mut bytes = [0; 4_096];
                while let Ok(count @ 1..) = near_in.read(&mut bytes).await {
                    if flag.load(Ordering::Relaxed) {
                        // Dropped, with all that follows on this connection.
                        std::future::pending::<()>().await;
                    }
                    far_out.write_all(&bytes[..count]).await.unwrap();
                }
            });
            tokio::spawn(async move { tokio::io::copy(&mut far_in, &mut near_out).await });
        }
    });
    let mut settings = server.settings();
    settings.address = address.parse().unwrap();
    settings.timeout = Duration::from_secs(1);
    let store = Valkey::new(&settings).unwrap();
    request_until(&store, 1, 4).await;
    silent.store(true, Ordering::Relaxed);
    request(&store, 2, 4, 0).await.unwrap_err();
    silent.store(false, Ordering::Relaxed);
    assert_eq!(request_until(&store, 3, 4).await.held, 4);
}

#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn a_server_that_evicts_is_refused() {
    let good = Server::start("SLUICEGATE_VALKEY", &["--min-replicas-to-write", "1"]);
    let report = Valkey::new(&good.settings()).unwrap().check().await;
    let expected = Report {
        min_replicas_to_write: Some(1),
        requires_full_coverage: None,
    };
    assert_eq!(report, Ok(expected));
    let bad = Server::start("SLUICEGATE_VALKEY", &["--maxmemory-policy", "allkeys-lru"]);
    let refused = Valkey::new(&bad.settings()).unwrap().check().await;
    assert_eq!(refused, Err(Unsuitable::Evicts("allkeys-lru".into())));
}
