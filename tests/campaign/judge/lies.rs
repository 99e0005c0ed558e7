//! Tests of the judge: at least one planted violation for each requirement that it checks, beside
//! the correct responses that it accepts.

/// Asserts that the judge accepts a sample with this verdict, and that it reports each change of the
/// sample with this part of a message.
macro_rules! lies {
    ($sample:expr => $verdict:ident; $($notice:literal: $change:expr;)*) => {
        assert_eq!($sample().judged(), Ok(Verdict::$verdict));
        $(report($sample, $notice, $change);)*
    };
}

mod samples;
mod targets;

use simulator::scenario::named;
use simulator::{Cut, Protocol};
use testkit::http2::{Frame, kind};
use testkit::requests::Question;
use testkit::{CLIENT_KEY, End, UPSTREAM_KEY};

use self::samples::*;
use super::Verdict;
use crate::fault::{Coded, Coding, Hollow, Kind, Place, Spot, Transport, Upload};
use crate::harness::Observed;

/// Asserts that the judge reports a change of a sample with this part of a message.
#[track_caller]
fn report(sample: fn() -> Sample, notice: &str, change: fn(&mut Sample)) {
    let mut sample = sample();
    change(&mut sample);
    let message = sample.judged().expect_err(notice);
    assert!(
        message.contains(notice),
        "{notice} is reported as: {message}"
    );
}

#[test]
fn a_stream_ends_once_and_as_its_upstream_did() {
    lies! { Sample::stream => StreamWhole;
        "exactly one end": |it| it.change_response("data: [DONE]", "data: [DONE]\n\ndata: [DONE]");
        "exactly one end": |it| it.change_response("data: [DONE]\n\n", "");
        "came to its end": |it| it.response().end = End::Closed;
        "{\"a\":1}": |it| it.response().body.extend(b"data: {\"a\":1}\n\n");
        "a false success": |it| it.change_upstream("data: [DONE]", "data: {\"error\":{}}\n\ndata: [DONE]");
        "a false success": |it| it.change_upstream(TEXT_OF_THEIRS, "{");
        "a false success": |it| { it.write(&[TEXT, FINISH]); it.sent().is_whole = false; };
        "a false success": |it| it.sent().status = 500;
        "a stream, or none": |it| it.fault.stream = false;
        "no answer": |it| it.observed.client.response = None;
    }
}

#[test]
fn changed_stream_contents_are_lies() {
    lies! { Sample::stream => StreamWhole;
        "the words of the answer": |it| it.change_response("You said: ", "You said ");
        "the words of the answer": |it| it.change_response("nonce-00000007", "nonce-00000008");
        "the request of another client": |it| it.fault.number = 8;
        "the model is": |it| it.change_response("\"model\":\"chat\"", "\"model\":\"their-model\"");
        "the usage": |it| it.change_response("\"completion_tokens\":4", "\"completion_tokens\":5");
        "the usage": |it| it.change_upstream(USAGE_OF_THEIRS, "\"usage\":null");
        "whether the limit on the output cut it": |it| it.change_response("\"stop\"", "\"length\"");
        "what a client adds up": |it| it.change_upstream("\"index\":0", "\"index\":1");
        "dropped:": |it| it.add_header("x-sluicegate-dropped", "tools");
    }
}

#[test]
fn a_stream_that_fails_says_so_and_why() {
    lies! { Sample::failed => StreamFailed;
        "[DONE]": |it| it.change_response(FAILED, "[DONE]");
        "exactly one end": |it| it.change_response(FAILED, &[FAILED, "\n\ndata: [DONE]"].concat());
        "is not how": |it| it.change_response("nonce-00000007", "nonce-00000007 and more");
        "the stream fails with": |it| it.change_response("\"code\":\"server_error\"",
            "\"code\":\"rate_limit_exceeded\"");
        "the model is": |it| it.change_response("\"model\":\"chat\"", "\"model\":\"other\"");
        "a success is withheld": |it| it.write(&[TEXT, FINISH, USAGE, DONE]);
        "\"completed\"": |it| it.count_streams(&["completed"]);
        "\"timeout\"": |it| it.count_streams(&["timeout"]);
        "requests were counted as [\"200\"]": |it| it.count_requests(&["200"]);
    }
}

