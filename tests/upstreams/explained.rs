//! `sluicegate explain`: how a request was admitted, tried and ended.

use std::process::{Command, Stdio};

use serde_json::json;
use simulator::{Play, Protocol, Simulator, honest};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request, Response, Scratch, await_that};

use crate::GATEWAY;

const ADMIN: &str = "sg_test_admin_key_00000000000000000000";

/// The hash of this key, which has expired, is in the test of refused keys.
const EXPIRED: &str = "sg_test_expired_key_000000000000000000000";

/// A gateway whose model `chat` is at the host of the first simulator, and then of the second.
fn gateway(first: &str, second: &str) -> Gateway {
    let targets = r#"[{ upstream = "one", model = "m1" }, { upstream = "two", model = "m2" }]"#;
    let config = Config::new("")
        .upstream("one", Protocol::Chat, first, "")
        .upstream("two", Protocol::Messages, second, "")
        .model("chat", Protocol::Chat, targets);
    administered(config)
}

/// Starts a gateway with an admin API.
fn administered(config: Config) -> Gateway {
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_ADMIN_KEY", ADMIN);
    config.start_by(GATEWAY, command)
}

/// The lines that keep usage in a new file.
fn accounting() -> (String, Scratch) {
    let folder = GATEWAY.file("note.txt", "The file of usage is beside this one.");
    let file = folder.0.with_file_name("accounting.db");
    let lines = format!("[state]\naccounting = \"sqlite:{}\"", file.display());
    (lines, folder)
}

fn question(model: &str, stream: bool) -> Request {
    let body = json!({
        "model": model, "stream": stream, "seed": 7, "frequency_penalty": 0.5, "max_tokens": 1000,
        "messages": [{"role": "user", "content": "Hello."}],
    });
    Request::post("/v1/chat/completions", &body).bearer(CLIENT_KEY)
}

fn ask(gateway: &Gateway, stream: bool) -> Response {
    question("chat", stream).send(gateway.address())
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
    let direct = gateway(&honest.base_url(), &honest.base_url());
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
    let fallback = gateway(&gone, &honest.base_url());
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

/// The cancelled target is charged for the prompt of its stream, by an estimate.
#[test]
fn a_hedge_is_explained_with_the_cost_of_both_attempts() {
    let slow = Simulator::start(|_: &simulator::Request| Play::stream().hold()).unwrap();
    let fast = Simulator::honest().unwrap();
    let (state, _folder) = accounting();
    let targets = "[{ upstream = \"slow\" }, { upstream = \"fast\" }]\n\
                   hedge = { after = \"10ms\", percent = 100 }";
    let price = |name| {
        format!(
            "[[prices]]\nmodel = \"mine\"\nupstream = \"{name}\"\ninput = \"1000000\"\noutput = \"0\""
        )
    };
    let config = Config::new("")
        .section(&state)
        .section(&price("slow"))
        .upstream("slow", Protocol::Chat, &slow.base_url(), "")
        .upstream("fast", Protocol::Chat, &fast.base_url(), "")
        .section("[[prices]]\nmodel = \"mine\"\ninput = \"0\"\noutput = \"0\"")
        .model("mine", Protocol::Chat, targets);
    let gateway = administered(config);
    let response = question("mine", true).send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    let lines = explained(&gateway, &response);
    assert_eq!(
        lines[1..3],
        [
            "Attempt 1: 'slow', relayed, cancelled after N ms: another target has answered first.",
            "Attempt 2: 'fast', relayed, began to answer after N ms. Its id there: \
             req_0000000000000000.",
        ],
        "{lines:?}"
    );
    // The first target costs 1.00 for a token, the request has about 31, and the other one costs nothing.
    assert_eq!(
        lines[3],
        "Reported tokens: 3 of the prompt, 3 of the answer; cost: 31.00."
    );
}

/// A gateway whose limits have room for some requests, and the explanation of the next one.
struct Full {
    /// The number of requests that it has room for.
    room: usize,
    /// Lines of `[limits]`.
    limits: &'static str,
    /// Lines of `[[quotas]]`.
    quota: &'static str,
    /// The line about the limits, with the line about a queue before it.
    refusal: &'static [&'static str],
    /// The last line.
    end: &'static str,
}

