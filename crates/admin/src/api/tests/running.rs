//! Tests of the operations about the running gateway: requests in flight and finished ones, upstreams,
//! models, and the stream of changes.

use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::sleep;

use super::*;

fn pending() -> Engine {
    Engine {
        text: vec![TextEvent::Text("Hello.".to_owned())],
        ..Engine::default()
    }
}

/// An engine whose answers are empty.
fn finished() -> Engine {
    Engine {
        text: vec![TextEvent::Finished {
            stop: Stop::End,
            usage: None,
        }],
        ends: true,
        ..Engine::default()
    }
}

/// A gateway without a store.
fn without_store(engine: Engine) -> (TestGateway, Admin) {
    let gateway = TestGateway::new(engine, "");
    let admin = admin_of(&gateway, Some(ADMIN));
    (gateway, admin)
}

async fn call(admin: &Admin, method: Method, path: &str) -> Reply {
    let request = request(method, path).body(whole_client_body(Bytes::new()));
    read(admin.answer(request.unwrap(), &Arc::default()).await).await
}

async fn get(admin: &Admin, path: &str) -> Value {
    let reply = call(admin, Method::GET, path).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    reply.json()
}

#[tokio::test]
async fn finished_requests_are_listed_newest_first_and_explained() {
    let harness = Harness::new("");
    let first = harness.request_id().await;
    let second = harness.request_id().await;
    let list = harness.get("/admin/v1/requests?limit=10").await.json();
    assert_eq!(
        list["requests"][0]["request_id"],
        Value::from(second.clone())
    );
    assert_eq!(
        list["requests"][1]["request_id"],
        Value::from(first.clone())
    );
    let none = harness.get("/admin/v1/requests?outcome=shed").await.json();
    assert_eq!(none, json!({"requests": []}));
    let path = format!("/admin/v1/requests/{second}/explain");
    let explained = harness.get(&path).await.json();
    let text = explained["text"].as_array().unwrap();
    assert_eq!(
        text[0],
        Value::from(format!(
            "{second}: a request to chat_completions by the key 'first' for the model 'text'."
        ))
    );
    assert_eq!(explained["request"]["output_tokens"], 3);
    let unknown = harness.get("/admin/v1/requests/req_1/explain").await;
    assert_eq!(
        (unknown.status, error(&unknown).0),
        (404, json!("not_found"))
    );
}

/// Another gateway with the same store explains a request by its usage.
#[tokio::test]
async fn a_request_of_another_gateway_is_explained_by_its_usage() {
    let harness = Harness::new("");
    let id = harness.request_id().await;
    let other = TestGateway::changed(Engine::default(), "", |state, _| {
        state
            .accounting
            .clone_from(&harness.gateway.state.accounting);
    });
    let admin = admin_of(&other, Some(ADMIN));
    let path = format!("/admin/v1/requests/{id}/explain");
    let explained = loop {
        let reply = call(&admin, Method::GET, &path).await;
        // A request is in the store a moment after it has ended.
        let text = reply.body.contains("Ended as completed; status 200.");
        match text {
            true => break reply.json(),
            false => sleep(Duration::from_millis(5)).await,
        }
    };
    assert_eq!(explained["request"], Value::Null);
    assert_eq!(explained["usage"]["request_id"], Value::from(id));
    assert_eq!(
        explained["text"][4],
        "Counted tokens: 7 of the prompt outside of caches, 3 of the answer; cost: 0.00."
    );
}

#[tokio::test]
async fn a_request_in_flight_is_listed_and_can_be_ended() {
    let (gateway, admin) = without_store(pending());
    let body = json!({"model": "text", "messages": [{"role": "user", "content": "Hi."}]});
    let reply = tokio::spawn(gateway.post(FIRST, "/v1/chat/completions", &body));
    let live = loop {
        let live = get(&admin, "/admin/v1/live").await["requests"][0].clone();
        match live["state"] == "asking" {
            true => break live,
            false => yield_now().await,
        }
    };
    assert_eq!(live["target"], "embedded");
    let id = live["request_id"].as_str().unwrap();
    let path = format!("/admin/v1/live/{id}");
    let ended = call(&admin, Method::DELETE, &path).await;
    assert_eq!(
        (ended.status, ended.json()),
        (200, json!({"request_id": id}))
    );
    assert_eq!(reply.await.unwrap().status, 403);
    assert_eq!(call(&admin, Method::DELETE, &path).await.status, 404);
}

#[tokio::test]
async fn upstreams_have_their_recent_attempts_and_models_their_roads() {
    let (gateway, admin) = without_store(finished());
    let body = json!({"model": "text", "messages": [{"role": "user", "content": "Hi."}]});
    let reply = gateway.post(FIRST, "/v1/chat/completions", &body).await;
    assert_eq!(reply.status, 200);
    let upstreams = get(&admin, "/admin/v1/upstreams").await;
    let embedded = &upstreams["upstreams"][0];
    assert_eq!(embedded["name"], "embedded");
    assert_eq!(embedded["recent"]["attempts"], 1);
    assert_eq!(embedded["recent"]["answered"], 1);
    let models = get(&admin, "/admin/v1/models").await;
    let models = models["models"].as_array().unwrap();
    let text = models.iter().find(|model| model["id"] == "text").unwrap();
    let roads = text["targets"][0]["roads"].as_array().unwrap();
    assert!(roads.contains(&json!(
        {"protocol": "chat", "road": "embedded", "drops": [], "refuses": []}
    )));
    let about = get(&admin, "/admin/v1/about").await;
    assert_eq!(about["version"], "1.2.3");
    assert_eq!(about["started"], "2026-09-21T14:13:20Z");
}

/// The stream of changes begins with the requests in flight, and has each request when it has ended.
#[tokio::test(start_paused = true)]
async fn changes_are_streamed() {
    let (gateway, admin) = without_store(finished());
    let request = request(Method::GET, "/admin/v1/changes").body(whole_client_body(Bytes::new()));
    let response = admin.answer(request.unwrap(), &Arc::default()).await;
    assert_eq!(
        response.headers()["content-type"],
        "text/event-stream; charset=utf-8"
    );
    let mut changes = response.into_body();
    let mut next = async || {
        let frame = changes.frame().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    };
    assert_eq!(next().await, "event: live\ndata: {\"requests\":[]}\n\n");
    let body = json!({"model": "text", "messages": [{"role": "user", "content": "Hi."}]});
    let reply = gateway.post(FIRST, "/v1/chat/completions", &body).await;
    assert_eq!(reply.status, 200);
    let ended = next().await;
    assert!(
        ended.starts_with("event: requests\ndata: {\"requests\":[{"),
        "{ended}"
    );
    assert!(ended.contains("\"outcome\":\"completed\""), "{ended}");
    assert_eq!(next().await, ": keep-alive\n\n");
    gateway
        .state
        .lifecycle
        .enter(policy::lifecycle::Phase::LameDuck);
    assert!(changes.frame().await.is_none());
}
