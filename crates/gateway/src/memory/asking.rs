//! The memory of requests that wait for their upstream.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use config::Config;
use http::Request;
use http::header::{AUTHORIZATION, HOST};
use policy::Policy;
use tokio::io::{AsyncReadExt as _, duplex};
use upstream::{BoxFuture, Connection, Dial, Network, WithPeer};

use super::{MEMORY, alone};
use crate::connection::client_body::whole_client_body;
use crate::service;
use crate::state::{GatewayState, Parts};

/// A request that is relayed holds its bytes, and not the parsed request, which takes many times as
/// much.
#[test]
fn j08_a_request_that_waits_takes_little_more_memory_than_it_is() {
    alone(
        "memory::asking::j08_a_request_that_waits_takes_little_more_memory_than_it_is",
        measure(),
    );
}

async fn measure() {
    let server = Silent::default();
    let network = Network {
        dialer: Arc::new(server.clone()),
        ..Network::default()
    };
    let config = Config::parse(CONFIG).expect("a configuration");
    let (policy, _) = Policy::read(&config, true, network).expect("a policy");
    let state = Arc::new(GatewayState::new(Parts::new(&config, policy)));
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        let before = MEMORY.current_usage();
        let body = body(path);
        let length = body.len();
        let request = Request::post(path)
            .header(HOST, "gateway")
            .header(AUTHORIZATION, "Bearer sg_test_key_0000000000000000")
            .body(whole_client_body(body))
            .expect("a request");
        let received = server.received.load(Ordering::Relaxed);
        let state = Arc::clone(&state);
        let pending =
            tokio::spawn(async move { service::answer(&state, request, &Arc::default()).await });
        while server.received.load(Ordering::Relaxed) < received + length / 2 {
            assert!(!pending.is_finished(), "{path} is not asked");
            tokio::task::yield_now().await;
        }
        let taken = MEMORY.current_usage().saturating_sub(before);
        assert!(taken <= 4 * length, "{path}: {taken} of {length} bytes");
        pending.abort();
        let _ = pending.await;
    }
}

/// A conversation of many short messages.
fn body(path: &str) -> Bytes {
    let (model, list) = match path {
        "/v1/chat/completions" => ("chat", "messages"),
        "/v1/responses" => ("responses", "input"),
        _ => ("messages", "messages"),
    };
    let turns = [
        r#"{"role":"user","content":"Hello."}"#,
        r#"{"role":"assistant","content":"Hi."}"#,
    ];
    let turns: Vec<_> = turns.into_iter().cycle().take(100_001).collect();
    let text = format!(
        r#"{{"model":"{model}","max_tokens":9,"{list}":[{}]}}"#,
        turns.join(",")
    );
    let text = match path {
        "/v1/responses" => text.replace(r#""max_tokens":9,"#, ""),
        _ => text,
    };
    Bytes::from(text)
}

/// A server that reads requests and never answers.
#[derive(Clone, Default)]
struct Silent {
    received: Arc<AtomicUsize>,
}

impl Dial for Silent {
    fn dial(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        let (ours, mut theirs) = duplex(64 << 10);
        let received = Arc::clone(&self.received);
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read @ 1..) = theirs.read(&mut buffer).await {
                received.fetch_add(read, Ordering::Relaxed);
            }
        });
        Box::pin(async move {
            let connection: Box<dyn Connection> = Box::new(WithPeer::new(ours, to));
            Ok(connection)
        })
    }
}

const CONFIG: &str = r#"
[[keys]]
name = "test"
hash = "sha256:dfb5763e2de5a47fc9831768a18942ede5b93c6b16d00735b62e175298f2e8e1"
scopes = ["text", "messages"]

[[upstreams]]
name = "chat"
protocol = "chat"
base_url = "http://127.0.0.1:1/v1"

[[upstreams]]
name = "responses"
protocol = "responses"
base_url = "http://127.0.0.1:1/v1"

[[upstreams]]
name = "messages"
protocol = "messages"
base_url = "http://127.0.0.1:1/v1"

[[models]]
id = "chat"
family = "text"
protocols = ["chat"]
targets = [{ upstream = "chat", model = "theirs" }]

[[models]]
id = "responses"
family = "text"
protocols = ["responses"]
targets = [{ upstream = "responses", model = "theirs" }]

[[models]]
id = "messages"
family = "messages"
protocols = ["messages"]
targets = [{ upstream = "messages", model = "theirs" }]
"#;
