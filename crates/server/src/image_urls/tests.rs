//! The limits of concurrent fetches are exact on every road that fetches pictures.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fetch::{BoxFuture, Connection, Dial, Fetcher, Resolve};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::test_gateway::{Engine, FIRST, Reply, SECOND, TestGateway};

/// As many pictures as `fetch.at_once` are fetched at once, for any keys; one more is 429, and once the fetches have ended
/// as many are possible again.
#[tokio::test]
async fn f11_the_limit_of_fetches_is_exact_on_every_road() {
    let mut scene = Scene::new("at_once = 3\nat_once_per_key = 3");
    for road in roads() {
        for _ in 0..2 {
            let mut held = Vec::new();
            for key in [FIRST, FIRST, SECOND] {
                held.push(scene.fetches(key, &road).await);
            }
            scene.refuses(FIRST, &road).await;
            scene.refuses(SECOND, &road).await;
            scene.end(held).await;
        }
    }
}

/// As many pictures as `fetch.at_once_per_key` are fetched at once for one key; one more is 429, while another key has a
/// limit of its own.
#[tokio::test]
async fn f11_the_limit_of_fetches_of_a_key_is_exact_on_every_road() {
    let mut scene = Scene::new("at_once = 8\nat_once_per_key = 2");
    for road in roads() {
        let mut held = Vec::new();
        for key in [FIRST, SECOND] {
            for _ in 0..2 {
                held.push(scene.fetches(key, &road).await);
            }
            scene.refuses(key, &road).await;
        }
        scene.end(held).await;
    }
}

/// Paths and bodies of requests for which a picture is fetched.
fn roads() -> [(&'static str, Value); 6] {
    let text = |list: &str, part: Value| json!({"model": "text", "max_tokens": 9, list: [{"role": "user", "content": [part]}]});
    let count = |mut body: Value| {
        body.as_object_mut().unwrap().remove("max_tokens");
        body
    };
    let image = json!({"type": "image", "source": {"type": "url", "url": URL}});
    let edit = |model: &str| json!({"model": model, "prompt": "x", "images": [{"image_url": URL}]});
    [
        ("/v1/responses", text("input", json!({"type": "input_image", "image_url": URL}))),
        ("/v1/chat/completions", text("messages", json!({"type": "image_url", "image_url": {"url": URL}}))),
        ("/v1/messages", text("messages", image.clone())),
        ("/v1/messages/count_tokens", count(text("messages", image))),
        ("/v1/images/edits", edit("pictures")),
        ("/v1/images/edits", edit("as-a-form")),
    ]
}

/// A gateway before hosts of pictures that are silent.
struct Scene {
    gateway: TestGateway,
    /// The other end of each connection to a host.
    hosts: UnboundedReceiver<DuplexStream>,
}

/// A request that waits for its picture.
struct Fetch {
    reply: JoinHandle<Reply>,
    host: DuplexStream,
}

impl Scene {
    fn new(limits: &str) -> Self {
        let (sender, hosts) = unbounded_channel();
        let network = Arc::new(Network(sender));
        let gateway =
            TestGateway::changed(Engine::default(), &format!("[fetch]\n{limits}\n{UPSTREAM}"), |gateway, config| {
                let options = config.fetch.options(&[], config.limits.picture);
                gateway.fetcher = Fetcher::with(options, Arc::<Network>::clone(&network), network);
            });
        Self { gateway, hosts }
    }

    /// Sends a request, and waits until its picture is fetched.
    async fn fetches(&mut self, key: &str, (path, body): &(&str, Value)) -> Fetch {
        let mut reply = tokio::spawn(self.gateway.post(key, path, body));
        tokio::select! {
            host = self.hosts.recv() => Fetch { reply, host: host.unwrap() },
            reply = &mut reply => panic!("{path} fetches nothing: {}", reply.unwrap().body),
        }
    }

    /// Sends a request that is one too many.
    async fn refuses(&mut self, key: &str, (path, body): &(&str, Value)) {
        let reply = tokio::select! {
            _ = self.hosts.recv() => panic!("{path}: the picture is fetched"),
            reply = self.gateway.post(key, path, body) => reply,
        };
        let is_messages = path.starts_with("/v1/messages");
        let (field, code) =
            if is_messages { ("type", "rate_limit_error") } else { ("code", "gateway_concurrency_limit") };
        assert_eq!((reply.status, &reply.json()["error"][field]), (429, &json!(code)), "{path}: {}", reply.body);
    }

    /// Ends these fetches, which fail.
    async fn end(&self, held: Vec<Fetch>) {
        for Fetch { reply, host } in held {
            drop(host);
            let reply = reply.await.unwrap();
            assert_eq!(reply.status, 400, "{}", reply.body);
        }
    }
}

/// A network of one public address, whose host is silent.
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
        Box::pin(async move { Ok(Box::new(Wire(near, address)) as Box<dyn Connection>) })
    }
}

/// One end of a connection, with the address of the other.
struct Wire(DuplexStream, SocketAddr);

impl Connection for Wire {
    fn peer(&self) -> io::Result<SocketAddr> {
        Ok(self.1)
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

const URL: &str = "https://pictures.example/a.png";
/// An upstream that takes edits as forms alone, so that the gateway fetches pictures for it. It is never reached.
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
