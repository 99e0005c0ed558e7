//! Token usage of upstreams: it is in the metrics and in the log, once for each request, relayed or
//! translated.

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use simulator::{Framing, Play, Protocol, Request as Asked, Simulator};
use testkit::log;
use testkit::requests::{self, PROTOCOLS, RED, ask, protocol_name};
use testkit::upstreams::{Lane, lanes};
use testkit::usage::{PLACES, count, edited, usage};
use testkit::{CLIENT_KEY, Config, Connection, Form, Gateway, Request, Response};

use crate::GATEWAY;

/// The usage of an upstream is counted for clients of every protocol, relayed and translated, plain
/// and streamed.
#[test]
fn tokens_are_counted_on_every_road() {
    for upstream in PROTOCOLS {
        let meter = Meter::before(|request| edited(request, count));
        for lane in lanes().into_iter().filter(|lane| lane.upstream == upstream) {
            for stream in [false, true] {
                meter.ask(lane, stream).adds(owed(upstream));
            }
        }
    }
}

/// The usage of an edit is counted, for JSON and for a form.
#[test]
fn tokens_of_edits_are_counted() {
    let meter = Meter::before(|request| edited(request, count));
    for stream in [false, true] {
        let red = format!("data:image/png;base64,{RED}");
        let edit = json!({"model": "images", "prompt": "A sail.", "stream": stream, "images": [{"image_url": red}]});
        meter.send(&Request::post(EDITS, &edit)).adds((523, 6272));
        meter.send(&form(stream)).adds((523, 6272));
    }
}

/// Each picture of a stream has its own usage, and the request has their sum.
#[test]
fn the_shares_of_pictures_add_up() {
    let completed = |input: u64, output: u64| {
        let event = json!({
            "type": "image_generation.completed", "b64_json": RED, "created_at": 1_789_000_000, "size": "16x16",
            "quality": "low", "background": "opaque", "output_format": "png",
            "usage": {"input_tokens": input, "output_tokens": output, "total_tokens": input + output},
        });
        format!("event: image_generation.completed\ndata: {event}\n\n")
    };
    let meter = Meter::before(move |_| Play::events([completed(301, 4001), completed(222, 2271)]));
    let two = json!({"model": "images", "prompt": "Two boats.", "n": 2, "stream": true});
    meter
        .send(&Request::post("/v1/images/generations", &two))
        .adds((523, 6272));
}

