//! Upstreams that change while the gateway serves (rows D8 and D9).

use std::fs;

use serde_json::{Value, json};
use simulator::{Play, Protocol, Simulator, Step, honest};

use crate::client::Connection;
use crate::house::{House, Plan, request};
use crate::server::await_that;

/// A gateway whose one model is served by this simulator.
fn before(simulator: &Simulator) -> House {
    let plan = Plan::new("").upstream("only", Protocol::Chat, &simulator.base_url(), "");
    plan.model("mine", Protocol::Chat, r#"[{ upstream = "only" }]"#).start()
}

/// A server that stops in the middle of every stream until it is let go on.
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

/// Changes the configuration in one step, as deployments do.
fn change(house: &House, edit: impl Fn(&str) -> String) {
    let path = house.gateway.config_path();
    let next = path.with_extension("next");
    fs::write(&next, edit(&fs::read_to_string(path).unwrap())).unwrap();
    fs::rename(&next, path).unwrap();
}

fn status(house: &House) -> u16 {
    house.ask(Protocol::Chat, &body(false)).status
}

/// A stream ends at the upstream where it began, though a new file names another.
#[test]
fn d08_a_stream_ends_at_the_upstream_where_it_began() {
    let (first, second) = (hesitant(), Simulator::honest().unwrap());
    let house = before(&first);
    let mut stream = Connection::open(house.address());
    stream.send(&request(Protocol::Chat, &body(true)).bytes());
    assert_eq!(stream.head().0, 200);
    let mut told = stream.chunk().unwrap();

    change(&house, |text| text.replace(&first.base_url(), &second.base_url()));
    await_that("the new upstream is asked", || status(&house) == 200 && !second.requests().is_empty());
    let asked = first.requests().len();
    assert_eq!(status(&house), 200);
    assert_eq!(first.requests().len(), asked, "nobody asks the old one any more");

    first.release_all();
    while let Some(chunk) = stream.chunk().filter(|chunk| !chunk.is_empty()) {
        told.extend(chunk);
    }
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("there.") && told.ends_with("data: [DONE]\n\n"), "{told}");
}

/// A model that a new file leaves out is 404, and its open streams end well.
#[test]
fn d09_a_model_that_is_gone_is_unknown_and_its_streams_end_well() {
    let simulator = hesitant();
    let house = before(&simulator);
    let mut stream = Connection::open(house.address());
    stream.send(&request(Protocol::Chat, &body(true)).bytes());
    assert_eq!(stream.head().0, 200);
    change(&house, |text| text.replace("id = \"mine\"", "id = \"another\""));
    await_that("the model is gone", || status(&house) == 404);
    simulator.release_all();
    let mut told = Vec::new();
    while let Some(chunk) = stream.chunk().filter(|chunk| !chunk.is_empty()) {
        told.extend(chunk);
    }
    assert!(told.ends_with(b"data: [DONE]\n\n"), "{}", String::from_utf8_lossy(&told));
}

/// A file with a wrong upstream is refused and counted, and everything stays as it was.
#[test]
fn d08_a_file_with_a_wrong_upstream_changes_nothing() {
    let simulator = Simulator::honest().unwrap();
    let house = before(&simulator);
    assert_eq!(status(&house), 200);
    for wrong in ["base_url = \"nowhere\"", "base_url = \"ftp://127.0.0.1/v1\"", "base_url = "] {
        let base_url = format!("base_url = \"{}\"", simulator.base_url());
        let refused = house.sum("sluicegate_config_reloads_total{outcome=\"refused\"}");
        change(&house, |text| text.replace(&base_url, wrong));
        await_that("it is refused", || house.sum("sluicegate_config_reloads_total{outcome=\"refused\"}") > refused);
        assert_eq!(status(&house), 200, "{wrong}");
        change(&house, |text| text.replace(wrong, &base_url));
    }
}
