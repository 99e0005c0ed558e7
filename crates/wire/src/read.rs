//! Bytes to a type; and when that fails, every reason at once.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Code, Path, Problem, Shape, Violations};

/// How deep arrays and objects of a document may nest.
pub const MAX_DEPTH: usize = 64;
/// How many values a document may have. In memory each takes some tens of bytes, even one that is written in two.
pub const MAX_VALUES: usize = 1_000_000;

/// Reads a JSON object into `T`.
///
/// # Errors
/// Everything that keeps the document from being a `T`, with paths: syntax alone when it is no JSON, else every
/// member that is missing or of another type. What a value may be within its type is for the validators.
pub fn read<T: DeserializeOwned + JsonSchema>(document: &[u8]) -> Result<T, Violations> {
    let extent = Extent::of(document);
    if extent.depth > MAX_DEPTH {
        return Err(refusal(format!("The request body nests arrays and objects more than {MAX_DEPTH} deep.")));
    }
    if extent.values > MAX_VALUES {
        return Err(refusal(format!("The request body has more than {MAX_VALUES} values.")));
    }
    // As text that was looked over once, its strings need not be looked over one by one.
    let read = match std::str::from_utf8(document) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(document),
    };
    read.map_err(|error| explain::<T>(document, &error))
}

#[cold]
fn explain<T: JsonSchema>(document: &[u8], error: &serde_json::Error) -> Violations {
    let at = |error: &serde_json::Error| format!("line {}, column {}", error.line(), error.column());
    match serde_json::from_slice::<Value>(document) {
        Err(error) => refusal(format!("The request body is not valid JSON ({}).", at(&error))),
        Ok(value) if !value.is_object() => refusal("The request body must be a JSON object.".to_owned()),
        Ok(value) => {
            let found = Shape::of::<T>().diagnose(&value);
            if found.is_empty() { refusal(format!("The request body is not valid: {error}.")) } else { found }
        }
    }
}

fn refusal(sentence: String) -> Violations {
    let mut found = Violations::default();
    found.add(&Path::ROOT, Problem::Other(Code::InvalidJson, sentence));
    found
}

/// How deep a document nests, told by its brackets alone, so that no parser has to go down there.
#[must_use]
pub fn depth(document: &[u8]) -> usize {
    Extent::of(document).depth
}

/// How far a document goes, told by its punctuation alone, before anything is built.
struct Extent {
    depth: usize,
    /// No fewer than there are: each begins behind a comma or a bracket, but for the first.
    values: usize,
}

impl Extent {
    fn of(document: &[u8]) -> Self {
        let (mut depth, mut deepest, mut values, mut in_string, mut escaped) = (0_usize, 0, 1, false, false);
        for byte in document {
            match (in_string, byte) {
                (true, _) if escaped => escaped = false,
                (true, b'\\') => escaped = true,
                (_, b'"') => in_string = !in_string,
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
        Self { depth: deepest, values }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape is looked at")]
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
    #[expect(dead_code, reason = "only its shape is looked at")]
    struct Part {
        text: String,
    }

    fn told(document: &str) -> Vec<String> {
        let found = read::<Request>(document.as_bytes()).map(|_| ()).unwrap_err();
        found.iter().map(|v| format!("{} {v}", v.code().as_str())).collect()
    }

    /// Every value of a wrong type is told with its path.
    #[test]
    fn j05_every_finding_is_told_with_its_path() {
        let document = r#"{"input":[{"text":1},{"text":"a"},{},7],"stream":"true","limit":1.5}"#;
        assert_eq!(
            told(document),
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
            told(r#"{"model":"m","input":5}"#),
            [
                "invalid_type Invalid type for 'input': expected a string or an array of objects, but got an integer instead.",
            ]
        );
    }

    /// An integer beyond what a field holds is refused as such.
    #[test]
    fn j03_an_integer_that_no_field_holds_is_not_called_a_decimal_number() {
        for number in ["9223372036854775808", "18446744073709551616", "-18446744073709551616"] {
            let found = told(&format!(r#"{{"model":"m","input":"","limit":{number}}}"#));
            assert!(found[0].ends_with("expected an integer, but got an integer out of range instead."), "{found:?}");
        }
    }

    #[test]
    fn what_is_no_object_is_told_as_such() {
        assert_eq!(told("{"), ["invalid_json The request body is not valid JSON (line 1, column 1)."]);
        assert_eq!(told("[]"), ["invalid_json The request body must be a JSON object."]);
        assert_eq!(
            told(r#"{"model":"a","model":"b","input":""}"#),
            ["invalid_json The request body is not valid: duplicate field `model` at line 1 column 20.",]
        );
    }

    /// Deep nesting is refused before anything is built.
    #[test]
    fn j02_deep_nesting_is_refused_before_anything_is_built() {
        let deep = |n: usize| format!(r#"{{"model":"m","input":"","x":{}{}}}"#, "[".repeat(n), "]".repeat(n));
        assert!(read::<Request>(deep(63).as_bytes()).is_ok());
        assert!(told(&deep(64))[0].contains("more than 64 deep"));
        assert!(told(&"[".repeat(1_000_000))[0].contains("more than 64 deep"));
        assert!(read::<Request>(br#"{"model":"[[[\"[","input":""}"#).is_ok());
        assert!(read::<Request>(format!(r#"{{"model":"\"{}","input":""}}"#, "[".repeat(100)).as_bytes()).is_ok());
    }

    /// What nests to the limit is read on a small stack, and what goes beyond it is refused there.
    #[test]
    fn j02_no_nesting_is_too_deep_for_a_small_stack() {
        let on_it = || {
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                let deep = |n: usize| {
                    format!(r#"{{"model":"m","input":"","x":{}1{}}}"#, open.repeat(n), close.repeat(n)).into_bytes()
                };
                let read_and_shown = |n: usize| read::<Deep>(&deep(n)).map(|found| format!("{found:?}").len());
                assert!(read_and_shown(63).is_ok());
                for n in [64, 65, 128, 129, 1_000_000] {
                    assert!(read_and_shown(n).is_err(), "{n}");
                }
            }
        };
        std::thread::Builder::new().stack_size(256 << 10).spawn(on_it).unwrap().join().unwrap();
    }

    /// Values are counted before anything is built, and what is wrong with very many is told of a few.
    #[test]
    fn j08_values_are_counted_and_findings_are_few() {
        let with = |value: &str, n: usize| format!(r#"{{"model":"m","input":[{}0]}}"#, format!("{value},").repeat(n));
        assert!(told(&with("0", MAX_VALUES))[0].contains("more than 1000000 values"));
        assert!(told(&with("[]", MAX_VALUES / 2))[0].contains("more than 1000000 values"));
        // Four are counted beside the list: the document, its object, the list itself and the comma before it.
        assert!(told(&with("0", MAX_VALUES - 3))[0].contains("more than 1000000 values"));
        assert_eq!(told(&with("0", MAX_VALUES - 4)).len(), 100);
        let text = format!(r#"{{"model":"{}","input":""}}"#, "[,".repeat(MAX_VALUES));
        assert!(read::<Request>(text.as_bytes()).is_ok());
    }
}
