//! Requests to an embedded engine that refer to kept answers.

use std::sync::{Arc, Mutex};

use engine::{AssistantPart, Stop, TextEvent, TextRequest, ToolCall, ToolResult, Turn, UserPart};
use http::Method;
use serde_json::{Value, json};

use crate::testing::{Engine, FIRST, Reply, SECOND, TestGateway};

/// A gateway whose engine reasons, writes a text and calls a tool.
fn gateway(config: &str) -> (TestGateway, Arc<Mutex<Vec<TextRequest>>>) {
    let engine = Engine {
        text: vec![
            TextEvent::Reasoning("Hm.".to_owned()),
            TextEvent::Text("Let me look.".to_owned()),
            TextEvent::Call {
                id: "call_1".to_owned(),
                name: "look".to_owned(),
            },
            TextEvent::Arguments("{}".to_owned()),
            TextEvent::Finished {
                stop: Stop::ToolCalls,
                usage: None,
            },
        ],
        ends: true,
        ..Engine::default()
    };
    let asked = Arc::clone(&engine.asked);
    (TestGateway::new(engine, config), asked)
}

const ON: &str = "responses = { keep = \"60s\" }\n";

fn question(members: Value) -> Value {
    let tool = json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
    let base = json!({"model": "text", "input": "Hi.", "tools": [tool]});
    testkit::changed(base, &members)
}

/// The response of a plain reply, or of the last event of a stream.
fn response(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.body);
    let Some(data) = reply
        .body
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: "))
    else {
        return reply.json();
    };
    let event: Value = serde_json::from_str(data).unwrap();
    assert_eq!(event["type"], "response.completed");
    event["response"].clone()
}

/// The turns that follow the first answer: one turn of the assistant, and a result.
fn continued() -> Vec<Turn> {
    vec![
        Turn::User(vec![UserPart::Text("Hi.".to_owned())]),
        Turn::Assistant(vec![
            AssistantPart::Reasoning {
                text: "Hm.".to_owned(),
                signature: None,
            },
            AssistantPart::Text("Let me look.".to_owned()),
            AssistantPart::Call(ToolCall {
                id: "call_1".to_owned(),
                name: "look".to_owned(),
                arguments: "{}".to_owned(),
                seal: None,
            }),
        ]),
        Turn::Tool(ToolResult {
            call_id: "call_1".to_owned(),
            content: vec![UserPart::Text("A cat.".to_owned())],
            is_error: false,
        }),
    ]
}

fn result() -> Value {
    json!({"type": "function_call_output", "call_id": "call_1", "output": "A cat."})
}

#[tokio::test]
async fn a_conversation_goes_on_by_references() {
    for stream in [false, true] {
        let (gateway, asked) = gateway(ON);
        let first = gateway
            .post(FIRST, "/v1/responses", &question(json!({"stream": stream})))
            .await;
        let first = response(&first);
        assert_eq!(
            (&first["store"], &first["previous_response_id"]),
            (&json!(true), &Value::Null)
        );
        let mut input = vec![json!({"role": "user", "content": "Hi."})];
        for item in first["output"].as_array().unwrap() {
            input.push(json!({"type": "item_reference", "id": item["id"]}));
        }
        assert_eq!(input.len(), 4, "reasoning, a message and a call");
        input.push(result());
        let by_items = question(json!({"stream": stream, "input": input}));
        let by_response = question(
            json!({"stream": stream, "previous_response_id": first["id"], "input": [result()]}),
        );
        for (body, previous) in [(by_items, &Value::Null), (by_response, &first["id"])] {
            let second = gateway.post(FIRST, "/v1/responses", &body).await;
            let second = response(&second);
            assert_eq!(
                (&second["store"], &second["previous_response_id"]),
                (&json!(true), previous)
            );
            assert_eq!(asked.lock().unwrap().last().unwrap().turns, continued());
        }
        assert_eq!(gateway.metric("sluicegate_responses_kept"), Some(3.0));
        assert_eq!(gateway.in_flight(), (0, 0));
    }
}

#[tokio::test]
async fn a_conversation_goes_on_over_several_answers() {
    let (gateway, asked) = gateway(ON);
    let mut body = question(json!({}));
    for _ in 0..3 {
        let answer = response(&gateway.post(FIRST, "/v1/responses", &body).await);
        body = question(json!({"previous_response_id": answer["id"], "input": [result()]}));
    }
    let turns = &asked.lock().unwrap()[2].turns;
    assert_eq!(turns.len(), 5, "{turns:?}");
    assert_eq!(turns[..3], continued()[..]);
    assert_eq!(turns[3..], continued()[1..]);
}

