//! Tests of the admin API with a gateway in this process, and its store in a file.

mod access;
mod console;
mod keys;
mod running;
mod usage;

use std::sync::Arc;

use auth::{Key, KeyHash};
use bytes::Bytes;
use engine::{Stop, TextEvent};
use futures_util::FutureExt as _;
use gateway::connection::client_body::whole_client_body;
use gateway::exchange::body::Body;
use gateway::testing::{Engine, FIRST, Reply, TestGateway};
use http::header::{AUTHORIZATION, HOST};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use policy::accounting::Accounting;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::About;
use crate::access::AdminAccess;
use crate::admin::Admin;
use crate::console::PlayKey;

/// A gateway with a store and an admin API.
struct Harness {
    gateway: TestGateway,
    admin: Admin,
    folder: TempDir,
}

impl Harness {
    /// Creates a gateway whose text model says one word.
    fn new(config: &str) -> Self {
        let engine = Engine {
            text: vec![
                TextEvent::Text("Hello.".to_owned()),
                TextEvent::Finished {
                    stop: Stop::End,
                    usage: Some(engine::Usage {
                        input: 7,
                        output: 3,
                        ..engine::Usage::default()
                    }),
                },
            ],
            ends: true,
            ..Engine::default()
        };
        Self::with(engine, config)
    }

    fn with(engine: Engine, config: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("accounting.db");
        let state = format!(
            "{config}\n[state]\naccounting = \"sqlite:{}\"\nunknown_price = \"free\"\n",
            file.display()
        );
        let gateway = TestGateway::changed(engine, &state, |state, config| {
            // Nothing is waited for to open a file.
            let opened = Accounting::open(&config.state).now_or_never().unwrap();
            let accounting = opened.unwrap().unwrap();
            state.accounting = Some(Arc::new(accounting));
        });
        let admin = admin_of(&gateway, Some(ADMIN));
        Self {
            gateway,
            admin,
            folder,
        }
    }

    /// Sends an admin request with the admin key.
    async fn call(&self, method: Method, path: &str, body: Value) -> Reply {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = request(method, path).body(whole_client_body(body));
        read(self.admin.answer(request.unwrap(), &Arc::default()).await).await
    }

    async fn get(&self, path: &str) -> Reply {
        self.call(Method::GET, path, Value::Null).await
    }

    async fn create(&self, body: Value) -> Value {
        let reply = self.call(Method::POST, "/admin/v1/keys", body).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.json()
    }

    /// Sends a client's request for the text model, and returns its id.
    async fn request_id(&self) -> String {
        assert_eq!(self.ask(FIRST).await, 200);
        let (reports, _) = self.gateway.state.history.since(0);
        reports.last().unwrap().request_id.clone()
    }

    /// Returns the status of a client's request for the text model.
    async fn ask(&self, key: &str) -> u16 {
        let body = json!({"model": "text", "messages": [{"role": "user", "content": "Hi."}]});
        let reply = self.gateway.post(key, "/v1/chat/completions", &body);
        reply.await.status
    }
}

/// Returns the admin address of a gateway, with this key.
fn admin_of(gateway: &TestGateway, key: Option<&str>) -> Admin {
    Admin {
        state: Arc::clone(&gateway.state),
        access: AdminAccess {
            key: key.map(|key| KeyHash::of(&Key::parse(key).unwrap())),
            ..AdminAccess::default()
        },
        is_secure: false,
        play_keys: vec![PlayKey {
            name: "text".to_owned(),
            key: FIRST.to_owned(),
            scopes: vec!["text"],
        }],
        about: About {
            version: "1.2.3",
            features: vec!["text-engine"],
            started: 1_790_000_000,
            listen: vec!["http://127.0.0.1:8080".to_owned()],
        },
    }
}

fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "127.0.0.1:9090")
        .header(AUTHORIZATION, format!("Bearer {ADMIN}"))
}

async fn read(response: Response<Body>) -> Reply {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Reply {
        status,
        body: String::from_utf8(body.into()).unwrap(),
    }
}

/// The members of an error: code, param and message.
fn error(reply: &Reply) -> (Value, Value, String) {
    let error = &reply.json()["error"];
    let message = error["message"].as_str().unwrap().to_owned();
    (error["code"].clone(), error["param"].clone(), message)
}

/// The admin key of the tests.
const ADMIN: &str = "sg_test_admin_key_00000000000000000000";
