//! Tests of keys over the admin API.

use std::time::Duration;

use futures_util::FutureExt as _;
use gateway::service;
use tokio::time::timeout;

use super::*;

async fn rotate(harness: &Harness, id: &Value, body: Value) -> String {
    let path = format!("/admin/v1/keys/{}/rotate", id.as_str().unwrap());
    let reply = harness.call(Method::POST, &path, body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()["key"].as_str().unwrap().to_owned()
}

fn path(key: &Value) -> String {
    format!("/admin/v1/keys/{}", key["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_key_works_at_once_and_until_it_is_revoked() {
    let harness = Harness::new("");
    let made = harness
        .create(json!({"name": "mobile", "scopes": ["text"], "models": ["te*"]}))
        .await;
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("sg_"), "{key}");
    assert_eq!(harness.ask(key).await, 200);
    let shown = harness.get(&path(&made)).await.json();
    assert_eq!(shown["name"], "mobile");
    assert_eq!(shown["scopes"], json!(["text"]));
    assert_eq!(shown["models"], json!(["te*"]));
    assert_eq!(shown["expires"], Value::Null);
    assert_eq!(shown["revoked"], Value::Null);
    assert_eq!(shown.get("key"), None, "a key is shown once");

    let revoked = harness
        .call(Method::DELETE, &path(&made), Value::Null)
        .await;
    assert_eq!(revoked.status, 200);
    assert!(revoked.json()["revoked"].is_string());
    assert_eq!(harness.ask(key).await, 401);
    let again = harness
        .call(Method::DELETE, &path(&made), Value::Null)
        .await;
    assert_eq!((again.status, error(&again).1), (404, json!("id")));
    let names = |reply: Reply| {
        let keys = reply.json()["keys"].clone();
        let keys = keys.as_array().unwrap().clone();
        keys.iter()
            .map(|key| key["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(harness.get("/admin/v1/keys").await), [""; 0]);
    assert_eq!(
        names(harness.get("/admin/v1/keys?revoked=true").await),
        ["mobile"]
    );
}

/// A name that is free again inherits nothing of its former key.
#[tokio::test]
async fn a_new_key_finds_no_answers_of_an_old_one() {
    let harness = Harness::new("responses = { keep = \"60s\" }\n");
    let create = || harness.create(json!({"name": "mobile", "scopes": ["text"]}));
    let old = create().await;
    let ask = async |key: &Value, body: Value| {
        let body = testkit::changed(json!({"model": "text", "input": "Hi."}), &body);
        let key = key["key"].as_str().unwrap();
        harness.gateway.post(key, "/v1/responses", &body).await
    };
    let kept = ask(&old, json!({})).await.json();
    assert_eq!(kept["store"], true);
    let follow = json!({"previous_response_id": kept["id"]});
    assert_eq!(ask(&old, follow.clone()).await.status, 200);
    let revoked = harness.call(Method::DELETE, &path(&old), Value::Null).await;
    assert_eq!(revoked.status, 200);
    let new = create().await;
    assert_ne!(new["id"], old["id"]);
    let refused = ask(&new, follow).await;
    let code = refused.json()["error"]["code"].clone();
    assert_eq!(
        (refused.status, code),
        (400, json!("previous_response_not_found"))
    );
    let item = json!({"input": [{"type": "item_reference", "id": kept["output"][0]["id"]}]});
    assert_eq!(ask(&new, item).await.status, 404);
}

#[tokio::test]
async fn both_keys_of_a_rotation_work_until_the_overlap_ends() {
    let harness = Harness::new("");
    let made = harness
        .create(json!({"name": "mobile", "scopes": ["text"]}))
        .await;
    let first = made["key"].as_str().unwrap();
    let second = rotate(&harness, &made["id"], json!({"overlap": "24h"})).await;
    assert_eq!(
        (harness.ask(first).await, harness.ask(&second).await),
        (200, 200)
    );
    let third = rotate(&harness, &made["id"], json!({"overlap": "0s"})).await;
    assert_eq!(harness.ask(first).await, 401);
    assert_eq!(harness.ask(&second).await, 401);
    assert_eq!(harness.ask(&third).await, 200);
    let wrong = format!("{}/rotate", path(&made));
    let reply = harness
        .call(Method::POST, &wrong, json!({"overlap": "-1h"}))
        .await;
    assert_eq!(
        error(&reply),
        (
            json!("invalid_value"),
            json!("overlap"),
            "overlap: is '-1h', but must be a span of time such as 24h or 7d".to_owned()
        )
    );
}

#[tokio::test]
async fn patch_keeps_absent_fields_and_null_clears() {
    let harness = Harness::new("");
    let made = harness
        .create(json!({
            "name": "mobile",
            "scopes": ["text", "images"],
            "models": ["text"],
            "expires": "2999-12-31",
            "limits": {
                "concurrency": 4,
                "budget": {"amount": "50", "currency": "USD", "window": "month", "zone": "Europe/Berlin"},
            },
        }))
        .await;
    assert_eq!(made["expires"], "3000-01-01T00:00:00Z");
    assert_eq!(
        made["limits"],
        json!({
            "concurrency": 4,
            "budget": {"amount": "50.00", "currency": "USD", "window": "month", "zone": "Europe/Berlin"},
        })
    );
    let place = path(&made);
    let change = |body| harness.call(Method::PATCH, &place, body);
    let reply = change(json!({"models": ["pictures"]})).await.json();
    assert_eq!(reply["models"], json!(["pictures"]));
    assert_eq!(reply["expires"], "3000-01-01T00:00:00Z");
    assert_eq!(reply["limits"]["concurrency"], 4);
    assert_eq!(harness.ask(made["key"].as_str().unwrap()).await, 403);
    for (body, message) in [
        (
            json!({"name": null}),
            "name: is null, but cannot be cleared",
        ),
        (
            json!({"scopes": null}),
            "scopes: is null, but cannot be cleared",
        ),
        (
            json!({"models": []}),
            "models: the key \"mobile\" has an empty list of models: expected a pattern, or no list for all models",
        ),
    ] {
        let reply = change(body).await;
        assert_eq!((reply.status, error(&reply).2.as_str()), (400, message));
    }
    let reply = change(json!({"models": null, "expires": null, "limits": null}))
        .await
        .json();
    assert_eq!(
        (&reply["models"], &reply["expires"], &reply["limits"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(reply["scopes"], json!(["text", "images"]));
    assert_eq!(harness.ask(made["key"].as_str().unwrap()).await, 200);
}

#[tokio::test]
async fn a_name_is_of_one_key() {
    let harness = Harness::new("");
    let new = |name: &str| json!({"name": name, "scopes": ["text"]});
    let made = harness.create(new("mobile")).await;
    for name in ["mobile", "first"] {
        let reply = harness
            .call(Method::POST, "/admin/v1/keys", new(name))
            .await;
        assert_eq!(reply.status, 409, "{name}");
        let (code, param, _) = error(&reply);
        assert_eq!((code, param), (json!("name_taken"), json!("name")));
    }
    let rename = json!({"name": "second"});
    let reply = harness.call(Method::PATCH, &path(&made), rename).await;
    assert_eq!(reply.status, 409, "a key of the configuration has it");
}

#[tokio::test]
async fn errors_name_the_field_the_value_and_the_accepted_values() {
    let harness = Harness::new("");
    for (body, param, message) in [
        (
            json!({"scopes": ["text"]}),
            "name",
            "Missing required parameter: 'name'.",
        ),
        (
            json!({"name": 5, "scopes": ["text"]}),
            "name",
            "Invalid type for 'name': expected a string, but got an integer instead.",
        ),
        (
            json!({"name": "a b", "scopes": ["text"]}),
            "name",
            "name: the key name \"a b\" is invalid: expected 1 to 64 visible ASCII characters",
        ),
        (
            json!({"name": "a", "scopes": []}),
            "scopes",
            "scopes: the key \"a\" has no scopes: expected some of 'text', 'messages', 'images'",
        ),
        (
            json!({"name": "a", "scopes": ["texts"]}),
            "scopes",
            "scopes: unknown scope \"texts\": expected one of 'text', 'messages', 'images'",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "models": [""]}),
            "models",
            "models: \"\" is not a valid model pattern: expected a model id, with '*' for any characters",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "expires": "soon"}),
            "expires",
            "expires: 'soon' is neither a date such as 2027-01-31 nor a time such as 2027-01-31T12:00:00Z",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "expires": "2020-01-31"}),
            "expires",
            "expires: '2020-01-31' is not in the future",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"concurrency": 0}}),
            "limits.concurrency",
            "limits.concurrency: is 0, but must be 1 to 50000000000",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"concurrency": "4"}}),
            "limits.concurrency",
            "Invalid type for 'limits.concurrency': expected an integer, but got a string instead.",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"tokens_per_minute": -1}}),
            "limits.tokens_per_minute",
            "Invalid 'limits.tokens_per_minute': integer below minimum value. Expected a value >= 0, but got -1 instead.",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"concurrency": -2.0}}),
            "limits.concurrency",
            "Invalid 'limits.concurrency': integer below minimum value. Expected a value >= 0, but got -2 instead.",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"concurrency": 1.5}}),
            "limits.concurrency",
            "Invalid type for 'limits.concurrency': expected an integer, but got a decimal number instead.",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"concurrency": 1e300}}),
            "limits.concurrency",
            "Invalid type for 'limits.concurrency': expected an integer, but got an integer out of range instead.",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"tokens": 1}}),
            "limits.tokens",
            "limits.tokens: is unknown; accepted: concurrency, requests_per_minute, tokens_per_minute, budget",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"budget": {"amount": "0", "currency": "USD", "window": "day"}}}),
            "limits.budget.amount",
            "limits.budget.amount: is 0.00, but must be more than 0.00 and at most 9007199.00",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "limits": {"budget": {"amount": "1", "currency": "USD", "window": "year"}}}),
            "limits.budget.window",
            "limits.budget.window: is 'year', but must be hour, day, week or month",
        ),
        (
            json!({"name": "a", "scopes": ["text"], "note": ""}),
            "note",
            "note: is unknown; accepted: name, scopes, models, expires, limits",
        ),
    ] {
        let reply = harness
            .call(Method::POST, "/admin/v1/keys", body.clone())
            .await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        let (_, found, text) = error(&reply);
        assert_eq!((found, text.as_str()), (json!(param), message), "{body}");
    }
    let reply = harness.get("/admin/v1/keys").await;
    assert_eq!(reply.json(), json!({"keys": []}), "nothing was stored");
}

