//! Deserialization of a document into a type, with all errors reported at once.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Code, Cursor, Path, Problem, Shape, Violations};

/// Maximum nesting depth of arrays and objects in a document.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of values in a document. Each takes tens of bytes in memory, even if written in
/// two.
pub const MAX_VALUES: usize = 1_000_000;

/// Deserializes a JSON object into `T`.
///
/// # Errors
/// Returns every reason why the document is not a `T`, with paths: only the syntax error if it is
/// not valid JSON, otherwise every missing member and every value of a wrong type. Rules about
/// values within their type are left to the validators.
pub fn read<T: DeserializeOwned + JsonSchema>(document: &[u8]) -> Result<T, Violations> {
    let extent = Extent::of(document);
    if extent.depth > MAX_DEPTH {
        return Err(refusal(format!(
            "The request body nests arrays and objects more than {MAX_DEPTH} deep."
        )));
    }
    if extent.values > MAX_VALUES {
        return Err(refusal(format!(
            "The request body has more than {MAX_VALUES} values."
        )));
    }
    // Validating UTF-8 once here saves validating each string.
    let read = match simdutf8::basic::from_utf8(document) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(document),
    };
    read.map_err(|error| explain::<T>(document, &error))
}

#[cold]
fn explain<T: JsonSchema>(document: &[u8], error: &serde_json::Error) -> Violations {
    match serde_json::from_slice::<Value>(document) {
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            of(Problem::NotJson { line, column })
        }
        Ok(value) if !value.is_object() => {
            refusal("The request body must be a JSON object.".to_owned())
        }
        Ok(value) => {
            let found = Shape::of::<T>().diagnose(&value);
            if found.is_empty() {
                refusal(format!("The request body is not valid: {error}."))
            } else {
                found
            }
        }
    }
}

fn refusal(sentence: String) -> Violations {
    of(Problem::Other(Code::InvalidJson, sentence))
}

fn of(problem: Problem) -> Violations {
    let mut found = Violations::default();
    found.add(&Path::ROOT, problem);
    found
}

/// Returns the nesting depth of a document by counting brackets, without parsing it.
#[must_use]
pub fn depth(document: &[u8]) -> usize {
    Extent::of(document).depth
}

/// The depth and number of values of a document, measured from its punctuation before any value is
/// built.
struct Extent {
    depth: usize,
    /// An upper bound: each value but the first follows a comma or an opening bracket.
    values: usize,
}

