//! Requests for features that a model allows are relayed; requests for other features are refused.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::{ask, path, protocol_name};
use testkit::{Gateway, MESSAGES, Response, TEXT, changed};

use crate::GATEWAY;

/// A gateway with a model `open` that allows a word, and `closed`, which does not, at an upstream
/// of their protocol. It keeps answers with `keep`.
fn gateway(simulator: &Simulator, protocol: Protocol, word: &str, keep: bool) -> Gateway {
    let (name, url) = (protocol_name(protocol), simulator.base_url());
    let model = |id: &str, allow: &str| {
        format!(
            "[[models]]\nid = \"{id}\"\nfamily = \"text\"\nprotocols = [\"{name}\"]\nallow = [{allow}]\n\
             targets = [{{ upstream = \"u\", model = \"their-model\" }}]\n"
        )
    };
    let upstream =
        format!("[[upstreams]]\nname = \"u\"\nprotocol = \"{name}\"\nbase_url = \"{url}\"\n");
    let word = format!("\"{word}\"");
    GATEWAY.configured(&format!(
        "{}{upstream}{}{}",
        if keep {
            "[responses]\nkeep = \"60s\"\n"
        } else {
            ""
        },
        model("open", &word),
        model("closed", "")
    ))
}

fn post(gateway: &Gateway, protocol: Protocol, model: &str, change: &Value) -> Response {
    let key = if protocol == Protocol::Messages {
        MESSAGES
    } else {
        TEXT
    };
    let body = changed(ask(protocol, model, "Hi.", false), change);
    gateway.post(key, path(protocol), &body)
}

/// Asserts that a request with this change is refused for this field by default. Returns the request
/// that the upstream gets from a model that allows the word.
#[track_caller]
fn allowed(protocol: Protocol, word: &str, change: Value, param: &str) -> String {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, protocol, word, false);
    let refused = post(&gateway, protocol, "closed", &change);
    assert_eq!(refused.status, 400, "{}", refused.text());
    let error = &refused.json()["error"];
    match protocol {
        // The error of this protocol has the field in its message.
        Protocol::Messages => assert!(
            error["message"].as_str().unwrap().starts_with(param),
            "{error}"
        ),
        _ => assert_eq!(error["param"], param, "{error}"),
    }
    assert_eq!(simulator.requests().len(), 0);
    post(&gateway, protocol, "open", &change);
    sent(&simulator)
}

/// The body of the last request of an upstream.
fn sent(simulator: &Simulator) -> String {
    let request = simulator.requests().pop().expect("a request");
    String::from_utf8(request.body.to_vec()).unwrap()
}

#[test]
fn several_choices() {
    let sent = allowed(Protocol::Chat, "n", json!({"n": 2}), "n");
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"messages":[{"role":"user","content":"Hi."}],"n":2}"#);
}

#[test]
fn audio() {
    let change =
        json!({"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}});
    let sent = allowed(Protocol::Chat, "audio", change, "modalities");
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"messages":[{"role":"user","content":"Hi."}],"modalities":["text","audio"],"audio":{"voice":"alloy","format":"wav"}}"#);
}

#[test]
fn a_hosted_search() {
    let change = json!({"web_search_options": {"search_context_size": "low"}});
    let sent = allowed(Protocol::Chat, "web_search", change, "web_search_options");
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"messages":[{"role":"user","content":"Hi."}],"web_search_options":{"search_context_size":"low"}}"#);
}

#[test]
fn a_conversation() {
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "12"});
    let change = json!({"conversation": "conv_1", "input": [result]});
    let sent = allowed(
        Protocol::Responses,
        "conversation",
        json!({"conversation": "conv_1"}),
        "conversation",
    );
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"input":[{"role":"user","content":"Hi."}],"conversation":"conv_1"}"#);
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, Protocol::Responses, "conversation", false);
    assert_eq!(
        post(&gateway, Protocol::Responses, "open", &change).status,
        200
    );
}

#[test]
fn a_response_in_the_background() {
    let sent = allowed(
        Protocol::Responses,
        "background",
        json!({"background": true}),
        "background",
    );
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"input":[{"role":"user","content":"Hi."}],"background":true}"#);
}