/// By the schema of the field, 1000.0 is an integer:
/// <https://json-schema.org/draft/2020-12/json-schema-validation#section-6.1.1>.
#[tokio::test]
async fn whole_numbers_in_decimal_form_are_integers() {
    let harness = Harness::new("");
    let body = r#"{"name": "a", "scopes": ["text"], "limits": {"concurrency": 1e3, "requests_per_minute": 60.0}}"#;
    let request = request(Method::POST, "/admin/v1/keys").body(whole_client_body(body));
    let reply = read(
        harness
            .admin
            .answer(request.unwrap(), &Arc::default())
            .await,
    )
    .await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    let limits = reply.json()["limits"].clone();
    assert_eq!(
        limits,
        json!({"concurrency": 1000, "requests_per_minute": 60})
    );
}

#[tokio::test]
async fn the_key_is_in_one_answer_and_nowhere_else() {
    let harness = Harness::new("");
    let made = harness
        .create(json!({"name": "mobile", "scopes": ["text"]}))
        .await;
    let first = made["key"].as_str().unwrap().to_owned();
    let second = rotate(&harness, &made["id"], Value::Null).await;
    assert_eq!(harness.ask(&second).await, 200);
    let answers = [
        harness.get(&path(&made)).await.body,
        harness.get("/admin/v1/keys?revoked=true").await.body,
        harness.get("/admin/v1/audit").await.body,
        harness.get("/admin/v1/limits").await.body,
    ];
    harness
        .gateway
        .state
        .accounting
        .as_ref()
        .unwrap()
        .finish()
        .await;
    let mut files = Vec::new();
    read_files(harness.folder.path(), &mut files);
    assert!(files.iter().any(|file| contains(file, b"mobile")));
    for key in [first, second] {
        assert!(answers.iter().all(|answer| !answer.contains(&key)));
        assert!(files.iter().all(|file| !contains(file, key.as_bytes())));
    }
}

