//! Correct observations, from which planted violations start.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use simulator::{Cut, Protocol, Request};
use testkit::{End, Response, UPSTREAM_KEY};
use tokio::time::Instant;

use crate::fault::{
    Change, Coded, Coding, Fault, Foreign, Hollow, Kind, Leave, Place, Spot, Transport, Upload,
};
use crate::harness::{Exchange, Leftovers, Observed};
use crate::judge::{Verdict, judge};
use crate::metrics::Counted;
use crate::panics;
use crate::upstream_response::UpstreamResponse;
use crate::visit::Client;

/// A fault, and everything that was observed of it.
pub(super) struct Sample {
    pub(super) fault: Fault,
    pub(super) observed: Observed,
    pub(super) log: String,
    pub(super) panics: Vec<String>,
}

impl Sample {
    /// A correct stream of Chat from an upstream of Chat.
    pub(super) fn stream() -> Self {
        let fault = Fault::planted(Protocol::Chat, Protocol::Chat, true, Kind::Nothing);
        let sent = chat(&[TEXT, FINISH, USAGE, DONE], "their-model");
        let response = response(200, EVENTS, &chat(&[TEXT, FINISH, USAGE, DONE], "chat"));
        let mut sample = Self::new(fault, sent, response);
        sample.observed.counted =
            counted(&["200"], &["completed"], &[("input", 5.0), ("output", 4.0)]);
        sample
    }

    /// The same stream, which the upstream resets in the middle.
    pub(super) fn failed() -> Self {
        let mut sample = Self::stream();
        sample.fault.kind = Kind::Cut(Spot::MIDDLE, Cut::Reset);
        sample.write(&[TEXT]);
        (sample.sent().is_whole, sample.sent().is_closed) = (false, true);
        sample.read(&[TEXT, FAILED]);
        sample.observed.counted = counted(&["200 upstream_error"], &["upstream_truncated"], &[]);
        sample
    }

    /// A plain reply of Chat, translated for a client of Messages.
    pub(super) fn reply() -> Self {
        let fault = Fault::planted(Protocol::Messages, Protocol::Chat, false, Kind::Nothing);
        let mut sample = Self::new(fault, COMPLETION.to_owned(), response(200, JSON, MESSAGE));
        sample.observed.counted = counted(&["200"], &[], &[("input", 5.0), ("output", 4.0)]);
        sample
    }

    /// A refusal, for which the upstream has sent this status and body.
    pub(super) fn refusal(
        client: Protocol,
        sent: (u16, &str),
        status: u16,
        body: &str,
        code: &str,
        outcome: &str,
    ) -> Self {
        let fault = Fault::planted(
            client,
            Protocol::Chat,
            true,
            Kind::Hollow(Hollow::Status(sent.0)),
        );
        let mut sample = Self::new(fault, sent.1.to_owned(), response(status, JSON, body));
        sample.sent().status = sent.0;
        sample.add_header("request-id", "req_1");
        if matches!(status, 429 | 503 | 529) {
            sample.add_header("retry-after", "2");
        }
        sample.observed.counted = counted(&[&format!("{status} {code}")], &[outcome], &[]);
        sample
    }

    /// A refusal after the upstream's 500.
    pub(super) fn refused() -> Self {
        Self::refusal(
            Protocol::Chat,
            (500, "{}"),
            502,
            UPSTREAM_ERROR,
            "upstream_error",
            "upstream_error",
        )
    }

    pub(super) fn new(fault: Fault, sent: String, response: Response) -> Self {
        let sent = UpstreamResponse {
            status: 200,
            body: sent.into(),
            is_whole: true,
            is_closed: false,
        };
        let exchange = Exchange {
            request: request(&fault),
            place: Place::First,
            response: sent,
            written_before: Vec::new(),
        };
        let client = Client {
            response: Some(response),
            stayed: true,
            sent_head: true,
            sent_whole: true,
        };
        let observed = Observed {
            client,
            exchanges: vec![exchange],
            counted: Counted::default(),
            leftovers: Leftovers::default(),
            bystander: None,
        };
        let log = line(&fault.model, &fault.model);
        Self {
            fault,
            observed,
            log,
            panics: Vec::new(),
        }
    }

