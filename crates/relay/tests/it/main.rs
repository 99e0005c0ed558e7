//! Relayed streams: byte for byte but for the closed list of edits, one end, and no success that
//! was not the upstream's.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod failures;
mod known_forms;
mod laws;
mod pictures;
mod properties;
mod replies;
mod responses;
mod seals;
mod usage;

use bytes::Bytes;
use engine::EngineError;
use images::Operation;
use sluicegate_relay::{Chat, Guard, Images, Messages, RelayProtocol, Responses, reply_as_stream};
use vendor::api_error;

use self::laws::{each_stream, events, model, relayed};
use crate::laws::{data, fixture};

#[test]
fn a_stream_passes_byte_for_byte() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (out, ended) = relayed(protocol(), &model(stream), &[stream]);
        ended.unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), events(stream));
    }
    each_stream!(law);
}

/// Truncation and usage are taken from the upstream's stream.
#[test]
fn stream_end_reports_truncation_and_upstream_usage() {
    fn end<S: RelayProtocol>(protocol: S, name: &str) -> (bool, Option<(u64, u64)>) {
        end_of(protocol, fixture(name))
    }
    fn end_of<S: RelayProtocol>(protocol: S, stream: Vec<u8>) -> (bool, Option<(u64, u64)>) {
        let (mut guard, mut out) = (Guard::new(protocol, "m".to_owned()), Vec::new());
        let fed = guard.feed(stream.into(), &mut out).unwrap();
        let end = fed.unwrap_or_else(|| guard.finish(&mut out).unwrap());
        (
            end.incomplete,
            end.usage.map(|usage| (usage.input, usage.output)),
        )
    }
    assert_eq!(
        end(Responses::default(), "responses-stream-incomplete.sse"),
        (true, Some((11, 6)))
    );
    let calls = end(
        Responses::default(),
        "responses-stream-parallel-function-calls.sse",
    );
    assert_eq!(calls, (false, Some((60, 41))));
    assert_eq!(
        end(Chat::default(), "chat-stream-usage.sse"),
        (false, Some((11, 5)))
    );
    assert_eq!(end(Chat::default(), "chat-stream-length.sse"), (true, None));
    assert_eq!(
        end(Messages::default(), "messages-stream-max-tokens.sse"),
        (true, Some((12, 3)))
    );
    assert_eq!(
        end(Messages::default(), "messages-stream-tool-use.sse"),
        (false, Some((61, 44)))
    );
    // Tokens read from a cache are part of the input.
    let cached = String::from_utf8(fixture("messages-stream-max-tokens.sse")).unwrap();
    let cached = cached.replace(
        r#""cache_read_input_tokens":0"#,
        r#""cache_read_input_tokens":7"#,
    );
    assert_eq!(
        end_of(Messages::default(), cached.into()),
        (true, Some((19, 3)))
    );
    let two = end(
        Images::new(Operation::Generation, 2),
        "images-stream-generate-two.sse",
    );
    assert_eq!(two, (false, Some((12, 544))));
}

#[test]
fn the_name_of_the_model_is_all_that_changes() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (out, ended) = relayed(protocol(), "a \"name\"", &[stream]);
        ended.unwrap();
        let theirs = format!("\"model\":\"{}\"", model(stream));
        let expected = events(stream).replace(&theirs, r#""model":"a \"name\"""#);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    each_stream!(law);
}

#[test]
fn an_event_of_several_lines_keeps_its_name() {
    let stream = String::from_utf8(fixture("messages-stream-text.sse")).unwrap();
    let lines = stream.replacen("data: {", "data: {\ndata: ", 1);
    let (out, ended) = relayed(Messages::default(), "mine", &[lines.as_bytes()]);
    ended.unwrap();
    assert!(
        out.starts_with(b"event: message_start\ndata: {\ndata: "),
        "{}",
        String::from_utf8_lossy(&out)
    );
    let stream = String::from_utf8(fixture("chat-stream-text.sse")).unwrap();
    let (out, ended) = relayed(
        Chat::default(),
        "mine",
        &[stream.replace("data: {", "data: {\ndata: ").as_bytes()],
    );
    ended.unwrap();
    assert!(
        !String::from_utf8(out).unwrap().contains("event:"),
        "the events have no name"
    );
}

#[test]
fn a_stream_that_is_cut_anywhere_ends_once_and_with_a_failure() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        ends_well: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (complete, _) = relayed(protocol(), "m", &[stream]);
        let (mut successes, mut last_out) = (0, Vec::new());
        // Every offset near both ends; in between, every 11th offset covers each part of an event.
        let near_an_end = |cut: &usize| *cut < 300 || cut + 300 > stream.len();
        let cuts: Vec<_> = (0..stream.len())
            .filter(|cut| near_an_end(cut) || cut % 11 == 0)
            .collect();
        for cut in cuts.iter().copied() {
            let (out, ended) = relayed(protocol(), "m", &[&stream[..cut]]);
            // Offsets within one event give the same result.
            if out == last_out {
                successes += usize::from(ended.is_ok());
                continue;
            }
            last_out.clone_from(&out);
            if ended.is_ok() {
                // Nothing is missing, or only the `[DONE]` of a finished Chat stream, which is
                // appended.
                successes += 1;
                assert_eq!(ends_well(&out), Some(true), "cut at {cut}");
                continue;
            }
            // Before the first event a failure is reported by the status instead.
            assert!(
                ends_well(&out) == Some(false) || out.is_empty(),
                "cut at {cut}"
            );
            let passed = out
                .iter()
                .zip(&complete)
                .take_while(|(left, right)| left == right)
                .count();
            assert!(
                data(&out).len() <= data(&complete[..passed]).len() + 1,
                "at most one event is the gateway's"
            );
        }
        assert!(
            successes < cuts.len() / 2,
            "{successes} of {} cuts were taken for ends",
            cuts.len()
        );
    }
    each_stream!(law);
}

