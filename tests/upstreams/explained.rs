//! `sluicegate explain`: how a request was admitted, tried and ended.

use std::process::{Command, Stdio};

use serde_json::json;
use simulator::{Protocol, Simulator};
use testkit::{CLIENT_KEY, Config, Gateway, Request, Response, await_that};

use crate::GATEWAY;

const ADMIN: &str = "sg_test_admin_key_00000000000000000000";

/// A gateway whose model `chat` is at the host of the first simulator, and then of the second, with this
/// quota.
fn gateway(first: &str, second: &str, quota: &str) -> Gateway {
    let targets = r#"[{ upstream = "one", model = "m1" }, { upstream = "two", model = "m2" }]"#;
    let mut config = Config::new("")
        .upstream("one", Protocol::Chat, first, "")
        .upstream("two", Protocol::Messages, second, "")
        .model("chat", Protocol::Chat, targets);
    if !quota.is_empty() {
        config = config.quota(quota);
    }
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_ADMIN_KEY", ADMIN);
    config.start_by(GATEWAY, command)
}

fn ask(gateway: &Gateway, stream: bool) -> Response {
    let body = json!({
        "model": "chat", "stream": stream, "seed": 7, "frequency_penalty": 0.5, "max_tokens": 1000,
        "messages": [{"role": "user", "content": "Hello."}],
    });
    let request = Request::post("/v1/chat/completions", &body).bearer(CLIENT_KEY);
    request.send(gateway.address())
}

/// The explanation of a response's request, without its first line, which has the random id. Times are
/// replaced by `N`.
fn explained(gateway: &Gateway, response: &Response) -> Vec<String> {
    let id = response.header("x-request-id").unwrap();
    let text = GATEWAY.administer(gateway, ADMIN, &["explain", id]);
    let text = text.unwrap();
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with(id), "{text}");
    let timeless = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let is_time = |at: usize| {
            words
                .get(at + 1)
                .is_some_and(|next| next.starts_with("ms") && words[at].parse::<f64>().is_ok())
        };
        let words = words.iter().enumerate();
        let words = words.map(|(at, word)| if is_time(at) { "N" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    lines.map(timeless).collect()
}

const ADMITTED: &str = "Admitted by the limits of the process; no other one applies.";

#[test]
fn a_success_and_a_fallback_are_explained() {
    let honest = Simulator::honest().unwrap();
    let direct = gateway(&honest.base_url(), &honest.base_url(), "");
    let response = ask(&direct, false);
    assert_eq!(response.status, 200, "{}", response.text());
    let lines = explained(&direct, &response);
    assert_eq!(lines[0], ADMITTED);
    assert_eq!(
        lines[1],
        "Attempt 1: 'one' as 'm1', relayed, began to answer after N ms. Its id there: \
         req_0000000000000000."
    );
    assert_eq!(lines[3], "Ended as completed after N ms; status 200.");

    // Nothing listens at the port of a simulator that has ended.
    let gone = Simulator::honest().unwrap().base_url();
    let fallback = gateway(&gone, &honest.base_url(), "");
    let response = ask(&fallback, false);
    assert_eq!(response.status, 200, "{}", response.text());
    let lines = explained(&fallback, &response);
    assert!(
        lines[1].starts_with("Attempt 1: 'one' as 'm1', relayed, failed after N ms with "),
        "{lines:?}"
    );
    assert!(
        lines[2].starts_with("Attempt 2: 'two' as 'm2', translated, began to answer after N ms."),
        "{lines:?}"
    );
    assert!(
        lines[2].ends_with(" Dropped fields: seed, frequency_penalty."),
        "{lines:?}"
    );
}

#[test]
fn a_refusal_names_its_limit() {
    let honest = Simulator::honest().unwrap();
    for (quota, dimension) in [
        (
            "key = \"*\"\nrequests_per_minute = 1",
            "requests_per_minute",
        ),
        ("key = \"*\"\ntokens_per_minute = 10", "tokens_per_minute"),
    ] {
        let gateway = gateway(&honest.base_url(), &honest.base_url(), quota);
        let refused = (0..5)
            .map(|_| ask(&gateway, false))
            .find(|response| response.status == 429);
        let lines = explained(&gateway, &refused.expect(quota));
        assert!(
            lines[0].starts_with(&format!("Refused by the limit 'key *' ({dimension})")),
            "{lines:?}"
        );
        assert!(
            lines[0].ends_with(" These limits apply: 'key *' of the key 'tests'."),
            "{lines:?}"
        );
        assert!(
            lines[1].starts_with("Ended as shed after N ms; status 429, code "),
            "{lines:?}"
        );
    }
}

#[test]
fn a_stream_that_breaks_off_is_explained() {
    let cut = Simulator::start(|request| -> simulator::Play {
        let scenario = simulator::scenario::named("eof-without-end");
        scenario.unwrap().play(request)
    })
    .unwrap();
    let gateway = gateway(&cut.base_url(), &cut.base_url(), "");
    let response = ask(&gateway, true);
    assert_eq!(response.status, 200);
    let lines = explained(&gateway, &response);
    let last = lines.last().unwrap();
    assert!(
        last.starts_with("Ended as upstream_truncated after N ms"),
        "{lines:?}"
    );
    assert!(last.contains("; status 200, code "), "{lines:?}");
}

/// A run without a configuration and without keys prints two lines for a shell, which work as they are.
#[test]
fn a_first_try_prints_the_commands_that_explain_a_request() {
    let honest = Simulator::honest().unwrap();
    let mut command = GATEWAY.command();
    for name in ["TEXT", "MESSAGES", "IMAGE"] {
        command.env_remove(format!("SLUICEGATE_{name}_KEY"));
    }
    let address = "127.0.0.1:0";
    command.args([
        "serve",
        "--listen",
        address,
        "--admin",
        address,
        "--protocol",
        "chat",
    ]);
    command.args(["--upstream", &honest.base_url()]);
    let gateway = Gateway::run(&command, Stdio::piped(), None);
    let printed = || gateway.printed.lock().unwrap().clone();
    await_that("the last line is printed", || {
        printed().ends_with(" REQUEST_ID\n")
    });
    let printed = printed();
    let line = |beginning: &str| {
        let line = printed.lines().find(|line| line.starts_with(beginning));
        line.unwrap_or_else(|| panic!("{printed}"))
    };
    let key = line("export SLUICEGATE_TEXT_KEY=")
        .split('=')
        .nth(1)
        .unwrap();
    let body = json!({"model": "small", "messages": [{"role": "user", "content": "Hello."}]});
    let response = gateway.post(key, "/v1/chat/completions", &body);
    assert_eq!(response.status, 200, "{}", response.text());
    let id = response.header("x-request-id").unwrap();
    let explain = line(GATEWAY.path).replace("REQUEST_ID", id);
    let script = format!("{}\n{explain}", line("export SLUICEGATE_ADMIN_KEY="));
    let mut shell = Command::new("sh");
    let output = shell
        .args(["-c", &script])
        .env_remove("SLUICEGATE_ADMIN_KEY")
        .output();
    let explained = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(
        explained.contains("\nEnded as completed after "),
        "{explained}"
    );
}