/// The usage of a long reply with pictures, which is streamed through, is counted, before the
/// pictures or after them.
#[test]
fn tokens_of_a_reply_that_passes_unread_are_counted() {
    for usage_first in [true, false] {
        let counts = format!(r#""usage":{}"#, usage(Protocol::Images, None));
        let data = format!(
            r#""data":[{{"b64_json":"{}"}}]"#,
            requests::long_picture(LONG)
        );
        let (first, second) = if usage_first {
            (counts, data)
        } else {
            (data, counts)
        };
        let body = Bytes::from(format!(r#"{{"created":1789000000,{first},{second}}}"#));
        let meter = Meter::before(move |_| {
            let head = Play::new().head(
                200,
                &[("content-type", "application/json")],
                Framing::Length(body.len()),
            );
            // The second half is sent once the first has been forwarded.
            head.body(body.slice(..LONG))
                .gate()
                .body(body.slice(LONG..))
        });
        let mut connection = Connection::open(meter.gateway.address());
        let body = json!({"model": "images", "prompt": "A wall."});
        connection.send(requests::request(Protocol::Images, &body).bytes());
        let response = connection.response_after_head(|| meter.simulator.release());
        assert!(response.is_complete());
        meter.ended(response).adds((523, 6272));
    }
}

/// The counts at the end of a Messages stream are totals: they replace the counts at its beginning.
#[test]
fn counts_at_the_end_of_a_stream_are_totals() {
    let again = |protocol, document: &mut Value| {
        let is_kept = count(protocol, document);
        if document["type"] == "message_delta" {
            document["usage"] = json!({
                "input_tokens": 1500, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 207,
                "output_tokens": 419,
            });
        }
        is_kept
    };
    let meter = Meter::before(move |request| edited(request, again));
    for client in requests::TEXT_PROTOCOLS {
        meter
            .ask(
                Lane {
                    client,
                    upstream: Protocol::Messages,
                },
                true,
            )
            .adds((1737, 419));
    }
}

/// Some servers send the usage so far with each chunk: the last one counts, which is the largest.
#[test]
fn of_counts_with_each_chunk_the_last_is_counted() {
    let each = |_, document: &mut Value| {
        let output = if document["choices"] == json!([]) {
            317
        } else {
            300
        };
        document["usage"] = json!({"prompt_tokens": 1303, "completion_tokens": output});
        true
    };
    let meter = Meter::before(move |request| edited(request, each));
    for client in [Protocol::Responses, Protocol::Messages] {
        meter
            .ask(
                Lane {
                    client,
                    upstream: Protocol::Chat,
                },
                true,
            )
            .adds((1303, 317));
    }
}

/// The tokens of a Chat stream are counted even if its client requested no usage, and gets none.
#[test]
fn tokens_are_counted_without_include_usage() {
    let meter = Meter::before(|request| edited(request, count));
    for upstream in requests::TEXT_PROTOCOLS {
        let mut body = ask(Protocol::Chat, protocol_name(upstream), "Hello.", true);
        body.as_object_mut().unwrap().remove("stream_options");
        let response = meter.gateway.ask(Protocol::Chat, &body);
        let text = response.text();
        assert!(!text.contains("\"usage\":{"), "{text}");
        // Nor an event that had nothing else.
        assert!(!text.contains("\"choices\":[]"), "{text}");
        meter.ended(response).adds(owed(upstream));
    }
}

/// Usage that the upstream does not send is not invented: neither the log nor the metrics have any.
#[test]
fn s08_usage_that_is_not_sent_is_not_made_up() {
    for upstream in PROTOCOLS {
        let meter = Meter::before(|request| edited(request, forget));
        for lane in lanes().into_iter().filter(|lane| lane.upstream == upstream) {
            for stream in [false, true] {
                meter.ask(lane, stream).adds_nothing();
            }
        }
    }
}

/// A failed attempt counts nothing, even if its error has usage: neither the one before a retry nor
/// the one before the next target.
#[test]
fn attempts_that_failed_count_nothing() {
    let failing = |_: &Asked| {
        let error = json!({"message": "No.", "type": "server_error"});
        Play::json(
            500,
            &json!({"error": error, "usage": usage(Protocol::Chat, None)}),
        )
    };
    let first = Simulator::start(failing).unwrap();
    let second = Simulator::start(|request| edited(request, count)).unwrap();
    let gateway = Config::new("")
        .upstream("first", Protocol::Chat, &first.base_url(), "")
        .upstream("second", Protocol::Chat, &second.base_url(), "")
        .model(
            "chat",
            Protocol::Chat,
            r#"[{ upstream = "first" }, { upstream = "second" }]"#,
        )
        .start(GATEWAY);
    let meter = Meter::of(gateway, second);
    for (requests, client) in (1..).zip([Protocol::Chat, Protocol::Messages]) {
        meter
            .ask(
                Lane {
                    client,
                    upstream: Protocol::Chat,
                },
                false,
            )
            .adds((1303, 317));
        assert_eq!(first.requests().len(), 2 * requests, "one retry each");
    }
}

/// Requests that no model answers have no tokens: token counts, lists and refusals.
#[test]
fn requests_without_an_answer_have_no_tokens() {
    let meter = Meter::before(|request| edited(request, count));
    let mut body = ask(Protocol::Messages, "messages", "Hello.", false);
    body.as_object_mut().unwrap().remove("max_tokens");
    let exchange = meter.send(&Request::post("/v1/messages/count_tokens", &body));
    assert!(
        exchange.response.json()["input_tokens"].is_u64(),
        "{}",
        exchange.response.text()
    );
    exchange.adds_nothing();
    meter
        .send(&Request::post(
            "/v1/chat/completions",
            &json!({"model": "chat"}),
        ))
        .adds_nothing();
    meter.send(&Request::get("/v1/models")).adds_nothing();
}

/// A gateway, and the tokens of its requests so far.
struct Meter {
    gateway: Gateway,
    simulator: Simulator,
    so_far: Cell<(u64, u64)>,
}

/// A request that has ended, with its log line.
struct Exchange<'a> {
    meter: &'a Meter,
    response: Response,
    line: Value,
}

impl Meter {
    /// A gateway in front of an upstream of each protocol that behaves like this.
    fn before(behave: impl Fn(&Asked) -> Play + Send + Sync + 'static) -> Self {
        let simulator = Simulator::start(behave).unwrap();
        Self::of(GATEWAY.before(&simulator, "", ""), simulator)
    }

    fn of(gateway: Gateway, simulator: Simulator) -> Self {
        Self {
            gateway,
            simulator,
            so_far: Cell::default(),
        }
    }

    /// Sends a request on this lane, which succeeds.
    #[track_caller]
    fn ask(&self, lane: Lane, stream: bool) -> Exchange<'_> {
        let response = self.gateway.ask(
            lane.client,
            &ask(lane.client, protocol_name(lane.upstream), "Hello.", stream),
        );
        assert_eq!(
            response.status,
            200,
            "{lane:?}, stream: {stream}: {}",
            response.text()
        );
        self.ended(response)
    }

    /// Sends a request.
    #[track_caller]
    fn send(&self, request: &Request) -> Exchange<'_> {
        self.ended(
            request
                .clone()
                .bearer(CLIENT_KEY)
                .send(self.gateway.address()),
        )
    }

    /// Waits until the request that got this response is logged.
    #[track_caller]
    fn ended(&self, response: Response) -> Exchange<'_> {
        let line = log::line(&self.gateway, &response);
        Exchange {
            meter: self,
            response,
            line,
        }
    }

    /// The counters of input and output.
    #[track_caller]
    fn counters(&self) -> (f64, f64) {
        let of = |direction| {
            self.gateway.sum(&format!(
                "sluicegate_tokens_total{{direction=\"{direction}\"}} "
            ))
        };
        let (input, output) = (of("input"), of("output"));
        assert_eq!(
            self.gateway.sum("sluicegate_tokens_total"),
            input + output,
            "there is no other label"
        );
        (input, output)
    }
}