#[tokio::test]
async fn an_answer_that_is_not_to_be_stored_is_not_kept() {
    let (gateway, _) = gateway(ON);
    for stream in [false, true] {
        let body = question(json!({"store": false, "stream": stream}));
        let answer = response(&gateway.post(FIRST, "/v1/responses", &body).await);
        assert_eq!(answer["store"], false);
        let path = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
        assert_eq!(gateway.ask(FIRST, Method::GET, &path).await.status, 404);
    }
    assert_eq!(gateway.metric("sluicegate_responses_kept"), Some(0.0));
}

#[tokio::test]
async fn a_kept_answer_can_be_continued_without_keeping_the_next() {
    let (gateway, asked) = gateway(ON);
    let first = response(
        &gateway
            .post(FIRST, "/v1/responses", &question(json!({})))
            .await,
    );
    let members = json!({"store": false, "previous_response_id": first["id"], "input": [result()]});
    let second = response(
        &gateway
            .post(FIRST, "/v1/responses", &question(members))
            .await,
    );
    assert_eq!(
        (&second["store"], &second["previous_response_id"]),
        (&json!(false), &first["id"])
    );
    assert_eq!(asked.lock().unwrap()[1].turns, continued());
    assert_eq!(gateway.metric("sluicegate_responses_kept"), Some(1.0));
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_reported_as_not_stored() {
    let (gateway, _) = gateway("responses = { keep = \"60s\", keep_bytes = \"512B\" }\n");
    for stream in [false, true] {
        let body = question(json!({"stream": stream}));
        let answer = response(&gateway.post(FIRST, "/v1/responses", &body).await);
        assert_eq!(answer["store"], false);
    }
    assert_eq!(gateway.metric("sluicegate_responses_kept_bytes"), Some(0.0));
}

#[tokio::test]
async fn the_answers_of_a_key_are_unknown_to_others() {
    let (gateway, _) = gateway(ON);
    let answer = response(
        &gateway
            .post(FIRST, "/v1/responses", &question(json!({})))
            .await,
    );
    let id = answer["id"].as_str().unwrap();
    let item = answer["output"][1]["id"].as_str().unwrap();
    let unknown_response = |id: &str| {
        json!({"error": {"message": format!("Response with id '{id}' not found."),
            "type": "invalid_request_error", "param": null, "code": "not_found"}})
    };
    for (method, rest) in [
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::GET, "/input_items"),
    ] {
        for (key, id) in [(SECOND, id), (FIRST, "resp_none")] {
            let reply = gateway
                .ask(key, method.clone(), &format!("/v1/responses/{id}{rest}"))
                .await;
            assert_eq!((reply.status, reply.json()), (404, unknown_response(id)));
        }
    }
    for (key, id) in [(SECOND, id), (FIRST, "resp_none")] {
        let body = question(json!({"previous_response_id": id}));
        let reply = gateway.post(key, "/v1/responses", &body).await;
        let expected = json!({"error": {"message": format!("Previous response with id '{id}' not found."),
            "type": "invalid_request_error", "param": "previous_response_id", "code": "previous_response_not_found"}});
        assert_eq!((reply.status, reply.json()), (400, expected));
    }
    for (key, id) in [(SECOND, item), (FIRST, "msg_none")] {
        let body = question(json!({"input": [{"type": "item_reference", "id": id}]}));
        let reply = gateway.post(key, "/v1/responses", &body).await;
        let message = format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false, and only for a \
             limited time otherwise; send the item itself."
        );
        let expected = json!({"error": {"message": message, "type": "invalid_request_error", "param": "input",
            "code": "not_found"}});
        assert_eq!((reply.status, reply.json()), (404, expected));
    }
}