#[test]
fn a_stored_prompt() {
    let sent = allowed(
        Protocol::Responses,
        "prompt",
        json!({"prompt": {"id": "pmpt_1"}}),
        "prompt",
    );
    insta::assert_snapshot!(sent, @r#"{"store":false,"model":"their-model","stream":false,"input":[{"role":"user","content":"Hi."}],"prompt":{"id":"pmpt_1"}}"#);
}

/// References are not found in the gateway, unless the upstream is to resolve them.
#[test]
fn a_response_and_an_item_that_the_upstream_keeps() {
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "12"});
    let change = json!({"previous_response_id": "resp_1", "input": [result]});
    let sent = referring("unknown_responses", &change, 400);
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"input":[{"type":"function_call_output","call_id":"call_1","output":"12"}],"previous_response_id":"resp_1"}"#);
    let reference = json!({"type": "item_reference", "id": "fc_1"});
    let sent = referring(
        "item_reference",
        &json!({"input": [reference, result]}),
        404,
    );
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"input":[{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"call_1","output":"12"}]}"#);
}

/// Asserts that a gateway that keeps answers refuses a request with an unknown reference with this
/// status. Returns the request that the upstream gets from a model that allows the word.
#[track_caller]
fn referring(word: &str, change: &Value, status: u16) -> String {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, Protocol::Responses, word, true);
    let post = |model| post(&gateway, Protocol::Responses, model, change).status;
    assert_eq!((post("closed"), post("open")), (status, 200));
    sent(&simulator)
}

#[test]
fn upstream_storage_disables_the_response_store() {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, Protocol::Responses, "store", true);
    for (model, change, store) in [
        ("closed", json!({"store": true}), json!(false)),
        ("closed", json!({}), json!(false)),
        ("open", json!({"store": true}), json!(true)),
        ("open", json!({}), Value::Null),
    ] {
        let response = post(&gateway, Protocol::Responses, model, &change).json();
        assert_eq!(simulator.requests().pop().unwrap().json()["store"], store);
        assert_eq!(response["store"], model == "closed");
    }
    assert_eq!(gateway.metric("sluicegate_responses_kept"), 2.0);
}

#[test]
fn files_that_the_upstream_keeps() {
    let content = |part: Value| json!([{"role": "user", "content": [part]}]);
    let part = json!({"type": "input_file", "file_id": "file_1"});
    let change = json!({"input": content(part)});
    let sent = allowed(
        Protocol::Responses,
        "file_id",
        change,
        "input[0].content[0].file_id",
    );
    insta::assert_snapshot!(sent, @r#"{"store":false,"model":"their-model","stream":false,"input":[{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]}]}"#);
    let part = json!({"type": "input_image", "file_id": "file_1"});
    let change = json!({"input": content(part)});
    let sent = allowed(
        Protocol::Responses,
        "file_id",
        change,
        "input[0].content[0].file_id",
    );
    insta::assert_snapshot!(sent, @r#"{"store":false,"model":"their-model","stream":false,"input":[{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}]}"#);
    let part = json!({"type": "file", "file": {"file_id": "file_1"}});
    let change = json!({"messages": content(part)});
    let sent = allowed(
        Protocol::Chat,
        "file_id",
        change,
        "messages[0].content[0].file.file_id",
    );
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file_1"}}]}]}"#);
    let part = json!({"type": "document", "source": {"type": "file", "file_id": "file_1"}});
    let change = json!({"messages": content(part)});
    let sent = allowed(
        Protocol::Messages,
        "file_id",
        change,
        "messages.0.content.0.source.type",
    );
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"max_tokens":512,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}"#);
}

#[test]
fn a_request_that_warms_a_cache() {
    let sent = allowed(
        Protocol::Messages,
        "cache_warming",
        json!({"max_tokens": 0}),
        "max_tokens",
    );
    insta::assert_snapshot!(sent, @r#"{"model":"their-model","stream":false,"max_tokens":0,"messages":[{"role":"user","content":"Hi."}]}"#);
}

/// A stream that lacks a choice is complete only if its server reports its end.
#[test]
fn a_choice_that_never_comes_is_a_failure() {
    const ONE: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[\
        {\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\n";
    for (change, is_complete) in [
        (json!({"stream": true, "n": 2}), false),
        (json!({"stream": true}), true),
    ] {
        let simulator = Simulator::start(|_| simulator::Play::events([ONE])).unwrap();
        let gateway = gateway(&simulator, Protocol::Chat, "n", false);
        let response = post(&gateway, Protocol::Chat, "open", &change);
        assert_eq!(
            response.text().ends_with("data: [DONE]\n\n"),
            is_complete,
            "{}",
            response.text()
        );
    }
}

/// Types and roles that are unknown here are relayed to an upstream of the client's protocol.
#[test]
fn unknown_types_and_roles_are_relayed() {
    let part = json!({"type": "part_of_tomorrow", "x": 1});
    let tool = json!({"type": "tool_of_tomorrow", "x": 1});
    let tools = json!({"tools": [tool], "tool_choice": {"type": "tool_of_tomorrow"}});
    let critic = json!([{"role": "critic", "content": "Hi."}]);
    let parts = json!([{"role": "user", "content": [part]}]);
    let item = json!([{"type": "item_of_tomorrow", "x": 1}]);
    let image = json!([{"role": "user", "content": [{"type": "image", "source": {"type": "x"}}]}]);
    let inputs = [item, critic.clone(), parts.clone()].map(|input| json!({ "input": input }));
    let sent = relayed(Protocol::Responses, inputs.iter().chain([&tools]));
    insta::assert_snapshot!(sent, @r#"
        {"store":false,"model":"their-model","stream":false,"input":[{"type":"item_of_tomorrow","x":1}]}
        {"store":false,"model":"their-model","stream":false,"input":[{"role":"critic","content":"Hi."}]}
        {"store":false,"model":"their-model","stream":false,"input":[{"role":"user","content":[{"type":"part_of_tomorrow","x":1}]}]}
        {"store":false,"model":"their-model","stream":false,"input":[{"role":"user","content":"Hi."}],"tools":[{"type":"tool_of_tomorrow","x":1}],"tool_choice":{"type":"tool_of_tomorrow"}}
        "#);
    let messages = [critic, parts, image].map(|messages| json!({ "messages": messages }));
    let sent = relayed(Protocol::Chat, messages[..2].iter().chain([&tools]));
    insta::assert_snapshot!(sent, @r#"
        {"model":"their-model","stream":false,"messages":[{"role":"critic","content":"Hi."}]}
        {"model":"their-model","stream":false,"messages":[{"role":"user","content":[{"type":"part_of_tomorrow","x":1}]}]}
        {"model":"their-model","stream":false,"messages":[{"role":"user","content":"Hi."}],"tools":[{"type":"tool_of_tomorrow","x":1}],"tool_choice":{"type":"tool_of_tomorrow"}}
        "#);
    let sent = relayed(Protocol::Messages, &messages);
    insta::assert_snapshot!(sent, @r#"
        {"model":"their-model","stream":false,"max_tokens":512,"messages":[{"role":"critic","content":"Hi."}]}
        {"model":"their-model","stream":false,"max_tokens":512,"messages":[{"role":"user","content":[{"type":"part_of_tomorrow","x":1}]}]}
        {"model":"their-model","stream":false,"max_tokens":512,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"x"}}]}]}
        "#);
}

/// The requests with these changes that the upstream gets, a line each.
fn relayed<'a>(protocol: Protocol, changes: impl IntoIterator<Item = &'a Value>) -> String {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, protocol, "file_id", false);
    let sent = changes.into_iter().map(|change| {
        post(&gateway, protocol, "closed", change);
        sent(&simulator)
    });
    sent.collect::<Vec<_>>().join("\n")
}

