//! Responses: <https://platform.openai.com/docs/api-reference/responses-streaming>.

use relay::Responses;
use vendor::Protocol;

use super::{contradiction, json, passed, translated};

const CREATED: &str = r#"{"type":"response.created","response":{"id":"r","output":[]}}"#;

fn delta(places: &str, text: &str) -> String {
    format!(r#"{{"type":"response.output_text.delta",{places}"delta":"{text}"}}"#)
}

fn message(content: &str) -> String {
    format!(r#"{{"type":"message","id":"m","status":"completed","content":[{content}]}}"#)
}

fn part(text: &str) -> String {
    format!(r#"{{"type":"output_text","text":"{text}"}}"#)
}

fn done(index: u32, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
}

fn completed(output: &str) -> String {
    format!(
        r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{output}]}}}}"#
    )
}

/// The text of a translated stream of these deltas, whose item is done with this content.
#[track_caller]
fn text(deltas: &[String], content: &str) -> String {
    let item = message(content);
    let (done, completed) = (done(0, &item), completed(&item));
    let deltas = deltas.iter().map(String::as_str);
    let events = [CREATED].into_iter().chain(deltas);
    let events: Vec<_> = events.chain([&*done, &*completed]).collect();
    passed(Responses::default(), &events);
    translated(Protocol::Responses, &events).text
}

