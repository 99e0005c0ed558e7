//! Upstreams that change while the gateway serves (rows D8 and D9).

use std::fs;

use serde_json::{Value, json};
use simulator::{Play, Protocol, Simulator, Step, honest};
use testkit::requests::request;
use testkit::{Config, Connection, Gateway, await_that};

use crate::GATEWAY;

/// A gateway whose only model is served by this simulator.
fn before(simulator: &Simulator) -> Gateway {
    let plan = Config::new("").upstream("only", Protocol::Chat, &simulator.base_url(), "");
    plan.model("mine", Protocol::Chat, r#"[{ upstream = "only" }]"#)
        .start(GATEWAY)
}

/// A server that pauses in the middle of every stream until the test continues it.
fn hesitant() -> Simulator {
    let behave = |request: &simulator::Request| {
        let whole = honest::answer(request);
        if !request.streams() {
            return whole;
        }
        let mut play = Play::stream();
        for (place, piece) in whole.pieces().enumerate() {
            play = if place == 2 { play.gate() } else { play };
            play = play.body(piece.clone());
        }
        play.step(Step::End)
    };
    Simulator::start(behave).unwrap()
}

fn body(stream: bool) -> Value {
    json!({"model": "mine", "stream": stream, "messages": [{"role": "user", "content": "Hello, you there."}]})
}

/// Changes the configuration file atomically, as deployments do.
fn change(gateway: &Gateway, edit: impl Fn(&str) -> String) {
    let path = gateway.config_path();
    let next = path.with_extension("next");
    fs::write(&next, edit(&fs::read_to_string(path).unwrap())).unwrap();
    fs::rename(&next, path).unwrap();
}

fn status(gateway: &Gateway) -> u16 {
    gateway.ask(Protocol::Chat, &body(false)).status
}

/// A stream ends at the upstream where it started, even if a reload names another.
#[test]
fn d08_a_stream_ends_at_the_upstream_where_it_began() {
    let (first, second) = (hesitant(), Simulator::honest().unwrap());
    let gateway = before(&first);
    let mut stream = Connection::open(gateway.address());
    stream.send(request(Protocol::Chat, &body(true)).bytes());
    assert_eq!(stream.head().unwrap().status, 200);
    let mut received = stream.chunk().unwrap();

    change(&gateway, |text| {
        text.replace(&first.base_url(), &second.base_url())
    });
    await_that("the new upstream gets a request", || {
        status(&gateway) == 200 && !second.requests().is_empty()
    });
    let before = first.requests().len();
    assert_eq!(status(&gateway), 200);
    assert_eq!(
        first.requests().len(),
        before,
        "the old upstream gets no more requests"
    );

    first.release_all();
    while let Ok(chunk @ [_, ..]) = stream.chunk().as_deref() {
        received.extend(chunk);
    }
    let received = String::from_utf8(received).unwrap();
    assert!(
        received.contains("there.") && received.ends_with("data: [DONE]\n\n"),
        "{received}"
    );
}

/// A model that a reload removes is answered with 404, and its open streams run to completion.
#[test]
fn d09_a_model_that_is_gone_is_unknown_and_its_streams_end_well() {
    let simulator = hesitant();
    let gateway = before(&simulator);
    let mut stream = Connection::open(gateway.address());
    stream.send(request(Protocol::Chat, &body(true)).bytes());
    assert_eq!(stream.head().unwrap().status, 200);
    change(&gateway, |text| {
        text.replace("id = \"mine\"", "id = \"another\"")
    });
    await_that("the model is gone", || status(&gateway) == 404);
    simulator.release_all();
    let mut received = Vec::new();
    while let Ok(chunk @ [_, ..]) = stream.chunk().as_deref() {
        received.extend(chunk);
    }
    assert!(
        received.ends_with(b"data: [DONE]\n\n"),
        "{}",
        String::from_utf8_lossy(&received)
    );
}

/// A configuration with an invalid upstream is rejected and counted, and the previous configuration
/// stays in effect.
#[test]
fn d08_a_file_with_a_wrong_upstream_changes_nothing() {
    let simulator = Simulator::honest().unwrap();
    let gateway = before(&simulator);
    assert_eq!(status(&gateway), 200);
    for wrong in [
        "base_url = \"nowhere\"",
        "base_url = \"ftp://127.0.0.1/v1\"",
        "base_url = ",
    ] {
        let base_url = format!("base_url = \"{}\"", simulator.base_url());
        let refused = gateway.sum("sluicegate_config_reloads_total{outcome=\"refused\"}");
        change(&gateway, |text| text.replace(&base_url, wrong));
        await_that("it is refused", || {
            gateway.sum("sluicegate_config_reloads_total{outcome=\"refused\"}") > refused
        });
        assert_eq!(status(&gateway), 200, "{wrong}");
        change(&gateway, |text| text.replace(wrong, &base_url));
    }
}