    pub(super) fn response(&mut self) -> &mut Response {
        self.observed.client.response.as_mut().unwrap()
    }

    pub(super) fn add_header(&mut self, name: &str, value: &str) {
        let header = (name.to_owned(), value.to_owned());
        self.response().headers.push(header);
    }

    /// Replaces the events that the client read.
    pub(super) fn read(&mut self, events: &[&str]) {
        self.response().body = chat(events, "chat").into();
    }

    /// Replaces the events that the upstream wrote.
    pub(super) fn write(&mut self, events: &[&str]) {
        self.sent().body = chat(events, "their-model").into();
    }

    pub(super) fn count_requests(&mut self, outcomes: &[&str]) {
        self.observed.counted.requests = once(outcomes);
    }

    pub(super) fn count_streams(&mut self, outcomes: &[&str]) {
        self.observed.counted.streams = once(outcomes);
    }

    /// The upstream request.
    pub(super) fn request(&mut self) -> &mut Request {
        &mut self.observed.exchanges[0].request
    }

    pub(super) fn sent(&mut self) -> &mut UpstreamResponse {
        &mut self.observed.exchanges[0].response
    }

    /// Replaces one text by another in the response that the client read.
    pub(super) fn change_response(&mut self, from: &str, to: &str) {
        let response = self.response();
        assert!(
            response.text().contains(from),
            "{from}: {}",
            response.text()
        );
        response.body = response.text().replace(from, to).into();
    }

    /// Replaces one text by another in the body that the upstream wrote.
    pub(super) fn change_upstream(&mut self, from: &str, to: &str) {
        let sent = String::from_utf8(self.sent().body.clone()).unwrap();
        assert!(sent.contains(from), "{from}: {sent}");
        self.sent().body = sent.replace(from, to).into();
    }

    /// Repeats the upstream request, with the same response.
    pub(super) fn ask_again(&mut self) {
        let Exchange {
            request, response, ..
        } = &self.observed.exchanges[0];
        let again = Exchange {
            request: request.clone(),
            place: Place::First,
            response: response.clone(),
            written_before: Vec::new(),
        };
        self.observed.exchanges.push(again);
    }

    pub(super) fn judged(&self) -> Result<Verdict, String> {
        // Drops the panics of this test, which no task of the campaign caused.
        panics::take();
        let judge = || judge(&self.fault, &self.observed, &self.log, &self.panics);
        let judged = catch_unwind(AssertUnwindSafe(judge));
        judged.map_err(|message| match message.downcast::<String>() {
            Ok(message) => *message,
            Err(message) => (*message.downcast::<&str>().unwrap()).to_owned(),
        })
    }
}

/// The complete response that a client reads.
pub(super) fn response(status: u16, kind: &str, body: &str) -> Response {
    Response::new(
        status,
        vec![("content-type".to_owned(), kind.to_owned())],
        body.into(),
    )
}

/// The request that the upstream receives.
pub(super) fn request(fault: &Fault) -> Request {
    let body = format!(
        r#"{{"model":"their-model","stream":{},"messages":"{}"}}"#,
        fault.stream,
        fault.nonce()
    );
    Request {
        number: 0,
        connection: 0,
        nth_on_connection: 0,
        method: "POST".to_owned(),
        path: "/v1/chat/completions".to_owned(),
        headers: vec![("authorization".to_owned(), format!("Bearer {UPSTREAM_KEY}"))],
        body: body.into(),
        at: Instant::now().into_std(),
    }
}

pub(super) fn counted(requests: &[&str], streams: &[&str], tokens: &[(&str, f64)]) -> Counted {
    let tokens = tokens
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count));
    Counted {
        requests: once(requests),
        streams: once(streams),
        tokens: tokens.collect(),
    }
}

/// One of each.
pub(super) fn once(names: &[&str]) -> BTreeMap<String, f64> {
    names.iter().map(|name| ((*name).to_owned(), 1.0)).collect()
}

/// The line in the log of a request for this model, which this upstream answered.
pub(super) fn line(model: &str, upstream: &str) -> String {
    format!(
        " INFO access: request_id=\"req_1\" route=\"chat_completions\" model=\"{model}\" target=\"{upstream}\" \
         status=200 input_tokens=5 output_tokens=4 took_ms=1.0\n"
    )
}

