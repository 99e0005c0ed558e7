//! Answers that the gateway keeps, so that clients of Responses can refer to them in front of any
//! upstream: see <https://platform.openai.com/docs/guides/conversation-state>.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Simulator};
use testkit::requests::{Question, protocol_name};
use testkit::{Config, Gateway, Request, Response, changed};

use crate::GATEWAY;

const ON: &str = "[responses]\nkeep = \"60s\"\n";

fn gateway(simulator: &Simulator) -> Gateway {
    GATEWAY.before(simulator, ON, "")
}

/// The data of all events, or the plain reply.
fn data(response: &Response) -> Vec<Value> {
    assert_eq!(response.status, 200, "{}", response.text());
    if !response.is_stream() {
        return vec![response.json()];
    }
    let lines = response.text().lines();
    lines
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// The final response. Every response object has the same `store` and `previous_response_id`.
#[track_caller]
fn stored(response: &Response, previous: &Value) -> Value {
    let data = data(response);
    let objects: Vec<_> = match response.is_stream() {
        true => data
            .iter()
            .filter_map(|event| event.get("response"))
            .collect(),
        false => data.iter().collect(),
    };
    for object in &objects {
        assert_eq!(
            (&object["store"], &object["previous_response_id"]),
            (&json!(true), previous)
        );
    }
    (*objects.last().unwrap()).clone()
}

/// The input of the last request, as its upstream received it.
fn received(simulator: &Simulator) -> Value {
    simulator.requests().last().unwrap().json()
}

fn get(gateway: &Gateway, id: &Value) -> Response {
    let path = format!("/v1/responses/{}", id.as_str().unwrap());
    Request::get(&path)
        .bearer(testkit::CLIENT_KEY)
        .send(gateway.address())
}

/// Asks a question that is answered with two calls, and sends their results with references to the
/// first answer, in both ways. Returns the requests that the upstream received, without the first.
fn two_turns(protocol: Protocol, stream: bool) -> Vec<Value> {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator);
    let name = protocol_name(protocol);
    let mut question = Question::ParallelTools.body(Protocol::Responses, name, stream);
    question["store"] = json!(true);
    let first = gateway.ask(Protocol::Responses, &question);
    let first = stored(&first, &Value::Null);
    let calls = first["output"].as_array().unwrap();
    let references = calls
        .iter()
        .map(|call| json!({"type": "item_reference", "id": call["id"]}));
    let results: Vec<_> = calls
        .iter()
        .map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "12"}))
        .collect();
    let mut by_items = question.clone();
    let input = by_items["input"].as_array_mut().unwrap();
    input.extend(references.chain(results.iter().cloned()));
    let mut by_response = question.clone();
    by_response["previous_response_id"] = first["id"].clone();
    by_response["input"] = results.into();
    let received =
        [(by_items, Value::Null), (by_response, first["id"].clone())].map(|(body, previous)| {
            let second = gateway.ask(Protocol::Responses, &body);
            let dropped = second.header("x-sluicegate-dropped").unwrap_or_default();
            assert!(!dropped.split(", ").any(|name| name == "store"));
            let second = stored(&second, &previous);
            assert_eq!(get(&gateway, &second["id"]).json(), second);
            received(&simulator)
        });
    gateway.await_quiet();
    received.into()
}

#[test]
fn references_to_a_relayed_answer_are_expanded() {
    for stream in [false, true] {
        for request in two_turns(Protocol::Responses, stream) {
            assert_eq!(request["store"], false);
            assert_eq!(request.get("previous_response_id"), None);
            let kinds: Vec<_> = request["input"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| (item["type"].as_str(), item["name"].as_str()))
                .collect();
            let result = (Some("function_call_output"), None);
            let call = |name| (Some("function_call"), Some(name));
            assert_eq!(
                kinds,
                [
                    (None, None),
                    call("get_weather"),
                    call("get_time"),
                    result,
                    result
                ]
            );
        }
    }
}