/// A scenario without a fault, and a stall of the upstream, have different ends.
#[test]
fn an_end_fits_its_fault() {
    let mut sample = Sample::failed();
    sample.fault.kind = Kind::Scenario(named("sse-crlf").unwrap());
    assert!(sample.judged().unwrap_err().contains("nothing went wrong"));
    sample.fault = sample.fault.slow();
    assert_eq!(sample.judged(), Ok(Verdict::StreamFailed));

    for (kind, is_closed, request, stream) in [
        (
            Kind::Cut(Spot::MIDDLE, Cut::Hold),
            false,
            "200 upstream_timeout",
            "timeout",
        ),
        (
            Kind::Shutdown(Spot::MIDDLE),
            true,
            "200 server_error",
            "shutdown",
        ),
    ] {
        let mut sample = Sample::failed();
        (sample.fault.kind, sample.sent().is_closed) = (kind, is_closed);
        assert!(sample.judged().unwrap_err().contains("upstream_error"));
        sample.observed.counted = counted(&[request], &[stream], &[]);
        assert_eq!(sample.judged(), Ok(Verdict::StreamFailed));
    }
}

#[test]
fn a_plain_reply_is_all_that_the_upstream_said() {
    lies! { Sample::reply => Reply;
        "the words of the answer": |it| it.change_response("You said: nonce-00000007", "nonce-00000007");
        "the usage": |it| it.change_response("\"input_tokens\":5", "\"input_tokens\":6");
        "the model is": |it| it.change_response("\"model\":\"chat\"", "\"model\":\"their-model\"");
        "whether the limit on the output cut it": |it| it.change_response("end_turn", "max_tokens");
        "a false success": |it| it.change_upstream("\"stop\"", "null");
        "a false success": |it| it.change_upstream("\"usage\":", "\"error\":{},\"usage\":");
        "a false success": |it| it.sent().is_whole = false;
        "a plain reply breaks off": |it| it.response().end = End::Closed;
        "a reply without success": |it| it.change_response("\"end_turn\"", "null");
        "text/html": |it| it.response().headers[0].1 = "text/html".to_owned();
        "where 0 were expected": |it| it.count_streams(&["completed"]);
        "another path": |it| it.fault.upstream = Protocol::Messages;
        "a plain reply where a stream was requested": |it| {
            it.fault.stream = true;
            *it.request() = request(&it.fault);
        };
    }
}

/// Dropped fields are reported, in the error format of the client's protocol.
#[test]
fn dropped_fields_are_reported() {
    let mut sample = Sample::reply();
    sample.fault.question = Question::Reasoning;
    assert_eq!(sample.judged(), Ok(Verdict::Reply));
    sample.fault.client = Protocol::Responses;
    *sample.response() = response(200, JSON, &RESPONSE.replace("MODEL", "chat"));
    let unreported = "dropped: None, not Some(\"reasoning.summary\")";
    assert!(sample.judged().unwrap_err().contains(unreported));
    sample.add_header("x-sluicegate-dropped", "reasoning.summary");
    assert_eq!(sample.judged(), Ok(Verdict::Reply));
}

#[test]
fn a_refusal_explains_why_there_is_no_answer() {
    lies! { Sample::refused => Refused;
        "is not of the closed list": |it| it.response().status = 504;
        "is not of the closed list": |it| it.change_response("upstream_error", "server_error");
        "is not of the closed list": |it| it.response().body = "<html>".into();
        "(504, \"upstream_timeout\") is reported": |it| *it.response() = response(504, JSON, TIMEOUT);
        "retry-after of status 502": |it| it.add_header("retry-after", "2");
        "a refusal breaks off": |it| it.response().end = End::Closed;
        "\"shed\"": |it| it.count_streams(&["shed"]);
        "500 server_error": |it| it.count_requests(&["500 server_error"]);
    }
}