/// A stream of Chat with these events after its first.
pub(super) fn chat(events: &[&str], model: &str) -> String {
    let events = [&[ROLE], events].concat();
    events
        .iter()
        .map(|data| format!("data: {}\n\n", data.replace("MODEL", model)))
        .collect()
}

/// A refusal after a request that the upstream got twice.
pub(super) fn asked_twice() -> Sample {
    let mut sample = Sample::refused();
    sample.ask_again();
    // The head and a comment may have been sent.
    sample.observed.exchanges[1].written_before =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\ne\r\n: keep-alive\n\n\r\n".into();
    sample
}

/// A refusal of a request that was never sent completely.
pub(super) fn half() -> Sample {
    let mut sample = Sample::refused();
    sample.fault.kind = Kind::Upload(Spot::MIDDLE, Leave::Still);
    let client = &mut sample.observed.client;
    (client.sent_whole, client.stayed) = (false, false);
    sample.observed.exchanges.clear();
    sample.observed.counted = counted(&["400 invalid_value"], &[], &[]);
    let error = UPSTREAM_ERROR.replace("upstream_error", "invalid_value");
    *sample.response() = response(400, JSON, &error);
    sample
}

/// A refusal of a whole request that ends too early for its content coding.
pub(super) fn undecodable() -> Sample {
    let mut sample = half();
    sample.fault.kind = Kind::Nothing;
    sample.fault.coded = Some(Coded::Request(Coding::Gzip, Upload::Cut(Spot::MIDDLE)));
    let client = &mut sample.observed.client;
    (client.sent_whole, client.stayed) = (true, true);
    let error = UPSTREAM_ERROR.replace("upstream_error", "invalid_value");
    let error = error.replace("server_error", "invalid_request_error");
    *sample.response() = response(400, JSON, &error);
    sample
}

/// A stream whose client disconnects before it.
pub(super) fn gone() -> Sample {
    let mut sample = Sample::stream();
    sample.fault.kind = Kind::Leaves(Spot::MIDDLE, Leave::Close);
    let client = &mut sample.observed.client;
    (client.response, client.stayed) = (None, false);
    sample.observed.counted = counted(&["499"], &["client_gone"], &[]);
    sample
}

/// A long reply of pictures, which is streamed through, and truncated where the upstream's is.
pub(super) fn broken_off() -> Sample {
    let kind = Kind::Cut(Spot::MIDDLE, Cut::Reset);
    let mut fault = Fault::planted(Protocol::Images, Protocol::Images, false, kind);
    fault.drawing = (0..)
        .map(|number| Fault::draw(1, number).drawing)
        .find(|it| it.path() == IMAGES)
        .unwrap();
    let body = format!("{{\"data\":[{{\"b64_json\":\"{}", "A".repeat(20 << 10));
    let mut sample = Sample::new(fault, body.clone(), response(200, JSON, &body[..9_000]));
    sample.request().path = IMAGES.to_owned();
    (sample.sent().is_whole, sample.sent().is_closed) = (false, true);
    sample.response().end = End::Closed;
    sample.observed.counted = counted(&["200"], &[], &[]);
    sample
}

/// A stream of Responses over a WebSocket, from an upstream of Chat.
pub(super) fn over_websocket() -> Sample {
    let mut fault = Fault::planted(Protocol::Responses, Protocol::Chat, true, Kind::Nothing);
    fault.transport = Transport::WebSocket;
    let sent = chat(&[TEXT, FINISH, USAGE, DONE], "their-model");
    let events = RESPONSE_EVENTS.map(|data| format!("data: {data}\n\n"));
    let mut sample = Sample::new(fault, sent, response(200, EVENTS, &events.concat()));
    let tokens = [("input", 5.0), ("output", 4.0)];
    sample.observed.counted = counted(&["101", "200"], &["completed"], &tokens);
    sample.log.insert_str(0, HANDSHAKE);
    sample
}

/// A stream with one changed byte, in a place where the change does no harm.
pub(super) fn changed() -> Sample {
    let mut sample = Sample::stream();
    sample.fault.kind = Kind::Changed(Spot::MIDDLE, Change::Byte(b'x'));
    sample.change_upstream("You said", "You xaid");
    sample
}

