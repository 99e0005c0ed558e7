//! The limits of a connection, and the ways in which it ends.

use std::thread;

use serde_json::Value;
use simulator::{Play, Protocol, Request, Simulator, Step, honest};
use testkit::requests::ask;
use testkit::upstreams::assert_closed;
use testkit::websocket::{Socket, is_end};
use testkit::{CLIENT_KEY, Config, Gateway, await_that};
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::GATEWAY;

/// A request for a short answer.
fn request() -> Value {
    ask(Protocol::Responses, "chat", "Hi.", true)
}

/// Waits before the end of a stream.
pub(crate) fn hesitant(request: &Request) -> Play {
    let whole = honest::answer(request);
    let last = whole.pieces().count() - 1;
    let pieces = whole.pieces().enumerate();
    let play = pieces.fold(Play::stream(), |play, (place, piece)| {
        let play = if place == last { play.gate() } else { play };
        play.body(piece.clone())
    });
    play.step(Step::End)
}

/// Receives events up to the first text.
fn await_text(socket: &mut Socket) {
    while socket.event()["type"] != "response.output_text.delta" {}
}

/// Prepares responses in another stream until one is refused, because the connection is to end.
fn refused_once_ending(socket: &mut Socket) -> Value {
    let mut prepare = request();
    prepare["stream_id"] = "other".into();
    prepare["generate"] = false.into();
    loop {
        socket.create(&prepare);
        let mut of_other = std::iter::repeat_with(|| socket.event());
        let last = of_other.find(|event| event["stream_id"] == "other" && is_end(event));
        if let Some(refused) = last.filter(|event| event["type"] == "error") {
            return refused;
        }
    }
}

fn gateway(simulator: &Simulator, limits: &str, websocket: &str) -> Gateway {
    let settings = format!("[websocket]\n{websocket}");
    let config = Config::before(simulator, limits, "").section(&settings);
    config.start(GATEWAY)
}

/// Waits until a connection was closed for this reason.
#[track_caller]
fn await_reason(gateway: &Gateway, reason: &str) {
    let label = format!("reason=\"{reason}\"");
    await_that(reason, || {
        gateway.sum_of("sluicegate_connections_ended_total{", &label) > 0.0
    });
}

/// Waits until the stream of a response has ended with this outcome, and its permit is returned.
#[track_caller]
fn await_outcome(gateway: &Gateway, outcome: &str) {
    let label = format!("outcome=\"{outcome}\"");
    await_that(outcome, || {
        gateway.sum_of("sluicegate_streams_ended_total{", &label) > 0.0
    });
    gateway.await_quiet();
}

/// A message over a WebSocket that is larger than the limit, or no text, ends the connection, each
/// with its code (RFC 6455, section 7.4.1).
#[test]
fn l05_invalid_messages_end_the_connection() {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, "json_body = \"4KiB\"", "");
    let text = |bytes: &'static [u8]| {
        Message::Frame(Frame::message(
            Bytes::from_static(bytes),
            OpCode::Data(Data::Text),
            true,
        ))
    };
    for (message, code) in [
        (Message::binary(&b"{}"[..]), 1003),
        (text(b"\"\xff\""), 1007),
        (Message::text("x".repeat(5 << 10)), 1009),
        (Message::text("x".repeat(5 << 20)), 1009),
    ] {
        let mut socket = Socket::open(&gateway, CLIENT_KEY);
        // A long message may be refused before it is sent completely.
        let _ = socket.raw().send(message);
        assert_eq!(socket.close_code(), code);
    }
    Socket::open(&gateway, CLIENT_KEY).turn(&request());
}

/// A client of a WebSocket that answers no ping is disconnected, and one that does stays.
#[test]
fn c01_a_client_answers_pings() {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(
        &simulator,
        "",
        "ping_interval = \"50ms\"\npong_timeout = \"5s\"",
    );
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    for _ in 0..3 {
        let message = socket.raw().read().unwrap();
        assert!(matches!(message, Message::Ping(_)), "{message:?}");
    }
    socket.turn(&request());
    drop(socket);

    let gateway = self::gateway(
        &simulator,
        "",
        "ping_interval = \"50ms\"\npong_timeout = \"50ms\"",
    );
    let mut silent = Socket::open(&gateway, CLIENT_KEY);
    await_reason(&gateway, "unresponsive");
    assert_eq!(silent.close_code(), 1006);
}

/// Messages that are not complete take memory of the budget for bodies. Without any left, a connection
/// ends with the code of a service that is overloaded.
#[test]
fn l06_unfinished_messages_share_the_memory_for_bodies() {
    let simulator = Simulator::honest().unwrap();
    let limits = "json_body = \"64KiB\"\nedit_body = \"64KiB\"\nbody_memory = \"64KiB\"";
    let gateway = gateway(&simulator, limits, "");
    let begin = || {
        let mut socket = Socket::open(&gateway, CLIENT_KEY);
        let payload = Bytes::from(vec![b' '; 40 << 10]);
        let part = Frame::message(payload, OpCode::Data(Data::Text), false);
        // It may be refused before it is sent completely.
        let _ = socket.raw().send(Message::Frame(part));
        socket
    };
    let mut first = begin();
    first.raw().send(Message::Ping(Bytes::new())).unwrap();
    assert!(matches!(first.raw().read().unwrap(), Message::Pong(_)));
    assert_eq!(begin().close_code(), 1013);
    drop(first);
    await_reason(&gateway, "done");
    // Its memory is free again.
    let long = ask(Protocol::Responses, "chat", &" ".repeat(40 << 10), true);
    Socket::open(&gateway, CLIENT_KEY).turn(&long);
}

