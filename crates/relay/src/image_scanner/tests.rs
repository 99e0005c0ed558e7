//! Tests of the scanner, with replies that are cut anywhere.

use ::images::Operation;
use ::images::lenient::{Picture, Reader};
use proptest::prelude::*;
use serde_json::json;
use strategies::{PNG, png};

use super::*;

fn read(object: &str, size: usize) -> ImageScanner {
    edited(object, size).0
}

/// Scans an object in pieces of this size. Returns the scanner and the text that the client gets.
fn edited(object: &str, size: usize) -> (ImageScanner, String) {
    let mut scanner = ImageScanner::default();
    let chunks = object.as_bytes().chunks(size);
    let edited: Vec<_> = chunks
        .flat_map(|chunk| scanner.edit(chunk).into_owned())
        .collect();
    (scanner, String::from_utf8(edited).unwrap())
}

/// Servers write base64 as a data URL, in lines, in the alphabet for URLs and without its padding.
#[test]
fn base64_is_repaired_however_it_is_cut() {
    let picture = png(1200);
    assert!(picture.contains('/') && picture.contains('+') && picture.ends_with('='));
    let unpadded = picture.trim_end_matches('=');
    let lines: Vec<_> = picture
        .as_bytes()
        .chunks(76)
        .map(String::from_utf8_lossy)
        .collect();
    for written in [
        format!("data:image/png;base64,{picture}"),
        format!("data:image\\/png;base64,{picture}"),
        format!("Data:image/png;charset=utf-8;BASE64,{unpadded}"),
        lines.join("\\r\\n"),
        lines.join("\\u000a"),
        format!(" \\n{picture}\\n"),
        picture.replace('+', "-").replace('/', "_"),
        picture.replace('+', "\\u002d").replace('/', "\\u005F"),
        unpadded.to_owned(),
        unpadded.replace('+', "-").replace('/', "_"),
        format!("{picture}="),
        format!("data:;base64,{}", lines.join("\\n")),
    ] {
        let object = |base64: &str| {
            format!(
                r#"{{"a":"b\n","data":[{{"b64_json":"{base64}","n":1}},{{"b64_json":"{PNG}"}}]}}"#
            )
        };
        let written = object(&written);
        for size in [1, 2, 3, 7, 100, 300, written.len()] {
            let (scanner, edited) = edited(&written, size);
            assert!(scanner.check(true).is_ok(), "{written} by {size}");
            assert_eq!(edited, object(&picture), "{written} by {size}");
        }
        let whole = Reader::new(Operation::Generation, None)
            .reply(&written)
            .unwrap();
        assert_eq!(whole[0], Picture::Repaired(picture.clone()));
    }
}

