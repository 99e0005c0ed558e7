//! Tests of the memory of requests, as counted by the allocator.

mod asking;
mod large;
mod pictures;
mod small;

use std::convert::Infallible;
use std::process::Command;
use std::sync::Arc;

use auth::Scope;
use bytes::Bytes;
use config::Config;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use peak_alloc::PeakAlloc;
use policy::Policy;
use policy::keys::GeneratedKey;

use crate::connection::client_body::client_body;
use crate::service;
use crate::state::{Engines, GatewayState, Parts};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A gateway and its generated keys.
struct Scene {
    state: Arc<GatewayState>,
    keys: Vec<GeneratedKey>,
}

/// The result of one measured request.
struct Taken {
    status: StatusCode,
    /// The peak of allocated memory, in bytes.
    peak: usize,
    /// The length of the response body.
    reply: usize,
}

impl Scene {
    /// Creates a gateway without a configuration file, with these engines.
    fn new(engines: Engines) -> Self {
        let config = Config::default();
        let (policy, keys) = Policy::read(&config, false, upstream::Network::default())
            .expect("the built-in policy");
        Self {
            state: Arc::new(GatewayState::new(Parts {
                engines,
                ..Parts::new(&config, policy)
            })),
            keys,
        }
    }

    /// Sends a request the way a connection would.
    async fn send(&self, path: &str, content_type: &str, body: &[u8]) -> Taken {
        let body = body.to_vec();
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let chunks = (0..body.len()).step_by(CHUNK).map(move |start| {
            let chunk = &body[start..body.len().min(start + CHUNK)];
            Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(chunk)))
        });
        let request = Request::post(path)
            .header(AUTHORIZATION, format!("Bearer {}", self.key(path)))
            .header(CONTENT_TYPE, content_type)
            .header(HOST, "gateway")
            .body(client_body(StreamBody::new(futures_util::stream::iter(
                chunks,
            ))))
            .expect("a request");
        let mut response = service::answer(&self.state, request, &Arc::default()).await;
        let mut reply = 0;
        while let Some(frame) = response.body_mut().frame().await {
            reply += frame
                .expect("replies do not fail")
                .into_data()
                .unwrap_or_default()
                .len();
        }
        Taken {
            status: response.status(),
            peak: MEMORY.peak_usage().saturating_sub(before),
            reply,
        }
    }

    fn key(&self, path: &str) -> &str {
        let scope = match path {
            _ if path.starts_with("/v1/images") => Scope::Images,
            _ if path.starts_with("/v1/messages") => Scope::Messages,
            _ => Scope::Text,
        };
        self.keys
            .iter()
            .find(|key| key.scope == scope)
            .expect("a key")
            .key
            .expose()
    }
}

/// Runs `measure` in a child process that executes only the test of this path, because the
/// allocator counts every thread.
fn alone(test: &str, measure: impl Future<Output = ()>) {
    if std::env::var_os(MEASURE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        return runtime.expect("a runtime").block_on(measure);
    }
    let this = std::env::current_exe().expect("a test has a path");
    let mut command = Command::new(this);
    let output = command
        .args(["--exact", test, "--nocapture"])
        .env(MEASURE, "1")
        .output();
    let output = output.expect("a test can be run again");
    let output_text = [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    assert!(
        output.status.success() && output_text.contains("1 passed"),
        "{output_text}"
    );
}

/// The size of the chunks that a connection reads.
const CHUNK: usize = 64 * 1024;
/// Set in the child process that measures.
const MEASURE: &str = "SLUICEGATE_MEASURE_MEMORY";
