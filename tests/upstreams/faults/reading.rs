//! S: invalid or unusual events of an upstream.

use std::time::Duration;

use grammar::{End, Judged as _};
use simulator::{Protocol, Request, scenario};
use testkit::events::{delta_text, ends};
use testkit::requests::protocol_name;
use testkit::upstreams::{BENT, FaultTest, HASTY, Lane, Outcome, PATIENT, lanes, now, text_lanes};

use super::{at_once, streams};
use crate::GATEWAY;

/// A stream is parsed the same in pieces of any size.
#[test]
fn s01_pieces_do_not_matter() {
    for name in ["byte-by-byte", "chunked-7", "at-once"] {
        streams(name, Outcome::is_whole);
    }
}

/// All line endings, a byte order mark, comments, unknown fields and multi-line data are parsed.
#[test]
fn s02_every_form_of_an_event_is_read() {
    for name in [
        "sse-crlf",
        "sse-cr",
        "sse-bom",
        "sse-comments",
        "sse-fields",
        "sse-no-space",
        "sse-multi-line",
    ] {
        streams(name, Outcome::is_whole);
    }
}

/// A last event without its blank line is ignored, so that the stream is truncated.
#[test]
fn s03_event_without_its_blank_line_is_ignored() {
    streams("missing-blank-line", |got| match got.lane.upstream {
        // Only [DONE] is missing, after a complete reply.
        Protocol::Chat => got.is_whole(),
        _ => got.fails(),
    });
}

/// An endless line is answered with 502, and the upstream connection is closed.
#[test]
fn s04_a_line_without_end_is_given_up() {
    let test = FaultTest::named(GATEWAY, "endless-line", PATIENT);
    // One after the other: all of them at once would take more memory than there is for long events.
    for lane in lanes() {
        test.ask(lane, true).is_bad_gateway();
    }
    test.all_closed();
    test.end();
}

/// An event of 15 MB passes on every protocol, because it may be a picture; one over 32 MiB is a
/// failure.
#[test]
fn s04_an_event_that_is_too_large_is_a_failure() {
    let across = |lane: &Lane| lane.client == Protocol::Messages && lane.upstream == Protocol::Chat;
    let lanes = lanes();
    let some = || {
        lanes
            .iter()
            .filter(|lane| lane.client == lane.upstream || across(lane))
    };
    // One after the other: all of them at once would take more memory than there is for long events.
    for (name, is_owed) in [
        ("huge-event-15000", Outcome::is_whole as fn(&Outcome)),
        ("huge-event-33000", Outcome::fails_at_once_or_later),
    ] {
        let test = FaultTest::named(GATEWAY, name, PATIENT);
        some().for_each(|lane| is_owed(&test.ask(*lane, true)));
        test.end();
    }
}

/// Malformed events are failures.
#[test]
fn s05_malformed_events_are_failures() {
    for name in ["malformed-event", "not-an-object", "wrong-type"] {
        streams(name, Outcome::fails_at_once_or_later);
    }
    streams("missing-delta", |got| match got.lane.upstream {
        // Servers that moderate their content send chunks without one.
        Protocol::Chat => _ = grammar::stream(got.lane.client, &got.response).reply(),
        _ => got.fails_at_once_or_later(),
    });
}

/// Unknown events are relayed or ignored, and the stream is complete.
#[test]
fn s06_unknown_events_are_no_harm() {
    streams("unknown-event", |got| {
        let Lane { client, upstream } = got.lane;
        if client == upstream && client != Protocol::Chat {
            // It is relayed unchanged, and is outside of the grammar.
            assert!(
                got.response.text().contains("\"note\":\"unknown\""),
                "{}",
                got.response.text()
            );
        }
        if (client, upstream) != (Protocol::Responses, Protocol::Responses) {
            got.is_whole();
        }
    });
}

/// Common deviations of Chat servers are accepted.
#[test]
fn s06_common_dialects_of_chat_are_read() {
    for name in ["vllm", "filtered"] {
        let test = FaultTest::named(GATEWAY, name, "");
        let chat: Vec<_> = lanes()
            .into_iter()
            .filter(|lane| lane.upstream == Protocol::Chat)
            .collect();
        test.each(&chat, true, has_ended_well)
            .each(&chat, false, Outcome::is_whole)
            .end();
    }
}

