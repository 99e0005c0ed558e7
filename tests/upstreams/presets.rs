//! The presets of upstreams, as their vendors document them.

use std::collections::BTreeSet;

use serde_json::json;
use simulator::{Protocol, Simulator};
use testkit::requests::{ask, protocol_name};
use testkit::{Config, changed};

use crate::GATEWAY;

/// A preset with one of its protocols: the URL to which requests are sent, and the header that
/// carries the key `k`.
type Row = (&'static str, Protocol, &'static str, &'static str);

/// Requests of each preset are sent to the documented URL, with the key in the documented header.
#[test]
fn requests_are_sent_as_the_vendor_documents() {
    let simulator = Simulator::honest().unwrap();
    let origin = format!("http://{}", simulator.address());
    let mut config = Config::new("");
    let mut upstreams = String::new();
    for (i, (preset, protocol, url, _)) in ROWS.iter().enumerate() {
        let shown = presets(&[*preset]);
        let base_url = url.strip_suffix(end_of(*protocol)).unwrap();
        let word = protocol_name(*protocol);
        let line = format!("protocol = \"{word}\"\nbase_url = \"{base_url}\"\n");
        assert!(shown.contains(&line), "{line}\n{shown}");
        // The same path on the simulator.
        let base_url = [&origin, path_of(base_url)].concat();
        // Without a variable the key comes from a command of the vendor.
        let key = match *preset {
            "vertex" => "api_key = { command = [\"echo\", \"k\"] }\n",
            _ => "",
        };
        upstreams += &format!(
            "[[upstreams]]\nname = \"u{i}\"\npreset = \"{preset}\"\nprotocol = \"{word}\"\nbase_url = \"{base_url}\"\n{key}"
        );
        let targets = format!("[{{ upstream = \"u{i}\" }}]");
        config = config.model(&format!("m{i}"), *protocol, &targets);
    }
    let text = config.text("".as_ref());
    let text = text.replacen("[[models]]", &format!("{upstreams}[[models]]"), 1);
    let mut command = GATEWAY.command();
    command.envs(VARIABLES.map(|variable| (variable, "k")));
    let gateway = GATEWAY.start_by(command, Some(&text));
    for (i, (preset, protocol, url, header)) in ROWS.into_iter().enumerate() {
        let model = format!("m{i}");
        let body = match protocol {
            Protocol::Images => json!({"model": model, "prompt": "A boat."}),
            _ => ask(protocol, &model, "Hello.", false),
        };
        let response = gateway.ask(protocol, &body);
        assert_eq!(response.status, 200, "{preset}: {}", response.text());
        let asked = simulator.requests().pop().unwrap();
        assert_eq!(asked.path, path_of(url), "{preset}");
        let keys = ["authorization", "x-api-key", "api-key"]
            .into_iter()
            .filter_map(|name| Some(format!("{name}: {}", asked.header(name)?)));
        assert_eq!(keys.collect::<Vec<_>>().join("; "), header, "{preset}");
    }
}

/// Every preset has a row for each of its protocols, and the list names all of them.
#[test]
fn every_preset_is_listed_and_has_its_rows() {
    let list = presets(&[]);
    let listed: BTreeSet<_> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let rows: BTreeSet<_> = ROWS.iter().map(|(preset, ..)| *preset).collect();
    assert_eq!(listed, rows);
    for preset in rows {
        let shown = presets(&[preset]);
        let count = ROWS.iter().filter(|(found, ..)| *found == preset).count();
        assert_eq!(shown.matches("[[upstreams]]").count(), count, "{shown}");
    }
    for line in [
        "groq        chat, responses                 https://api.groq.com/openai/v1, key from $GROQ_API_KEY",
        "ollama      chat, responses, messages       http://127.0.0.1:11434/v1, without a key",
        "bedrock     responses, chat, messages       base_url to be set, such as https://bedrock-mantle.us-east-1.api.aws/v1, key from $AWS_BEARER_TOKEN_BEDROCK",
    ] {
        assert!(list.lines().any(|found| found == line), "{line}\n{list}");
    }
    assert_eq!(
        presets(&["azure"]).split("\n\n").nth(1).unwrap(),
        r#"# The base_url is an example: set your own.
[[upstreams]]
name = "azure-responses"
protocol = "responses"
base_url = "https://RESOURCE.openai.azure.com/openai/v1"
api_key = { env = "AZURE_OPENAI_API_KEY" }
auth = { header = "api-key" }
quirks = { max_tokens_name = "max_completion_tokens" }"#
    );
}

/// The check shows the settings of a preset, and whether its variable is set.
#[test]
fn check_shows_the_settings_of_a_preset() {
    let file = GATEWAY.file(
        "sluicegate.toml",
        "[[upstreams]]\nname = \"one\"\npreset = \"mistral\"\n\
         [[upstreams]]\nname = \"two\"\npreset = \"deepseek\"\nprotocol = \"messages\"\n\
         [[models]]\nid = \"m\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n\
         targets = [{ upstream = \"one\" }, { upstream = \"two\" }]\n",
    );
    let mut command = GATEWAY.command();
    command
        .env("MISTRAL_API_KEY", "sk-secret")
        .env_remove("DEEPSEEK_API_KEY");
    let output = command
        .args(["check", "--config"])
        .arg(&file.0)
        .output()
        .unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    for part in [
        "'m' at upstream one (https://api.mistral.ai/v1, key from $MISTRAL_API_KEY)\n",
        "'m' at upstream two (https://api.deepseek.com/anthropic/v1, without a key: $DEEPSEEK_API_KEY is not set)\n",
        "upstream one: preset mistral\n  protocol = \"chat\"\n  base_url = \"https://api.mistral.ai/v1\"\n  \
         api_key = { env = \"MISTRAL_API_KEY\" }\n  auth = \"bearer\"\n  \
         quirks = { drop_members = [\"logit_bias\", \"logprobs\", \"prompt_cache_retention\", \"safety_identifier\", \"seed\", \"service_tier\", \"store\", \"top_logprobs\", \"user\", \"verbosity\"], \
         max_tokens_name = \"max_tokens\", no_stream_options = true, system_not_developer = true, tool_ids = \"alnum9\" }\n",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    assert!(!report.contains("sk-secret"));
}

/// Members that a vendor does not know fail its requests: they are left out and named.
#[test]
fn fields_unknown_to_the_vendor_are_dropped() {
    let simulator = Simulator::honest().unwrap();
    let more = json!({
        "prompt_cache_key": "k", "safety_identifier": "s", "verbosity": "low", "logit_bias": {},
        "seed": 7, "user": "u", "store": false, "stream_options": {"include_usage": true},
    });
    for (preset, kept, dropped) in [
        (
            "groq",
            &["seed", "store", "stream_options", "user"][..],
            "logit_bias, prompt_cache_key, safety_identifier, verbosity",
        ),
        (
            "mistral",
            &["prompt_cache_key"],
            "logit_bias, safety_identifier, seed, store, user, verbosity, stream_options",
        ),
    ] {
        let settings = format!("preset = \"{preset}\"");
        let gateway = Config::new("")
            .upstream("u", Protocol::Chat, &simulator.base_url(), &settings)
            .model("m", Protocol::Chat, r#"[{ upstream = "u" }]"#)
            .start(GATEWAY);
        let body = changed(ask(Protocol::Chat, "m", "Hello.", true), &more);
        let response = gateway.ask(Protocol::Chat, &body);
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-sluicegate-dropped"), Some(dropped));
        let asked = simulator.requests().pop().unwrap().json();
        let names = more.as_object().unwrap().keys();
        let found: Vec<_> = names.filter(|name| asked.get(*name).is_some()).collect();
        assert_eq!(found.len(), kept.len(), "{preset}: {asked}");
        assert!(
            kept.iter().all(|name| asked.get(*name).is_some()),
            "{preset}: {asked}"
        );
    }
}

/// The output of `sluicegate presets`.
fn presets(arguments: &[&str]) -> String {
    let mut command = GATEWAY.command();
    let output = command.arg("presets").args(arguments).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn end_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "/responses",
        Protocol::Chat => "/chat/completions",
        Protocol::Messages => "/messages",
        Protocol::Images => "/images/generations",
    }
}

/// The path of a URL.
fn path_of(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap();
    rest.find('/').map_or("", |at| &rest[at..])
}

const BEARER: &str = "authorization: Bearer k";
const X_API_KEY: &str = "x-api-key: k";
const API_KEY: &str = "api-key: k";
const NONE: &str = "";

#[rustfmt::skip]
const ROWS: [Row; 52] = [
    ("openai", Protocol::Responses, "https://api.openai.com/v1/responses", BEARER),
    ("openai", Protocol::Chat, "https://api.openai.com/v1/chat/completions", BEARER),
    ("openai", Protocol::Images, "https://api.openai.com/v1/images/generations", BEARER),
    ("azure", Protocol::Responses, "https://RESOURCE.openai.azure.com/openai/v1/responses", API_KEY),
    ("azure", Protocol::Chat, "https://RESOURCE.openai.azure.com/openai/v1/chat/completions", API_KEY),
    ("azure", Protocol::Images, "https://RESOURCE.openai.azure.com/openai/v1/images/generations", API_KEY),
    ("azure", Protocol::Messages, "https://RESOURCE.services.ai.azure.com/anthropic/v1/messages", X_API_KEY),
    ("anthropic", Protocol::Messages, "https://api.anthropic.com/v1/messages", X_API_KEY),
    ("bedrock", Protocol::Responses, "https://bedrock-mantle.us-east-1.api.aws/v1/responses", BEARER),
    ("bedrock", Protocol::Chat, "https://bedrock-mantle.us-east-1.api.aws/v1/chat/completions", BEARER),
    ("bedrock", Protocol::Messages, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages", X_API_KEY),
    ("vertex", Protocol::Chat, "https://us-central1-aiplatform.googleapis.com/v1/projects/PROJECT/locations/us-central1/endpoints/openapi/chat/completions", BEARER),
    ("gemini", Protocol::Chat, "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", BEARER),
    ("openrouter", Protocol::Chat, "https://openrouter.ai/api/v1/chat/completions", BEARER),
    ("openrouter", Protocol::Responses, "https://openrouter.ai/api/v1/responses", BEARER),
    ("openrouter", Protocol::Messages, "https://openrouter.ai/api/v1/messages", BEARER),
    ("litellm", Protocol::Chat, "http://127.0.0.1:4000/v1/chat/completions", BEARER),
    ("litellm", Protocol::Responses, "http://127.0.0.1:4000/v1/responses", BEARER),
    ("litellm", Protocol::Messages, "http://127.0.0.1:4000/v1/messages", BEARER),
    ("groq", Protocol::Chat, "https://api.groq.com/openai/v1/chat/completions", BEARER),
    ("groq", Protocol::Responses, "https://api.groq.com/openai/v1/responses", BEARER),
    ("mistral", Protocol::Chat, "https://api.mistral.ai/v1/chat/completions", BEARER),
    ("deepseek", Protocol::Chat, "https://api.deepseek.com/v1/chat/completions", BEARER),
    ("deepseek", Protocol::Messages, "https://api.deepseek.com/anthropic/v1/messages", X_API_KEY),
    ("xai", Protocol::Responses, "https://api.x.ai/v1/responses", BEARER),
    ("xai", Protocol::Chat, "https://api.x.ai/v1/chat/completions", BEARER),
    ("together", Protocol::Chat, "https://api.together.ai/v1/chat/completions", BEARER),
    ("together", Protocol::Images, "https://api.together.ai/v1/images/generations", BEARER),
    ("fireworks", Protocol::Chat, "https://api.fireworks.ai/inference/v1/chat/completions", BEARER),
    ("fireworks", Protocol::Responses, "https://api.fireworks.ai/inference/v1/responses", BEARER),
    ("fireworks", Protocol::Messages, "https://api.fireworks.ai/inference/v1/messages", X_API_KEY),
    ("cerebras", Protocol::Chat, "https://api.cerebras.ai/v1/chat/completions", BEARER),
    ("moonshot", Protocol::Chat, "https://api.moonshot.ai/v1/chat/completions", BEARER),
    ("moonshot", Protocol::Responses, "https://api.moonshot.ai/v1/responses", BEARER),
    ("moonshot", Protocol::Messages, "https://api.moonshot.ai/anthropic/v1/messages", X_API_KEY),
    ("zai", Protocol::Chat, "https://api.z.ai/api/paas/v4/chat/completions", BEARER),
    ("zai", Protocol::Messages, "https://api.z.ai/api/anthropic/v1/messages", X_API_KEY),
    ("ollama", Protocol::Chat, "http://127.0.0.1:11434/v1/chat/completions", NONE),
    ("ollama", Protocol::Responses, "http://127.0.0.1:11434/v1/responses", NONE),
    ("ollama", Protocol::Messages, "http://127.0.0.1:11434/v1/messages", NONE),
    ("vllm", Protocol::Chat, "http://127.0.0.1:8000/v1/chat/completions", BEARER),
    ("vllm", Protocol::Responses, "http://127.0.0.1:8000/v1/responses", BEARER),
    ("vllm", Protocol::Messages, "http://127.0.0.1:8000/v1/messages", BEARER),
    ("sglang", Protocol::Chat, "http://127.0.0.1:30000/v1/chat/completions", NONE),
    ("sglang", Protocol::Responses, "http://127.0.0.1:30000/v1/responses", NONE),
    ("sglang", Protocol::Messages, "http://127.0.0.1:30000/v1/messages", NONE),
    ("llama-cpp", Protocol::Chat, "http://127.0.0.1:8080/v1/chat/completions", BEARER),
    ("llama-cpp", Protocol::Responses, "http://127.0.0.1:8080/v1/responses", BEARER),
    ("llama-cpp", Protocol::Messages, "http://127.0.0.1:8080/v1/messages", X_API_KEY),
    ("lm-studio", Protocol::Chat, "http://127.0.0.1:1234/v1/chat/completions", BEARER),
    ("lm-studio", Protocol::Responses, "http://127.0.0.1:1234/v1/responses", BEARER),
    ("lm-studio", Protocol::Messages, "http://127.0.0.1:1234/v1/messages", X_API_KEY),
];

const VARIABLES: [&str; 19] = [
    "CEREBRAS_API_KEY",
    "MOONSHOT_API_KEY",
    "ZAI_API_KEY",
    "LITELLM_PROXY_API_KEY",
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
    "TOGETHER_API_KEY",
    "FIREWORKS_API_KEY",
    "VLLM_API_KEY",
    "LLAMA_API_KEY",
    "LM_API_TOKEN",
];