#[tokio::test]
async fn kept_answers_are_retrieved_and_deleted() {
    let (gateway, _) = gateway(ON);
    let answer = response(
        &gateway
            .post(FIRST, "/v1/responses", &question(json!({})))
            .await,
    );
    let path = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
    let found = gateway.ask(FIRST, Method::GET, &path).await;
    assert_eq!((found.status, found.json()), (200, answer.clone()));
    let items = gateway
        .ask(FIRST, Method::GET, &format!("{path}/input_items"))
        .await;
    let item = json!({"id": "item_0", "type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "Hi."}]});
    let expected = json!({"object": "list", "data": [item], "first_id": "item_0", "last_id": "item_0",
        "has_more": false});
    assert_eq!((items.status, items.json()), (200, expected));
    let deleted = gateway.ask(FIRST, Method::DELETE, &path).await;
    let expected = json!({"id": answer["id"], "object": "response", "deleted": true});
    assert_eq!((deleted.status, deleted.json()), (200, expected));
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(gateway.ask(FIRST, method, &path).await.status, 404);
    }
    assert_eq!(gateway.metric("sluicegate_responses_kept_bytes"), Some(0.0));
}

#[tokio::test]
async fn input_items_come_in_pages() {
    let (gateway, _) = gateway(ON);
    let message = |id: &str| json!({"id": id, "role": "user", "content": "Hi."});
    let body = question(json!({"input": [message("m1"), message("m2"), message("m3")]}));
    let answer = response(&gateway.post(FIRST, "/v1/responses", &body).await);
    let path = format!(
        "/v1/responses/{}/input_items",
        answer["id"].as_str().unwrap()
    );
    let all = gateway.ask(FIRST, Method::GET, &path).await.json();
    assert_eq!(
        all["data"][0],
        json!({
            "type": "message", "id": "m3", "role": "user",
            "content": [{"type": "input_text", "text": "Hi."}],
        })
    );
    for (query, ids, has_more) in [
        ("", vec!["m3", "m2", "m1"], false),
        ("?order=asc&limit=2", vec!["m1", "m2"], true),
        ("?order=asc&limit=2&after=m2", vec!["m3"], false),
        ("?after=m1", vec![], false),
    ] {
        let page = gateway
            .ask(FIRST, Method::GET, &format!("{path}{query}"))
            .await
            .json();
        let found: Vec<_> = page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| &item["id"])
            .collect();
        assert_eq!(
            (found, &page["has_more"]),
            (
                ids.iter()
                    .map(|id| json!(id))
                    .collect::<Vec<_>>()
                    .iter()
                    .collect(),
                &json!(has_more)
            )
        );
    }
    for query in ["?limit=0", "?limit=101", "?order=up"] {
        assert_eq!(
            gateway
                .ask(FIRST, Method::GET, &format!("{path}{query}"))
                .await
                .status,
            400
        );
    }
}

#[tokio::test]
async fn nothing_is_kept_unless_it_is_configured() {
    let (gateway, _) = gateway("");
    let answer = response(
        &gateway
            .post(FIRST, "/v1/responses", &question(json!({"store": true})))
            .await,
    );
    assert_eq!(answer["store"], false);
    let path = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
    let reply = gateway.ask(FIRST, Method::GET, &path).await;
    assert_eq!(
        (reply.status, &reply.json()["error"]["message"]),
        (
            404,
            &json!(format!(
                "Unknown request URL: GET {path}. Please check the URL for typos."
            ))
        )
    );
    let body = question(json!({"previous_response_id": answer["id"]}));
    let reply = gateway.post(FIRST, "/v1/responses", &body).await;
    assert_eq!(
        (reply.status, &reply.json()["error"]["code"]),
        (400, &json!("previous_response_not_found"))
    );
    let body = question(json!({"input": [{"type": "item_reference", "id": "msg_1"}]}));
    let reply = gateway.post(FIRST, "/v1/responses", &body).await;
    assert_eq!(
        (reply.status, &reply.json()["error"]["code"]),
        (400, &json!("unsupported_item_reference"))
    );
    assert_eq!(gateway.metric("sluicegate_responses_kept"), Some(0.0));
}

#[tokio::test]
async fn an_expanded_request_is_held_to_the_limit_of_bodies() {
    let (gateway, _) = gateway("responses = { keep = \"60s\" }\n[limits]\njson_body = \"1KiB\"\n");
    let long = "x".repeat(600);
    let first = response(
        &gateway
            .post(FIRST, "/v1/responses", &question(json!({"input": long})))
            .await,
    );
    let body = question(json!({"previous_response_id": first["id"], "input": long}));
    let reply = gateway.post(FIRST, "/v1/responses", &body).await;
    assert_eq!(
        (reply.status, &reply.json()["error"]["code"]),
        (413, &json!("request_too_large"))
    );
}

#[tokio::test]
async fn errors_have_the_places_that_the_client_knows() {
    let (gateway, _) = gateway(ON);
    let first = gateway
        .post(FIRST, "/v1/responses", &question(json!({})))
        .await;
    let first = response(&first);
    let input = json!([result(), {"role": "critic", "content": "Hi."}]);
    let body = question(json!({"previous_response_id": first["id"], "input": input}));
    let reply = gateway.post(FIRST, "/v1/responses", &body).await;
    assert_eq!(
        (reply.status, &reply.json()["error"]["param"]),
        (400, &json!("input[1].role"))
    );
}
