//! Image requests that the embedded engine does not accept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use config::Config;
use engine::{EngineError, ImageEngine, ImageGeneration, ImageRequest};
use futures_util::future::BoxFuture;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http_body_util::BodyExt;
use policy::Policy;
use policy::keys::GeneratedKey;
use serde_json::{Value, json};
use simulator::{Play, Protocol, Simulator};

use crate::connection::client_body::whole_client_body;
use crate::service;
use crate::state::{GatewayState, Parts};

/// An engine whose queue is always full.
#[derive(Default)]
struct Busy(AtomicUsize);

impl ImageEngine for Busy {
    fn start(&self, _: ImageRequest) -> BoxFuture<'_, Result<ImageGeneration, EngineError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Err(EngineError::Busy) })
    }

    fn most_references(&self) -> usize {
        2
    }
}

/// A gateway whose model has the busy engine as its first target.
struct Harness {
    engine: Arc<Busy>,
    state: Arc<GatewayState>,
    keys: Vec<GeneratedKey>,
}

impl Harness {
    fn new(targets: &str, upstreams: &str) -> Self {
        let model = "id = \"m\"\nfamily = \"images\"\nprotocols = [\"images_generations\", \"images_edits\"]";
        let config = Config::parse(&format!(
            "{upstreams}[[models]]\n{model}\ntargets = {targets}\n"
        ))
        .unwrap();
        let (policy, keys) = Policy::read(&config, false, upstream::Network::default()).unwrap();
        let mut state = GatewayState::new(Parts::new(&config, policy));
        let engine = Arc::new(Busy::default());
        state.image_engine = Some(Arc::<Busy>::clone(&engine));
        Self {
            engine,
            state: Arc::new(state),
            keys,
        }
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, body) = self.post_for_text(path, body).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    async fn post_for_text(&self, path: &str, body: &Value) -> (u16, String) {
        let key = self
            .keys
            .iter()
            .find(|made| made.scope == auth::Scope::Images)
            .unwrap();
        let request = Request::post(path)
            .header(HOST, "gateway")
            .header(AUTHORIZATION, format!("Bearer {}", key.key.expose()))
            .header(CONTENT_TYPE, "application/json")
            .body(whole_client_body(body.to_string()))
            .unwrap();
        let response = service::answer(&self.state, request, &Arc::default()).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.into()).unwrap())
    }
}

/// A gateway in front of an upstream that sends this reply.
fn replying(reply: Value) -> (Harness, Simulator) {
    let simulator = Simulator::start(move |_| Play::json(200, &reply)).unwrap();
    let base = simulator.base_url();
    let upstreams =
        format!("[[upstreams]]\nname = \"u\"\nprotocol = \"images\"\nbase_url = \"{base}\"\n");
    (
        Harness::new(r#"[{ upstream = "u" }]"#, &upstreams),
        simulator,
    )
}

/// An image that is a URL gets its bytes, which clients can ask for but need not.
#[tokio::test]
async fn a_url_becomes_bytes() {
    const PATH: &str = "/v1/images/generations";
    let url = format!("data:image/png;base64,{RED}");
    let reply = json!({"data": [{"url": url, "b64_json": null}, {"url": url}, {"b64_json": RED}]});
    let (harness, _simulator) = replying(reply);
    let request = json!({"model": "m", "prompt": "x", "n": 3});
    let expected = json!({"data": [{"url": url, "b64_json": RED}, {"b64_json": RED, "url": url}, {"b64_json": RED}]});
    let mut with_bytes = request.clone();
    with_bytes["response_format"] = "b64_json".into();
    for request in [&request, &with_bytes] {
        let (status, reply) = harness.post(PATH, request).await;
        assert_eq!((status, &reply), (200, &expected));
    }

    let mut streamed = request;
    streamed["stream"] = true.into();
    let (status, stream) = harness.post_for_text(PATH, &streamed).await;
    let events: Vec<Value> = stream
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let pictures: Vec<_> = events.iter().map(|event| &event["b64_json"]).collect();
    assert_eq!((status, pictures), (200, vec![&json!(RED); 3]));
}

/// An upstream cannot make the gateway connect to its own network, and an image that cannot be
/// fetched is a failure.
#[tokio::test]
async fn a_url_that_cannot_be_fetched_is_a_bad_gateway() {
    for url in [
        "http://127.0.0.1:9/a.png",
        "/a.png",
        "data:image/png;base64,AAAA",
    ] {
        let (harness, _simulator) = replying(json!({"data": [{"url": url}]}));
        for needs in [
            json!({}),
            json!({"response_format": "b64_json"}),
            json!({"stream": true}),
        ] {
            let mut request = json!({"model": "m", "prompt": "x"});
            request
                .as_object_mut()
                .unwrap()
                .extend(needs.as_object().unwrap().clone());
            let (status, body) = harness.post("/v1/images/generations", &request).await;
            assert_eq!(
                (status, &body["error"]["code"]),
                (502, &json!("upstream_error")),
                "{url} {needs}"
            );
        }
    }
}

/// A request that the engine refuses as busy is sent to the next target unchanged.
#[tokio::test]
async fn u17_a_busy_engine_is_followed_by_an_upstream() {
    let simulator = Simulator::honest().unwrap();
    let base = simulator.base_url();
    let upstreams =
        format!("[[upstreams]]\nname = \"u\"\nprotocol = \"images\"\nbase_url = \"{base}\"\n");
    let harness = Harness::new(r#"[{ engine = "easel" }, { upstream = "u" }]"#, &upstreams);
    let drawn = harness
        .post(
            "/v1/images/generations",
            &json!({"model": "m", "prompt": "x", "size": "64x64"}),
        )
        .await;
    assert_eq!(
        (drawn.0, harness.engine.0.load(Ordering::Relaxed)),
        (200, 1),
        "{}",
        drawn.1
    );
    let picture = format!("data:image/png;base64,{RED}");
    let edit = json!({"model": "m", "prompt": "x", "images": [{"image_url": picture}], "ours": 1});
    let edited = harness.post("/v1/images/edits", &edit).await;
    assert_eq!(
        (edited.0, harness.engine.0.load(Ordering::Relaxed)),
        (200, 2),
        "{}",
        edited.1
    );
    let requests = simulator.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.protocol() == Some(Protocol::Images))
    );
    let sent: Vec<Value> = requests
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect();
    assert_eq!(sent[1], edit, "a document is not sent as a form");
}

/// Image URLs are not fetched if there are more than the engine accepts.
#[tokio::test]
async fn f11_more_pictures_than_the_engine_takes_are_not_fetched() {
    let harness = Harness::new(r#"[{ engine = "easel" }]"#, "");
    let images = |count: usize| vec![json!({"image_url": "https://pictures.example/a.png"}); count];
    let refused = harness
        .post(
            "/v1/images/edits",
            &json!({"model": "m", "prompt": "x", "images": images(3)}),
        )
        .await;
    assert_eq!(
        (refused.0, &refused.1["error"]["param"]),
        (400, &json!("images")),
        "{}",
        refused.1
    );
    assert!(
        refused.1["error"]["message"]
            .as_str()
            .unwrap()
            .contains("at most 2"),
        "{}",
        refused.1
    );
    assert_eq!(harness.engine.0.load(Ordering::Relaxed), 0);
    assert!(
        !harness
            .state
            .render_metrics()
            .contains("sluicegate_fetches_total{")
    );
}

/// A red square.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg==";
