//! Reads JSON, and finds members of it.

use serde_json::Value;

/// Reads JSON. A number beyond all bounds, such as `1E999`, is one by its grammar (RFC 8259,
/// section 6), but has no value that serde_json could hold: it is read without its exponent.
pub(super) fn read(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text).or_else(|error| {
        let is_too_large = error.to_string().starts_with("number out of range");
        if is_too_large {
            serde_json::from_slice(&without_exponents(text))
        } else {
            Err(error)
        }
    })
}

/// The text without the exponents of its numbers; everything else stays.
pub(super) fn without_exponents(text: &[u8]) -> Vec<u8> {
    let (mut out, mut rest, mut in_string) = (Vec::with_capacity(text.len()), text, false);
    while let Some((byte, after)) = rest.split_first() {
        let is_exponent =
            !in_string && matches!(byte, b'e' | b'E') && out.last().is_some_and(u8::is_ascii_digit);
        if is_exponent {
            let digits = after
                .strip_prefix(b"+")
                .or_else(|| after.strip_prefix(b"-"))
                .unwrap_or(after);
            let end = digits
                .iter()
                .position(|byte| !byte.is_ascii_digit())
                .unwrap_or(digits.len());
            if end > 0 {
                // The rest is kept, whatever it is: a number has one exponent.
                let kept = (end + 1).min(digits.len());
                out.extend_from_slice(&digits[end..kept]);
                rest = &digits[kept..];
                continue;
            }
        }
        let escaped = if in_string && *byte == b'\\' {
            after.len().min(1)
        } else {
            0
        };
        out.push(*byte);
        out.extend_from_slice(&after[..escaped]);
        in_string ^= *byte == b'"';
        rest = &after[escaped..];
    }
    out
}

/// The elements of a list; none if it is absent.
pub(super) fn list<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + Clone {
    object[name].as_array().into_iter().flatten()
}

/// A text, or the empty one.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// The texts of the members with these names, one after another.
pub(super) fn texts(object: &Value, names: &[&str]) -> String {
    names.iter().map(|name| text(object, name)).collect()
}
