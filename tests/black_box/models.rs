//! `GET /v1/models` and `GET /v1/models/{id}`:
//! <https://platform.openai.com/docs/api-reference/models>.

use serde_json::json;
use testkit::{MESSAGES, Request, TEXT};

use crate::GATEWAY;

#[test]
fn one_list_serves_both_families_of_clients() {
    let server = GATEWAY.shared();
    for key in [TEXT, MESSAGES] {
        let list = server.get(key, "/v1/models").json();
        assert_eq!(
            (&list["object"], &list["has_more"]),
            (&json!("list"), &json!(false))
        );
        let models = list["data"].as_array().unwrap();
        assert_eq!(
            (&list["first_id"], &list["last_id"]),
            (&models[0]["id"], &models[models.len() - 1]["id"])
        );
        for model in models {
            assert_eq!(
                (&model["object"], &model["type"]),
                (&json!("model"), &json!("model"))
            );
            for name in ["id", "owned_by", "display_name", "created_at", "lifecycle"] {
                assert!(model[name].is_string(), "{name}: {model}");
            }
            assert!(model["created"].is_i64());
        }
    }
}

#[test]
fn every_model_of_the_list_can_be_retrieved() {
    let server = GATEWAY.shared();
    for model in server.get(TEXT, "/v1/models").json()["data"]
        .as_array()
        .unwrap()
    {
        let path = format!("/v1/models/{}", model["id"].as_str().unwrap());
        assert_eq!(server.get(TEXT, &path).json(), *model);
    }
    let unknown = server.get(TEXT, "/v1/models/nope");
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (404, &json!("model_not_found"))
    );
}

#[test]
fn pages_are_cut_as_asked() {
    let server = GATEWAY.shared();
    let ids = |query: &str| {
        let list = server.get(TEXT, &format!("/v1/models{query}")).json();
        let ids = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), list["has_more"].as_bool().unwrap())
    };
    let (all, _) = ids("");
    assert_eq!(ids("?limit=2"), (all[..2].to_vec(), true));
    assert_eq!(
        ids(&format!("?limit=2&after_id={}", all[1])),
        (all[2..4].to_vec(), true)
    );
    assert_eq!(
        ids(&format!("?after_id={}", all[all.len() - 1])),
        (vec![], false)
    );
    assert_eq!(
        ids("?limit=1000&client_version=1.2.3"),
        (all.clone(), false)
    );
    for query in ["?limit=0", "?limit=1001", "?limit=x", "?after_id=nope"] {
        let response = server.get(TEXT, &format!("/v1/models{query}"));
        assert_eq!(response.status, 400, "{query}: {}", response.text());
        assert_eq!(response.json()["error"]["type"], "invalid_request_error");
    }
}

#[test]
fn errors_have_the_shape_of_the_clients_protocol() {
    let server = GATEWAY.shared();
    let plain = Request::get("/v1/models/nope")
        .bearer(TEXT)
        .send(server.address());
    assert_eq!(plain.json()["error"]["param"], "model");
    let versioned = Request::get("/v1/models/nope")
        .bearer(TEXT)
        .header("anthropic-version", "2023-06-01");
    let body = versioned.send(server.address()).json();
    assert_eq!(
        (&body["type"], &body["error"]["type"]),
        (&json!("error"), &json!("not_found_error"))
    );
}

/// The members of [Anthropic](https://platform.claude.com/docs/en/api/models/list), which its SDKs read
/// without a check, and the members of OpenRouter and vLLM, which the clients of OpenAI's protocols read.
#[test]
fn list_has_model_facts_and_check_names_unknown_models() {
    let server = GATEWAY.start_by(GATEWAY.command(), Some(WITH_FACTS));
    let coder = server.get(TEXT, "/v1/models/coder").json();
    for (name, value) in [
        ("max_input_tokens", json!(262_144)),
        ("context_length", json!(262_144)),
        ("max_model_len", json!(262_144)),
        ("max_output_tokens", json!(32_768)),
        ("max_tokens", json!(32_768)),
        ("supported_parameters", json!(["tools", "tool_choice"])),
        ("lifecycle", json!("deprecated")),
        ("retires_at", json!("2027-10-01T00:00:00Z")),
        ("shutdown_date", json!("2027-10-01")),
    ] {
        assert_eq!(coder[name], value, "{name}");
    }
    assert_eq!(
        coder["capabilities"]["image_input"],
        json!({"supported": true})
    );
    let plain = server.get(TEXT, "/v1/models/plain").json();
    let members: Vec<_> = plain.as_object().unwrap().keys().collect();
    let known = [
        "id",
        "object",
        "created",
        "owned_by",
        "type",
        "display_name",
        "created_at",
        "lifecycle",
    ];
    assert_eq!(members, known, "unknown facts are absent");

    let file = GATEWAY.file("sluicegate.toml", WITH_FACTS);
    let mut command = GATEWAY.command();
    let output = command.args(["check", "--config"]).arg(&file.0).output();
    let report = String::from_utf8(output.unwrap().stdout).unwrap();
    let note = "note: clients cannot see max_input_tokens, max_output_tokens, input_modalities, \
                output_modalities, capabilities of plain\n";
    assert!(report.contains(note), "{report}");
}

/// A model with facts of its own and of its name at the upstream, and one without any.
const WITH_FACTS: &str = r#"
[facts.qwen3-coder]
max_input_tokens = 262144
max_output_tokens = 65536

[[upstreams]]
name = "nowhere"
protocol = "chat"
base_url = "http://127.0.0.1:1/v1"

[[models]]
id = "coder"
family = "text"
protocols = ["chat"]
facts = { max_output_tokens = 32768, input_modalities = ["text", "image"], output_modalities = ["text"], capabilities = ["tools"], retires_at = "2027-10-01T00:00:00Z" }
targets = [{ upstream = "nowhere", model = "qwen3-coder" }]

[[models]]
id = "plain"
family = "text"
protocols = ["chat"]
targets = [{ upstream = "nowhere" }]
"#;