const FULL: [Full; 7] = [
    Full {
        room: 1,
        limits: "concurrency = 1",
        quota: "",
        refusal: &["Refused by the limit 'limits.concurrency' (concurrency)."],
        end: "Ended as shed after N ms; status 429, code gateway_concurrency_limit. \
              Cause: limit: limits.concurrency.",
    },
    Full {
        room: 1,
        limits: "concurrency_per_key = 1",
        quota: "",
        refusal: &["Refused by the limit 'limits.concurrency_per_key' (concurrency)."],
        end: "Ended as shed after N ms; status 429, code gateway_concurrency_limit. \
              Cause: limit: limits.concurrency_per_key.",
    },
    Full {
        room: 1,
        limits: "",
        quota: "key = \"*\"\nrequests_per_minute = 1",
        refusal: &[
            "Refused by the limit 'key *' (requests_per_minute); the same request fits after N ms. \
             These limits apply: 'key *' of the key 'tests'.",
        ],
        end: "Ended as shed after N ms; status 429, code rate_limit_exceeded. Cause: limit: key *.",
    },
    Full {
        room: 4,
        limits: "",
        // A request reserves at most a quarter of it.
        quota: "models = [\"chat\"]\ntokens_per_minute = 1500",
        refusal: &[
            "Refused by the limit 'all keys with chat' (tokens_per_minute); the same request fits after N \
             ms. These limits apply: 'all keys with chat'.",
        ],
        end: "Ended as shed after N ms; status 429, code rate_limit_exceeded. \
              Cause: limit: all keys with chat.",
    },
    Full {
        room: 1,
        limits: "",
        quota: "key = \"t*\"\nshared = true\nconcurrency = 1",
        refusal: &["Refused by the limit 'keys t*' (concurrency). These limits apply: 'keys t*'."],
        end: "Ended as shed after N ms; status 429, code gateway_concurrency_limit. \
              Cause: limit: keys t*.",
    },
    Full {
        room: 1,
        limits: "",
        quota: "concurrency = 1\nqueue = { wait = \"20ms\" }",
        refusal: &[
            "It waited N ms in a queue.",
            "Refused by the limit 'all keys' (concurrency). These limits apply: 'all keys'.",
        ],
        end: "Ended as shed after N ms; status 429, code gateway_concurrency_limit. \
              Cause: limit: all keys.",
    },
    Full {
        room: 1,
        limits: "",
        // At 8 for a million tokens, the answer may cost 0.008.
        quota: "budget = { amount = \"0.01\", currency = \"USD\", window = \"month\" }",
        refusal: &[
            "Refused by the limit 'all keys, month in UTC' (budget). These limits apply: 'all keys'.",
        ],
        end: "Ended as shed after N ms; status 429, code insufficient_quota. \
              Cause: limit: all keys, month in UTC.",
    },
];

#[test]
fn a_refusal_names_the_limit_without_room() {
    for full in FULL {
        let simulator = Simulator::start(|request: &simulator::Request| {
            Play::new().gate().then(honest::answer(request))
        });
        let simulator = simulator.unwrap();
        let (state, _folder) = accounting();
        let mut config = Config::before(&simulator, full.limits, "")
            .section(&state)
            .section("[[prices]]\nmodel = \"*\"\ninput = \"0\"\noutput = \"8\"");
        if !full.quota.is_empty() {
            config = config.quota(full.quota);
        }
        let gateway = administered(config);
        let mut admitted = Vec::new();
        for _ in 0..full.room {
            let mut connection = Connection::open(gateway.address());
            connection.send(question("chat", false).bytes());
            admitted.push(connection);
        }
        await_that("the requests are admitted", || {
            simulator.requests().len() == full.room
        });
        let lines = explained(&gateway, &ask(&gateway, false));
        let expected: Vec<_> = full.refusal.iter().chain([&full.end]).copied().collect();
        assert_eq!(lines, expected);
        simulator.release_all();
        for mut connection in admitted {
            assert_eq!(connection.response().status, 200);
        }
    }
}

#[test]
fn a_request_that_no_limit_has_seen_names_the_reason() {
    let honest = Simulator::honest().unwrap();
    let quota = "budget = { amount = \"1.00\", currency = \"USD\", window = \"month\" }";
    let (state, _folder) = accounting();
    let config = Config::before(&honest, "", "").section(&state).quota(quota);
    let gateway = administered(config);
    for (model, end) in [
        (
            "absent",
            "Ended as refused after N ms; status 404, code model_not_found.",
        ),
        (
            "chat",
            "Ended as refused after N ms; status 403, code insufficient_permissions. \
             Cause: a budget applies, and the model has no price.",
        ),
    ] {
        let response = question(model, false).send(gateway.address());
        assert_eq!(
            explained(&gateway, &response),
            ["It ended before any limit was asked.", end]
        );
    }
}

/// Nobody without a key can displace the reports of others, and all bad keys get the same answer.
#[test]
fn a_request_without_a_valid_key_is_only_in_the_log() {
    let honest = Simulator::honest().unwrap();
    let expired = "name = \"old\"\nhash = \"sha256:fdd38f46ca4a7190a5a3669c34e11c7a067c569a7bc39dcd62415a2083dc7db8\"\nscopes = [\"text\"]\nexpires = \"2020-01-01\"";
    let gateway = administered(Config::before(&honest, "", "").key(expired));
    for key in ["sg_unknown_key_0000000000000000000000000", EXPIRED] {
        let body = json!({"model": "chat", "messages": []});
        let response = gateway.post(key, "/v1/chat/completions", &body);
        assert_eq!(response.status, 401, "{}", response.text());
        let id = response.header("x-request-id").unwrap();
        let unknown = GATEWAY.administer(&gateway, ADMIN, &["explain", id]);
        let unknown = unknown.unwrap_err();
        assert!(
            unknown.ends_with("requests without a valid key are only in the log\n"),
            "{unknown}"
        );
    }
}

#[test]
fn a_stream_that_breaks_off_is_explained() {
    let cut = Simulator::start(|request| -> Play {
        let scenario = simulator::scenario::named("eof-without-end");
        scenario.unwrap().play(request)
    })
    .unwrap();
    let gateway = gateway(&cut.base_url(), &cut.base_url());
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
