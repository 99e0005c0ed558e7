//! The commands that manage the keys of a running gateway, and that its log does not have them.

use serde_json::Value;
use testkit::{Gateway, NOWHERE, Request, Scratch, await_that};

use crate::GATEWAY;

const ADMIN: &str = "sg_test_admin_key_00000000000000000000";

/// Starts a gateway with a store in this file.
fn gateway(store: &Scratch) -> Gateway {
    let settings = format!(
        "[state]\naccounting = \"sqlite:{}\"\n{NOWHERE}",
        store.0.display()
    );
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_ADMIN_KEY", ADMIN);
    GATEWAY.start_by(command, Some(&settings))
}

fn run(gateway: &Gateway, arguments: &[&str]) -> Result<String, String> {
    GATEWAY.administer(gateway, ADMIN, arguments)
}

fn list_models(gateway: &Gateway, key: &str) -> (u16, String) {
    let response = Request::get("/v1/models")
        .bearer(key)
        .send(gateway.address());
    let id = response.header("x-request-id").unwrap().to_owned();
    (response.status, id)
}

/// A key that is made by a command works at once, until it is revoked, and only its maker sees it.
#[test]
fn a_key_is_made_and_revoked_by_commands() {
    // It is deleted after the gateway has ended.
    let store = GATEWAY.file("accounting.db", "");
    let gateway = gateway(&store);
    let create = [
        "keys", "create", "--name", "mobile", "--scopes", "text", "--json",
    ];
    let made: Value = serde_json::from_str(&run(&gateway, &create).unwrap()).unwrap();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert_eq!(list_models(&gateway, key).0, 200);
    let listed = run(&gateway, &["keys", "list"]).unwrap();
    assert!(listed.contains(id) && listed.contains("mobile"), "{listed}");
    let taken = run(&gateway, &create).unwrap_err();
    assert!(taken.contains("status 409"), "{taken}");
    assert_eq!(run(&gateway, &["usage"]).unwrap(), "no usage\n");
    run(&gateway, &["keys", "revoke", id]).unwrap();
    let (status, request) = list_models(&gateway, key);
    assert_eq!(status, 401);

    await_that("the log line is written", || {
        gateway.log.lock().unwrap().contains(&request)
    });
    let log = gateway.log.lock().unwrap().clone();
    assert!(log.contains("\"mobile\"") && !log.contains(key), "{log}");
}