impl Extent {
    fn of(document: &[u8]) -> Self {
        let mut depth = 0_usize;
        let mut deepest = 0;
        let mut values = 1;
        let mut cursor = Cursor::of_bytes(document, 0);
        while let Some(byte) = cursor.byte() {
            match byte {
                b'"' if cursor.pass_text().is_none() => break,
                b'[' | b'{' => {
                    depth += 1;
                    values += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                b',' => values += 1,
                _ => {}
            }
        }
        Self {
            depth: deepest,
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Request {
        model: String,
        input: crate::TextOr<Part>,
        stream: Option<bool>,
        #[serde(default, deserialize_with = "crate::integer_or_null")]
        limit: Option<i64>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Deep {
        #[serde(flatten)]
        _all: crate::Object,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Part {
        text: String,
    }

    fn messages(document: &str) -> Vec<String> {
        let found = read::<Request>(document.as_bytes())
            .map(|_| ())
            .unwrap_err();
        found
            .iter()
            .map(|v| format!("{} {v}", v.code().as_str()))
            .collect()
    }

    /// Every missing member and every value of a wrong type is reported with its path.
    #[test]
    fn j05_every_violation_of_a_type_is_reported_with_its_path() {
        let document = r#"{"input":[{"text":1},{"text":"a"},{},7],"stream":"true","limit":1.5}"#;
        assert_eq!(
            messages(document),
            [
                "missing_required_parameter Missing required parameter: 'model'.",
                "invalid_type Invalid type for 'input[0].text': expected a string, but got an integer instead.",
                "missing_required_parameter Missing required parameter: 'input[2].text'.",
                "invalid_type Invalid type for 'input[3]': expected an object, but got an integer instead.",
                "invalid_type Invalid type for 'stream': expected a boolean, but got a string instead.",
                "invalid_type Invalid type for 'limit': expected an integer, but got a decimal number instead.",
            ]
        );
        assert_eq!(
            messages(r#"{"model":"m","input":5}"#),
            [
                "invalid_type Invalid type for 'input': expected a string or an array of objects, but got an integer instead.",
            ]
        );
    }

    /// An integer out of range of its field is rejected as such.
    #[test]
    fn j03_out_of_range_integer_is_reported_as_an_integer() {
        for number in [
            "9223372036854775808",
            "18446744073709551616",
            "-18446744073709551616",
        ] {
            let found = messages(&format!(r#"{{"model":"m","input":"","limit":{number}}}"#));
            assert!(
                found[0].ends_with("expected an integer, but got an integer out of range instead."),
                "{found:?}"
            );
        }
    }

    #[test]
    fn invalid_json_and_non_objects_are_reported() {
        assert_eq!(
            messages("{"),
            [
                "invalid_json We could not parse the JSON body of your request. (HINT: line 1, column 1)"
            ]
        );
        assert_eq!(
            messages("[]"),
            ["invalid_json The request body must be a JSON object."]
        );
        assert_eq!(
            messages(r#"{"model":"a","model":"b","input":""}"#),
            [
                "invalid_json The request body is not valid: duplicate field `model` at line 1 column 20.",
            ]
        );
    }

    /// Deep nesting is rejected before any value is built.
    #[test]
    fn j02_deep_nesting_is_refused_before_anything_is_built() {
        let deep = |n: usize| {
            format!(
                r#"{{"model":"m","input":"","x":{}{}}}"#,
                "[".repeat(n),
                "]".repeat(n)
            )
        };
        assert!(read::<Request>(deep(63).as_bytes()).is_ok());
        assert!(messages(&deep(64))[0].contains("more than 64 deep"));
        assert!(messages(&"[".repeat(1_000_000))[0].contains("more than 64 deep"));
        assert!(read::<Request>(br#"{"model":"[[[\"[","input":""}"#).is_ok());
        assert!(
            read::<Request>(
                format!(r#"{{"model":"\"{}","input":""}}"#, "[".repeat(100)).as_bytes()
            )
            .is_ok()
        );
    }

    /// Documents nested up to the limit are read on a small stack; deeper ones are rejected.
    #[test]
    fn j02_no_nesting_is_too_deep_for_a_small_stack() {
        let work = || {
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                let deep = |n: usize| {
                    format!(
                        r#"{{"model":"m","input":"","x":{}1{}}}"#,
                        open.repeat(n),
                        close.repeat(n)
                    )
                    .into_bytes()
                };
                let read_and_format =
                    |n: usize| read::<Deep>(&deep(n)).map(|found| format!("{found:?}").len());
                assert!(read_and_format(63).is_ok());
                for n in [64, 65, 128, 129, 1_000_000] {
                    assert!(read_and_format(n).is_err(), "{n}");
                }
            }
        };
        std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(work)
            .unwrap()
            .join()
            .unwrap();
    }

    /// Documents with too many values are rejected before any value is built, and the number of
    /// reported errors is capped.
    #[test]
    fn j08_values_are_counted_and_findings_are_few() {
        let with = |value: &str, n: usize| {
            format!(
                r#"{{"model":"m","input":[{}0]}}"#,
                format!("{value},").repeat(n)
            )
        };
        assert!(messages(&with("0", MAX_VALUES))[0].contains("more than 1000000 values"));
        assert!(messages(&with("[]", MAX_VALUES / 2))[0].contains("more than 1000000 values"));
        // Four are counted besides the list: the document, its object, the list itself and the
        // comma before it.
        assert!(messages(&with("0", MAX_VALUES - 3))[0].contains("more than 1000000 values"));
        assert_eq!(messages(&with("0", MAX_VALUES - 4)).len(), 100);
        let text = format!(r#"{{"model":"{}","input":""}}"#, "[,".repeat(MAX_VALUES));
        assert!(read::<Request>(text.as_bytes()).is_ok());
    }

    /// The depth and the number of values of a document, byte by byte.
    fn counted(document: &[u8]) -> (usize, usize) {
        let (mut depth, mut deepest, mut values) = (0_usize, 0, 1);
        let (mut is_in_text, mut is_escaped) = (false, false);
        for byte in document {
            match (is_in_text, byte) {
                (true, _) if is_escaped => is_escaped = false,
                (true, b'\\') => is_escaped = true,
                (_, b'"') => is_in_text = !is_in_text,
                (false, b'[' | b'{') => {
                    depth += 1;
                    values += 1;
                    deepest = deepest.max(depth);
                }
                (false, b']' | b'}') => depth = depth.saturating_sub(1),
                (false, b',') => values += 1,
                _ => {}
            }
        }
        (deepest, values)
    }

    proptest! {
        #[test]
        fn texts_are_skipped_as_they_are_read(document in r#"([\[\]{},:"\\a]|\\"){0,60}"#) {
            let extent = Extent::of(document.as_bytes());
            prop_assert_eq!((extent.depth, extent.values), counted(document.as_bytes()));
        }
    }
}
