//! A gateway in front of servers that misbehave, and assertions that hold whatever they do.
//!
//! Every response is checked as it arrives: nothing private is in it. The assertions of the package
//! `grammar` check that streams keep their grammar and end once. At its end a test checks the gateway and the requests that the servers received:
//! permits are returned and connections closed, each request has one outcome, no headers of the
//! client were forwarded, nothing private is in the log.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use simulator::{Play, Protocol, Request, Simulator, honest, scenario};
use tokio::net::TcpSocket;
use wire::ErrorKind;

use crate::client::{self, Connection, Response};
use crate::events::delta_text;
use crate::gateway::{Binary, Gateway, await_that};
use crate::privacy::{assert_private, check_request_headers, check_response_headers};
use crate::refusal::{check_refusal, refusals};
use crate::requests::{self, TEXT_PROTOCOLS, ask, protocol_name};

/// A client protocol and an upstream protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The protocol of the client.
    pub client: Protocol,
    /// The protocol of the upstream.
    pub upstream: Protocol,
}

/// A gateway in front of one server that is an upstream of each protocol.
pub struct FaultTest {
    /// The gateway.
    pub gateway: Gateway,
    /// The server.
    pub simulator: Simulator,
    /// The number of requests that clients sent by other ways than [`FaultTest::ask`], which those
    /// add themselves.
    pub sent: AtomicUsize,
}

/// A port that refuses connections, since it is bound without a listener. It refuses them for as
/// long as the socket lives: a port that was closed could be given to another test.
pub fn closed_port() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    socket
}

/// The response that a client got.
pub struct Outcome {
    /// The lane of the request.
    pub lane: Lane,
    /// The response, as it came.
    pub response: Response,
    /// The text of the deltas of a conforming upstream.
    pub honest: String,
}

/// Each client protocol with each upstream protocol: relayed where they are the same, translated
/// elsewhere.
pub fn lanes() -> Vec<Lane> {
    let of = |client| TEXT_PROTOCOLS.map(|upstream| Lane { client, upstream });
    let images = Lane {
        client: Protocol::Images,
        upstream: Protocol::Images,
    };
    TEXT_PROTOCOLS
        .into_iter()
        .flat_map(of)
        .chain([images])
        .collect()
}

/// The lanes without Images.
pub fn text_lanes() -> Vec<Lane> {
    lanes()
        .into_iter()
        .filter(|lane| lane.client != Protocol::Images)
        .collect()
}

impl FaultTest {
    /// A server that plays a scenario for every request.
    pub fn named(binary: Binary, name: &str, settings: &str) -> Self {
        let scenario = scenario::named(name).unwrap_or_else(|| panic!("no scenario {name}"));
        Self::playing(binary, move |request| scenario.play(request), "", settings)
    }

    /// A server with this behaviour.
    pub fn playing(
        binary: Binary,
        behave: impl Fn(&Request) -> Play + Send + Sync + 'static,
        limits: &str,
        settings: &str,
    ) -> Self {
        let simulator = Simulator::start(behave).unwrap();
        Self::of(binary.before(&simulator, limits, settings), simulator)
    }

    /// A gateway, and its upstream.
    pub fn of(gateway: Gateway, simulator: Simulator) -> Self {
        Self {
            gateway,
            simulator,
            sent: AtomicUsize::new(0),
        }
    }

    /// Sends a request on each of these lanes, all at once.
    pub fn each(self, lanes: &[Lane], stream: bool, check: impl Fn(&Outcome) + Sync) -> Self {
        std::thread::scope(|scope| {
            for lane in lanes {
                let (test, check) = (&self, &check);
                scope.spawn(move || check(&test.ask(*lane, stream)));
            }
        });
        self
    }

    /// Sends a request and waits for the response.
    pub fn ask(&self, lane: Lane, stream: bool) -> Outcome {
        self.ask_with(lane, stream, "Hello, you there.")
    }

    /// Sends a request with this text and waits for the response.
    pub fn ask_with(&self, lane: Lane, stream: bool, text: &str) -> Outcome {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let response = request(lane, stream, text).send(self.gateway.address());
        Outcome::new(lane, response, honest_text(lane, stream, text))
    }

    /// Opens a connection and sends a request on it, without waiting for the response.
    pub fn open(&self, lane: Lane, stream: bool) -> Connection {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let mut connection = Connection::open(self.gateway.address());
        connection.send(request(lane, stream, "Hello, you there.").bytes());
        connection
    }

    /// Requests a stream, and disconnects once so many bytes of the response have arrived, or all.
    pub fn leave(&self, lane: Lane, bytes: usize) {
        let mut connection = self.open(lane, true);
        connection.head().unwrap();
        let mut read = 0;
        while read < bytes {
            match connection.chunk() {
                Ok(chunk) if !chunk.is_empty() => read += chunk.len(),
                _ => break,
            }
        }
        drop(connection);
    }

    /// Waits until the upstream has received so many requests.
    #[track_caller]
    pub fn await_requests(&self, count: usize) {
        assert!(
            self.simulator.wait_for_requests(count, GUARD),
            "{count} requests"
        );
    }

    /// Waits until the connections of all requests so far are closed.
    #[track_caller]
    pub fn all_closed(&self) {
        for request in self.simulator.requests() {
            assert_closed(&self.simulator, request.number);
        }
    }

    /// Asserts that every stream that was started has ended with this outcome.
    #[track_caller]
    pub fn streams_ended_as(&self, outcome: &str) {
        const ENDED: &str = "sluicegate_streams_ended_total{";
        await_that("streams have ended", || self.gateway.sum(ENDED) > 0.0);
        self.gateway.await_quiet();
        let all = self.gateway.sum(ENDED);
        let so = self
            .gateway
            .sum_of(ENDED, &format!("outcome=\"{outcome}\""));
        assert_eq!(so, all, "{outcome}: {}", self.gateway.log.lock().unwrap());
    }