/// Asserts that a stream is complete. One that is relayed unchanged may be outside of the grammar.
fn has_ended_well(got: &Outcome) {
    if got.lane.client != got.lane.upstream {
        return got.is_whole();
    }
    let (body, text) = (&got.response.body, got.response.text());
    assert_eq!(ends(body), 1, "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(delta_text(got.lane.client, body), got.honest);
}

/// Data after the terminal event is not forwarded.
#[test]
fn s07_nothing_comes_after_the_end() {
    for name in ["after-end", "two-ends", "done-after-end"] {
        streams(name, Outcome::is_whole);
    }
}

/// A delta after the finish of the reply may be one of another reply: it is a failure.
#[test]
fn s07_a_delta_after_the_finish_is_not_a_success() {
    // The stream continues after the event that completes the reply; its end is still to come.
    streams("delta-after-finish", |got| match got.lane {
        // All three previews were relayed, and then the first one again.
        Lane {
            upstream: Protocol::Images,
            ..
        } => got.fails_after(3),
        _ => got.fails(),
    });
}

/// Missing usage is accepted. Repeated usage is accepted too: the largest counts are taken.
#[test]
fn s08_usage_is_relayed_as_it_is() {
    streams("usage-missing", Outcome::is_whole);
    streams("usage-twice", |got| match got.lane {
        // It is relayed unchanged, and is outside of the grammar.
        Lane {
            client: Protocol::Chat,
            upstream: Protocol::Chat,
        } => {
            assert!(
                got.response.text().ends_with("data: [DONE]\n\n"),
                "{}",
                got.response.text()
            );
        }
        _ => got.is_whole(),
    });
}

/// A stream without events is answered with 502.
#[test]
fn s09_a_stream_without_events_is_a_bad_gateway() {
    streams("empty-stream", Outcome::is_bad_gateway);
}

/// Comments are signs of life, but no events: endless comments end at the deadline of the first
/// event with 504.
#[test]
fn s10_comments_are_no_events() {
    is_never_begun("endless-comments-10");
}

/// Events without data are no events of a protocol: an endless number of them ends at the deadline
/// of the first event with 504.
#[test]
fn s10_events_without_data_are_ignored() {
    is_never_begun("endless-empty-data-10");
}

/// Plays a scenario without a first event, each of whose pieces is a sign of life.
fn is_never_begun(name: &str) {
    let scenario = scenario::named(name).unwrap();
    let play = move |request: &Request| scenario.play(request);
    let limits = "request_timeout = \"2s\"";
    let started = now();
    let test =
        FaultTest::playing(GATEWAY, play, limits, HASTY).each(&lanes(), true, Outcome::is_late);
    assert!(started.elapsed() >= Duration::from_secs(2));
    test.all_closed();
    test.end();
}

/// Invalid UTF-8 in a stream is a failure.
#[test]
fn s11_invalid_utf8_is_a_failure() {
    streams("invalid-utf8", Outcome::fails_at_once_or_later);
}

/// Text that looks like event stream framing stays within its event.
#[test]
fn s12_a_text_cannot_break_out_of_its_event() {
    let text = "\n\ndata: [DONE]\n\nevent: response.completed\r\ndata: {}\r\r \u{2028}\u{0085} : x\n\nid: 1\nretry: 1\n\n";
    let test = FaultTest::playing(GATEWAY, simulator::honest::answer, "", PATIENT);
    for lane in text_lanes() {
        test.ask_with(lane, true, text).is_whole();
        test.ask_with(lane, false, text).is_whole();
    }
    test.end();
}

/// An event's type is taken from its data, and the event name is corrected to match it.
#[test]
fn s13_event_type_is_taken_from_the_data() {
    streams("event-name-lies", |got| {
        got.is_whole();
        got.names_its_events();
    });
}

/// An upstream response in gzip is decoded, with and without a stream.
#[test]
fn s14_a_compressed_answer_is_read() {
    let test = FaultTest::named(GATEWAY, "gzip", PATIENT);
    test.each(&lanes(), true, Outcome::is_whole).end();
    let test = FaultTest::named(GATEWAY, "gzip", PATIENT);
    test.each(&lanes(), false, Outcome::is_whole).end();
}

/// An upstream response in another coding is answered with 502.
#[test]
fn s14_an_answer_in_an_unknown_coding_is_a_bad_gateway() {
    let test = FaultTest::named(GATEWAY, "unknown-coding", PATIENT);
    test.each(&lanes(), true, Outcome::is_bad_gateway).end();
    let test = FaultTest::named(GATEWAY, "unknown-coding", PATIENT);
    test.each(&lanes(), false, Outcome::is_bad_gateway).end();
}

/// A huge index is a failure, and no memory is allocated for it.
#[test]
fn s15_a_huge_index_takes_no_memory() {
    streams("huge-index", |got| match got.lane {
        // The index of a preview is only used for the order: the next one is out of order.
        Lane {
            upstream: Protocol::Images,
            ..
        } => got.fails_after(1),
        // There was no content before.
        _ => got.is_bad_gateway(),
    });
}

#[test]
fn every_fault_leaves_exactly_one_end() {
    // In every scenario a stream ends once and by its grammar, or there is an error of the closed
    // list.
    let ends = |name: &str| {
        WITHOUT_END
            .iter()
            .all(|beginning| !name.starts_with(beginning))
    };
    let names: Vec<_> = scenario::all()
        .iter()
        .map(scenario::Scenario::name)
        .filter(|name| ends(name))
        .collect();
    at_once(names.chunks(names.len().div_ceil(4)), |names| {
        for name in names {
            streams(name, |got| ends_once(name, got));
        }
    });
}

fn ends_once(name: &str, got: &Outcome) {
    let is_relayed = got.response.status == 200 && got.lane.client == got.lane.upstream;
    if is_relayed && got.lane.client != Protocol::Images && BENT.contains(&name) {
        assert_eq!(
            ends(&got.response.body),
            1,
            "{name}: {}",
            got.response.text()
        );
    } else if got.response.status == 200 {
        assert!(
            got.is_stream(),
            "{name} {}",
            protocol_name(got.lane.upstream)
        );
        let _: End<_> = grammar::stream(got.lane.client, &got.response);
    } else {
        got.is_listed_error();
    }
}

/// Scenarios that end by a timeout only; they have separate tests.
const WITHOUT_END: [&str; 4] = ["endless", "stall", "hold", "drip"];