/// A status of the upstream has one meaning, which each protocol expresses in its own way.
#[test]
fn a_refusal_is_that_of_the_upstream_s_status() {
    let invalid = (400, "invalid_request_error", "No.");
    let large = (413, "invalid_request_error", "No.");
    let (faulty, late) = ((502, "server_error", FAULTY), (504, "server_error", LATE));
    let (limited, busy) = ((429, "requests", WAIT), (503, "server_error", BUSY));
    let unsafe_prompt = (400, "invalid_request_error", UNSAFE);
    let blocked = (400, "invalid_request_error", UNSAFE_OF_MESSAGES);
    let overloaded = (529, "overloaded_error", "Overloaded");
    for (sent, code, outcome, openai, messages) in [
        (400, "invalid_value", "refused", invalid, invalid),
        (422, "invalid_value", "refused", invalid, invalid),
        (
            446,
            "content_policy_violation",
            "refused",
            unsafe_prompt,
            blocked,
        ),
        (
            451,
            "content_policy_violation",
            "refused",
            unsafe_prompt,
            blocked,
        ),
        (
            413,
            "request_too_large",
            "refused",
            large,
            (413, "request_too_large", LARGE),
        ),
        (
            401,
            "upstream_error",
            "upstream_error",
            faulty,
            (502, "api_error", FAULTY),
        ),
        (
            404,
            "upstream_error",
            "upstream_error",
            faulty,
            (502, "api_error", FAULTY),
        ),
        (
            408,
            "upstream_timeout",
            "timeout",
            late,
            (504, "timeout_error", LATE),
        ),
        (
            524,
            "upstream_timeout",
            "timeout",
            late,
            (504, "timeout_error", LATE),
        ),
        (
            429,
            "rate_limit_exceeded",
            "shed",
            limited,
            (429, "rate_limit_error", WAIT_OF_MESSAGES),
        ),
        (498, "service_unavailable", "shed", busy, overloaded),
        (503, "service_unavailable", "shed", busy, overloaded),
        (529, "service_unavailable", "shed", busy, overloaded),
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
            let judged =
                |sent| Sample::refusal(client, (sent, "{}"), status, &body, code, outcome).judged();
            assert_eq!(judged(sent), Ok(Verdict::Refused), "{sent} for {client:?}");
            // The response to a status with another meaning.
            let other = judged(if code == "upstream_error" { 429 } else { 500 }).unwrap_err();
            assert!(
                other.contains("is reported, and not one of"),
                "{sent}: {other}"
            );
        }
    }
}

#[test]
fn nothing_is_left_over() {
    lies! { Sample::stream => StreamWhole;
        "permits: 1": |it| it.observed.leftovers.permits = 1;
        "connections: 1": |it| it.observed.leftovers.connections = 1;
        "tasks: 1": |it| it.observed.leftovers.tasks = 1;
        "panics: 1.0": |it| it.observed.leftovers.panics = 1.0;
        "hung: true": |it| it.observed.leftovers.hung = true;
        "a task panicked: index out of bounds": |it| it.panics.push("index out of bounds".to_owned());
    }
}

#[test]
fn leaked_secrets_are_lies() {
    lies! { Sample::stream => StreamWhole;
        "the log has": |it| it.log += UPSTREAM_KEY;
        "the log has": |it| it.log += "a call to internal-host-7";
        "the body has": |it| it.change_response("You said", CLIENT_KEY);
        "header server": |it| it.add_header("server", "nginx");
        "date has": |it| it.add_header("date", UPSTREAM_KEY);
        "an upstream's own key": |it| it.request().headers[0].1 = format!("Bearer {CLIENT_KEY}");
        "cookie": |it| it.request().headers.push(("cookie".to_owned(), "a=b".to_owned()));
        "the key of the client in the path": |it| it.request().path += CLIENT_KEY;
        "CLIENT_KEY": |it| it.request().body = CLIENT_KEY.into();
        "another model": |it| it.request().body = r#"{"model":"chat","stream":true}"#.into();
    }
}

#[test]
fn a_request_is_counted_once() {
    lies! { Sample::stream => StreamWhole;
        "2 requests were counted, expected 1": |it| *it.observed.counted.requests.get_mut("200").unwrap() = 2.0;
        "0 requests were counted, expected 1": |it| it.count_requests(&[]);
        "200 upstream_error": |it| it.count_requests(&["200 upstream_error"]);
        "incomplete": |it| it.count_streams(&["incomplete"]);
        "where 1 were expected": |it| it.count_streams(&["completed", "timeout"]);
        "where 1 were expected": |it| it.count_streams(&[]);
        "0 input tokens in the metrics": |it| it.observed.counted.tokens.clear();
        "lines in the log": |it| it.log.clear();
        "lines in the log": |it| it.log += &line("chat", "chat");
        "no ' model=": |it| it.log = line("messages", "chat");
        "no ' target=": |it| it.log = line("chat", "other-chat");
        "3 output tokens in the log": |it| it.log = it.log.replace("output_tokens=4", "output_tokens=3");
    }
}

#[test]
fn an_upstream_is_asked_again_only_where_that_does_no_harm() {
    lies! { Sample::stream => StreamWhole;
        "sent [3, 0] times": |it| { it.ask_again(); it.ask_again(); };
        "request repeated after status 200": Sample::ask_again;
        "request repeated after status 0": |it| { it.ask_again(); it.sent().status = 0; };
        "no upstream request was sent": |it| it.observed.exchanges.clear();
        "an upstream request was sent": |it| it.fault.kind = Kind::Refused;
    }
    lies! { asked_twice => Refused;
        "request repeated after the client had 1 events": |it| {
            it.fault.transport = Transport::Http2 { goaway: None };
            it.observed.exchanges[1].written_before = Frame::new(kind::DATA, 0, 1, *b"data: {}\n\n").bytes();
        };
        "request repeated after the client had 1 events": |it| it.observed.exchanges[1].written_before =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\ndata: {}\r\n\n\r\n".into();
        "request repeated after the client had 1 events": |it| {
            it.fault.transport = Transport::WebSocket;
            it.observed.exchanges[1].written_before = b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x02{}".into();
        };
    }
}

