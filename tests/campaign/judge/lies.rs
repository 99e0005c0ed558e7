//! Tests of the judge: at least one planted violation for each requirement that it checks, beside
//! the correct responses that it accepts.

mod targets;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use simulator::scenario::named;
use simulator::{Cut, Protocol, Request};
use testkit::requests::Question;
use testkit::{CLIENT_KEY, End, Response, UPSTREAM_KEY};
use tokio::time::Instant;

use super::{Verdict, judge};
use crate::fault::{Change, Fault, Foreign, Hollow, Kind, Leave, Place, Spot};
use crate::harness::{Exchange, Leftovers, Observed};
use crate::metrics::Counted;
use crate::panics;
use crate::upstream_response::UpstreamResponse;
use crate::visit::Client;

/// A fault, and everything that was observed of it.
struct Sample {
    fault: Fault,
    observed: Observed,
    log: String,
    panics: Vec<String>,
}

/// A violation, and a part of the message with which the judge reports it.
type Violation = (fn(&mut Sample), &'static str);

impl Sample {
    /// A correct stream of Chat from an upstream of Chat.
    fn stream() -> Self {
        let fault = Fault::planted(Protocol::Chat, Protocol::Chat, true, Kind::Nothing);
        let sent = chat(&[TEXT, FINISH, USAGE, DONE], "their-model");
        let response = response(200, EVENTS, &chat(&[TEXT, FINISH, USAGE, DONE], "chat"));
        let mut sample = Self::new(fault, sent, response);
        sample.observed.counted =
            counted(&["200"], &["completed"], &[("input", 5.0), ("output", 4.0)]);
        sample
    }

    /// The same stream, of which the upstream resets the second half.
    fn failed() -> Self {
        let mut sample = Self::stream();
        sample.fault.kind = Kind::Cut(Spot::MIDDLE, Cut::Reset);
        sample.sent().body = chat(&[TEXT], "their-model").into();
        (sample.sent().is_whole, sample.sent().is_closed) = (false, true);
        sample.response().body = chat(&[TEXT, FAILED], "chat").into();
        sample.observed.counted = counted(&["200 upstream_error"], &["upstream_truncated"], &[]);
        sample
    }

    /// A plain reply of Chat, translated for a client of Messages.
    fn reply() -> Self {
        let fault = Fault::planted(Protocol::Messages, Protocol::Chat, false, Kind::Nothing);
        let mut sample = Self::new(fault, COMPLETION.to_owned(), response(200, JSON, MESSAGE));
        sample.observed.counted = counted(&["200"], &[], &[("input", 5.0), ("output", 4.0)]);
        sample
    }

    /// A refusal, for which the upstream has sent this status and body.
    fn refusal(
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
        sample
            .response()
            .headers
            .push(("request-id".to_owned(), "req_1".to_owned()));
        if matches!(status, 429 | 503 | 529) {
            sample
                .response()
                .headers
                .push(("retry-after".to_owned(), "2".to_owned()));
        }
        sample.observed.counted = counted(&[&format!("{status} {code}")], &[outcome], &[]);
        sample
    }

    /// A refusal after the upstream's 500.
    fn refused() -> Self {
        Self::refusal(
            Protocol::Chat,
            (500, "{}"),
            502,
            UPSTREAM_ERROR,
            "upstream_error",
            "upstream_error",
        )
    }

    fn new(fault: Fault, sent: String, response: Response) -> Self {
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

    fn response(&mut self) -> &mut Response {
        self.observed.client.response.as_mut().unwrap()
    }

    fn sent(&mut self) -> &mut UpstreamResponse {
        &mut self.observed.exchanges[0].response
    }

    /// Replaces one text by another in what the client read.
    fn change_response(&mut self, from: &str, to: &str) {
        let response = self.response();
        assert!(
            response.text().contains(from),
            "{from}: {}",
            response.text()
        );
        response.body = response.text().replace(from, to).into();
    }

    /// Replaces one text by another in what the upstream wrote.
    fn change_upstream(&mut self, from: &str, to: &str) {
        let sent = String::from_utf8(self.sent().body.clone()).unwrap();
        assert!(sent.contains(from), "{from}: {sent}");
        self.sent().body = sent.replace(from, to).into();
    }

    /// Repeats the upstream request, with the same response.
    fn ask_again(&mut self) {
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

    fn judged(&self) -> Result<Verdict, String> {
        // Panics of this test are not those of a task of the campaign.
        panics::take();
        let Self {
            fault,
            observed,
            log,
            panics,
        } = self;
        let judged = catch_unwind(AssertUnwindSafe(|| judge(fault, observed, log, panics)));
        judged.map_err(|message| match message.downcast::<String>() {
            Ok(message) => *message,
            Err(message) => (*message.downcast::<&str>().unwrap()).to_owned(),
        })
    }
}

/// The complete response that a client reads.
fn response(status: u16, kind: &str, body: &str) -> Response {
    Response::new(
        status,
        vec![("content-type".to_owned(), kind.to_owned())],
        body.into(),
    )
}

/// The request that the upstream receives.
fn request(fault: &Fault) -> Request {
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

fn counted(requests: &[&str], streams: &[&str], tokens: &[(&str, f64)]) -> Counted {
    let once = |names: &[&str]| {
        names
            .iter()
            .map(|name| ((*name).to_owned(), 1.0))
            .collect::<BTreeMap<_, _>>()
    };
    let tokens = tokens
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect();
    Counted {
        requests: once(requests),
        streams: once(streams),
        tokens,
    }
}

/// The line in the log of a request for this model, which this upstream answered.
fn line(model: &str, upstream: &str) -> String {
    format!(
        " INFO access: request_id=\"req_1\" route=\"chat_completions\" model=\"{model}\" target=\"{upstream}\" \
         status=200 input_tokens=5 output_tokens=4 took_ms=1.0\n"
    )
}

/// A stream of Chat with these events after its first.
fn chat(events: &[&str], model: &str) -> String {
    let events = [&[ROLE], events].concat();
    events
        .iter()
        .map(|data| format!("data: {}\n\n", data.replace("MODEL", model)))
        .collect()
}

/// Asserts that the sample is accepted, and that each violation in it is reported with its message.
fn check(sample: fn() -> Sample, verdict: Verdict, violations: &[Violation]) {
    assert_eq!(sample().judged(), Ok(verdict));
    for (violation, notice) in violations {
        let mut sample = sample();
        violation(&mut sample);
        let message = sample.judged().expect_err(notice);
        assert!(
            message.contains(notice),
            "{notice} is reported as: {message}"
        );
    }
}

#[test]
fn a_stream_ends_once_and_as_its_upstream_did() {
    let lies: [Violation; 10] = [
        (
            |it| it.change_response("data: [DONE]", "data: [DONE]\n\ndata: [DONE]"),
            "exactly one end",
        ),
        (
            |it| it.change_response("data: [DONE]\n\n", ""),
            "exactly one end",
        ),
        (|it| it.response().end = End::Closed, "came to its end"),
        (
            |it| it.response().body.extend(b"data: {\"a\":1}\n\n"),
            "{\"a\":1}",
        ),
        (
            |it| {
                it.change_upstream(
                    "data: [DONE]\n\n",
                    "data: {\"error\":{}}\n\ndata: [DONE]\n\n",
                );
            },
            "a false success",
        ),
        (
            |it| it.change_upstream(TEXT_OF_THEIRS, "{"),
            "a false success",
        ),
        (
            |it| {
                (it.sent().body, it.sent().is_whole) =
                    (chat(&[TEXT, FINISH], "their-model").into(), false);
            },
            "a false success",
        ),
        (|it| it.sent().status = 500, "a false success"),
        (|it| it.fault.stream = false, "a stream, or none"),
        (|it| it.observed.client.response = None, "no answer"),
    ];
    check(Sample::stream, Verdict::StreamWhole, &lies);
}

#[test]
fn a_stream_says_what_its_upstream_said() {
    let lies: [Violation; 8] = [
        (
            |it| it.change_response("You said: ", "You said "),
            "the words of the answer",
        ),
        (
            |it| it.change_response("nonce-00000007", "nonce-00000008"),
            "the words of the answer",
        ),
        (|it| it.fault.number = 8, "the request of another client"),
        (
            |it| it.change_response("\"model\":\"chat\"", "\"model\":\"their-model\""),
            "the model is",
        ),
        (
            |it| it.change_response("\"completion_tokens\":4", "\"completion_tokens\":5"),
            "the usage",
        ),
        (
            |it| it.change_upstream(USAGE_OF_THEIRS, "\"usage\":null"),
            "the usage",
        ),
        (
            |it| it.change_response("\"stop\"", "\"length\""),
            "whether the limit on the output cut it",
        ),
        (
            |it| {
                it.response()
                    .headers
                    .push(("x-sluicegate-dropped".to_owned(), "tools".to_owned()));
            },
            "dropped:",
        ),
    ];
    check(Sample::stream, Verdict::StreamWhole, &lies);
}

#[test]
fn a_stream_that_fails_says_so_and_why() {
    let lies: [Violation; 9] = [
        (|it| it.change_response(FAILED, "[DONE]"), "[DONE]"),
        (
            |it| it.change_response(FAILED, &[FAILED, "\n\ndata: [DONE]"].concat()),
            "exactly one end",
        ),
        (
            |it| it.change_response("nonce-00000007", "nonce-00000007 and more"),
            "is not how",
        ),
        (
            |it| {
                it.change_response(
                    "\"code\":\"server_error\"",
                    "\"code\":\"rate_limit_exceeded\"",
                );
            },
            "the stream fails with",
        ),
        (
            |it| it.change_response("\"model\":\"chat\"", "\"model\":\"other\""),
            "the model is",
        ),
        (
            |it| it.sent().body = chat(&[TEXT, FINISH, USAGE, DONE], "their-model").into(),
            "a success is withheld",
        ),
        (
            |it| it.observed.counted.streams = counted(&[], &["completed"], &[]).streams,
            "\"completed\"",
        ),
        (
            |it| it.observed.counted.streams = counted(&[], &["timeout"], &[]).streams,
            "\"timeout\"",
        ),
        (
            |it| it.observed.counted.requests = counted(&["200"], &[], &[]).requests,
            "requests were counted as [\"200\"]",
        ),
    ];
    check(Sample::failed, Verdict::StreamFailed, &lies);
}

/// A scenario without a fault, and a stall of the upstream, have different ends.
#[test]
fn an_end_fits_its_fault() {
    let mut sample = Sample::failed();
    sample.fault.kind = Kind::Scenario(named("sse-crlf").unwrap());
    assert!(sample.judged().unwrap_err().contains("nothing went wrong"));
    sample.fault = sample.fault.slow();
    assert_eq!(sample.judged(), Ok(Verdict::StreamFailed));

    let mut sample = Sample::failed();
    (sample.fault.kind, sample.sent().is_closed) = (Kind::Cut(Spot::MIDDLE, Cut::Hold), false);
    assert!(sample.judged().unwrap_err().contains("upstream_error"));
    sample.observed.counted = counted(&["200 upstream_timeout"], &["timeout"], &[]);
    assert_eq!(sample.judged(), Ok(Verdict::StreamFailed));

    let mut sample = Sample::failed();
    sample.fault.kind = Kind::Shutdown(Spot::MIDDLE);
    assert!(sample.judged().unwrap_err().contains("upstream_error"));
    sample.observed.counted = counted(&["200 server_error"], &["shutdown"], &[]);
    assert_eq!(sample.judged(), Ok(Verdict::StreamFailed));
}

#[test]
fn a_plain_reply_is_all_that_the_upstream_said() {
    let lies: [Violation; 13] = [
        (
            |it| it.change_response("You said: nonce-00000007", "nonce-00000007"),
            "the words of the answer",
        ),
        (
            |it| it.change_response("\"input_tokens\":5", "\"input_tokens\":6"),
            "the usage",
        ),
        (
            |it| it.change_response("\"model\":\"chat\"", "\"model\":\"their-model\""),
            "the model is",
        ),
        (
            |it| it.change_response("end_turn", "max_tokens"),
            "whether the limit on the output cut it",
        ),
        (
            |it| it.change_upstream("\"stop\"", "null"),
            "a false success",
        ),
        (
            |it| it.change_upstream("\"usage\":", "\"error\":{},\"usage\":"),
            "a false success",
        ),
        (|it| it.sent().is_whole = false, "a false success"),
        (
            |it| it.response().end = End::Closed,
            "a plain reply breaks off",
        ),
        (
            |it| it.change_response("\"end_turn\"", "null"),
            "a reply without success",
        ),
        (
            |it| it.response().headers[0].1 = "text/html".to_owned(),
            "text/html",
        ),
        (
            |it| it.observed.counted.streams = counted(&[], &["completed"], &[]).streams,
            "where 0 were expected",
        ),
        (|it| it.fault.upstream = Protocol::Messages, "another path"),
        (
            |it| {
                it.fault.stream = true;
                it.observed.exchanges[0].request = request(&it.fault);
            },
            "a plain reply where a stream was requested",
        ),
    ];
    check(Sample::reply, Verdict::Reply, &lies);
}

/// Dropped fields are reported, in the error format of the client's protocol.
#[test]
fn dropped_fields_are_reported() {
    let mut sample = Sample::reply();
    sample.fault.question = Question::Reasoning;
    assert_eq!(sample.judged(), Ok(Verdict::Reply));
    sample.fault.client = Protocol::Responses;
    let completed = RESPONSE.replace("MODEL", "chat");
    *sample.response() = response(200, JSON, &completed);
    assert!(
        sample
            .judged()
            .unwrap_err()
            .contains("dropped: None, not Some(\"reasoning.summary\")")
    );
    sample.response().headers.push((
        "x-sluicegate-dropped".to_owned(),
        "reasoning.summary".to_owned(),
    ));
    assert_eq!(sample.judged(), Ok(Verdict::Reply));
}

#[test]
fn a_refusal_explains_why_there_is_no_answer() {
    let lies: [Violation; 8] = [
        (|it| it.response().status = 504, "is not of the closed list"),
        (
            |it| it.change_response("upstream_error", "server_error"),
            "is not of the closed list",
        ),
        (
            |it| it.response().body = "<html>".into(),
            "is not of the closed list",
        ),
        (
            |it| *it.response() = response(504, JSON, TIMEOUT),
            "(504, \"upstream_timeout\") is reported",
        ),
        (
            |it| {
                it.response()
                    .headers
                    .push(("retry-after".to_owned(), "2".to_owned()));
            },
            "retry-after of status 502",
        ),
        (|it| it.response().end = End::Closed, "a refusal breaks off"),
        (
            |it| it.observed.counted.streams = counted(&[], &["shed"], &[]).streams,
            "\"shed\"",
        ),
        (
            |it| it.observed.counted.requests = counted(&["500 server_error"], &[], &[]).requests,
            "500 server_error",
        ),
    ];
    check(Sample::refused, Verdict::Refused, &lies);
}

/// A status of the upstream has one meaning, which each protocol expresses in its own way.
#[test]
fn a_refusal_is_that_of_the_upstream_s_status() {
    for (sent, code, outcome, openai, messages) in [
        (
            400,
            "invalid_value",
            "refused",
            (400, "invalid_request_error", "No."),
            (400, "invalid_request_error", "No."),
        ),
        (
            422,
            "invalid_value",
            "refused",
            (400, "invalid_request_error", "No."),
            (400, "invalid_request_error", "No."),
        ),
        (
            413,
            "request_too_large",
            "refused",
            (413, "invalid_request_error", "No."),
            (413, "request_too_large", LARGE),
        ),
        (
            401,
            "upstream_error",
            "upstream_error",
            (502, "server_error", FAULTY),
            (502, "api_error", FAULTY),
        ),
        (
            404,
            "upstream_error",
            "upstream_error",
            (502, "server_error", FAULTY),
            (502, "api_error", FAULTY),
        ),
        (
            408,
            "upstream_timeout",
            "timeout",
            (504, "server_error", LATE),
            (504, "timeout_error", LATE),
        ),
        (
            429,
            "rate_limit_exceeded",
            "shed",
            (429, "rate_limit_error", WAIT),
            (429, "rate_limit_error", WAIT),
        ),
        (
            503,
            "service_unavailable",
            "shed",
            (503, "server_error", BUSY),
            (529, "overloaded_error", "Overloaded"),
        ),
        (
            529,
            "service_unavailable",
            "shed",
            (503, "server_error", BUSY),
            (529, "overloaded_error", "Overloaded"),
        ),
    ] {
        for (client, (status, kind, sentence)) in
            [(Protocol::Chat, openai), (Protocol::Messages, messages)]
        {
            let body = match client {
                Protocol::Messages => format!(
                    r#"{{"type":"error","error":{{"type":"{kind}","message":"{sentence}"}},"request_id":"req_1"}}"#
                ),
                _ => format!(
                    r#"{{"error":{{"message":"{sentence}","type":"{kind}","param":null,"code":"{code}"}}}}"#
                ),
            };
            let sample =
                |sent| Sample::refusal(client, (sent, "{}"), status, &body, code, outcome).judged();
            assert_eq!(sample(sent), Ok(Verdict::Refused), "{sent} for {client:?}");
            // The response to a status with another meaning.
            let other = if code == "upstream_error" { 429 } else { 500 };
            assert!(
                sample(other)
                    .unwrap_err()
                    .contains("is reported, and not one of"),
                "{sent} for {client:?}"
            );
        }
    }
}

#[test]
fn nothing_is_left_over() {
    let lies: [Violation; 6] = [
        (|it| it.observed.leftovers.permits = 1, "permits: 1"),
        (|it| it.observed.leftovers.connections = 1, "connections: 1"),
        (|it| it.observed.leftovers.tasks = 1, "tasks: 1"),
        (|it| it.observed.leftovers.panics = 1.0, "panics: 1.0"),
        (|it| it.observed.leftovers.hung = true, "hung: true"),
        (
            |it| it.panics.push("index out of bounds".to_owned()),
            "a task panicked: index out of bounds",
        ),
    ];
    check(Sample::stream, Verdict::StreamWhole, &lies);
}

#[test]
fn nobody_sees_what_is_not_theirs() {
    let lies: [Violation; 10] = [
        (|it| it.log += UPSTREAM_KEY, "the log has"),
        (|it| it.log += "a call to internal-host-7", "the log has"),
        (
            |it| it.change_response("You said", CLIENT_KEY),
            "the body has",
        ),
        (
            |it| {
                it.response()
                    .headers
                    .push(("server".to_owned(), "nginx".to_owned()));
            },
            "header server",
        ),
        (
            |it| {
                it.response()
                    .headers
                    .push(("date".to_owned(), UPSTREAM_KEY.to_owned()));
            },
            "date has",
        ),
        (
            |it| it.observed.exchanges[0].request.headers[0].1 = format!("Bearer {CLIENT_KEY}"),
            "an upstream's own key",
        ),
        (
            |it| {
                it.observed.exchanges[0]
                    .request
                    .headers
                    .push(("cookie".to_owned(), "a=b".to_owned()));
            },
            "cookie",
        ),
        (
            |it| it.observed.exchanges[0].request.path += CLIENT_KEY,
            "the key of the client in the path",
        ),
        (
            |it| it.observed.exchanges[0].request.body = CLIENT_KEY.into(),
            "CLIENT_KEY",
        ),
        (
            |it| it.observed.exchanges[0].request.body = r#"{"model":"chat","stream":true}"#.into(),
            "another model",
        ),
    ];
    check(Sample::stream, Verdict::StreamWhole, &lies);
}

#[test]
fn a_request_is_counted_once() {
    let lies: [Violation; 12] = [
        (
            |it| *it.observed.counted.requests.get_mut("200").unwrap() = 2.0,
            "2 requests were counted, expected 1",
        ),
        (
            |it| it.observed.counted.requests.clear(),
            "0 requests were counted, expected 1",
        ),
        (
            |it| it.observed.counted.requests = counted(&["200 upstream_error"], &[], &[]).requests,
            "200 upstream_error",
        ),
        (
            |it| it.observed.counted.streams = counted(&[], &["incomplete"], &[]).streams,
            "incomplete",
        ),
        (
            |it| it.observed.counted.streams = counted(&[], &["completed", "timeout"], &[]).streams,
            "where 1 were expected",
        ),
        (
            |it| it.observed.counted.streams.clear(),
            "where 1 were expected",
        ),
        (
            |it| it.observed.counted.tokens.clear(),
            "the tokens in the metrics",
        ),
        (|it| it.log.clear(), "lines in the log"),
        (|it| it.log += &line("chat", "chat"), "lines in the log"),
        (|it| it.log = line("messages", "chat"), "no ' model="),
        (|it| it.log = line("chat", "other-chat"), "no ' target="),
        (
            |it| it.log = it.log.replace("output_tokens=4", "output_tokens=3"),
            "no ' output_tokens=4 '",
        ),
    ];
    check(Sample::stream, Verdict::StreamWhole, &lies);
}

#[test]
fn an_upstream_is_asked_again_only_where_that_does_no_harm() {
    let lies: [Violation; 5] = [
        (
            |it| (0..2).for_each(|_| it.ask_again()),
            "sent [3, 0] times",
        ),
        (Sample::ask_again, "request repeated after status 200"),
        (
            |it| {
                it.ask_again();
                it.sent().status = 0;
            },
            "request repeated after status 0",
        ),
        (
            |it| it.observed.exchanges.clear(),
            "no upstream request was sent",
        ),
        (
            |it| it.fault.kind = Kind::Refused,
            "an upstream request was sent",
        ),
    ];
    check(Sample::stream, Verdict::StreamWhole, &lies);
    let lies: [Violation; 1] = [(
        |it| {
            let head =
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\ndata: {}\r\n\n\r\n";
            it.observed.exchanges[1].written_before = head.into();
        },
        "request repeated after the client had 1 events",
    )];
    let asked_twice = || {
        let mut sample = Sample::refused();
        sample.ask_again();
        // The head and a comment may have been sent.
        sample.observed.exchanges[1].written_before =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\ne\r\n: keep-alive\n\n\r\n".into();
        sample
    };
    check(asked_twice, Verdict::Refused, &lies);
}

/// A request that was never sent completely reaches no upstream, and is refused for that reason.
#[test]
fn half_a_request_is_no_request() {
    let half = || {
        let mut sample = Sample::refused();
        sample.fault.kind = Kind::Upload(Spot::MIDDLE, Leave::Still);
        (
            sample.observed.client.sent_whole,
            sample.observed.client.stayed,
        ) = (false, false);
        sample.observed.exchanges.clear();
        sample.observed.counted = counted(&["400 invalid_value"], &[], &[]);
        *sample.response() = response(
            400,
            JSON,
            &UPSTREAM_ERROR.replace("upstream_error", "invalid_value"),
        );
        sample
    };
    let lies: [Violation; 5] = [
        (
            |it| it.observed.exchanges = Sample::stream().observed.exchanges,
            "an upstream request was sent",
        ),
        (
            |it| it.observed.counted.streams = counted(&[], &["refused"], &[]).streams,
            "where 0 were expected",
        ),
        (
            |it| *it.response() = response(502, JSON, UPSTREAM_ERROR),
            "(502, \"upstream_error\") is reported",
        ),
        (
            |it| it.change_response("\"message\":\"", "\"message\":\"\",\"text\":\""),
            "no message",
        ),
        (
            |it| it.change_response("{\"error\"", "{\"type\":\"error\",\"error\""),
            "the error of another protocol",
        ),
    ];
    check(half, Verdict::Refused, &lies);
}

/// A client that disconnects sees nothing, and may be counted at most once.
#[test]
fn a_client_that_left_is_counted_at_most_once() {
    let gone = || {
        let mut sample = Sample::stream();
        sample.fault.kind = Kind::Leaves(Spot::MIDDLE, Leave::Close);
        (
            sample.observed.client.response,
            sample.observed.client.stayed,
        ) = (None, false);
        sample.observed.counted = counted(&["499"], &["client_gone"], &[]);
        sample
    };
    let lies: [Violation; 2] = [
        (
            |it| *it.observed.counted.requests.get_mut("499").unwrap() = 2.0,
            "2 requests were counted",
        ),
        (
            |it| *it.observed.counted.streams.get_mut("client_gone").unwrap() = 2.0,
            "where 1 were expected",
        ),
    ];
    check(gone, Verdict::Unseen, &lies);
}

/// A long reply of pictures is streamed through, and is truncated where the upstream's is.
#[test]
fn a_reply_that_breaks_off_is_how_the_upstream_s_begins() {
    let broken = || {
        let mut fault = Fault::planted(
            Protocol::Images,
            Protocol::Images,
            false,
            Kind::Cut(Spot::MIDDLE, Cut::Reset),
        );
        fault.drawing = (0..)
            .map(|number| Fault::draw(1, number).drawing)
            .find(|it| it.path() == IMAGES)
            .unwrap();
        let body = format!("{{\"data\":[{{\"b64_json\":\"{}", "A".repeat(20 << 10));
        let mut sample = Sample::new(fault, body.clone(), response(200, JSON, &body[..9_000]));
        sample.observed.exchanges[0].request.path = IMAGES.to_owned();
        (sample.sent().is_whole, sample.sent().is_closed) = (false, true);
        sample.response().end = End::Closed;
        sample.observed.counted = counted(&["200"], &[], &[]);
        sample
    };
    let lies: [Violation; 3] = [
        (
            |it| it.change_response("{\"data\"", "{\"date\""),
            "not how the upstream's reply begins",
        ),
        (|it| it.response().end = End::Complete, "EOF while parsing"),
        (
            |it| it.sent().body.truncate(10_000),
            "a plain reply breaks off",
        ),
    ];
    check(broken, Verdict::BrokenOff, &lies);
}

/// A changed byte may be part of a word that is passed on; the success is still checked.
#[test]
fn a_changed_answer_is_judged_by_what_it_became() {
    let changed = || {
        let mut sample = Sample::stream();
        sample.fault.kind = Kind::Changed(Spot::MIDDLE, Change::Byte(b'x'));
        sample.change_upstream("You said", "You xaid");
        sample
    };
    check(
        changed,
        Verdict::StreamWhole,
        &[(
            |it| it.change_upstream("[DONE]", "[xONE]"),
            "a false success",
        )],
    );
}

const IMAGES: &str = "/v1/images/generations";
const EVENTS: &str = "text/event-stream; charset=utf-8";
const JSON: &str = "application/json";

const ROLE: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
const TEXT: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":{"content":"You said: nonce-00000007"},"finish_reason":null}]}"#;
const FINISH: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}"#;
const DONE: &str = "[DONE]";
const FAILED: &str = r#"{"error":{"message":"The server had an error.","type":"server_error","param":null,"code":"server_error"}}"#;
const TEXT_OF_THEIRS: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"their-model","choices":[{"index":0,"delta":{"content""#;
const USAGE_OF_THEIRS: &str =
    r#""usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}"#;

const COMPLETION: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"their-model","choices":[{"index":0,"message":{"role":"assistant","content":"You said: nonce-00000007","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"chat","content":[{"type":"text","text":"You said: nonce-00000007"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":4}}"#;
const RESPONSE: &str = r#"{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"MODEL","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"You said: nonce-00000007","annotations":[]}]}],"error":null,"incomplete_details":null,"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":9}}"#;
const UPSTREAM_ERROR: &str = r#"{"error":{"message":"The upstream returned an invalid reply.","type":"server_error","param":null,"code":"upstream_error"}}"#;
const TIMEOUT: &str = r#"{"error":{"message":"The upstream did not answer in time.","type":"server_error","param":null,"code":"upstream_timeout"}}"#;

const LARGE: &str = "Request exceeds the maximum size.";
const FAULTY: &str = "The upstream returned an invalid reply.";
const LATE: &str = "The upstream did not answer in time.";
const WAIT: &str = "The model takes no more requests just now; try again in 2s.";
const BUSY: &str = "The model is overloaded just now.";

/// A client of Chat that requests the answer of a real server, which succeeds, and gets it.
fn of_real_server() -> Sample {
    let mut sample = Sample::stream();
    sample.fault.kind = Kind::Foreign(Foreign::planted("generic-chat/no-done", Protocol::Chat));
    sample.change_response("You said: nonce-00000007", "Soft rain.");
    sample
}

/// One that fails, which is reported to its client.
fn of_broken_server() -> Sample {
    let mut sample = Sample::failed();
    let failing = Foreign::planted("generic-chat/finish-timeout", Protocol::Chat);
    sample.fault.kind = Kind::Foreign(failing);
    sample
}

#[test]
fn the_answer_of_a_real_server_is_what_is_owed_for_it() {
    let lies: [Violation; 3] = [
        (
            |it| it.change_response("Soft rain.", "Soft"),
            "the text is 'Soft'",
        ),
        (
            |it| it.change_response("\"stop\"", "\"length\""),
            "a complete answer is marked as truncated",
        ),
        (
            |it| it.response().body = chat(&[TEXT, FAILED], "chat").into(),
            "a success is withheld",
        ),
    ];
    check(of_real_server, Verdict::StreamWhole, &lies);
    let lies: [Violation; 2] = [
        (
            |it| it.response().body = chat(&[TEXT, FINISH, USAGE, DONE], "chat").into(),
            "a false success",
        ),
        (
            |it| it.response().body = chat(&[TEXT], "chat").into(),
            "a response without an end",
        ),
    ];
    check(of_broken_server, Verdict::StreamFailed, &lies);
}