#[test]
fn texts_of_a_final_item_are_matched_by_their_order() {
    let hello = part("Hello");
    let at = |index: u32| {
        delta(
            &format!(r#""output_index":0,"content_index":{index},"#),
            "Hello",
        )
    };
    let bare = delta(r#""output_index":0,"#, "Hello");
    for content in [
        hello.clone(),
        format!("null,{hello}"),
        format!(r#"{{"type":"later"}},{hello}"#),
        format!("{},{hello}", part("")),
    ] {
        for deltas in [at(0), at(1), bare.clone()] {
            assert_eq!(text(&[deltas], &content), "Hello", "{content}");
        }
    }
    // The second text has no deltas.
    let two = format!("{},{}", part("Hello"), part(" there"));
    assert_eq!(text(&[at(0)], &two), "Hello there");
}

#[test]
fn a_text_that_is_done_may_have_the_index_that_its_deltas_lack() {
    let done = |place: &str| {
        format!(r#"{{"type":"response.output_text.done","output_index":0,{place}"text":"Hello"}}"#)
    };
    let (bare, at_one) = (
        r#""output_index":0,"#,
        r#""output_index":0,"content_index":1,"#,
    );
    for (place, end) in [(bare, r#""content_index":1,"#), (at_one, "")] {
        let events = [delta(place, "Hel"), delta(place, "lo"), done(end)];
        assert_eq!(text(&events, &part("Hello")), "Hello");
    }
}

#[test]
fn a_final_item_without_a_text_that_came_is_a_contradiction() {
    let at = |index: u32, text: &str| {
        delta(
            &format!(r#""output_index":0,"content_index":{index},"#),
            text,
        )
    };
    let item = message(&part("a"));
    let events = [
        CREATED,
        &at(0, "a"),
        &at(1, "b"),
        &done(0, &item),
        &completed(""),
    ];
    assert_eq!(
        contradiction(Responses::default(), Protocol::Responses, &events),
        "contradicting events: a final item without a text that came before"
    );
    // Two texts without indexes were one for clients.
    let two = message(&format!("{},{}", part("a"), part("b")));
    let bare = r#""output_index":0,"#;
    let events = [
        CREATED,
        &delta(bare, "a"),
        &delta(bare, "b"),
        &done(0, &two),
    ];
    assert_eq!(
        contradiction(Responses::default(), Protocol::Responses, &events),
        "contradicting events: a complete text that differs from its deltas"
    );
}

#[test]
fn events_without_a_place_get_that_of_their_item() {
    let added = r#"{"type":"response.output_item.added","output_index":3,"item":{"type":"message","id":"m","content":[]}}"#;
    let at = |place: &str| delta(place, "a");
    let item = message(&part("aa"));
    let events = [
        CREATED,
        added,
        &at(r#""item_id":"m","content_index":0,"#),
        &at(r#""item_id":"m","output_index":3,"#),
        &done(3, &item),
        &completed(&item),
    ];
    let passed = passed(Responses::default(), &events);
    for event in &passed[2..4] {
        assert_eq!(json(event)["output_index"], 3, "{event}");
        assert_eq!(json(event)["content_index"], 0, "{event}");
    }
}

#[test]
fn an_item_keeps_its_place_if_it_is_said_later() {
    let added =
        r#"{"type":"response.output_item.added","item":{"type":"message","id":"m","content":[]}}"#;
    let item = message(&part("ab"));
    let events = [
        CREATED,
        added,
        &delta(r#""item_id":"m","output_index":0,"content_index":0,"#, "a"),
        &delta(r#""output_index":0,"content_index":0,"#, "b"),
        &done(0, &item),
        &completed(&item),
    ];
    let passed = passed(Responses::default(), &events);
    assert_eq!(passed[2..], events[2..]);
    assert_eq!(translated(Protocol::Responses, &events).text, "ab");
}

#[test]
fn the_output_at_the_end_is_in_the_order_of_its_places() {
    let item = |id: &str| message(&part(id)).replace(r#""id":"m""#, &format!(r#""id":"{id}""#));
    let events = [
        CREATED,
        &done(1, &item("b")),
        &done(0, &item("a")),
        &done(0, &item("a")).replace("output_item.done", "output_item\\u002edone"),
        &completed(""),
    ];
    let passed = passed(Responses::default(), &events[..]);
    let end = json(passed.last().unwrap());
    let output = end["response"]["output"].as_array().unwrap();
    let ids: Vec<_> = output.iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn a_part_of_a_summary_has_its_own_index() {
    let piece = |part: u32, text: &str| {
        format!(
            r#"{{"type":"response.reasoning_summary_text.delta","output_index":0,"content_index":0,"summary_index":{part},"delta":"{text}"}}"#
        )
    };
    let item = r#"{"type":"reasoning","id":"m","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}]}"#;
    let events = [
        CREATED,
        &piece(0, "One."),
        &piece(1, "Two."),
        &done(0, item),
        &completed(item),
    ];
    passed(Responses::default(), &events);
    assert_eq!(
        translated(Protocol::Responses, &events).reasoning,
        "One.\n\nTwo."
    );
    let bare =
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"One."}"#;
    let item = item.replace(r#",{"type":"summary_text","text":"Two."}"#, "");
    let events = [CREATED, bare, &done(0, &item), &completed(&item)];
    let passed = passed(Responses::default(), &events);
    assert_eq!(json(&passed[1])["summary_index"], 0);
}

#[test]
fn texts_out_of_the_order_of_their_items_are_not_translated() {
    let at = |index: u32, text: &str| {
        delta(
            &format!(r#""output_index":{index},"content_index":0,"#),
            text,
        )
    };
    let item = |id: &str| message(&part(id)).replace(r#""id":"m""#, &format!(r#""id":"{id}""#));
    let output = completed(&format!("{},{}", item("a"), item("b")));
    let events = [
        CREATED,
        &at(1, "b"),
        &at(0, "a"),
        &done(0, &item("a")),
        &done(1, &item("b")),
        &output,
    ];
    assert_eq!(passed(Responses::default(), &events), events);
    crate::streams::parse_stream(Protocol::Responses, &events)
        .1
        .unwrap_err();
}

#[test]
fn a_cut_pair_is_joined_within_its_part() {
    let at = r#""output_index":0,"content_index":0,"#;
    let deltas = [delta(at, r"a\ud83d"), delta(at, r"\ude00")];
    assert_eq!(text(&deltas, &part(r"a\ud83d\ude00")), "a\u{1f600}");
}
