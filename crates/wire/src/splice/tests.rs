//! Tests of edits.

use proptest::prelude::*;
use serde_json::Value;
use strategies::json_value;

use super::*;

fn replaced(document: &str, path: &[&str], value: &str) -> String {
    let mut splice = Splice::new(document.as_bytes());
    splice.replace(path, value.as_bytes());
    String::from_utf8(splice.to_vec()).unwrap()
}

fn without(document: &str, names: &[&str]) -> String {
    let mut splice = Splice::new(document.as_bytes());
    splice.remove(&[], names);
    String::from_utf8(splice.to_vec()).unwrap()
}

#[test]
fn members_are_renamed_and_replaced_in_each_element() {
    let edited = |document: &str, edit: &dyn Fn(&mut Splice<'_>)| {
        let mut splice = Splice::new(document.as_bytes());
        edit(&mut splice);
        String::from_utf8(splice.to_vec()).unwrap()
    };
    let rename = |splice: &mut Splice<'_>| _ = splice.rename("a", "b");
    assert_eq!(
        edited(r#"{"x":{"a":1}, "a" : [1]}"#, &rename),
        r#"{"x":{"a":1}, "b" : [1]}"#
    );
    for kept in [r#"{"a":1,"b":2}"#, r#"{"x":1}"#, "{}", "[]"] {
        assert_eq!(edited(kept, &rename), kept);
    }
    let replace = |splice: &mut Splice<'_>| splice.replace_in_each("l", "r", b"1", b"2");
    assert_eq!(
        edited(
            r#"{"r":1,"l":[{"r":1},{"r":11},[{"r":1}],{"x":{"r":1},"r" : 1}],"m":[{"r":1}]}"#,
            &replace
        ),
        r#"{"r":1,"l":[{"r":2},{"r":11},[{"r":1}],{"x":{"r":1},"r" : 2}],"m":[{"r":1}]}"#
    );
    for kept in [
        r#"{"l":[ ],"r":1}"#,
        r#"{"l":{"r":1}}"#,
        r#"{"l":"r"}"#,
        "{}",
    ] {
        assert_eq!(edited(kept, &replace), kept);
    }
}

#[test]
fn every_one_of_repeated_members_is_replaced() {
    let document = r#"{"a":{"m":1},"m":2,"\u006d":3}"#;
    let mut splice = Splice::new(document.as_bytes());
    assert!(splice.replace_each(&[], "m", b"0"));
    assert!(splice.replace_each(&["a"], "m", b"0"));
    assert!(!splice.replace_each(&["a"], "n", b"0"));
    assert!(!splice.replace_each(&["m"], "n", b"0"));
    assert_eq!(splice.to_vec(), br#"{"a":{"m":0},"m":0,"\u006d":0}"#);
}

#[test]
fn a_member_of_an_element_is_put_and_renamed() {
    let document = r#"{"l":[{},{"a":null,"b":1}]}"#;
    let mut splice = Splice::new(document.as_bytes());
    splice.put(&["l", "0"], "a", "1");
    splice.put(&["l", "1"], "a", "2");
    splice.rename_in(&["l", "1"], "b", "c");
    splice.rename_in(&["l", "1"], "d", "e");
    splice.put(&["l", "2"], "a", "3");
    assert_eq!(splice.to_vec(), br#"{"l":[{"a":1},{"a":2,"c":1}]}"#);
}

#[test]
fn one_value_changes_and_no_other_byte() {
    let document = "{ \"a\":{\"model\":1},\t\"model\" :\n\"x\\\"}\" ,\"n\":1.50e0 } ";
    assert_eq!(
        replaced(document, &["model"], "\"y\""),
        "{ \"a\":{\"model\":1},\t\"model\" :\n\"y\" ,\"n\":1.50e0 } "
    );
    assert_eq!(
        replaced(document, &["a", "model"], "2"),
        "{ \"a\":{\"model\":2},\t\"model\" :\n\"x\\\"}\" ,\"n\":1.50e0 } "
    );
    assert_eq!(replaced(document, &["b"], "2"), document);
    assert_eq!(replaced(document, &["n", "model"], "2"), document);
}

#[test]
fn absent_member_is_added() {
    let set = |document: &str| {
        let mut splice = Splice::new(document.as_bytes());
        splice.set("m", b"1");
        String::from_utf8(splice.to_vec()).unwrap()
    };
    assert_eq!(set(r#"{"m": 0}"#), r#"{"m": 1}"#);
    assert_eq!(set(r#" { "n":2}"#), r#" {"m":1, "n":2}"#);
    assert_eq!(set("{ }"), r#"{"m":1 }"#);
}

#[test]
fn a_path_may_lead_through_lists() {
    let document = r#"{"a":[{"b":1},[2,{"c":3}] ,4]}"#;
    assert_eq!(
        replaced(document, &["a", "0", "b"], "0"),
        r#"{"a":[{"b":0},[2,{"c":3}] ,4]}"#
    );
    assert_eq!(
        replaced(document, &["a", "1", "1", "c"], "0"),
        r#"{"a":[{"b":1},[2,{"c":0}] ,4]}"#
    );
    assert_eq!(
        replaced(document, &["a", "2"], "0"),
        r#"{"a":[{"b":1},[2,{"c":3}] ,0]}"#
    );
    for absent in [&["a", "3"][..], &["a", "b"], &["a", "0", "0"], &["0"]] {
        assert_eq!(replaced(document, absent, "0"), document);
    }
}

#[test]
fn a_member_can_get_another_name() {
    let mut splice = Splice::new(br#"{"a":{ "b" : [1] ,"c":2}}"#);
    assert!(splice.replace_member(&["a"], "b", ("d", b"3")));
    assert!(!splice.replace_member(&["a"], "e", ("d", b"3")));
    assert_eq!(splice.to_vec(), br#"{"a":{ "d":3 ,"c":2}}"#);
}

#[test]
fn missing_members_are_added_first() {
    let added = |document: &str| {
        let mut splice = Splice::new(document.as_bytes());
        splice.add_missing(&["a"], &[("b", "1"), ("c", "2")]);
        String::from_utf8(splice.to_vec()).unwrap()
    };
    assert_eq!(added(r#"{"a":{}}"#), r#"{"a":{"b":1,"c":2}}"#);
    assert_eq!(added(r#"{"a":{"c":0}}"#), r#"{"a":{"b":1,"c":0}}"#);
    assert_eq!(added(r#"{"a":{"b":0,"c":0}}"#), r#"{"a":{"b":0,"c":0}}"#);
    assert_eq!(added("{}"), "{}");
}

#[test]
fn a_name_may_be_written_with_escapes() {
    assert_eq!(
        replaced(r#"{"mod\u0065l":1}"#, &["model"], "2"),
        r#"{"mod\u0065l":2}"#
    );
}

#[test]
fn a_member_goes_with_one_comma() {
    assert_eq!(without(r#"{"a":1}"#, &["a"]), "{}");
    assert_eq!(without(r#"{ "a":1 , "b":2}"#, &["a"]), r#"{ "b":2}"#);
    assert_eq!(without(r#"{"a":1 , "b":2 }"#, &["b"]), r#"{"a":1  }"#);
    assert_eq!(
        without(r#"{"a":1,"b":2,"c":3}"#, &["b"]),
        r#"{"a":1,"c":3}"#
    );
    assert_eq!(without(r#"{"a":1,"b":2,"c":3}"#, &["b", "c"]), r#"{"a":1}"#);
    assert_eq!(without(r#"{"a":1,"b":2,"c":3}"#, &["b", "a"]), r#"{"c":3}"#);
    assert_eq!(without(r#"{"a":1,"b":2,"c":3}"#, &["c", "a"]), r#"{"b":2}"#);
    assert_eq!(without(r#"{"a":1,"b":2}"#, &["a", "b"]), "{}");
}

#[test]
fn members_are_added_where_others_go() {
    type Edit = fn(&mut Splice<'_>);
    let set: Edit = |splice| splice.set("m", b"1");
    let set_other: Edit = |splice| splice.set("n", b"2");
    let remove: Edit = |splice| _ = splice.remove(&[], &["a", "b"]);
    for (document, edits, edited) in [
        (r#"{"a":0,"b":0}"#, [set, remove], r#"{"m":1}"#),
        (r#"{"a":0,"b":0}"#, [remove, set], r#"{"m":1}"#),
        (r#"{"a":0, "c":0}"#, [set, remove], r#"{"m":1,"c":0}"#),
        (r#"{"a":0, "c":0}"#, [remove, set], r#"{"m":1,"c":0}"#),
        (r#"{"c":0,"a":0}"#, [set, remove], r#"{"m":1,"c":0}"#),
        (r#"{"c":0,"a":0}"#, [remove, set], r#"{"m":1,"c":0}"#),
        ("{}", [set, set_other], r#"{"n":2,"m":1}"#),
        (r#"{"c":0}"#, [set, set_other], r#"{"n":2,"m":1,"c":0}"#),
    ] {
        let mut splice = Splice::new(document.as_bytes());
        edits.iter().for_each(|edit| edit(&mut splice));
        assert_eq!(String::from_utf8(splice.to_vec()).unwrap(), edited);
    }
}

#[test]
fn invalid_json_is_left_unchanged() {
    for document in [
        "",
        "{",
        "{\"a",
        "{\"a\\",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":\"",
        "{\"a\":[",
        "[1]",
        "{\"a\":1",
    ] {
        assert_eq!(replaced(document, &["a"], "2"), document);
        assert_eq!(without(document, &["a"]), document);
    }
}

/// The name of two backslashes is `"\\\\"`, and `"\\"` is the name of one.
#[test]
fn names_with_backslashes_are_compared_without_their_escapes() {
    let document = r#"{"\\":1,"\\\\":2}"#;
    assert_eq!(replaced(document, &[r"\\"], "3"), r#"{"\\":1,"\\\\":3}"#);
    assert_eq!(replaced(document, &[r"\"], "3"), r#"{"\\":3,"\\\\":2}"#);
}

#[test]
fn pieces_are_the_document() {
    let document = br#"{"model":"a","x":[1,2],"y":3}"#;
    let mut splice = Splice::new(document);
    splice.replace(&["model"], b"\"b\"");
    splice.remove(&[], &["y"]);
    let pieces: Vec<&[u8]> = splice
        .pieces()
        .into_iter()
        .map(|piece| match piece {
            Piece::Kept(range) => &document[range],
            Piece::New(bytes) => bytes,
        })
        .collect();
    assert_eq!(pieces.concat(), splice.to_vec());
    assert_eq!(splice.to_vec(), br#"{"model":"b","x":[1,2]}"#);
}

proptest! {
    #[test]
    fn edits_agree_with_a_parser(value in json_value(), name in any::<prop::sample::Index>()) {
        let Value::Object(object) = value else { return Ok(()) };
        let text = serde_json::to_string_pretty(&object).unwrap();
        let Some((key, _)) = object.iter().nth(name.index(object.len().max(1))) else { return Ok(()) };
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let mut expected = object.clone();
        expected.insert(key.clone(), Value::from("new"));
        prop_assert_eq!(read(&replaced(&text, &[key], "\"new\"")), Value::Object(expected));
        let mut expected = object.clone();
        expected.shift_remove(key);
        prop_assert_eq!(read(&without(&text, &[key])), Value::Object(expected));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut splice = Splice::new(&bytes);
        let found = splice.replace(&["a", "b"], b"1") | splice.remove(&[], &["a"]);
        prop_assert!(found || splice.to_vec() == bytes);
    }
}
