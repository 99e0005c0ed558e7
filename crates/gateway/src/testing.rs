//! A gateway in the process of its test, with scripted engines.

#![allow(
    clippy::unwrap_used,
    reason = "it is used in tests, which a panic fails"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use config::Config;
use engine::{
    Background, EngineError, Generation, ImageEngine, ImageEvent, ImageFormat, ImageGeneration,
    ImageRequest, ImageTraits, Pixels, Quality, TextEngine, TextEvent, TextRequest,
};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request};
use http_body_util::BodyExt;
use policy::Policy;
use serde_json::Value;

use crate::connection::client_body::whole_client_body;
use crate::service;
use crate::state::{GatewayState, Parts};

/// A gateway with the models `text` and `pictures`, served by scripted engines.
pub struct TestGateway {
    /// The state of the gateway.
    pub state: Arc<GatewayState>,
    engine: Arc<Engine>,
}

/// A complete response.
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body, which is UTF-8.
    pub body: String,
}

/// A scripted engine for text and images.
#[derive(Default)]
pub struct Engine {
    /// The events of each text answer.
    pub text: Vec<TextEvent>,
    /// The events of each image answer.
    pub pictures: Vec<ImageEvent>,
    /// True if an answer ends after its events; otherwise it stays pending.
    pub ends: bool,
    /// The number of answers that are not dropped yet.
    pub open: Arc<AtomicUsize>,
    /// The text requests so far.
    pub asked: Arc<Mutex<Vec<TextRequest>>>,
}

impl TestGateway {
    /// Creates a gateway with this TOML before its keys and models.
    pub fn new(engine: Engine, config: &str) -> Self {
        Self::changed(engine, config, |_, _| {})
    }

    /// Like `new`, but applies `change` to the gateway first.
    pub fn changed(
        engine: Engine,
        config: &str,
        change: impl FnOnce(&mut GatewayState, &Config),
    ) -> Self {
        let config = Config::parse(&[config, &keys(), MODELS].concat()).unwrap();
        let (policy, _) = Policy::read(&config, true, upstream::Network::default()).unwrap();
        let mut state = GatewayState::new(Parts::new(&config, policy));
        let engine = Arc::new(engine);
        state.text_engine = Some(Arc::<Engine>::clone(&engine));
        state.image_engine = Some(Arc::<Engine>::clone(&engine));
        change(&mut state, &config);
        Self {
            state: Arc::new(state),
            engine,
        }
    }

    /// Sends a request the way a connection would, and reads the complete response.
    pub fn post(
        &self,
        key: &str,
        path: &str,
        body: &Value,
    ) -> impl Future<Output = Reply> + Send + use<> {
        self.send(key, Method::POST, path, body.to_string())
    }

    /// Sends a request without a body.
    pub fn ask(
        &self,
        key: &str,
        method: Method,
        path: &str,
    ) -> impl Future<Output = Reply> + Send + use<> {
        self.send(key, method, path, String::new())
    }

    fn send(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: String,
    ) -> impl Future<Output = Reply> + Send + use<> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "gateway")
            .header(AUTHORIZATION, format!("Bearer {key}"))
            .header(CONTENT_TYPE, "application/json")
            .body(whole_client_body(body))
            .unwrap();
        let state = Arc::clone(&self.state);
        async move {
            let response = service::answer(&state, request, &Arc::default()).await;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            Reply {
                status,
                body: String::from_utf8(body.into()).unwrap(),
            }
        }
    }

    /// The value of a metric, given its name with labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let text = self.state.render_metrics();
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// The number of taken permits, and of answers that are not dropped yet.
    pub fn in_flight(&self) -> (u64, usize) {
        (
            self.state.limiter.taken(),
            self.engine.open.load(Ordering::Relaxed),
        )
    }
}

impl Reply {
    /// The body, which is JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Engine {
    /// Returns these events, and then ends or stays pending.
    fn steps<S: Send + Clone + 'static>(
        &self,
        steps: &[S],
    ) -> impl Stream<Item = Result<S, EngineError>> + Send + use<S> {
        let open = Open::new(&self.open);
        let rest = if self.ends {
            stream::empty().left_stream()
        } else {
            stream::pending().right_stream()
        };
        stream::iter(steps.to_vec())
            .map(Ok)
            .chain(rest)
            .map(move |step| {
                let _open = &open;
                step
            })
    }
}

impl TextEngine for Engine {
    fn start(&self, request: TextRequest) -> BoxFuture<'_, Result<Generation, EngineError>> {
        self.asked.lock().unwrap().push(request);
        let events = self.steps(&self.text);
        Box::pin(async move {
            Ok(Generation {
                dropped: Vec::new(),
                events: Box::pin(events),
            })
        })
    }

    fn count_tokens(&self, _: TextRequest) -> BoxFuture<'_, Result<u64, EngineError>> {
        let open = Open::new(&self.open);
        Box::pin(async move {
            if !self.ends {
                std::future::pending::<()>().await;
            }
            drop(open);
            Ok(7)
        })
    }
}

impl ImageEngine for Engine {
    fn start(&self, _: ImageRequest) -> BoxFuture<'_, Result<ImageGeneration, EngineError>> {
        let traits = ImageTraits {
            size: Pixels::new(16, 16),
            quality: Quality::Low,
            background: Background::Opaque,
            format: ImageFormat::Png,
        };
        let events = self.steps(&self.pictures);
        Box::pin(async move {
            Ok(ImageGeneration {
                traits,
                events: Box::pin(events),
            })
        })
    }

    fn most_references(&self) -> usize {
        2
    }
}

/// Counts an answer until it is dropped.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The TOML of the two keys, with every scope.
fn keys() -> String {
    let key = |name: &str, key: &str| {
        let hash = auth::KeyHash::of(&auth::Key::parse(key).unwrap());
        let scopes = r#"["text", "messages", "images"]"#;
        format!("\n[[keys]]\nname = \"{name}\"\nhash = \"{hash}\"\nscopes = {scopes}\n")
    };
    key("first", FIRST) + &key("second", SECOND)
}

/// The first key.
pub const FIRST: &str = "sg_test_first_key_00000000000000000000";
/// The second key.
pub(crate) const SECOND: &str = "sg_test_second_key_0000000000000000000";

const MODELS: &str = r#"
[[models]]
id = "text"
family = "text"
protocols = ["responses", "chat", "messages"]
string_input = true
targets = [{ engine = "local" }]
[[models]]
id = "pictures"
family = "images"
protocols = ["images_generations", "images_edits"]
targets = [{ engine = "easel" }]
"#;
