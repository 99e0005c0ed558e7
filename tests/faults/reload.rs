//! D8: the configuration changes while requests are served.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::json;
use simulator::Simulator;
use testkit::{Gateway, Request, TEXT, await_that};

use crate::GATEWAY;

/// A configuration with one model, which has this other name at its only upstream.
fn version(model: &str, simulator: &Simulator, theirs: &str) -> String {
    format!(
        "[[upstreams]]\nname = \"only\"\nprotocol = \"chat\"\nbase_url = \"{}\"\n\
         [[models]]\nid = \"{model}\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n\
         targets = [{{ upstream = \"only\", model = \"{theirs}\" }}]\n",
        simulator.base_url()
    )
}

fn status(server: &Gateway, model: &str) -> u16 {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "Hello."}]});
    server.post(TEXT, "/v1/chat/completions", &body).status
}

fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(&next, path).unwrap();
}

/// The number of clients that send requests while the configuration changes.
const CLIENTS: usize = 4;
/// The number of requests that each of them may send for each reload.
const PER_RELOAD: usize = 150;
const RELOADS: usize = 20;

/// While the configuration file changes back and forth no request fails, and every request is
/// served by exactly one version of the file.
#[test]
fn d08_no_request_sees_a_mix() {
    let (first, second) = (Simulator::honest().unwrap(), Simulator::honest().unwrap());
    let versions = [
        version("mine", &first, "alpha"),
        version("mine", &second, "beta"),
    ];
    let server = GATEWAY.configured(&versions[0]);
    let (over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let reloads = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut sent = 0;
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(status(&server, "mine"), 200);
                    asked.fetch_add(1, Ordering::Relaxed);
                    sent += 1;
                    // On a busy machine a reload takes seconds, and a simulator keeps 16,384 requests.
                    await_that("it may send more", || {
                        let allowed = (reloads.load(Ordering::Relaxed) + 1) * PER_RELOAD;
                        sent < allowed || over.load(Ordering::Relaxed)
                    });
                }
            });
        }
        let taken = "sluicegate_config_reloads_total{outcome=\"taken\"}";
        for turn in 1..=RELOADS {
            replace(server.config_path(), &versions[turn % 2]);
            let before = server.sum(taken);
            server.signal("HUP");
            await_that("it was read", || server.sum(taken) > before);
            reloads.store(turn, Ordering::Relaxed);
        }
        over.store(true, Ordering::Relaxed);
    });
    for (simulator, theirs) in [(&first, "alpha"), (&second, "beta")] {
        assert!(!simulator.requests().is_empty());
        let model = |request: &simulator::Request| {
            serde_json::from_slice::<serde_json::Value>(&request.body).unwrap()["model"].clone()
        };
        assert!(
            simulator
                .requests()
                .iter()
                .all(|request| model(request) == theirs)
        );
    }
    assert_eq!(
        first.requests().len() + second.requests().len(),
        asked.load(Ordering::Relaxed)
    );
}

/// A file that is written in place is not loaded before it is complete, even if its first half is
/// valid too; one that stays truncated is rejected.
#[test]
fn d08_a_file_that_is_being_written_is_let_be() {
    let simulator = Simulator::honest().unwrap();
    let whole = version("mine", &simulator, "alpha");
    let server = GATEWAY.configured(&whole);
    let path = server.config_path();
    for _ in 0..5 {
        fs::write(path, &whole[..whole.find("[[models]]").unwrap()]).unwrap();
        fs::write(path, &whole).unwrap();
        assert_eq!(status(&server, "mine"), 200);
    }
    let refused = "sluicegate_config_reloads_total{outcome=\"refused\"}";
    fs::write(path, &whole[..whole.len() - 20]).unwrap();
    await_that("it is refused", || server.sum(refused) > 0.0);
    assert_eq!(status(&server, "mine"), 200);
}

/// A symbolic link that is switched to another file, as Kubernetes does it, is detected as a
/// change.
#[test]
fn d08_a_link_that_points_elsewhere_is_a_changed_file() {
    let simulator = Simulator::honest().unwrap();
    let old = GATEWAY.file("old.toml", &version("old", &simulator, "alpha"));
    let new = GATEWAY.file("new.toml", &version("new", &simulator, "alpha"));
    let link = GATEWAY.file("sluicegate.toml", "");
    fs::remove_file(&link.0).unwrap();
    symlink(&old.0, &link.0).unwrap();
    let mut command = GATEWAY.command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let server = Gateway::run(&command, Stdio::piped(), Some(link));
    assert_eq!((status(&server, "old"), status(&server, "new")), (200, 404));
    let next = server.config_path().with_extension("next");
    symlink(&new.0, &next).unwrap();
    fs::rename(&next, server.config_path()).unwrap();
    await_that("the new file is read", || status(&server, "new") == 200);
    assert_eq!(status(&server, "old"), 404);
    assert_eq!(
        Request::get("/livez").send(server.admin.unwrap()).status,
        200
    );
}

/// A configuration that needs an embedded engine which was not loaded at startup is rejected, and
/// the previous configuration stays in effect.
#[test]
fn d08_an_engine_that_is_not_there_is_not_promised() {
    let simulator = Simulator::honest().unwrap();
    let whole = version("mine", &simulator, "alpha");
    let server = GATEWAY.configured(&whole);
    let refused = || server.sum("sluicegate_config_reloads_total{outcome=\"refused\"}");
    let targets = whole.find("targets").unwrap();
    for changed in [
        &whole[..targets],
        &whole.replace(
            "{ upstream = \"only\", model = \"alpha\" }",
            "{ engine = \"local\" }",
        ),
    ] {
        let before = refused();
        replace(server.config_path(), changed);
        server.signal("HUP");
        await_that("it was refused", || refused() > before);
        assert_eq!(status(&server, "mine"), 200);
    }
    assert!(server.log.lock().unwrap().contains("restart to load it"));
}