#[test]
fn references_to_an_answer_of_chat_are_expanded() {
    for stream in [false, true] {
        for request in two_turns(Protocol::Chat, stream) {
            let messages = request["messages"].as_array().unwrap();
            let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
            assert_eq!(roles, ["user", "assistant", "tool", "tool"]);
            let calls = messages[1]["tool_calls"].as_array().unwrap();
            assert_eq!(calls[0]["function"]["name"], "get_weather");
            assert_eq!(calls[1]["id"], messages[3]["tool_call_id"]);
        }
    }
}

#[test]
fn references_to_an_answer_of_messages_are_expanded() {
    for stream in [false, true] {
        for request in two_turns(Protocol::Messages, stream) {
            let messages = request["messages"].as_array().unwrap();
            let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
            assert_eq!(roles, ["user", "assistant", "user"]);
            assert_eq!(messages[1]["content"][1]["name"], "get_time");
            assert_eq!(
                messages[1]["content"][1]["id"],
                messages[2]["content"][1]["tool_use_id"]
            );
        }
    }
}

#[test]
fn an_answer_is_unknown_to_other_keys() {
    let simulator = Simulator::honest().unwrap();
    let gateway = Config::before(&simulator, "", "")
        .section(ON)
        .key(ANOTHER)
        .start(GATEWAY);
    let mut question = Question::ParallelTools.body(Protocol::Responses, "chat", false);
    question["store"] = json!(true);
    let made = stored(&gateway.ask(Protocol::Responses, &question), &Value::Null);
    let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
    for (method, rest) in [("GET", ""), ("GET", "/input_items"), ("DELETE", "")] {
        let request = Request::get(&format!("{path}{rest}")).method(method);
        let response = request.bearer(ANOTHER_KEY).send(gateway.address());
        assert_eq!(response.status, 404, "{method} {rest}: {}", response.text());
    }
    let item = json!([{"type": "item_reference", "id": made["output"][0]["id"]}]);
    for (change, status, code) in [
        (
            json!({"previous_response_id": made["id"]}),
            400,
            "previous_response_not_found",
        ),
        (json!({"input": item}), 404, "not_found"),
    ] {
        let body = changed(question.clone(), &change);
        let response = gateway.post(ANOTHER_KEY, "/v1/responses", &body);
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (status, &json!(code)),
            "{}",
            response.text()
        );
    }
    assert_eq!(simulator.requests().len(), 1);
    assert_eq!(get(&gateway, &made["id"]).json(), made);
}

const ANOTHER_KEY: &str = "sg_test_another_key_000000000000000000000";
const ANOTHER: &str = "name = \"another\"\n\
    hash = \"sha256:d2a043b03e45b30ad55be15f6551d3e3c278555275b92c3183599bdac6d7a69e\"\nscopes = [\"text\"]";

/// Reasoning comes back to its upstream only if it is sealed: without its own memory, the upstream
/// cannot resolve the id of other reasoning.
#[test]
fn sealed_reasoning_of_a_relayed_answer_comes_back() {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator);
    for (include, kinds) in [
        (json!([]), vec!["message", "message"]),
        (
            json!(["reasoning.encrypted_content"]),
            vec!["reasoning", "message", "message"],
        ),
    ] {
        let mut question = Question::Reasoning.body(Protocol::Responses, "responses", true);
        question["include"] = include;
        let first = stored(&gateway.ask(Protocol::Responses, &question), &Value::Null);
        assert_eq!(first["output"][0]["type"], "reasoning");
        let mut input: Vec<_> = first["output"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| json!({"type": "item_reference", "id": item["id"]}))
            .collect();
        input.push(json!({"type": "message", "role": "user", "content": "Go on."}));
        question["input"] = input.into();
        stored(&gateway.ask(Protocol::Responses, &question), &Value::Null);
        let request = received(&simulator);
        let items = request["input"].as_array().unwrap();
        let found: Vec<_> = items.iter().map(|item| &item["type"]).collect();
        assert_eq!(found, kinds);
    }
}

