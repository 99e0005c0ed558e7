//! The duration of requests in the metrics and in the log. No test expects a length of time: each
//! of the gateway's times is compared with the times of events that must happen before and after
//! it.

use std::time::{Duration, Instant};

use memchr::memmem;
use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator, Step, honest};
use testkit::log;
use testkit::requests::{self, RED, ask, protocol_name};
use testkit::upstreams::{GUARD, lanes, request};
use testkit::{CLIENT_KEY, Connection, Gateway, Request};

use crate::GATEWAY;

/// Each request, however it ends, adds one to the histogram of durations and one to the counter of
/// its route, status and code. The log has its duration and, for streams only, the time of the
/// first event, which is no later.
#[test]
fn each_request_is_timed_once() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let mut histogram = Histogram {
        gateway: &gateway,
        sum: 0.0,
        count: 0.0,
    };
    for lane in lanes() {
        for stream in [false, true] {
            let body = ask(lane.client, protocol_name(lane.upstream), "Hello.", stream);
            histogram.adds(
                &requests::request(lane.client, &body),
                route(lane.client),
                "200",
                "",
                stream,
            );
        }
    }
    let red = format!("data:image/png;base64,{RED}");
    let edit = |stream| json!({"model": "images", "prompt": "x", "stream": stream, "images": [{"image_url": red}]});
    let count = json!({"model": "messages", "messages": [{"role": "user", "content": "Hello."}]});
    let post = |path: &str, body: &Value| Request::post(path, body).bearer(CLIENT_KEY);
    let get = |path: &str| Request::get(path).bearer(CLIENT_KEY);
    histogram.adds(
        &post("/v1/images/edits", &edit(false)),
        "image_edits",
        "200",
        "",
        false,
    );
    histogram.adds(
        &post("/v1/images/edits", &edit(true)),
        "image_edits",
        "200",
        "",
        true,
    );
    histogram.adds(
        &post("/v1/messages/count_tokens", &count),
        "count_tokens",
        "200",
        "",
        false,
    );
    histogram.adds(&get("/v1/models"), "models", "200", "", false);
    histogram.adds(&get("/v1/models/chat"), "model", "200", "", false);
    histogram.adds(
        &get("/v1/models/none"),
        "model",
        "404",
        "model_not_found",
        false,
    );
    histogram.adds(&get("/v1/nothing"), "other", "404", "unknown_url", false);
    histogram.adds(
        &Request::get("/v1/models"),
        "models",
        "401",
        "missing_api_key",
        false,
    );
    let chat = json!({"model": "none", "stream": true, "messages": [{"role": "user", "content": "Hello."}]});
    histogram.adds(
        &post("/v1/chat/completions", &chat),
        "chat_completions",
        "404",
        "model_not_found",
        false,
    );
    histogram.adds(
        &post("/v1/responses", &json!({})),
        "responses",
        "400",
        "missing_required_parameter",
        false,
    );
}

/// The first event of a stream is the first of the reply, not a keep-alive event, and the duration
/// includes the last byte.
#[test]
fn first_event_and_duration_measure_the_answer() {
    let simulator = Simulator::start(hesitant).unwrap();
    let gateway = GATEWAY.before(&simulator, "keep_alive = \"20ms\"", "");
    for (number, lane) in lanes().into_iter().enumerate() {
        let before = now();
        let mut connection = Connection::open(gateway.address());
        connection.send(request(lane, true, "Hello.").bytes());
        assert!(simulator.wait_for_requests(number + 1, GUARD));
        let sent = now();
        let head = connection.head().unwrap();
        await_silence(&mut connection);
        let answered = now();
        simulator.release();
        await_answer(&mut connection);
        let came = now();
        await_silence(&mut connection);
        let finished = now();
        simulator.release();
        while connection.chunk().is_ok_and(|chunk| !chunk.is_empty()) {}
        let line = log::line(&gateway, &head);
        let (first, took) = (
            milliseconds(&line["first_event_ms"]),
            milliseconds(&line["took_ms"]),
        );
        assert!(
            is_between(first, answered - sent, came - before),
            "{lane:?}: {line}"
        );
        assert!(
            is_between(took, finished - sent, before.elapsed()) && took >= first,
            "{lane:?}: {line}"
        );
    }
}