/// A WebSocket on which nothing is sent is closed after `idle_timeout`, and counted.
#[test]
fn l01_h21_an_idle_connection_is_closed() {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, "", "idle_timeout = \"200ms\"");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    assert_eq!(socket.close_code(), 1001);
    drop(socket);
    await_reason(&gateway, "idle");
}

/// At its greatest age a WebSocket finishes the running response, begins no other one, and is closed.
#[test]
fn h21_an_old_connection_ends_after_its_response() {
    let simulator = Simulator::start(hesitant).unwrap();
    let gateway = gateway(&simulator, "", "max_age = \"300ms\"");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    socket.create(&request());
    await_text(&mut socket);
    let refused = refused_once_ending(&mut socket);
    let error = &refused["error"];
    assert_eq!(error["code"], "websocket_connection_limit_reached");
    simulator.release_all();
    let events = socket.events();
    assert_eq!(events[events.len() - 1]["type"], "response.completed");
    assert_eq!(
        socket.event()["error"]["code"],
        "websocket_connection_limit_reached"
    );
    assert_eq!(socket.close_code(), 1008);
}

/// A client that closes its WebSocket in the middle of a response aborts it, and its permit is
/// returned.
#[test]
fn c01_c05_a_client_that_leaves_aborts_its_response() {
    let simulator = Simulator::start(hesitant).unwrap();
    let gateway = gateway(&simulator, "", "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    socket.create(&request());
    await_text(&mut socket);
    drop(socket);
    assert_closed(&simulator, 0);
    await_outcome(&gateway, "client_gone");

    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    socket.create(&request());
    await_text(&mut socket);
    socket.raw().close(None).unwrap();
    assert_closed(&simulator, 1);
    gateway.await_quiet();
    assert_eq!(socket.close_code(), 1005);
}

/// A client that does not read from its WebSocket is disconnected after the write timeout, and its
/// response is aborted.
#[test]
fn c03_a_slow_reader_is_cut() {
    let endless = |request: &Request| {
        let whole = honest::answer(request);
        let pieces: Vec<_> = whole.pieces().cloned().collect();
        let begun = Play::stream().body(pieces[0].clone());
        begun.forever(Play::new().body(pieces[1].clone()))
    };
    let simulator = Simulator::start(endless).unwrap();
    let gateway = gateway(
        &simulator,
        "write_stall = \"300ms\"\nsend_buffer = \"8KiB\"",
        "",
    );
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    socket.create(&request());
    await_reason(&gateway, "slow_reader");
    assert_closed(&simulator, 0);
    await_outcome(&gateway, "slow_reader");
}

/// A message over a WebSocket has the time of the body of a request.
#[test]
fn l03_a_message_has_to_be_complete_in_time() {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, "body_timeout = \"200ms\"", "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let part = Frame::message(Bytes::from_static(b"{"), OpCode::Data(Data::Text), false);
    socket.raw().send(Message::Frame(part)).unwrap();
    assert_eq!(socket.close_code(), 1008);
}

/// At a shutdown idle WebSockets are closed, and others after their running response.
#[test]
fn d01_d02_h21_a_shutdown_waits_for_running_responses() {
    let simulator = Simulator::start(hesitant).unwrap();
    let mut gateway = gateway(&simulator, "lame_duck = \"1ms\"\ndrain = \"60s\"", "");
    let mut idle = Socket::open(&gateway, CLIENT_KEY);
    let mut busy = Socket::open(&gateway, CLIENT_KEY);
    busy.create(&request());
    await_text(&mut busy);
    gateway.signal("TERM");
    assert_eq!(idle.close_code(), 1001);
    let refused = refused_once_ending(&mut busy);
    assert_eq!(refused["status"], 503);
    simulator.release_all();
    let events = busy.events();
    assert_eq!(events[events.len() - 1]["type"], "response.completed");
    assert_eq!(busy.close_code(), 1001);
    drop((idle, busy));
    assert!(gateway.wait().success());
}

/// A thousand idle connections.
#[test]
fn idle_connections_are_small() {
    let simulator = Simulator::honest().unwrap();
    let gateway = gateway(&simulator, "", "");
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.id()));
        let status = status.unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap()
    };
    let open = |count: usize| -> Vec<Socket> {
        let each = || (0..count / 4).map(|_| Socket::open(&gateway, CLIENT_KEY));
        thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| each().collect::<Vec<_>>()));
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        })
    };
    let few = open(200);
    let before = resident();
    let many = open(1000);
    let each = resident().saturating_sub(before) * 1024 / 1000;
    drop((few, many));
    assert!(each <= 24 << 10, "{each} bytes each");
    println!("{each} bytes each");
}
