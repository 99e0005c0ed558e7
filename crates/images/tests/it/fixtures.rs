//! Parses every fixture, checks that nothing is lost, and compares its meaning with a snapshot.

use serde_json::Value;
use sluicegate_images::{Edit, Generation, Operation, Reply, Response, Rules, Source};
use wire::ApiError;

use crate::{events, fold, text};

#[test]
fn generations_are_valid_and_nothing_is_lost() {
    insta::glob!("fixtures/images-generate-request*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let request = Generation::read(&body).unwrap();
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            serde_json::from_slice::<Value>(&body).unwrap()
        );
        insta::assert_debug_snapshot!(*request.validate(&Rules::default()).unwrap());
    });
}

#[test]
fn edits_are_valid_and_nothing_is_lost() {
    insta::glob!("fixtures/images-edit-request-json*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let request = Edit::read(&body).unwrap();
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            serde_json::from_slice::<Value>(&body).unwrap()
        );
        let valid = request.validate(&Rules::default()).unwrap();
        assert_eq!(
            valid.sources().count(),
            valid.images.as_ref().unwrap().len()
        );
        insta::assert_debug_snapshot!(*valid);
        let (generation, sources, mask) = valid.into_inner().into_sources();
        assert!(!generation.prompt.is_empty());
        for source in sources.into_iter().chain(mask) {
            let Source::Inline { bytes, .. } = source else {
                panic!("{source:?}")
            };
            assert!(bytes.starts_with(b"\x89PNG"));
        }
    });
}

#[test]
fn stored_files_are_refused_to_the_letter() {
    let fixture: Value = serde_json::from_str(include_str!(
        "fixtures/images-edit-request-file-id-rejected.json"
    ))
    .unwrap();
    let request = Edit::read(fixture["request"].to_string().as_bytes()).unwrap();
    let found = request.validate(&Rules::default()).unwrap_err();
    assert_eq!(
        serde_json::to_value(ApiError::from(found).body()).unwrap(),
        fixture["expect"]["body"]
    );
}

#[test]
fn replies_are_read_and_written_the_same_to_the_byte() {
    insta::glob!("fixtures/images-response-*.json", |path| {
        let body = std::fs::read_to_string(path).unwrap();
        match Reply::read(body.as_bytes()).unwrap() {
            Reply::Pictures(response) => {
                assert_eq!(
                    serde_json::to_string_pretty(&response).unwrap(),
                    body.trim_end()
                );
                assert!(
                    response
                        .data
                        .iter()
                        .all(|image| image.generation_id.is_some())
                );
            }
            Reply::Failure(body) => insta::assert_json_snapshot!(body),
        }
    });
}

#[test]
fn error_beside_pictures_is_a_failure_unless_null() {
    let body = include_str!("fixtures/images-response-one.json");
    let with = |error: &str| {
        Reply::read(
            body.replacen('{', &format!("{{\"error\": {error},"), 1)
                .as_bytes(),
        )
    };
    assert!(
        matches!(with(r#"{"message": "No."}"#).unwrap(), Reply::Failure(body) if body.error.message == "No.")
    );
    assert!(matches!(with("null").unwrap(), Reply::Pictures(response) if response.data.len() == 1));
    assert!(Reply::read(b"{}").is_err());
    assert!(Reply::read(b"<html>").is_err());
}

#[test]
fn streams_are_within_the_grammar_and_amount_to_a_reply() {
    insta::glob!("fixtures/images-stream-*.sse", |path| {
        let stream = std::fs::read_to_string(path).unwrap();
        let events = events(&stream);
        assert_eq!(text(&events), stream, "written as it was read");
        let name = path.to_string_lossy();
        let operation = if name.contains("-edit") {
            Operation::Edit
        } else {
            Operation::Generation
        };
        let count = if name.contains("-two") { 2 } else { 1 };
        let folded = fold(operation, Some(count), &events);
        assert_eq!(
            folded,
            fold(operation, None, &events),
            "the count does not affect a complete stream"
        );
        match folded {
            Ok(reply) => insta::assert_json_snapshot!(reply),
            Err(error) => insta::assert_snapshot!(error),
        }
    });
}

#[test]
fn the_fold_of_a_stream_is_the_reply_without_one() {
    for (stream, reply) in [
        (
            include_str!("fixtures/images-stream-generate-no-preview.sse"),
            include_str!("fixtures/images-response-one.json"),
        ),
        (
            include_str!("fixtures/images-stream-generate-two.sse"),
            include_str!("fixtures/images-response-two.json"),
        ),
    ] {
        let reply: Response = serde_json::from_str(reply).unwrap();
        let count = reply.data.len().try_into().unwrap();
        assert_eq!(
            fold(Operation::Generation, Some(count), &events(stream)),
            Ok(reply)
        );
    }
}