/// The duration of a plain request includes the time of its upstream, in the log and in the
/// metrics.
#[test]
fn a_plain_reply_takes_as_long_as_its_upstream() {
    let simulator =
        Simulator::start(|request| Play::new().gate().then(honest::answer(request))).unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    let sum = || gateway.metric("sluicegate_request_duration_seconds_sum");
    for (number, lane) in lanes().into_iter().enumerate() {
        let (already, before) = (sum(), now());
        let mut connection = Connection::open(gateway.address());
        connection.send(request(lane, false, "Hello.").bytes());
        assert!(simulator.wait_for_requests(number + 1, GUARD));
        let sent = now();
        // Requests for the metrics take some time, but are not timed themselves.
        (0..5).for_each(|_| assert!(sum() == already));
        let answered = now();
        simulator.release();
        let line = log::line(&gateway, &connection.response());
        let took = milliseconds(&line["took_ms"]);
        let counted = Duration::from_secs_f64(sum() - already);
        for took in [took, counted] {
            assert!(
                is_between(took, answered - sent, before.elapsed()),
                "{lane:?}: {took:?}: {line}"
            );
        }
    }
}

/// The histogram of durations, with its sum and count so far.
struct Histogram<'a> {
    gateway: &'a Gateway,
    sum: f64,
    count: f64,
}

impl Histogram<'_> {
    /// Sends a request, which adds one to the histogram and one to the counter with these labels.
    #[track_caller]
    fn adds(&mut self, request: &Request, route: &str, status: &str, code: &str, is_stream: bool) {
        let requests = format!(
            "sluicegate_requests_total{{route=\"{route}\",status=\"{status}\",code=\"{code}\"}} "
        );
        let before = self.gateway.sum(&requests);
        let response = request.send(self.gateway.address());
        let line = log::line(self.gateway, &response);
        assert_eq!(
            (&line["route"], line["status"].to_string().as_str()),
            (&json!(route), status),
            "{line}"
        );
        assert_eq!(self.gateway.sum(&requests), before + 1.0, "{line}");
        self.count += 1.0;
        self.check();
        let (first, took) = (&line["first_event_ms"], milliseconds(&line["took_ms"]));
        match is_stream {
            true => assert!(milliseconds(first) <= took, "{line}"),
            false => assert_eq!(*first, Value::Null, "{line}"),
        }
    }

    #[track_caller]
    fn check(&mut self) {
        let metric = |name: &str| {
            self.gateway
                .metric(&format!("sluicegate_request_duration_seconds_{name}"))
        };
        assert_eq!(metric("count"), self.count);
        assert_eq!(
            metric("bucket{le=\"+Inf\"}"),
            self.count,
            "the buckets have no other label"
        );
        assert!(
            metric("sum") > self.sum,
            "{} after {}",
            metric("sum"),
            self.sum
        );
        self.sum = metric("sum");
    }
}

/// A reply that waits at a gate before its head, and at another after the first event of its
/// content.
fn hesitant(request: &Asked) -> Play {
    let play = honest::answer(request);
    let first = play
        .pieces()
        .position(|piece| is_of_the_answer(piece))
        .unwrap();
    let mut hesitant = Play::stream().gate();
    for (place, piece) in play.pieces().enumerate() {
        hesitant = hesitant.body(piece.clone());
        hesitant = if place == first {
            hesitant.gate()
        } else {
            hesitant
        };
    }
    hesitant.step(Step::End)
}

/// Waits for a few keep-alive events.
#[track_caller]
fn await_silence(connection: &mut Connection) {
    let mut kept = 0;
    while kept < 3 {
        kept += usize::from(is_kept_open(
            &connection.chunk().expect("the stream goes on"),
        ));
    }
}

/// Waits for the first event of the reply's content.
#[track_caller]
fn await_answer(connection: &mut Connection) {
    while !is_of_the_answer(&connection.chunk().expect("the stream goes on")) {}
}

fn is_kept_open(chunk: &[u8]) -> bool {
    chunk.starts_with(b": keep-alive\n") || chunk.starts_with(b"event: ping\n")
}

/// Returns true if the bytes have content of a conforming reply: its text, which begins with "You
/// said", or a picture.
fn is_of_the_answer(bytes: &[u8]) -> bool {
    ["You", "partial_image"]
        .iter()
        .any(|sign| memmem::find(bytes, sign.as_bytes()).is_some())
}

fn route(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "responses",
        Protocol::Chat => "chat_completions",
        Protocol::Messages => "messages",
        Protocol::Images => "image_generations",
    }
}

#[track_caller]
fn milliseconds(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().unwrap_or_else(|| panic!("no time: {value}")) / 1e3)
}

/// Returns true if a time of the gateway's, which is rounded to a microsecond, is between two of
/// the test's.
fn is_between(found: Duration, least: Duration, most: Duration) -> bool {
    found + MICROSECOND >= least && found <= most + MICROSECOND
}

#[allow(
    clippy::disallowed_methods,
    reason = "times are compared with the times before and after them"
)]
fn now() -> Instant {
    Instant::now()
}

const MICROSECOND: Duration = Duration::from_micros(1);