    /// The assertions at the end of every test.
    pub fn end(self) {
        self.gateway.await_quiet();
        let sent = self.sent.load(Ordering::Relaxed);
        await_that("each request has one outcome", || {
            self.gateway.sum("sluicegate_requests_total{") >= sent as f64
        });
        assert_eq!(
            self.gateway.sum("sluicegate_requests_total{"),
            sent as f64,
            "one outcome each"
        );
        assert_eq!(self.gateway.metric("sluicegate_panics_total"), 0.0);
        for request in self.simulator.requests() {
            check_request_headers(&request);
        }
        let log = self.gateway.log.lock().unwrap();
        assert_private("the log", &log);
    }
}

impl Outcome {
    /// Checks that nothing private is in the response.
    #[track_caller]
    pub fn new(lane: Lane, response: Response, honest: String) -> Self {
        assert_private("the body", &String::from_utf8_lossy(&response.body));
        check_response_headers(&response.headers);
        Self {
            lane,
            response,
            honest,
        }
    }

    /// Asserts that it is an error that an upstream can cause.
    #[track_caller]
    pub fn is_listed_error(&self) {
        check_refusal(self.lane.client, &self.response);
    }

    /// Asserts that it is the error of the client's protocol for this kind of failure and this
    /// code.
    #[track_caller]
    pub fn is_refused(&self, kind: ErrorKind, code: &'static str) {
        let Self { lane, response, .. } = self;
        let mut owed = refusals(lane.client)
            .iter()
            .filter(|owed| (owed.failure, owed.code) == (kind, code));
        let is_owed = owed.any(|owed| owed.is(lane.client, response));
        assert!(
            is_owed,
            "{lane:?}: {} {} is not {kind:?} {code}",
            response.status,
            response.text()
        );
    }

    /// Asserts that it is the error status for an invalid upstream response.
    #[track_caller]
    pub fn is_bad_gateway(&self) {
        self.is_refused(ErrorKind::Upstream, "upstream_error");
        assert_eq!(self.response.header("x-should-retry"), Some("true"));
    }

    /// Asserts that it is the error status for an upstream that timed out.
    #[track_caller]
    pub fn is_late(&self) {
        self.is_refused(ErrorKind::UpstreamTimeout, "upstream_timeout");
    }

    /// Asserts that each event that has a name and a type has the same word for both.
    #[track_caller]
    pub fn names_its_events(&self) {
        for event in self.response.text().split("\n\n") {
            let Some((name, data)) = event
                .strip_prefix("event: ")
                .and_then(|rest| rest.split_once("\ndata: "))
            else {
                continue;
            };
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["type"], name, "{:?}", self.lane);
        }
    }

    /// Returns true if the response is a stream.
    pub fn is_stream(&self) -> bool {
        self.response
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// A request on a lane, with headers that must not be forwarded.
pub fn request(lane: Lane, stream: bool, text: &str) -> client::Request {
    let body = ask(lane.client, protocol_name(lane.upstream), text, stream);
    let request = requests::request(lane.client, &body);
    let private = [
        ("cookie", "session=private"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-private", "private"),
    ];
    private.into_iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    })
}

/// Waits until the connection of a request to the simulator is closed.
#[track_caller]
pub fn assert_closed(simulator: &Simulator, number: usize) {
    assert!(
        simulator.wait_for_close(number, GUARD).is_some(),
        "the connection of request {number} is open"
    );
}

/// The text of a conforming upstream's reply, in its own protocol.
pub fn honest_text(lane: Lane, stream: bool, text: &str) -> String {
    let request = Request {
        number: 0,
        connection: 0,
        nth_on_connection: 0,
        method: "POST".into(),
        path: requests::path(lane.upstream).into(),
        headers: Vec::new(),
        body: ask(lane.upstream, "their-model", text, stream)
            .to_string()
            .into(),
        at: now(),
    };
    let body = honest::answer(&request).body_bytes();
    if stream {
        return delta_text(lane.upstream, &body);
    }
    plain_text(lane.upstream, &serde_json::from_slice(&body).unwrap())
}

/// The text of a plain reply; for Images the pictures.
pub fn plain_text(protocol: Protocol, reply: &Value) -> String {
    let text = match protocol {
        Protocol::Responses => &reply["output"][0]["content"][0]["text"],
        Protocol::Chat => &reply["choices"][0]["message"]["content"],
        Protocol::Messages => &reply["content"][0]["text"],
        Protocol::Images => &reply["data"][0]["b64_json"],
    };
    text.as_str()
        .unwrap_or_else(|| panic!("no text: {reply}"))
        .to_owned()
}

/// The current time.
#[allow(
    clippy::disallowed_methods,
    reason = "requests of the simulator have the time at which they came, and some tests measure"
)]
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// The scenarios whose streams are tolerated although the grammar does not permit them: the relay
/// forwards them unchanged.
pub const BENT: [&str; 5] = [
    "filtered",
    "huge-index-N",
    "unknown-event",
    "usage-twice",
    "vllm",
];
/// Settings of upstreams with the default timeouts, which these tests never reach.
pub const PATIENT: &str = "";
/// Settings of upstreams that time out soon; long enough for a busy machine to start.
pub const HASTY: &str = "head_timeout = \"1s\"\nevent_idle = \"1s\"\nconnect_timeout = \"1s\"";
/// An upper bound against hanging, longer than anything takes.
pub const GUARD: Duration = Duration::from_secs(30);