/// The messages of a WebSocket are judged as the events of a stream. Its handshake is counted and logged beside them.
#[test]
fn messages_of_a_websocket_are_judged_as_events() {
    lies! { over_websocket => StreamWhole;
        "exactly one end": |it| {
            let last = RESPONSE_EVENTS[RESPONSE_EVENTS.len() - 1];
            it.response().body.extend(format!("data: {last}\n\n").bytes());
        };
        "came to its end": |it| it.response().end = End::Closed;
        "a false success": |it| { it.write(&[TEXT]); it.sent().is_whole = false; };
        "the usage": |it| it.change_response("\"output_tokens\":4", "\"output_tokens\":5");
        "no answer": |it| it.observed.client.response = None;
        "the lines of a handshake": |it| it.log = line("chat", "chat");
        "the lines of a handshake": |it| it.log += HANDSHAKE;
        "a handshake:": |it| it.log = it.log.replace("status=101", "status=200");
        "101 was counted 1 times too few": |it| it.count_requests(&["200"]);
        "0 requests were counted, expected 1": |it| it.count_requests(&["101"]);
        "lines in the log": |it| it.log = HANDSHAKE.to_owned();
    }
}

/// A request that was never sent completely reaches no upstream, and is refused for that reason.
#[test]
fn half_a_request_is_no_request() {
    lies! { half => Refused;
        "an upstream request was sent": |it| it.observed.exchanges = Sample::stream().observed.exchanges;
        "where 0 were expected": |it| it.count_streams(&["refused"]);
        "(502, \"upstream_error\") is reported": |it| *it.response() = response(502, JSON, UPSTREAM_ERROR);
        "no message": |it| it.change_response("\"message\":\"", "\"message\":\"\",\"text\":\"");
        "the error of another protocol": |it| it.change_response("{\"error\"", "{\"type\":\"error\",\"error\"");
    }
}

/// A request whose coding does not describe it reaches no upstream, and is refused for that reason.
#[test]
fn a_request_that_cannot_be_decoded_is_refused() {
    lies! { undecodable => Refused;
        "an upstream request was sent": |it| it.observed.exchanges = Sample::stream().observed.exchanges;
        "where 0 were expected": |it| it.count_streams(&["refused"]);
        "(502, \"upstream_error\") is reported": |it| *it.response() = response(502, JSON, UPSTREAM_ERROR);
        "(400, \"invalid_value\") is reported": |it| it.fault.coded = Some(Coded::Request(Coding::Gzip, Upload::Bomb));
    }
}

/// A client that disconnects sees nothing, and may be counted at most once.
#[test]
fn a_client_that_left_is_counted_at_most_once() {
    lies! { gone => Unseen;
        "2 requests were counted": |it| *it.observed.counted.requests.get_mut("499").unwrap() = 2.0;
        "where 1 were expected": |it| *it.observed.counted.streams.get_mut("client_gone").unwrap() = 2.0;
    }
}

#[test]
fn a_reply_that_breaks_off_is_how_the_upstream_s_begins() {
    lies! { broken_off => BrokenOff;
        "not how the upstream's reply begins": |it| it.change_response("{\"data\"", "{\"date\"");
        "EOF while parsing": |it| it.response().end = End::Complete;
        "a plain reply breaks off": |it| it.sent().body.truncate(10_000);
    }
}

/// A changed byte may be part of a word that is passed on; the success is still checked.
#[test]
fn a_changed_answer_is_judged_in_its_changed_form() {
    lies! { changed => StreamWhole;
        "a false success": |it| it.change_upstream("[DONE]", "[xONE]");
    }
}

#[test]
fn answers_of_real_servers_are_judged_by_their_case() {
    lies! { of_real_server => StreamWhole;
        "the text is 'Soft'": |it| it.change_response("Soft rain.", "Soft");
        "a complete answer is marked as truncated": |it| it.change_response("\"stop\"", "\"length\"");
        "a success is withheld": |it| it.read(&[TEXT, FAILED]);
    }
    lies! { of_broken_server => StreamFailed;
        "a false success": |it| it.read(&[TEXT, FINISH, USAGE, DONE]);
        "a response without an end": |it| it.read(&[TEXT]);
    }
}
