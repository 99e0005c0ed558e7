//! `sluicegate check`: prints where requests are sent, and all problems of a configuration before
//! it is used.

use crate::GATEWAY;

/// The output of `check` for a configuration: the report, or the problems.
fn check(config: &str) -> Result<String, String> {
    let file = GATEWAY.file("sluicegate.toml", config);
    let mut command = GATEWAY.command();
    command.args(["check", "--config"]).arg(&file.0);
    for variable in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SLUICEGATE_TEXT_KEY"] {
        command.env(variable, "sk-check-0000000000000000000000");
    }
    let output = command.output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("messages are UTF-8");
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

/// The upstream configurations that the documentation shows.
fn documented() -> Vec<String> {
    let page = include_str!("../../docs/model-servers.md");
    let blocks = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    blocks
        .filter(|block| block.contains("[[upstreams]]"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_collector_is_named_or_its_problem() {
    for signal in ["traces", "metrics"] {
        let settings = format!("[{signal}]\nendpoint = \"http://127.0.0.1:4318\"\n");
        let report = check(&settings).unwrap();
        let line = format!("{signal} are exported to http://127.0.0.1:4318, without a key");
        assert!(report.lines().any(|found| found == line), "{report}");
        let key = "api_key = { env = \"SLUICEGATE_NO_SUCH_KEY\" }\n";
        let problem = "the environment has no variable 'SLUICEGATE_NO_SUCH_KEY'";
        assert_eq!(
            check(&[&settings, key].concat()).unwrap_err(),
            format!("sluicegate: {signal}.api_key: {problem}\n")
        );
    }
}

#[test]
fn the_configurations_of_the_readme_are_right() {
    let configs = documented();
    assert!(configs.len() >= 2, "{configs:?}");
    let report = check(&configs[0]).unwrap();
    for line in [
        "coder",
        "  1. 'gpt-5.1-codex' at upstream vendor (https://api.openai.com/v1, key from $OPENAI_API_KEY)",
        "     /v1/responses: relayed",
        "     /v1/chat/completions, /v1/messages: translated to responses",
        "  2. 'qwen3-coder' at upstream house (http://127.0.0.1:8000/v1, without a key)",
        "     /v1/responses, /v1/messages: translated to chat",
    ] {
        assert!(
            report.lines().any(|found| found == line),
            "{line}\n{report}"
        );
    }
    let report = check(&configs[1]).unwrap();
    for part in [
        "then https://eu.api.example.com/v1",
        "weight 3",
        "draws the order",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    assert!(!report.contains("sk-check"), "keys are not shown");
}

/// Each key is listed with the quotas that apply to it.
#[test]
fn the_quotas_of_a_key_are_listed() {
    let hash = format!("sha256:{}", "0".repeat(64));
    let config = format!(
        "[[keys]]\nname = \"team-a\"\nhash = \"{hash}\"\nscopes = [\"text\"]\n\
         [[quotas]]\nkey = \"team-*\"\nconcurrency = 4\nrequests_per_minute = 60\n\
         queue = {{ wait = \"1500ms\", depth = 8 }}\n\
         [[quotas]]\nkey = \"other\"\nconcurrency = 1\n\
         [[quotas]]\ntokens_per_minute = 1000\n"
    );
    let report = check(&config).unwrap();
    let quotas: Vec<_> = report
        .lines()
        .skip_while(|line| !line.starts_with("key team-a: "))
        .skip(1)
        .take_while(|line| line.starts_with("  quota of "))
        .collect();
    assert_eq!(
        quotas,
        [
            "  quota of key team-*: 4 requests at once, 60 requests per minute; up to 8 requests wait for up to 1.5s",
            "  quota of all keys: 1000 tokens per minute",
        ]
    );
}

/// A quota for some of the names behind a pattern does not apply to other spellings of them.
#[test]
fn quotas_and_prices_of_some_names_are_reported() {
    let config = |id: &str, target: &str| {
        check(&format!(
            "[[upstreams]]\nname = \"u\"\nprotocol = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
             [[models]]\nid = \"{id}\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n\
             targets = [{{ upstream = \"u\"{target} }}]\n\
             [[quotas]]\nkey = \"*\"\nmodels = [\"gpt-5*\"]\nconcurrency = 4\n\
             [[prices]]\nmodel = \"gpt-5.1\"\ninput = \"2\"\noutput = \"8\"\n\
             [[prices]]\nmodel = \"*\"\ninput = \"1\"\noutput = \"1\"\n"
        ))
        .unwrap()
    };
    let notes = |report: &str| {
        let lines = report.lines().filter(|line| line.contains("spellings"));
        let starts = lines.map(|line| line.split(" behind ").next().unwrap().to_owned());
        starts.collect::<Vec<_>>()
    };
    assert_eq!(
        notes(&config("*", "")),
        [
            "note: the quota of key * with gpt-5* applies to the names 'gpt-5*'",
            "note: the price of 'gpt-5.1' applies to the names 'gpt-5.1'",
        ]
    );
    assert!(notes(&config("gpt-5.1", "")).is_empty());
    assert!(notes(&config("*", ", model = \"up\"")).is_empty());
}

/// A model may allow features that only servers of the client's protocol understand.
#[test]
fn allow_list_requires_upstreams_of_the_same_protocol() {
    let upstreams = "[[upstreams]]\nname = \"c\"\nprotocol = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
         [[upstreams]]\nname = \"r\"\nprotocol = \"responses\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    let model = |protocols: &str, allow: &str, targets: &str| {
        check(&format!(
            "{upstreams}[[models]]\nid = \"m\"\nfamily = \"text\"\nprotocols = [{protocols}]\nallow = [{allow}]\n\
             targets = [{targets}]\n"
        ))
    };
    let report = model(
        r#""chat", "responses""#,
        r#""n", "audio""#,
        r#"{ upstream = "c" }"#,
    )
    .unwrap();
    assert!(report.contains("m\n  allowed: n, audio\n"), "{report}");
    let relayed = "model 'm': allow: 'n' needs targets that are all upstreams of the protocol of \
                   /v1/chat/completions";
    for (protocols, allow, targets, expected) in [
        (
            r#""chat""#,
            r#""n""#,
            r#"{ upstream = "c" }, { upstream = "r" }"#,
            relayed,
        ),
        (r#""chat""#, r#""n""#, r#"{ engine = "local" }"#, relayed),
        (r#""chat""#, r#""n""#, "", relayed),
        (
            r#""chat""#,
            r#""store""#,
            r#"{ upstream = "c" }"#,
            "model 'm': allow: 'store' needs a model that is served on /v1/responses",
        ),
        (
            r#""chat", "messages""#,
            r#""file_id""#,
            r#"{ upstream = "c" }"#,
            "model 'm': allow: 'file_id' needs targets that are all upstreams of the protocol of /v1/messages",
        ),
        (
            r#""chat""#,
            r#""telepathy""#,
            r#"{ upstream = "c" }"#,
            "unknown variant `telepathy`",
        ),
    ] {
        let problems = model(protocols, allow, targets).unwrap_err();
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
}

/// The commands that print keys run at the same time: here each of two waits for the other, at both
/// ends of a pipe.
#[test]
fn commands_for_keys_run_at_the_same_time() {
    let folder = GATEWAY.file("keys", "");
    let pipe = folder.0.with_extension("pipe");
    let upstream = |name: &str, script: &str| {
        let script = format!("mkfifo {0} 2>&-; {script} {0}; echo k", pipe.display());
        format!(
            "[[upstreams]]\nname = \"{name}\"\nprotocol = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
             api_key = {{ command = [\"sh\", \"-c\", \"{script}\"] }}\n"
        )
    };
    let report = check(&[upstream("a", "echo >"), upstream("b", "cat <")].concat()).unwrap();
    assert!(report.contains("2 upstreams"), "{report}");
    let both = ["a", "b"].map(|name| upstream(name, "exit 3;")).concat();
    let problems = check(&both).unwrap_err();
    for name in ["a", "b"] {
        let problem = format!(
            "upstream '{name}': api_key: the command 'sh' has failed with exit status: 3\n"
        );
        assert!(problems.contains(&problem), "{problems}");
    }
}

#[test]
fn models_without_targets_are_embedded() {
    let report =
        check("[[models]]\nid = \"alone\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n").unwrap();
    assert!(
        report.contains("alone\n  /v1/chat/completions: the embedded engine\n"),
        "{report}"
    );
}

#[test]
fn expired_keys_and_settings_without_an_admin_address_are_noted() {
    let hash = format!("sha256:{}", "0".repeat(64));
    let report = check(&format!(
        "[state]\nadmin_key = \"{hash}\"\nadmin_hosts = [\"gateway.example\"]\n\
         [[keys]]\nname = \"old\"\nhash = \"{hash}\"\nscopes = [\"text\"]\nexpires = \"2026-01-31\"\n"
    ));
    let report = report.unwrap();
    for line in [
        "key old: all models of text, but it has expired",
        "note: state.admin_key has no effect without an admin address",
        "note: state.admin_hosts has no effect without an admin address",
    ] {
        assert!(
            report.lines().any(|found| found == line),
            "{line}\n{report}"
        );
    }
    let with_address = check("admin = \"127.0.0.1:0\"\n[state]\nadmin_hosts = [\"a.example\"]\n");
    assert!(!with_address.unwrap().contains("no effect"));
}

#[test]
fn every_problem_is_reported_at_once() {
    let report = check(
        r#"
        [[upstreams]]
        name = "nowhere"
        protocol = "chat"
        base_url = "nowhere/v1"
        [[upstreams]]
        name = "keyless"
        protocol = "messages"
        base_url = "http://127.0.0.1:1/v1"
        api_key = { env = "SURELY_NOT_SET" }
        [[upstreams]]
        name = "twice"
        protocol = "images"
        base_url = "http://127.0.0.1:1/v1"
        [[upstreams]]
        name = "twice"
        protocol = "images"
        base_url = "ftp://127.0.0.1/v1"
        [[models]]
        id = "m"
        family = "text"
        protocols = ["chat"]
        targets = [
            { upstream = "missing" },
            { upstream = "twice" },
            { engine = "easel" },
            { },
            { upstream = "nowhere" },
            { upstream = "twice", model = "" },
            { upstream = "twice", first_content_timeout = "0s" },
        ]
        "#,
    )
    .unwrap_err();
    for part in [
        "upstream 'nowhere': base_url: 'nowhere/v1' is not a URL",
        "upstream 'keyless': api_key: the environment has no variable 'SURELY_NOT_SET'",
        "upstream 'twice': `base_url` has the scheme `ftp`",
        "model 'm': targets[0]: there is no upstream 'missing'",
        "model 'm': targets[1]: upstream 'twice' speaks images, which does not serve the family 'text'",
        "model 'm': targets[2]: this engine does not serve the family 'text'",
        "model 'm': targets[3]: one of 'upstream' and 'engine' is needed",
        "model 'm': targets[5]: model: is empty; to send the client's name of the model, leave it out",
        "model 'm': targets[6]: first_content_timeout: must be more than 0s",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    assert!(
        !report.contains("targets[4]"),
        "the problem is reported once: {report}"
    );
}

#[test]
fn unknown_settings_are_reported_with_their_line() {
    let of_upstream = "[[upstreams]]\nname = \"u\"\nprotocol = \"chat\"\nbase_url = \"http://h/v1\"\ncolour = \"red\"\n";
    let report = check(of_upstream).unwrap_err();
    assert!(
        report.contains("line 5") && report.contains("colour"),
        "{report}"
    );
    let of_model =
        "[[models]]\nid = \"m\"\nfamily = \"text\"\nprotocols = [\"chat\"]\ncolour = \"red\"\n";
    let report = check(of_model).unwrap_err();
    assert!(
        report.contains("sluicegate: models[0]: unknown field `colour`"),
        "{report}"
    );
}