fn read_files(folder: &std::path::Path, into: &mut Vec<Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => read_files(&path, into),
            false => into.push(std::fs::read(path).unwrap()),
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn each_change_has_its_author_in_the_audit_log() {
    let harness = Harness::new("");
    let made = harness
        .create(json!({"name": "mobile", "scopes": ["text"]}))
        .await;
    for (actor, expected) in [("ada@example.org", "ada@example.org"), ("a b", "admin")] {
        let change = request(Method::PATCH, &path(&made)).header("x-sluicegate-actor", actor);
        let body = json!({"name": format!("mobile-{expected}")}).to_string();
        let change = change.body(whole_client_body(body)).unwrap();
        let reply = read(harness.admin.answer(change, &Arc::default()).await).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    let log = harness.get("/admin/v1/audit?limit=2").await.json();
    let seen = |log: &Value| {
        let entries = log["entries"].as_array().unwrap().clone();
        let seen = entries
            .iter()
            .map(|entry| (entry["action"].clone(), entry["actor"].clone()));
        seen.collect::<Vec<_>>()
    };
    let entry = |action: &str, actor: &str| (json!(action), json!(actor));
    assert_eq!(
        seen(&log),
        [entry("change", "admin"), entry("change", "ada@example.org")]
    );
    let next = format!("/admin/v1/audit?limit=1&before={}", log["next"]);
    let rest = harness.get(&next).await.json();
    assert_eq!(seen(&rest), [entry("create", "admin")]);
    assert_eq!(rest["next"], Value::Null);
}

/// A client in the middle of a stream.
struct Reader(Body);

impl Reader {
    async fn new(harness: &Harness, key: &str) -> Self {
        let body = json!({
            "model": "text",
            "messages": [{"role": "user", "content": "Hi."}],
            "max_tokens": 9,
            "stream": true,
        });
        let request = Request::post("/v1/messages")
            .header(HOST, "gateway")
            .header(AUTHORIZATION, format!("Bearer {key}"))
            .body(whole_client_body(body.to_string()));
        let state = &harness.gateway.state;
        let response = service::answer(state, request.unwrap(), &Arc::default()).await;
        assert_eq!(response.status(), 200);
        Self(response.into_body())
    }

    /// Returns the next frame.
    async fn next(&mut self) -> Option<String> {
        let frame = self.0.frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().into()).unwrap())
    }

    /// Reads until the text of the model, after which the model is silent.
    async fn until_text(&mut self) {
        while !self.next().await.unwrap().contains("Hello.") {}
    }
}

