//! The running binary in front of servers that bend their protocol, and of some that break it.
//!
//! `cases` has the bytes that they send, and the answer that a client of the gateway is owed. Each
//! case is requested by clients of every protocol that it fits, streamed and plain, with the
//! default settings. `player` is the server, `testkit::reading` the client, `judge` compares. `cargo xtask
//! dialects` prints the differences, and the table of `table`. `websocket` has the same answers as messages.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod cut;
mod judge;
mod player;
mod simulated;
mod table;
mod websocket;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use simulator::Protocol;
use testkit::dialects::{Case, Mode};
use testkit::reading::Reading;
use testkit::requests::{ask, protocol_name};
use testkit::{Config, Gateway, in_parallel, log};

use self::player::Player;

/// A case as one client requests it.
#[derive(Clone, Copy)]
pub(crate) struct Visit<'a> {
    case: &'a Case,
    number: usize,
    client: Protocol,
    mode: Mode,
}

/// The result of a visit.
struct Verdict<'a> {
    visit: Visit<'a>,
    wrong: Vec<String>,
}

#[test]
fn every_case_comes_through_as_owed() {
    let cases = Arc::new(Case::all());
    let visits = visits(&cases);
    let gateway = gateway(&visits, &Player::start(Arc::clone(&cases)).url);
    let verdicts = run(&visits, &gateway);
    let failing: BTreeSet<_> = verdicts
        .iter()
        .filter(|verdict| verdict.fails())
        .map(Verdict::name)
        .collect();
    println!("{}", table::table(&visits, &failing));
    for verdict in verdicts.iter().filter(|verdict| !verdict.wrong.is_empty()) {
        let kind = if verdict.visit.case.is_soft {
            "soft: "
        } else {
            ""
        };
        println!("{kind}{}: {}", verdict.name(), verdict.wrong.join("; "));
    }
    assert_eq!(failing, BTreeSet::new(), "visits that are not as owed");
}

/// The page shows the tables of the cases, in which every visit is as owed.
#[test]
fn the_page_shows_the_cases() {
    let cases = Case::all();
    let is_writing = std::env::var_os("SLUICEGATE_DIALECTS_WRITE").is_some();
    let differs = table::page_differs(&cases, &visits(&cases), is_writing);
    assert!(is_writing || !differs, "run `cargo xtask dialects --write`");
}

impl Verdict<'_> {
    fn fails(&self) -> bool {
        !self.wrong.is_empty() && !self.visit.case.is_soft
    }

    fn name(&self) -> String {
        self.visit.name()
    }
}

impl Visit<'_> {
    fn name(&self) -> String {
        format!(
            "{} {} {}",
            self.case.name,
            protocol_name(self.client),
            self.mode.name()
        )
    }

    /// The model, which has an upstream of its own, so that one visit does not affect the upstream
    /// of another.
    fn model(&self) -> String {
        format!(
            "{}.{}.{}",
            self.number,
            protocol_name(self.client),
            self.mode.name()
        )
    }

    fn body(&self, prompt: &str) -> Value {
        let owed = self.case.owed(self.client, self.mode);
        let mut body = ask(
            self.client,
            &self.model(),
            prompt,
            self.mode == Mode::Stream,
        );
        let schema = json!({"type": "object"});
        let tools = owed
            .calls
            .iter()
            .map(|call| call.name.as_str())
            .collect::<BTreeSet<_>>()
            .into_iter();
        let tools = tools.map(|name| match self.client {
            Protocol::Responses => {
                json!({"type": "function", "name": name, "parameters": schema, "strict": false})
            }
            Protocol::Chat => {
                json!({"type": "function", "function": {"name": name, "parameters": schema}})
            }
            _ => json!({"name": name, "input_schema": schema}),
        });
        if !owed.calls.is_empty() {
            body["tools"] = tools.collect();
        }
        if owed.reasoning.is_some() {
            match self.client {
                Protocol::Responses => {
                    body["reasoning"] = json!({"effort": "low", "summary": "auto"});
                }
                Protocol::Chat => body["reasoning_effort"] = "low".into(),
                _ => {
                    body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
                    body["max_tokens"] = 4096.into();
                }
            }
        }
        body
    }

    fn judged(&self, gateway: &Gateway) -> Vec<String> {
        let response = gateway.ask(self.client, &self.body("Hello."));
        let reading = Reading::of_response(self.client, &response);
        let owed = self.case.owed(self.client, self.mode);
        let is_own = self.client == self.case.protocol;
        let mut wrong = judge::judge(&owed, &reading, self.client, is_own);
        wrong.extend(judge::added(&owed, &response, self.client, is_own));
        wrong.extend(judge::logged(
            self.case.counted(self.mode),
            &log::line(gateway, &response),
        ));
        wrong
    }
}

fn visits(cases: &[Case]) -> Vec<Visit<'_>> {
    let of_case = |(number, case): (usize, &'_ Case)| {
        case.visits()
            .into_iter()
            .map(move |(client, mode)| (number, client, mode))
            .collect::<Vec<_>>()
    };
    let all = cases.iter().enumerate().flat_map(of_case);
    all.map(|(number, client, mode)| Visit {
        case: &cases[number],
        number,
        client,
        mode,
    })
    .collect()
}

fn gateway(visits: &[Visit<'_>], url: &str) -> Gateway {
    let add = |config: Config, visit: &Visit<'_>| {
        let id = visit.model();
        let targets = format!(r#"[{{ upstream = "{id}" }}]"#);
        let url = format!("{url}/{}/v1", visit.number);
        config
            .keyless(&id, visit.case.protocol, &url)
            .model(&id, visit.client, &targets)
    };
    visits
        .iter()
        .fold(Config::new(""), add)
        .start(testkit::binary!())
}

/// Runs all visits, some at once.
fn run<'a>(visits: &[Visit<'a>], gateway: &Gateway) -> Vec<Verdict<'a>> {
    let mut verdicts = in_parallel(visits, |visit| Verdict {
        visit: *visit,
        wrong: visit.judged(gateway),
    });
    verdicts.sort_by_key(|verdict| (verdict.visit.number, verdict.name()));
    verdicts
}
