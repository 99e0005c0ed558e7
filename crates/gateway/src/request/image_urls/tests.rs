//! The limits of concurrent fetches, on every endpoint that fetches images.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fetch::{BoxFuture, Connection, Dial, Fetcher, Resolve, WithPeer};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::testing::{Engine, FIRST, Reply, SECOND, TestGateway};

/// At most `fetch.at_once` images are fetched at once for all keys together; one more is refused
/// with 429, and once the fetches have ended the same number is possible again.
#[tokio::test]
async fn f11_the_limit_of_fetches_is_exact_on_every_road() {
    let mut harness = Harness::new("at_once = 3\nat_once_per_key = 3");
    for endpoint in endpoints() {
        for _ in 0..2 {
            let mut held = Vec::new();
            for key in [FIRST, FIRST, SECOND] {
                held.push(harness.start_fetch(key, &endpoint).await);
            }
            harness.assert_refused(FIRST, &endpoint).await;
            harness.assert_refused(SECOND, &endpoint).await;
            harness.end(held).await;
        }
    }
}

/// At most `fetch.at_once_per_key` images are fetched at once for one key; one more is refused with
/// 429, while another key still has its full limit.
#[tokio::test]
async fn f11_the_limit_of_fetches_of_a_key_is_exact_on_every_road() {
    let mut harness = Harness::new("at_once = 8\nat_once_per_key = 2");
    for endpoint in endpoints() {
        let mut held = Vec::new();
        for key in [FIRST, SECOND] {
            for _ in 0..2 {
                held.push(harness.start_fetch(key, &endpoint).await);
            }
            harness.assert_refused(key, &endpoint).await;
        }
        harness.end(held).await;
    }
}

/// Returns the paths and bodies of requests for which an image is fetched.
fn endpoints() -> [(&'static str, Value); 6] {
    let text = |list: &str, part: Value| json!({"model": "text", "max_tokens": 9, list: [{"role": "user", "content": [part]}]});
    let count = |mut body: Value| {
        body.as_object_mut().unwrap().remove("max_tokens");
        body
    };
    let image = json!({"type": "image", "source": {"type": "url", "url": URL}});
    let edit = |model: &str| json!({"model": model, "prompt": "x", "images": [{"image_url": URL}]});
    [
        (
            "/v1/responses",
            text("input", json!({"type": "input_image", "image_url": URL})),
        ),
        (
            "/v1/chat/completions",
            text(
                "messages",
                json!({"type": "image_url", "image_url": {"url": URL}}),
            ),
        ),
        ("/v1/messages", text("messages", image.clone())),
        ("/v1/messages/count_tokens", count(text("messages", image))),
        ("/v1/images/edits", edit("pictures")),
        ("/v1/images/edits", edit("as-a-form")),
    ]
}

/// A gateway with image hosts that accept connections and never answer.
struct Harness {
    gateway: TestGateway,
    /// The host's end of each connection.
    hosts: UnboundedReceiver<DuplexStream>,
}

/// A request that waits for its image.
struct Fetch {
    reply: JoinHandle<Reply>,
    host: DuplexStream,
}

impl Harness {
    fn new(limits: &str) -> Self {
        let (sender, hosts) = unbounded_channel();
        let network = Arc::new(Network(sender));
        let gateway = TestGateway::changed(
            Engine::default(),
            &format!("[fetch]\n{limits}\n{UPSTREAM}"),
            |gateway, config| {
                let options = config.fetch.options(&[], config.limits.picture);
                gateway.fetcher = Fetcher::with(options, Arc::<Network>::clone(&network), network);
            },
        );
        Self { gateway, hosts }
    }

    /// Sends a request, and waits until the fetch of its image starts.
    async fn start_fetch(&mut self, key: &str, (path, body): &(&str, Value)) -> Fetch {
        let mut reply = tokio::spawn(self.gateway.post(key, path, body));
        tokio::select! {
            host = self.hosts.recv() => Fetch { reply, host: host.unwrap() },
            reply = &mut reply => panic!("{path} fetches nothing: {}", reply.unwrap().body),
        }
    }

    /// Sends a request over the limit, and asserts that it is refused.
    async fn assert_refused(&mut self, key: &str, (path, body): &(&str, Value)) {
        let reply = tokio::select! {
            _ = self.hosts.recv() => panic!("{path}: the picture is fetched"),
            reply = self.gateway.post(key, path, body) => reply,
        };
        let is_messages = path.starts_with("/v1/messages");
        let (field, code) = if is_messages {
            ("type", "rate_limit_error")
        } else {
            ("code", "gateway_concurrency_limit")
        };
        assert_eq!(
            (reply.status, &reply.json()["error"][field]),
            (429, &json!(code)),
            "{path}: {}",
            reply.body
        );
    }

    /// Closes the connections of these fetches, which fails their requests.
    async fn end(&self, held: Vec<Fetch>) {
        for Fetch { reply, host } in held {
            drop(host);
            let reply = reply.await.unwrap();
            assert_eq!(reply.status, 400, "{}", reply.body);
        }
    }
}

/// A network in which every name has one public address, whose host never answers.
struct Network(UnboundedSender<DuplexStream>);

impl Resolve for Network {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(vec![SocketAddr::from(([93, 184, 215, 14], port))]) })
    }
}

impl Dial for Network {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        let (near, far) = duplex(64 << 10);
        self.0.send(far).unwrap();
        Box::pin(async move { Ok(Box::new(WithPeer::new(near, address)) as Box<dyn Connection>) })
    }
}

const URL: &str = "https://pictures.example/a.png";
/// An upstream that accepts edits only as forms, so that the gateway fetches the images for it. It
/// is never reached.
const UPSTREAM: &str = r#"
[[upstreams]]
name = "forms"
protocol = "images"
base_url = "http://127.0.0.1:9/v1"
edits = "multipart"
[[models]]
id = "as-a-form"
family = "images"
protocols = ["images_edits"]
targets = [{ upstream = "forms" }]
"#;