/// A gateway whose model falls silent after one word.
fn endless() -> Harness {
    let engine = Engine {
        text: vec![TextEvent::Text("Hello.".to_owned())],
        ..Engine::default()
    };
    // No keep-alive wakes a stream.
    Harness::with(engine, "[limits]\nkeep_alive = \"1h\"\n")
}

#[tokio::test]
async fn a_revocation_ends_the_streams_of_its_key_alone() {
    let harness = endless();
    let new = |name: &str| json!({"name": name, "scopes": ["messages"]});
    let (ended, kept) = (
        harness.create(new("ended")).await,
        harness.create(new("kept")).await,
    );
    let mut first = Reader::new(&harness, ended["key"].as_str().unwrap()).await;
    let mut other = Reader::new(&harness, kept["key"].as_str().unwrap()).await;
    first.until_text().await;
    other.until_text().await;
    let waiting = tokio::spawn(async move { first.next().await });
    tokio::task::yield_now().await;
    let end = format!("{}?streams=end", path(&ended));
    let reply = harness.call(Method::DELETE, &end, Value::Null).await;
    assert_eq!(reply.json()["ends_streams"], true);
    let last = timeout(Duration::from_secs(30), waiting).await;
    let last = last.unwrap().unwrap().unwrap();
    assert!(last.contains("event: error"), "{last}");
    let metric = r#"sluicegate_streams_ended_total{protocol="messages",outcome="revoked"}"#;
    assert_eq!(harness.gateway.metric(metric), Some(1.0));
    assert_eq!(harness.gateway.in_flight(), (1, 1));
    let revoke = harness
        .call(Method::DELETE, &path(&kept), Value::Null)
        .await;
    assert_eq!(revoke.json()["ends_streams"], false);
    assert!(other.next().now_or_never().is_none(), "it finishes");
}

/// A request that waits for a permit is refused as soon as its key is revoked.
#[tokio::test]
async fn a_revocation_ends_the_wait_of_a_request() {
    let harness = Harness::with(
        Engine::default(),
        "[[quotas]]\nkey = \"*\"\nconcurrency = 1\nqueue = { wait = \"5m\" }\n",
    );
    let made = harness
        .create(json!({"name": "mobile", "scopes": ["text"]}))
        .await;
    let key = made["key"].as_str().unwrap().to_owned();
    let harness = Arc::new(harness);
    let ask = || {
        let (harness, key) = (Arc::clone(&harness), key.clone());
        tokio::spawn(async move { harness.ask(&key).await })
    };
    let running = ask();
    while harness.gateway.in_flight().0 == 0 {
        tokio::task::yield_now().await;
    }
    let waiting = ask();
    while harness.gateway.state.limiter.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    let revoked = harness
        .call(Method::DELETE, &path(&made), Value::Null)
        .await;
    assert_eq!(revoked.status, 200);
    assert_eq!(waiting.await.unwrap(), 401);
    assert_eq!(harness.gateway.state.limiter.waiting(), 0);
    running.abort();
}

#[tokio::test]
async fn remote_revocation_ends_streams_at_the_next_renewal() {
    let harness = endless();
    let made = harness
        .create(json!({"name": "mobile", "scopes": ["messages"]}))
        .await;
    let mut reader = Reader::new(&harness, made["key"].as_str().unwrap()).await;
    reader.until_text().await;
    // The keys change in between.
    harness
        .create(json!({"name": "other", "scopes": ["messages"]}))
        .await;
    let accounting = harness.gateway.state.accounting.as_ref().unwrap();
    let by = accounting::By {
        actor: "other".to_owned(),
        at: 1,
    };
    let id = made["id"].as_str().unwrap();
    accounting.store.revoke_key(id, true, by).await.unwrap();
    let policies = &harness.gateway.state.policies;
    accounting.renew_keys(policies).await.unwrap();
    let last = timeout(Duration::from_secs(30), reader.next()).await;
    assert!(last.unwrap().unwrap().contains("event: error"));
}