impl Exchange<'_> {
    /// Asserts that the log has these tokens, and that the metrics have increased by them.
    #[track_caller]
    fn adds(self, (input, output): (u64, u64)) {
        let line = &self.line;
        assert_eq!(
            (&line["input_tokens"], &line["output_tokens"]),
            (&json!(input), &json!(output)),
            "{line}"
        );
        let (inputs, outputs) = self.meter.so_far.get();
        self.meter.so_far.set((inputs + input, outputs + output));
        self.check_counters();
    }

    /// Asserts that the log has no tokens, and that the metrics have not increased.
    #[track_caller]
    fn adds_nothing(self) {
        let line = &self.line;
        assert_eq!(
            (&line["input_tokens"], &line["output_tokens"]),
            (&Value::Null, &Value::Null),
            "{line}"
        );
        self.check_counters();
    }

    #[track_caller]
    fn check_counters(&self) {
        let (inputs, outputs) = self.meter.so_far.get();
        assert_eq!(
            self.meter.counters(),
            (inputs as f64, outputs as f64),
            "{}",
            self.line
        );
    }
}

/// Removes the usage from a document. A chunk with only usage is left out.
fn forget(protocol: Protocol, document: &mut Value) -> bool {
    for place in PLACES {
        if let Some(found) = document.pointer_mut(place) {
            // A Messages server cannot leave it out.
            *found = if protocol == Protocol::Messages {
                json!({})
            } else {
                Value::Null
            };
        }
    }
    document["choices"] != json!([])
}

/// The input and output tokens of [`usage`].
fn owed(upstream: Protocol) -> (u64, u64) {
    match upstream {
        Protocol::Responses => (1101, 211),
        Protocol::Chat => (1303, 317),
        Protocol::Messages => (1237, 419),
        Protocol::Images => (523, 6272),
    }
}

/// An edit as a form.
fn form(stream: bool) -> Request {
    let form = Form::default()
        .text("model", "images")
        .text("prompt", "A sail.")
        .text("stream", &stream.to_string());
    form.file("image", &STANDARD.decode(RED).unwrap()).request()
}

const EDITS: &str = "/v1/images/edits";
/// More than is buffered before a reply is streamed through.
const LONG: usize = 17 << 10;
