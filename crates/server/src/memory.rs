//! How much memory requests take at most, counted by the allocator.

mod large;
#[cfg(feature = "easel")]
mod pictures;
mod small;

use std::convert::Infallible;
use std::process::Command;
use std::sync::Arc;

use auth::Scope;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use peak_alloc::PeakAlloc;

use crate::config::Config;
use crate::gateway::Gateway;
use crate::keys::GeneratedKey;
use crate::policy::Policy;
use crate::start::{Engines, assemble};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A gateway, and a key for each capability.
struct Scene {
    gateway: Arc<Gateway>,
    keys: Vec<GeneratedKey>,
}

/// What answering a request took.
struct Taken {
    status: StatusCode,
    /// The most memory at any time, in bytes.
    peak: usize,
    /// The length of the reply's body.
    reply: usize,
}

impl Scene {
    /// The gateway that needs no file, with these engines.
    fn new(engines: Engines) -> Self {
        let (policy, keys) =
            Policy::read(&Config::default(), false, upstream::Network::default()).expect("the built-in policy");
        Self { gateway: Arc::new(assemble(Config::default(), policy, engines, &[])), keys }
    }

    /// Sends a request as a connection would.
    async fn send(&self, path: &str, content_type: &str, body: &[u8]) -> Taken {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let pieces = body.chunks(PIECE).map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(piece))));
        let request = Request::post(path)
            .header(AUTHORIZATION, format!("Bearer {}", self.key(path)))
            .header(CONTENT_TYPE, content_type)
            .header(HOST, "gateway")
            .body(StreamBody::new(futures_util::stream::iter(pieces)))
            .expect("a request");
        let mut response = self.gateway.answer_guarded(request, &Arc::default()).await;
        let mut reply = 0;
        while let Some(frame) = response.body_mut().frame().await {
            reply += frame.expect("replies do not fail").into_data().unwrap_or_default().len();
        }
        Taken { status: response.status(), peak: MEMORY.peak_usage().saturating_sub(before), reply }
    }

    fn key(&self, path: &str) -> &str {
        let scope = match path {
            _ if path.starts_with("/v1/images") => Scope::Images,
            _ if path.starts_with("/v1/messages") => Scope::Messages,
            _ => Scope::Text,
        };
        self.keys.iter().find(|made| made.scope == scope).expect("a key").key.expose()
    }
}

/// Runs `measure` for the test of this path, in a process of its own: every thread of a process counts.
fn alone(test: &str, measure: impl Future<Output = ()>) {
    if std::env::var_os(MEASURE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        return runtime.expect("a runtime").block_on(measure);
    }
    let this = std::env::current_exe().expect("a test has a path");
    let mut command = Command::new(this);
    let output = command.args(["--exact", test, "--nocapture"]).env(MEASURE, "1").output();
    let output = output.expect("a test can be run again");
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

/// As much as a connection hands over at a time.
const PIECE: usize = 64 * 1024;
/// Tells the second process that it is the one to measure in.
const MEASURE: &str = "SLUICEGATE_MEASURE_MEMORY";