/// A target for which the request has to be translated refuses it, and the next one gets it.
#[test]
fn unknown_types_and_roles_are_not_translated() {
    let simulator = Simulator::honest().unwrap();
    let upstream = |name: &str| {
        let url = simulator.base_url();
        format!("[[upstreams]]\nname = \"{name}\"\nprotocol = \"{name}\"\nbase_url = \"{url}\"\n")
    };
    let model = |id: &str, targets: &str| {
        format!(
            "[[models]]\nid = \"{id}\"\nfamily = \"text\"\nprotocols = [\"responses\"]\ntargets = [{targets}]\n"
        )
    };
    let gateway = GATEWAY.configured(
        &[
            upstream("chat"),
            upstream("responses"),
            model("translated", "{ upstream = \"chat\" }"),
            model(
                "mixed",
                "{ upstream = \"chat\" }, { upstream = \"responses\" }",
            ),
        ]
        .concat(),
    );
    let change = json!({"input": [{"role": "critic", "content": "Hi."}]});
    let refused = post(&gateway, Protocol::Responses, "translated", &change);
    assert_eq!(
        (refused.status, &refused.json()["error"]["param"]),
        (400, &json!("input[0].role"))
    );
    assert_eq!(simulator.requests().len(), 0);
    assert_eq!(
        post(&gateway, Protocol::Responses, "mixed", &change).status,
        200
    );
    assert_eq!(simulator.requests().pop().unwrap().path, "/v1/responses");
    // Understood by both.
    let change = json!({"input": [{"role": "user", "content": "Hi."}]});
    assert_eq!(
        post(&gateway, Protocol::Responses, "mixed", &change).status,
        200
    );
    assert_eq!(
        simulator.requests().pop().unwrap().path,
        "/v1/chat/completions"
    );
}
