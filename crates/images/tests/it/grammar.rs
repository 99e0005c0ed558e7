//! Violations of the stream grammar.

use serde_json::{Value, json};
use sluicegate_images::{Event, Grammar, Offence, Operation, StreamError};
use wire::Object;

use crate::fold;

fn event(mut value: Value, kind: &str) -> Event {
    let settled = json!({"type": kind, "b64_json": "", "created_at": 1, "size": "16x16", "quality": "low",
        "background": "opaque", "output_format": "png"});
    value
        .as_object_mut()
        .unwrap()
        .extend(settled.as_object().unwrap().clone());
    Event::read(&value.to_string()).unwrap()
}

fn preview(index: u32) -> Event {
    event(
        json!({"partial_image_index": index}),
        "image_generation.partial_image",
    )
}

fn completed() -> Event {
    event(json!({}), "image_generation.completed")
}

fn failure() -> Event {
    Event::read(r#"{"type":"error","error":{"message":"No.","type":"server_error","param":null,"code":"x"}}"#).unwrap()
}

fn other() -> Event {
    Event::read(r#"{"type":"image_generation.queued"}"#).unwrap()
}

/// Returns the first violation of a stream of generations, its end included.
fn offence(count: Option<u32>, stream: &[Event]) -> Option<Offence> {
    let mut grammar = Grammar::new(Operation::Generation, count);
    let events = stream.iter().map(|event| grammar.push(event));
    events
        .collect::<Result<(), _>>()
        .and_then(|()| grammar.finish())
        .err()
}

#[test]
fn previews_of_one_picture_rise_and_any_may_be_missing() {
    for count in [Some(1), Some(2), None] {
        let violation = |stream: &[Event]| {
            let done = vec![completed(); count.unwrap_or(1) as usize - 1];
            offence(count, &[&done, stream].concat())
        };
        for indices in [&[0, 1, 2][..], &[0, 2], &[1, 2], &[1], &[2], &[]] {
            let previews = indices.iter().map(|index| preview(*index));
            assert_eq!(
                violation(&previews.chain([completed()]).collect::<Vec<_>>()),
                None,
                "{indices:?} of {count:?}"
            );
        }
        for indices in [[0, 0], [1, 0], [2, 1]] {
            let expected = count.map(|_| Offence::Preview).or(Some(Offence::Truncated));
            assert_eq!(
                violation(&indices.map(preview)),
                expected,
                "{indices:?} of {count:?}"
            );
        }
    }
}

#[test]
fn previews_of_pictures_side_by_side_come_in_any_order() {
    for count in [Some(2), None] {
        for indices in [[0, 0, 1, 1], [0, 1, 0, 1], [2, 1, 0, 0]] {
            let previews: Vec<_> = indices.into_iter().map(preview).collect();
            let both = [completed(), completed()];
            assert_eq!(
                offence(count, &[&previews[..], &both].concat()),
                None,
                "{indices:?}"
            );
            let late = [completed(), preview(1), completed()];
            assert_eq!(
                offence(count, &[&previews[..], &late].concat()),
                None,
                "{indices:?}, then one more"
            );
        }
    }
    let late = [preview(0), preview(0), completed(), preview(1), preview(1)];
    assert_eq!(
        offence(Some(2), &late),
        Some(Offence::Preview),
        "one image is still to come"
    );
}

#[test]
fn as_many_pictures_come_as_were_asked_for() {
    assert_eq!(offence(Some(1), &[completed()]), None);
    assert_eq!(offence(Some(1), &[]), Some(Offence::Truncated));
    assert_eq!(offence(Some(1), &[preview(0)]), Some(Offence::Truncated));
    assert_eq!(offence(Some(2), &[completed()]), Some(Offence::Truncated));
    for more in [completed(), preview(0), failure(), other()] {
        assert_eq!(
            offence(Some(1), &[completed(), more]),
            Some(Offence::AfterEnd)
        );
    }
}

#[test]
fn without_a_count_a_stream_may_end_after_any_picture() {
    assert_eq!(offence(None, &[completed()]), None);
    assert_eq!(
        offence(None, &[completed(), completed(), completed()]),
        None
    );
    assert_eq!(offence(None, &[]), Some(Offence::Truncated));
    assert_eq!(offence(None, &[other()]), Some(Offence::Truncated));
    assert_eq!(
        offence(None, &[completed(), preview(0)]),
        Some(Offence::Truncated)
    );
}

#[test]
fn a_failure_ends_a_stream_anywhere() {
    for count in [Some(2), None] {
        for before in [&[][..], &[preview(0)], &[completed()], &[other()]] {
            let stream = [before, &[failure()]].concat();
            assert_eq!(offence(count, &stream), None);
            let Err(StreamError::Failed(body)) = fold(Operation::Generation, count, &stream) else {
                panic!("failed")
            };
            assert_eq!(body.error.message, "No.");
            for more in [completed(), preview(0), failure(), other()] {
                assert_eq!(
                    offence(count, &[&stream[..], &[more]].concat()),
                    Some(Offence::AfterEnd)
                );
            }
        }
    }
}

#[test]
fn a_stream_keeps_to_the_events_of_its_operation() {
    let edits = [
        event(
            json!({"partial_image_index": 0}),
            "image_edit.partial_image",
        ),
        event(json!({}), "image_edit.completed"),
    ];
    for edit in &edits {
        assert_eq!(
            offence(None, std::slice::from_ref(edit)),
            Some(Offence::Family)
        );
    }
    for generation in [preview(0), completed()] {
        assert_eq!(
            Grammar::new(Operation::Edit, None).push(&generation),
            Err(Offence::Family)
        );
    }
    assert_eq!(
        fold(Operation::Edit, Some(1), &edits).unwrap().data.len(),
        1
    );
}

#[test]
fn the_end_is_known_when_the_count_is() {
    let mut grammar = Grammar::new(Operation::Generation, Some(2));
    for (event, ended) in [
        (preview(0), false),
        (completed(), false),
        (other(), false),
        (completed(), true),
    ] {
        grammar.push(&event).unwrap();
        assert_eq!(grammar.is_ended(), ended);
    }
    let mut grammar = Grammar::new(Operation::Generation, None);
    grammar.push(&completed()).unwrap();
    assert!(!grammar.is_ended());
    grammar.push(&failure()).unwrap();
    assert!(grammar.is_ended());
}

#[test]
fn unknown_events_are_kept_and_invalid_events_are_errors() {
    let text = r#"{"type":"image_generation.queued","place":3}"#;
    let Event::Other(members) = Event::read(text).unwrap() else {
        panic!("it is not known")
    };
    assert_eq!(members, serde_json::from_str::<Object>(text).unwrap());
    let mut extra = completed();
    if let Event::GenerationCompleted(completed) = &mut extra {
        completed.extra.insert("mood".to_owned(), "calm".into());
    }
    assert_eq!(
        fold(Operation::Generation, None, &[extra]).unwrap().data[0].extra["mood"],
        "calm"
    );
    for wrong in [
        "[DONE]",
        "{}",
        r#"{"type":"image_edit.completed"}"#,
        r#"{"type":"error","error":"no"}"#,
    ] {
        assert!(
            Event::read(wrong)
                .unwrap_err()
                .to_string()
                .starts_with("invalid Images event: "),
            "{wrong}"
        );
    }
}
