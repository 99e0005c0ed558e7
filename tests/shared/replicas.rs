//! The report of the admin API on quotas that several gateways share.

use std::cell::OnceCell;

use serde_json::Value;
use testkit::{Config, Gateway, Request, await_that};

use crate::GATEWAY;
use crate::fleet::{LEASE, answer, burst, status};
use crate::judge::Judge;
use crate::store::Store;

const ADMIN: &str = "sg_test_admin_key_00000000000000000000";

/// Each gateway reports its own share of a limit and, if asked, the share of every gateway by name.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn the_holders_of_a_limit_are_listed() {
    let (store, judge) = (Store::start(), Judge::start());
    let database = GATEWAY.file("note.txt", "The files of usage are beside this one.");
    let start = |number: usize| {
        let folder = database.0.parent().unwrap().display();
        let state = format!(
            "[state]\nlimits = \"{}\"\nlease = \"{}s\"\naccounting = \"sqlite:{folder}/{number}.db\"\n\
             replica = \"gate-{number}\"\nadmin_hosts = [\"gateway\"]\n\
             [[quotas]]\nconcurrency = 20\n[[quotas]]\nkey = \"*\"\nrequests_per_minute = 60000\n",
            store.address(),
            LEASE.as_secs()
        );
        administered(&judge, &state)
    };
    let fleet = [start(1), start(2)];
    await_that("the store lends", || status(&fleet[0]) == 200);
    // An idle share goes back with the next renewal.
    await_that("both gateways hold a part", || {
        for gateway in &fleet {
            burst(gateway, 2);
        }
        let limit = limit(&fleet[0], "?replicas=true");
        let part = &limit["lent"][0];
        let mut holders: Vec<_> = part["replicas"]
            .as_array()
            .unwrap()
            .iter()
            .map(|holder| (holder["replica"].as_str().unwrap(), holder["held"].as_u64()))
            .filter(|(_, held)| *held > Some(0))
            .map(|(replica, _)| replica)
            .collect();
        holders.sort_unstable();
        holders == ["gate-1", "gate-2"]
    });
    let limit = limit(&fleet[1], "");
    assert_eq!(limit["concurrency"], 20, "{limit}");
    assert_eq!(limit["degraded"], false, "{limit}");
    let part = &limit["lent"][0];
    assert_eq!(part["part"], "concurrency", "{limit}");
    assert!(part.get("replicas").is_none(), "{limit}");
    assert!(part["held"].as_u64().unwrap() <= 20, "{limit}");
}

/// A limit that three gateways share is named by the gateway that has admitted or refused a request.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_decision_of_a_shared_limit_is_explained_by_its_gateway() {
    let (store, judge) = (Store::start(), Judge::start());
    let start = |_| {
        let state = format!(
            "[state]\nlimits = \"{}\"\nlease = \"{}s\"\n[[quotas]]\nrequests_per_minute = 3\n",
            store.address(),
            LEASE.as_secs()
        );
        administered(&judge, &state)
    };
    let fleet = [(); 3].map(start);
    let admitted = OnceCell::new();
    await_that("the store lends", || {
        let head = answer(&fleet[0]).filter(|head| head.status == 200);
        head.is_some_and(|head| admitted.set(head).is_ok())
    });
    let id = admitted.get().unwrap().header("x-request-id").unwrap();
    let explained = GATEWAY.administer(&fleet[0], ADMIN, &["explain", id]);
    let explained = explained.unwrap();
    assert!(
        explained.contains("\nAdmitted by 'all keys'.\n"),
        "{explained}"
    );
    for gateway in &fleet {
        let mut answers = (0..100).filter_map(|_| answer(gateway));
        let refused = answers.find(|head| head.status == 429);
        let refused = refused.expect("three requests in a minute use up the limit");
        let id = refused.header("x-request-id").unwrap();
        let explained = GATEWAY.administer(gateway, ADMIN, &["explain", id]);
        let explained = explained.unwrap();
        assert!(
            explained.contains("\nRefused by the limit 'all keys' (requests_per_minute)"),
            "{explained}"
        );
        let other = fleet.iter().find(|other| !std::ptr::eq(*other, gateway));
        let unknown = GATEWAY.administer(other.unwrap(), ADMIN, &["explain", id]);
        assert!(unknown.unwrap_err().contains("status 404"));
    }
}

/// Starts a gateway with an admin API and these sections, as lines of TOML.
fn administered(judge: &Judge, sections: &str) -> Gateway {
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_ADMIN_KEY", ADMIN);
    Config::before(&judge.simulator, "", "")
        .section(sections)
        .start_by(GATEWAY, command)
}

/// The state of the quota of all keys.
fn limit(gateway: &Gateway, query: &str) -> Value {
    let path = format!("/admin/v1/limits{query}");
    let request = Request::get(&path).bearer(ADMIN);
    let response = request.send(gateway.admin.unwrap());
    assert_eq!(response.status, 200, "{}", response.text());
    let list = response.json();
    let limits = list["limits"].as_array().unwrap();
    let limit = limits.iter().find(|limit| limit["limit"] == "all keys");
    limit.unwrap_or_else(|| panic!("{list}")).clone()
}