/// Base64 that could have several meanings is not a picture.
#[test]
fn base64_that_is_ambiguous_is_not_repaired() {
    let unpadded = PNG.trim_end_matches('=');
    for written in [
        format!("data:image/png,{PNG}"),
        format!("data:image/png;base64{PNG}"),
        format!("image/png;base64,{PNG}"),
        format!("{PNG}{PNG}"),
        format!("{PNG}\\n=\\nAAAA"),
        format!("{}A", &unpadded[..unpadded.len() / 4 * 4]),
        PNG.replacen('A', "=", 1),
        PNG.replacen('A', "*", 1),
        "data:image/png;base64,".to_owned(),
    ] {
        let object = format!(r#"{{"data":[{{"b64_json":"{written}"}}]}}"#);
        for size in [1, object.len()] {
            assert!(
                read(&object, size).check(true).is_err(),
                "{written} by {size}"
            );
        }
        let whole = Reader::new(Operation::Generation, None).reply(&object);
        assert!(whole.is_err(), "{written}");
    }
}

#[test]
fn no_part_of_an_object_is_closed_however_it_is_cut() {
    let object = r#" {"a": "}]\"}\\", "b": [{"c": {}}, "\u005c\"", []], "": "{"} "#;
    let end = object.rfind('}').unwrap();
    for length in 0..=object.len() {
        for size in 1..=length.max(1) {
            assert_eq!(
                read(&object[..length], size).closed,
                length > end,
                "{length} bytes by {size}"
            );
        }
    }
}

#[test]
fn outermost_members_are_found_however_they_are_cut() {
    for (object, has_images, has_error) in [
        (r#"{"data":[]}"#, false, false),
        (r#"{"data":["{"],"a":[{}]}"#, false, false),
        (r#"{"data":[ {}]}"#, true, false),
        (
            r#" { "created" : 1 , "usage" : {"error": {}, "data": []} , "data" : [ {"error": 1} ] } "#,
            true,
            false,
        ),
        (r#"{"data":null,"error":null}"#, false, false),
        (
            r#"{"data":{"data":[]},"a":["error",{"error":1}],"b":"error","c":"\"error\":1"}"#,
            false,
            false,
        ),
        (r#"{"error":{"message":"\"data\":[]"}}"#, false, true),
        (r#"{"error" : "no"}"#, false, true),
        (r#"{"error":false,"data":[{}]}"#, true, false),
        (r#"{"data":[{"b64_json":"AAAA"}],"error":{}}"#, true, true),
        (r#"{"a":"\\","error":0}"#, false, true),
        (
            r#"{"\u0065\u0072\u0072\u006f\u0072":0,"\u0064ata":[{}]}"#,
            true,
            true,
        ),
        (
            r#"{"errors":1,"Error":1,"error\\":1,"error\"":1,"\u0065\u0072\u0072\u006f\u0072s":1}"#,
            false,
            false,
        ),
        (
            r#"{"a long name that ends with error":1,"":1}"#,
            false,
            false,
        ),
    ] {
        for size in 1..=object.len() {
            let scanner = read(object, size);
            let found = (scanner.has_images(), scanner.has_error(), scanner.closed);
            assert_eq!(found, (has_images, has_error, true), "{object} by {size}");
        }
    }
}

#[test]
fn the_usage_is_kept_as_it_is_written_however_it_is_cut() {
    let (fits, too_long) = ("x".repeat(MAX_USAGE - 8), "x".repeat(MAX_USAGE - 7));
    for (object, usage) in [
        (
            r#"{"usage":{"a":[1,{"b":"}\"}"}],"c":2},"data":[]}"#,
            r#"{"a":[1,{"b":"}\"}"}],"c":2}"#,
        ),
        (
            r#"{"data":[{"usage":{"a":1}}],"usage" : {"a":2}}"#,
            r#"{"a":2}"#,
        ),
        (r#"{"usage":{"a":1},"usage":{"a":2}}"#, r#"{"a":2}"#),
        (r#"{"usage":null,"used":{}}"#, ""),
        (
            &format!(r#"{{"usage":{{"a":"{fits}"}}}}"#),
            &format!(r#"{{"a":"{fits}"}}"#),
        ),
        (&format!(r#"{{"usage":{{"a":"{too_long}"}}}}"#), ""),
    ] {
        for size in [1, 2, 3, 7, object.len()] {
            assert_eq!(
                read(object, size).usage,
                usage.as_bytes(),
                "{object} by {size}"
            );
        }
    }
}

/// The elements of `data` that a reply may have.
fn elements() -> Vec<serde_json::Value> {
    let svg = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz48L3N2Zz4=";
    vec![
        json!({"b64_json": PNG}),
        json!({"b64_json": png(400), "url": "", "extra": [{"b64_json": 1}]}),
        json!({"b64_json": png(1200)}),
        json!({"b64_json": png(1200).replacen("AAAAA", "AA\n=A", 1)}),
        json!({"url": "https://pictures.example/a.png", "b64_json": null}),
        json!({"url": "/a.png", "b64_json": ""}),
        json!({"b64_json": svg}),
        json!({"b64_json": ""}),
        json!({"b64_json": 7}),
        json!({"b64_json": &PNG[..PNG.len() - 8]}),
        json!({"b64_json": &PNG[..PNG.len() - 1]}),
        json!({"b64_json": "AA=="}),
        json!({"b64_json": format!("{}=", &PNG[..PNG.len() - 3])}),
        json!({"b64_json": PNG.replace('+', "-"), "url": "a"}),
        json!({"b64_json": PNG.replacen('A', "\n", 1)}),
        json!({"b64_json": format!("{}\r\n{}\n", &PNG[..40], &PNG[40..])}),
        json!({"b64_json": PNG.replacen('A', "\u{e9}", 1)}),
        json!({"b64_json": "eyJlcnJvciI6Im5vIGltYWdlIn0="}),
        json!({"revised_prompt": "x"}),
        json!({}),
        json!(null),
        json!(PNG),
        json!([PNG]),
    ]
}

/// Writes characters of base64 in other ways that JSON has.
fn escaped(text: &str, way: usize) -> String {
    match way {
        0 => text.to_owned(),
        1 => text.replace('/', "\\/"),
        2 => text.replace('B', "\\u0042").replace("\\n", "\\u000a"),
        _ => text.replace('B', "\\u0142"),
    }
}

proptest! {
    /// A long reply that is scanned and a short one that is parsed get the same verdict.
    #[test]
    fn the_scanner_and_the_lenient_reader_agree(
        images in prop::collection::vec(prop::sample::select(elements()), 0..4),
        way in 0..4_usize,
        size in 1..2000_usize,
    ) {
        let body = escaped(&json!({"created": 1, "data": images}).to_string(), way);
        let read_whole = Reader::new(Operation::Generation, None).reply(&body).map(drop);
        let scanned = read(&body, size).check(true);
        prop_assert_eq!(scanned.is_ok(), read(&body, 1).check(true).is_ok());
        prop_assert_eq!(scanned.is_ok(), read_whole.is_ok(), "{}: {:?} {:?}", body, scanned, read_whole);
    }

    #[test]
    fn texts_of_any_kind_are_no_structure(text: String, key: String, at: prop::sample::Index) {
        let object = serde_json::json!({ key: [text] }).to_string();
        let (first, second) = object.as_bytes().split_at(at.index(object.len()));
        let mut scanner = ImageScanner::default();
        prop_assert_eq!(scanner.edit(first), first);
        prop_assert!(!scanner.closed);
        prop_assert_eq!(scanner.edit(second), second);
        prop_assert!(scanner.closed);
    }

    #[test]
    fn the_reader_agrees_with_the_parser(
        names in prop::collection::vec(prop_oneof!["data", "error", "[a-z\"\\\\]{0,6}"], 0..5),
        values in prop::collection::vec(prop_oneof!["null", "\\[(\\{\\})?\\]", "\\{\"error\":1\\}", "-1", "\"error\""], 5),
        size in 1..40_usize,
    ) {
        let object: std::collections::BTreeMap<_, serde_json::Value> =
            names.into_iter().zip(values).map(|(name, value)| (name, serde_json::from_str(&value).unwrap())).collect();
        let scanner = read(&serde_json::to_string(&object).unwrap(), size);
        let is_first_image = |data: &serde_json::Value| data.get(0).is_some_and(serde_json::Value::is_object);
        prop_assert_eq!(scanner.has_images(), object.get("data").is_some_and(is_first_image));
        prop_assert_eq!(scanner.has_error(), object.get("error").is_some_and(|error| !error.is_null()));
    }
}
