//! Requests that clients of every other protocol may send, before servers that refuse what the real ones
//! refuse: see `testkit::strict`.

use serde_json::json;
use simulator::{Play, Simulator, honest};
use testkit::Config;
use testkit::dice::Dice;
use testkit::requests::TEXT_PROTOCOLS;
use testkit::strict::{self, SERVERS};

use crate::GATEWAY;

/// The requests that each server gets from each client.
const REQUESTS: usize = 40;

/// A server that refuses nothing would show nothing.
#[test]
fn each_server_refuses_a_request_that_breaks_its_rules() {
    let user = json!({"role": "user", "content": "Hello."});
    let system = json!({"role": "system", "content": "Be brief."});
    for server in &SERVERS {
        let body = json!({
            "model": server.model, "messages": [user, system], "input": [user, system],
            "temperature": 1.9, "top_p": 0, "presence_penalty": 1, "thinking": {"type": "odd"},
            "reasoning": {"effort": "odd"}, "reasoning_effort": "odd", "service_tier": "odd",
            "output_config": {"format": {"type": "json_schema"}},
            "tool_choice": {"type": "function", "function": {"name": "f"}},
        });
        assert!(
            (server.refusal)(&body).is_some(),
            "{} for {}",
            server.preset,
            server.model
        );
    }
}

#[test]
fn no_server_refuses_a_request_of_another_protocol() {
    let simulator = Simulator::start(|request| {
        let number = request.path.split('/').nth(2).unwrap();
        let (server, body) = (&SERVERS[number.parse::<usize>().unwrap()], request.json());
        match (server.refusal)(&body) {
            None => honest::answer(request),
            Some(why) => Play::json(
                400,
                &json!({"error": {"message": format!("{}: {why}", server.model)}}),
            ),
        }
    });
    let simulator = simulator.unwrap();
    let mut config = Config::new("");
    for (at, server) in SERVERS.iter().enumerate() {
        let (name, preset) = (
            format!("s{at}"),
            format!("preset = \"{}\"\n", server.preset),
        );
        let base_url = format!("{}/{at}", simulator.base_url());
        let targets = format!(r#"[{{ upstream = "{name}", model = "{}" }}]"#, server.model);
        config = config
            .upstream(&name, server.protocol, &base_url, &preset)
            .model(&name, server.protocol, &targets);
    }
    let gateway = config.start(GATEWAY);
    let seed = std::env::var("SLUICEGATE_TEST_SEED").map_or(0, |seed| seed.parse().unwrap());
    let mut dice = Dice::new(seed, 0);
    let mut refused = Vec::new();
    for (at, server) in SERVERS.iter().enumerate() {
        let is_other = |client: &&_| **client != server.protocol;
        for client in TEXT_PROTOCOLS.iter().filter(is_other) {
            for _ in 0..REQUESTS {
                let targets = [server.protocol];
                let body = strict::request(&mut dice, *client, &format!("s{at}"), "A.", &targets);
                let response = gateway.ask(*client, &body);
                if response.status != 200 {
                    let sent = simulator.requests().pop().map(|request| request.json());
                    refused.push(format!(
                        "{} for {}: {}\n  {body}\n  {}\n",
                        server.preset,
                        server.model,
                        response.text(),
                        sent.unwrap_or_default()
                    ));
                }
            }
        }
    }
    assert!(
        refused.is_empty(),
        "seed {seed}, {} refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
}