/// A client of Chat that requests the answer of a real server, which succeeds, and gets it.
pub(super) fn of_real_server() -> Sample {
    let mut sample = Sample::stream();
    sample.fault.kind = Kind::Foreign(Foreign::planted("generic-chat/no-done", Protocol::Chat));
    sample.change_response("You said: nonce-00000007", "Soft rain.");
    sample
}

/// One that fails, which is reported to its client.
pub(super) fn of_broken_server() -> Sample {
    let mut sample = Sample::failed();
    let failing = Foreign::planted("generic-chat/finish-timeout", Protocol::Chat);
    sample.fault.kind = Kind::Foreign(failing);
    sample
}

pub(super) const IMAGES: &str = "/v1/images/generations";
pub(super) const EVENTS: &str = "text/event-stream; charset=utf-8";
pub(super) const JSON: &str = "application/json";

pub(super) const ROLE: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
pub(super) const TEXT: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":{"content":"You said: nonce-00000007"},"finish_reason":null}]}"#;
pub(super) const FINISH: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
pub(super) const USAGE: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}"#;
pub(super) const DONE: &str = "[DONE]";
pub(super) const FAILED: &str = r#"{"error":{"message":"The server had an error.","type":"server_error","param":null,"code":"server_error"}}"#;
pub(super) const TEXT_OF_THEIRS: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"their-model","choices":[{"index":0,"delta":{"content""#;
pub(super) const USAGE_OF_THEIRS: &str =
    r#""usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}"#;

pub(super) const COMPLETION: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"their-model","choices":[{"index":0,"message":{"role":"assistant","content":"You said: nonce-00000007","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}"#;
pub(super) const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"chat","content":[{"type":"text","text":"You said: nonce-00000007"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":4}}"#;
pub(super) const RESPONSE: &str = r#"{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"MODEL","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"You said: nonce-00000007","annotations":[]}]}],"error":null,"incomplete_details":null,"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":9}}"#;
/// The stream of the response above.
pub(super) const RESPONSE_EVENTS: [&str; 9] = [
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"chat","output":[],"error":null,"incomplete_details":null,"usage":null}}"#,
    r#"{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"chat","output":[],"error":null,"incomplete_details":null,"usage":null}}"#,
    r#"{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
    r#"{"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
    r#"{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"You said: nonce-00000007"}"#,
    r#"{"type":"response.output_text.done","sequence_number":5,"item_id":"msg_1","output_index":0,"content_index":0,"text":"You said: nonce-00000007"}"#,
    r#"{"type":"response.content_part.done","sequence_number":6,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"You said: nonce-00000007","annotations":[]}}"#,
    r#"{"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"You said: nonce-00000007","annotations":[]}]}}"#,
    r#"{"type":"response.completed","sequence_number":8,"response":{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"chat","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"You said: nonce-00000007","annotations":[]}]}],"error":null,"incomplete_details":null,"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":9}}}"#,
];
/// The line in the log of the handshake of a WebSocket.
pub(super) const HANDSHAKE: &str =
    " INFO access: request_id=\"req_0\" route=\"websocket\" status=101 took_ms=1.0\n";
pub(super) const UPSTREAM_ERROR: &str = r#"{"error":{"message":"The upstream returned an invalid reply.","type":"server_error","param":null,"code":"upstream_error"}}"#;
pub(super) const TIMEOUT: &str = r#"{"error":{"message":"The upstream did not answer in time.","type":"server_error","param":null,"code":"upstream_timeout"}}"#;

pub(super) const LARGE: &str = "Request exceeds the maximum size";
pub(super) const FAULTY: &str = "The upstream returned an invalid reply.";
pub(super) const LATE: &str = "The upstream did not answer in time.";
pub(super) const WAIT: &str = "Rate limit reached. Please try again in 2s.";
pub(super) const WAIT_OF_MESSAGES: &str =
    "This request would exceed your account's rate limit. Please try again later.";
pub(super) const BUSY: &str = "Our servers are currently overloaded. Please try again later.";
pub(super) const UNSAFE: &str = "Your request was rejected as a result of our safety system.";
pub(super) const UNSAFE_OF_MESSAGES: &str = "Output blocked by content filtering policy";
