//! Clients that leave at any moment, by the thousand.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator, honest};
use testkit::requests::ask;
use testkit::upstreams::assert_closed;
use testkit::websocket::{Socket, message};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, await_that, in_parallel};

use crate::GATEWAY;
use crate::ending::hesitant;
use crate::frames::{self, CLOSE, FIRST_OF_TEXT, TEXT, frame};

/// The moment at which a client leaves.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Connected,
    InHandshake,
    AfterHandshake,
    Opened,
    InFrame,
    InPayload,
    InMessage,
    InClose,
    AfterRequest,
    InResponse,
    AfterResponse,
}

impl Moment {
    /// Opens a connection, and drops it at this moment.
    fn leave(self, gateway: &Gateway) {
        let address = gateway.address();
        let sent = match self {
            Self::Connected => return drop(Connection::open(address)),
            Self::InHandshake => {
                return Connection::open(address).send("GET /v1/responses HTTP/1.1\r\nupgra");
            }
            Self::AfterHandshake => return drop(frames::shake_hands(address)),
            Self::Opened => Vec::new(),
            Self::InFrame => vec![TEXT],
            Self::InPayload => [frames::header(TEXT, 16 << 10), vec![0; 1000]].concat(),
            Self::InMessage => frame(FIRST_OF_TEXT, [b' '; 1000]),
            Self::InClose => frame(CLOSE, ""),
            Self::AfterRequest | Self::InResponse => frame(TEXT, event(WAIT)),
            Self::AfterResponse => {
                Socket::open(gateway, CLIENT_KEY).turn(&request("Hi."));
                return;
            }
        };
        let mut connection = frames::open(address);
        connection.send(sent);
        if matches!(self, Self::InResponse) {
            connection.bytes(2);
        }
    }
}

fn request(text: &str) -> Value {
    let mut body = ask(Protocol::Responses, "chat", text, true);
    body["store"] = false.into();
    body
}

/// The message of a request.
fn event(text: &str) -> String {
    let mut event = request(text);
    event["type"] = "response.create".into();
    event.as_object_mut().unwrap().remove("stream");
    event.to_string()
}

/// Waits before the end of the response if it is asked to.
fn play(request: &Request) -> Play {
    if is_to_wait(request) {
        hesitant(request)
    } else {
        honest::answer(request)
    }
}

fn is_to_wait(request: &Request) -> bool {
    request.json().to_string().contains(WAIT)
}

/// The number of open files of a gateway, without its connections to the simulator.
fn open_files(gateway: &Gateway, simulator: &Simulator) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", gateway.id()));
    files.unwrap().count() - simulator.open_connections()
}

/// Ten thousand clients of WebSockets leave, at every moment of their connections, and nothing stays
/// behind: no connection, permit, file, request to an upstream, or memory of messages and conversations.
#[test]
fn c04_c01_nothing_stays_of_clients_that_leave() {
    let simulator = Simulator::start(play).unwrap();
    let limits = "json_body = \"64KiB\"\nedit_body = \"64KiB\"\nbody_memory = \"64KiB\"";
    let gateway = Config::before(&simulator, limits, "")
        .section("[websocket]\nkeep_bytes = \"256KiB\"")
        .start(GATEWAY);
    for moment in MOMENTS {
        moment.leave(&gateway);
    }
    await_nothing_open(&gateway, &simulator);
    let before = open_files(&gateway, &simulator);

    // One client in ten asks for a response, which takes longer.
    let of_client = |client: usize| match client % 10 {
        0 => MOMENTS[client / 10 % MOMENTS.len()],
        _ => MOMENTS[client % WITHOUT_REQUEST],
    };
    let clients: Vec<_> = (0..CLIENTS).map(of_client).collect();
    in_parallel(&clients, |moment| moment.leave(&gateway));
    await_nothing_open(&gateway, &simulator);
    let ended = gateway.sum("sluicegate_connections_ended_total{");
    assert_eq!(ended, (MOMENTS.len() + CLIENTS) as f64);
    await_that("all files are closed", || {
        open_files(&gateway, &simulator) <= before
    });
    continue_large(&gateway);
}

fn await_nothing_open(gateway: &Gateway, simulator: &Simulator) {
    await_that("all connections are closed", || {
        gateway.metric("sluicegate_connections") == 0.0
    });
    gateway.await_quiet();
    let requests = simulator.requests().into_iter();
    for request in requests.filter(is_to_wait) {
        assert_closed(simulator, request.number);
    }
}

/// A message that needs almost all of the memory finds it, and so does its conversation.
fn continue_large(gateway: &Gateway) {
    let mut socket = Socket::open(gateway, CLIENT_KEY);
    // The response is short.
    let long = format!("Please count to 3.{}", " ".repeat(50 << 10));
    let first = socket.turn(&request(&long));
    let mut next = request("Go on.");
    next["previous_response_id"] = first["id"].clone();
    next["input"] = json!([message("Go on.")]);
    socket.turn(&next);
}

const MOMENTS: [Moment; 11] = [
    Moment::Connected,
    Moment::InHandshake,
    Moment::AfterHandshake,
    Moment::Opened,
    Moment::InFrame,
    Moment::InPayload,
    Moment::InMessage,
    Moment::InClose,
    Moment::AfterRequest,
    Moment::InResponse,
    Moment::AfterResponse,
];
/// The number of the moments before a request.
const WITHOUT_REQUEST: usize = 8;
const CLIENTS: usize = 10_000;
/// A text to which the response does not end.
const WAIT: &str = "Wait.";
