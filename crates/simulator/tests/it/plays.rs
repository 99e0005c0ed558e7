//! Plays: the bytes that they write.

use std::time::Duration;

use serde_json::json;
use sluicegate_simulator::{Cut, Play, Simulator};
use testkit::{Connection, End, GUARD, Response};

/// Plays a play and returns the reply that a client receives.
fn received(play: Play) -> Response {
    let simulator = Simulator::start(move |_| play.clone()).unwrap();
    let mut client = Connection::open(simulator.address());
    client.send("GET / HTTP/1.1\r\n\r\n");
    client.response()
}

fn abc() -> Play {
    Play::events(["data: a\n\n", "data: b\n\n", "data: c\n\n"])
}

#[test]
fn whole_answers_are_framed() {
    let answer = received(Play::json(201, &json!({"a": 1})));
    assert_eq!(
        (answer.status, answer.end, answer.text()),
        (201, End::Complete, "{\"a\":1}")
    );
    assert_eq!(answer.header("content-length"), Some("7"));
    let answer = received(Play::answer(429, &[("retry-after", "7")], ""));
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7"))
    );
    let answer = received(abc());
    assert_eq!(answer.end, End::Complete);
    assert_eq!(
        answer.chunks(),
        [b"data: a\n\n", b"data: b\n\n", b"data: c\n\n"]
    );
    assert_eq!(
        received(Play::events(["data: a\n\ndata: b\n\n"])).chunks(),
        [b"data: a\n\ndata: b\n\n"]
    );
}

#[test]
fn a_body_is_cut_at_any_byte() {
    let body = abc().body_bytes();
    for length in 0..=body.len() {
        for (cut, end) in [
            (Cut::Reset, End::Reset),
            (Cut::Close, End::Closed),
            (Cut::Clean, End::Complete),
        ] {
            let answer = received(abc().cut_at(length, cut));
            assert_eq!(
                (answer.body, answer.end),
                (body[..length].to_vec(), end),
                "{length} {cut:?}"
            );
        }
    }
    let answer = received(abc().cut_at(usize::MAX, Cut::Close));
    assert_eq!((answer.body, answer.end), (body, End::Closed));
}

#[test]
fn a_body_with_a_length_is_cut_too() {
    for (cut, end, length) in [
        (Cut::Reset, End::Reset, "10"),
        (Cut::Close, End::Closed, "10"),
        (Cut::Clean, End::Complete, "4"),
    ] {
        let answer = received(Play::answer(200, &[], "0123456789").cut_at(4, cut));
        assert_eq!((answer.text(), answer.end), ("0123", end));
        assert_eq!(answer.header("content-length"), Some(length));
    }
}

#[test]
fn a_stream_is_cut_after_any_event() {
    for count in 0..=4 {
        let answer = received(abc().cut_after(count, Cut::Clean));
        assert_eq!(
            (answer.chunks().len(), answer.end),
            (count.min(3), End::Complete)
        );
    }
}

#[test]
fn a_body_is_sent_in_other_pieces() {
    let sizes = |answer: Response| {
        answer
            .chunks()
            .iter()
            .map(|chunk| chunk.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        sizes(received(abc().chunked_by(&[1, 20, 0]))),
        [1, 20, 1, 1, 4]
    );
    assert_eq!(sizes(received(abc().chunked_by(&[]))), [27]);
    assert_eq!(received(abc().chunked_by(&[2])).body, abc().body_bytes());
    let answer = received(Play::answer(200, &[], "0123456789").with_pieces(["ab", "c"]));
    assert_eq!((answer.text(), answer.end), ("abc", End::Complete));
}

#[test]
fn an_endless_body_continues_until_the_peer_disconnects() {
    let simulator = Simulator::start(|_| Play::stream().forever(Play::new().body("more"))).unwrap();
    let mut client = Connection::open(simulator.address());
    client.send("GET / HTTP/1.1\r\n\r\n");
    client.head().unwrap();
    assert!((0..10_000).all(|_| client.chunk() == Ok(b"more".to_vec())));
    drop(client);
    assert!(simulator.wait_for_close(0, GUARD).is_some());
}

#[test]
fn pauses_are_made() {
    let pause = Duration::from_millis(20);
    let simulator = Simulator::start(move |_| abc().paced(pause)).unwrap();
    let mut client = Connection::open(simulator.address());
    client.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().chunks().len(), 3);
    drop(client);
    let closed = simulator.wait_for_close(0, GUARD).unwrap();
    assert!(closed - simulator.requests()[0].at >= pause * 3);
}
