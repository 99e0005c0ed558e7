//! Keys and models that change while the gateway serves.

use std::fs;

use serde_json::json;
use testkit::{Gateway, NOWHERE, await_that};

use crate::GATEWAY;

const OLD: &str = "sg_the_old_key_0000000000000000000000";
const NEW: &str = "sg_the_new_key_0000000000000000000000";

fn with_key(key: &str) -> String {
    let hash = auth::KeyHash::of(&auth::Key::parse(key.as_bytes()).unwrap());
    format!("[[keys]]\nname = \"only\"\nhash = \"{hash}\"\nscopes = [\"text\"]\n")
}

fn status(server: &Gateway, key: &str) -> u16 {
    server.get(key, "/v1/models").status
}

/// Replaces the configuration file atomically, as deployments do.
fn replace(server: &Gateway, text: &str) {
    let path = server.config_path();
    let next = path.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(&next, path).unwrap();
}

/// A changed configuration file takes effect soon, with its keys and models together.
#[test]
fn d08_a_changed_file_changes_keys_and_models() {
    let server = GATEWAY.without_engines(&with_key(OLD));
    assert_eq!((status(&server, OLD), status(&server, NEW)), (200, 401));
    replace(
        &server,
        &(with_key(NEW) + &NOWHERE.replace("nobody", "mine")),
    );
    await_that("the new key is taken", || status(&server, NEW) == 200);
    assert_eq!(status(&server, OLD), 401, "what was revoked is refused");
    let models = server.get(NEW, "/v1/models").json();
    assert_eq!(
        (&models["data"][0]["id"], &models["data"][1]),
        (&json!("mine"), &json!(null))
    );
}

/// A reload names the changed settings that need a restart, and applies the others.
#[test]
fn d08_settings_that_need_a_restart_are_named() {
    let server = GATEWAY.without_engines(&with_key(OLD));
    let limits = "[limits]\nconcurrency = 7\nkeep_alive = \"9s\"\n";
    replace(&server, &(limits.to_owned() + &with_key(NEW) + NOWHERE));
    await_that("the new key is taken", || status(&server, NEW) == 200);
    await_that("the settings are named", || {
        let log = server.log.lock().unwrap();
        log.lines().any(|line| {
            line.contains("changed settings need a restart")
                && line.contains("limits.concurrency, limits.keep_alive")
        })
    });
}

/// An invalid configuration file changes nothing and is logged.
#[test]
fn d08_a_wrong_file_changes_nothing_and_is_reported() {
    let server = GATEWAY.without_engines(&with_key(OLD));
    let right = with_key(NEW) + NOWHERE;
    for (part, wrong) in [
        ("[[keys]]", "[limits"),
        ("name =", "colour = \"red\"\nname ="),
        ("\"nobody\"", "\"\""),
    ] {
        let before = server.log.lock().unwrap().len();
        replace(&server, &right.replace(part, wrong));
        server.signal("HUP");
        await_that("it is told", || {
            server.log.lock().unwrap()[before..]
                .contains("reload failed, keeping the previous configuration")
        });
        assert_eq!(
            (status(&server, OLD), status(&server, NEW)),
            (200, 401),
            "{wrong}"
        );
    }
}

/// SIGHUP reloads the configuration file.
#[test]
fn d08_a_hangup_reads_the_file_again() {
    let server = GATEWAY.without_engines(&with_key(OLD));
    let before = server.log.lock().unwrap().len();
    server.signal("HUP");
    await_that("it was read", || {
        server.log.lock().unwrap()[before..].contains("configuration reloaded")
    });
    assert_eq!(status(&server, OLD), 200);
}
