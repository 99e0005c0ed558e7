//! Facts of models from the lists of their upstreams.

use std::fs;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator, honest};
use testkit::{Config, Gateway, TEXT, UPSTREAM_KEY, await_that};

use crate::GATEWAY;
use crate::asking::check;

/// A server whose list of models the test replaces, and that answers everything else.
struct Listed {
    simulator: Simulator,
    list: Arc<Mutex<Play>>,
}

impl Listed {
    fn with(list: Play) -> Self {
        let list = Arc::new(Mutex::new(list));
        let current = Arc::clone(&list);
        let behave = move |request: &Request| match request.path.as_str() {
            "/v1/models?limit=1000" => current.lock().unwrap().clone(),
            _ => honest::answer(request),
        };
        let simulator = Simulator::start(behave).unwrap();
        Self { simulator, list }
    }

    fn list(&self, list: Play) {
        *self.list.lock().unwrap() = list;
    }

    /// A gateway with a model of this server, whose longest answer is configured.
    fn config(&self) -> Config {
        Config::new("")
            .section("[facts.their-model]\nmax_output_tokens = 1000")
            .upstream("only", Protocol::Chat, &self.simulator.base_url(), LIST)
            .model("mine", Protocol::Chat, TARGETS)
    }

    fn readings(&self) -> usize {
        let requests = self.simulator.requests();
        let lists = requests
            .iter()
            .filter(|request| request.path.contains("/models"));
        lists.count()
    }
}

const LIST: &str = "model_list = \"models?limit=1000\"";
const TARGETS: &str = r#"[{ upstream = "only", model = "their-model" }]"#;

/// The list of vLLM, and a longest answer that the configuration overrules.
fn list_of(window: u32) -> Play {
    let model = json!({"id": "their-model", "max_model_len": window, "max_output_tokens": 2000});
    Play::json(200, &json!({"object": "list", "data": [model]}))
}

/// The entry of the model in the gateway's own list.
fn entry(gateway: &Gateway) -> Value {
    gateway.get(TEXT, "/v1/models/mine").json()
}

fn answers(gateway: &Gateway) -> bool {
    let body = json!({"model": "mine", "messages": [{"role": "user", "content": "Hello."}]});
    gateway.ask(Protocol::Chat, &body).status == 200
}

/// Replaces the file of the configuration by itself with another comment.
fn touch(gateway: &Gateway, comment: &str) {
    let path = gateway.config_path();
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, format!("{text}\n# {comment}\n")).unwrap();
}

#[test]
fn facts_come_from_the_list_unless_they_are_configured() {
    let server = Listed::with(list_of(32_768));
    let gateway = server.config().start(GATEWAY);
    await_that("the list is read", || {
        !entry(&gateway)["context_length"].is_null()
    });
    let entry = entry(&gateway);
    assert_eq!(entry["context_length"], 32_768);
    assert_eq!(entry["max_output_tokens"], 1000, "the configuration wins");
    let asked = server.simulator.requests().remove(0);
    assert_eq!(asked.method, "GET");
    let bearer = format!("Bearer {UPSTREAM_KEY}");
    assert_eq!(asked.header("authorization"), Some(bearer.as_str()));
}

#[test]
fn a_list_that_fails_keeps_the_facts_and_a_reload_reads_it_again() {
    let server = Listed::with(list_of(32_768));
    let gateway = server.config().start(GATEWAY);
    let window = || entry(&gateway)["context_length"].as_u64();
    await_that("the list is read", || window() == Some(32_768));
    for (wrong, cause) in [
        (Play::json(404, &json!({})), "status 404"),
        (
            Play::answer(200, &[], "<html>"),
            "expected value at line 1 column 1",
        ),
        (
            Play::answer(200, &[], vec![b' '; 9 << 20]),
            "response body exceeds 8388608 bytes",
        ),
        (Play::new().reset(), "the upstream failed"),
    ] {
        server.list(wrong);
        touch(&gateway, cause);
        await_that(cause, || gateway.log.lock().unwrap().contains(cause));
        assert_eq!(window(), Some(32_768), "{cause}");
        assert!(answers(&gateway), "{cause}");
    }
    server.list(list_of(65_536));
    touch(&gateway, "a larger window");
    await_that("the new list is read", || window() == Some(65_536));
}

#[test]
fn a_list_that_never_comes_delays_neither_the_start_nor_requests() {
    let server = Listed::with(Play::new().hold());
    let gateway = server.config().start(GATEWAY);
    await_that("the list is requested", || server.readings() == 1);
    assert!(answers(&gateway));
    assert!(entry(&gateway)["context_length"].is_null());
}

#[test]
fn the_check_names_the_source_of_each_fact() {
    let server = Listed::with(list_of(32_768));
    let (success, report, errors) = check(&server.config(), &[]);
    assert!(success, "{errors}");
    assert_eq!(server.readings(), 0);
    for line in [
        "     facts: max_output_tokens from [facts.their-model]\n",
        "note: clients cannot see max_input_tokens, input_modalities, output_modalities, capabilities of mine\n",
        "note: the lists of models of the upstreams only are read with --ask\n",
    ] {
        assert!(report.contains(line), "{line}{report}");
    }
    let (success, report, errors) = check(&server.config(), &["--ask"]);
    assert!(success, "{errors}");
    for line in [
        "     facts: max_output_tokens from [facts.their-model]; max_input_tokens from the list of the upstream\n",
        "note: clients cannot see input_modalities, output_modalities, capabilities of mine\n",
    ] {
        assert!(report.contains(line), "{line}{report}");
    }
    server.list(Play::json(404, &json!({})));
    let (_, report, _) = check(&server.config(), &["--ask"]);
    let note = "note: the list of models of upstream 'only' cannot be read: status 404\n";
    assert!(report.contains(note), "{report}");
}