/// Some servers leave the output out of the final response.
#[test]
fn an_answer_without_a_final_output_is_kept_by_its_items() {
    let simulator = Simulator::start(|_| {
        Play::events([
            "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\"}}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\
             \"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\
             \"text\":\"Hello.\"}]}}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\
             \"output\":[]}}\n\n",
        ])
    })
    .unwrap();
    let gateway = gateway(&simulator);
    let mut question = Question::Text.body(Protocol::Responses, "responses", true);
    stored(&gateway.ask(Protocol::Responses, &question), &Value::Null);
    question["input"] =
        json!([{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "Go on."}]);
    stored(&gateway.ask(Protocol::Responses, &question), &Value::Null);
    assert_eq!(
        received(&simulator)["input"][0]["content"][0]["text"],
        "Hello."
    );
    let kept = get(&gateway, &json!("resp_1")).json();
    assert_eq!(kept["output"][0]["id"], "msg_1");
}

/// vLLM writes another `call_id` into the final output than into the events of a call:
/// <https://github.com/vllm-project/vllm/pull/47916>. A client answers the call of the events.
#[test]
fn a_kept_call_has_the_call_id_of_its_events() {
    let item = |ids: &str| {
        format!(
            r#"{{{ids},"type":"function_call","name":"get_weather","arguments":"{{}}","status":"completed"}}"#
        )
    };
    let done = item(r#""id":"fc_1","call_id":"call_a""#);
    let last = item(r#""id":"fc_9","call_id":"call_f""#);
    let simulator = Simulator::start(move |_| {
        Play::events([
            "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\"}}\n\n"
                .to_owned(),
            format!("data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{done}}}\n\n"),
            format!(
                "data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"resp_1\",\"status\":\"completed\",\
                 \"output\":[{last}]}}}}\n\n"
            ),
        ])
    })
    .unwrap();
    let gateway = gateway(&simulator);
    let mut question = Question::Text.body(Protocol::Responses, "responses", true);
    stored(&gateway.ask(Protocol::Responses, &question), &Value::Null);
    question["previous_response_id"] = "resp_1".into();
    question["input"] =
        json!([{"type": "function_call_output", "call_id": "call_a", "output": "Rain."}]);
    gateway.ask(Protocol::Responses, &question);
    let input = &received(&simulator)["input"];
    let call_ids = input
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["call_id"].as_str());
    assert_eq!(
        call_ids.collect::<Vec<_>>(),
        ["call_a", "call_a"],
        "{input}"
    );
}

#[test]
fn an_answer_that_breaks_off_is_not_kept() {
    let simulator = Simulator::start(|_| {
        Play::events([
            "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\"}}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hm.\"}\n\n",
        ])
    })
    .unwrap();
    let gateway = gateway(&simulator);
    let question = Question::Text.body(Protocol::Responses, "responses", true);
    let response = gateway.ask(Protocol::Responses, &question);
    let data = data(&response);
    assert_eq!(data.last().unwrap()["type"], "response.failed");
    assert_eq!(get(&gateway, &json!("resp_1")).status, 404);
    assert_eq!(gateway.metric("sluicegate_responses_kept"), 0.0);
}

#[test]
fn figures_of_kept_answers_are_metrics() {
    let simulator = Simulator::honest().unwrap();
    let limits = "[responses]\nkeep = \"60s\"\nkeep_bytes = \"4KiB\"\n";
    let gateway = GATEWAY.before(&simulator, limits, "");
    for text in ["One.", "Two.", "Three."] {
        let body = testkit::requests::ask(Protocol::Responses, "responses", text, false);
        stored(&gateway.ask(Protocol::Responses, &body), &Value::Null);
    }
    let kept = gateway.metric("sluicegate_responses_kept");
    assert!(kept >= 1.0);
    assert_eq!(
        kept + gateway.metric("sluicegate_responses_evicted_total"),
        3.0
    );
    assert!((1.0..=4096.0).contains(&gateway.metric("sluicegate_responses_kept_bytes")));
}