/// The name of an event matches the `type` in its data, since clients dispatch on either.
#[test]
fn s13_event_name_is_taken_from_the_data() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let expected = events(stream);
        for name in ["event: ping\n", "event: thread.x\n", ""] {
            let bare: String = expected
                .split_inclusive('\n')
                .filter(|line| !line.starts_with("event:"))
                .collect();
            let misnamed = bare.replace("data: ", &format!("{name}data: "));
            let (out, ended) = relayed(protocol(), &model(stream), &[misnamed.as_bytes()]);
            ended.unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
    each_stream!(law);
}

/// A missing or repeated event violates the grammar, or is harmless.
#[test]
fn clients_get_nothing_that_leaves_the_grammar() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        ends_well: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let all = events(stream);
        let all: Vec<_> = all.split_inclusive("\n\n").collect();
        let mut failed = 0;
        for at in 0..all.len() {
            for again in [&all[at..=at], &[]] {
                let changed = [&all[..at], again, again, &all[at + 1..]].concat().concat();
                let (out, ended) = relayed(protocol(), &model(stream), &[changed.as_bytes()]);
                assert!(
                    out.is_empty() && ended.is_err() || ends_well(&out) == Some(ended.is_ok()),
                    "{changed}"
                );
                failed += usize::from(ended.is_err());
            }
        }
        assert!(failed > 0);
    }
    each_stream!(law);
}

/// Events without data are ignored.
#[test]
fn s10_empty_events_are_left_out() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let expected = events(stream);
        let with = expected.replace("\n\n", "\n\ndata:\n\nevent: ping\ndata: \n\n");
        let (out, ended) = relayed(protocol(), &model(stream), &[with.as_bytes()]);
        ended.unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    each_stream!(law);
}

/// An event over the limit fails before it is complete.
#[test]
fn s04_an_event_has_a_longest_length() {
    let (head, more) = (&b"data: {\"x\":\""[..], vec![b'x'; 1 << 20]);
    let pieces: Vec<_> = std::iter::once(head)
        .chain(std::iter::repeat_n(&more[..], 33))
        .collect();
    let (mut guard, mut out) = (Guard::new(Chat::default(), "m".to_owned()), Vec::new());
    let fed: Vec<_> = pieces
        .iter()
        .map(|piece| guard.feed(Bytes::copy_from_slice(piece), &mut out).is_ok())
        .collect();
    // The head and 31 MiB.
    assert_eq!(fed.iter().position(|ok| !ok), Some(32), "{fed:?}");
    assert!(out.is_empty());
}

#[test]
fn events_after_the_end_are_dropped() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (once, _) = relayed(protocol(), "m", &[stream]);
        let twice = [stream, stream].concat();
        assert_eq!(relayed(protocol(), "m", &[&twice]).0, once);
    }
    each_stream!(law);
}

#[test]
fn an_end_is_the_last_that_is_let_out() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (mut guard, mut out) = (Guard::new(protocol(), model(stream)), Vec::new());
        assert!(
            guard
                .feed(Bytes::copy_from_slice(stream), &mut out)
                .unwrap()
                .is_some()
        );
        let before = out.clone();
        assert!(matches!(
            guard.feed(Bytes::copy_from_slice(stream), &mut out),
            Ok(None)
        ));
        guard.fail(
            &api_error(&EngineError::Timeout("late".to_owned())),
            &mut out,
        );
        assert!(
            out == before,
            "{}",
            String::from_utf8_lossy(&out[before.len()..])
        );
    }
    each_stream!(law);
}

#[test]
fn invalid_utf8_is_a_failure() {
    let mut stream = fixture("chat-stream-text.sse");
    let names: Vec<_> = memchr::memmem::find_iter(&stream, "\"model\":\"").collect();
    names
        .iter()
        .for_each(|at| stream[at + "\"model\":\"".len()] = 0xff);
    let (_, ended) = relayed(Chat::default(), "m", &[&stream]);
    assert!(matches!(ended, Err(EngineError::Upstream(_))), "{ended:?}");
}

/// Images in a stream are repaired like images in a plain reply.
#[test]
fn images_of_a_stream_are_in_standard_base64() {
    let picture = strategies::PNG;
    let event = |kind: &str, base64: &str| {
        format!(
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"b64_json\":\"{base64}\",\"n\":1.0}}\n\n"
        )
    };
    let stream = |base64: &str| {
        let preview = event("image_generation.partial_image", base64);
        preview + &event("image_generation.completed", base64)
    };
    for written in [
        format!("data:image/png;base64,{picture}"),
        picture.trim_end_matches('=').to_owned(),
        picture.replace('/', "_").replace('+', "-"),
        format!("{}\\n{}", &picture[..40], &picture[40..]),
    ] {
        let images = Images::new(Operation::Generation, 1);
        let (out, ended) = relayed(images, "m", &[stream(&written).as_bytes()]);
        ended.unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), stream(picture));

        let reply = format!("{{\"data\":[{{\"b64_json\":\"{written}\"}}]}}");
        let as_stream = reply_as_stream(reply.as_bytes(), Operation::Generation, 1);
        let (out, _) = as_stream.unwrap();
        let sent = format!("\"b64_json\":\"{picture}\"");
        assert!(String::from_utf8(out).unwrap().contains(&sent), "{written}");
    }
}
