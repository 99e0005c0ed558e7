//! A line of the text of `/metrics` that has a value.

use std::borrow::Cow;

use bytes::Bytes;

use crate::messages::metrics::{Exemplar, Number};

/// A line with a value: `name{label="text"} 1.5 # {trace_id="…"} 0.3 1801469349.5`. The last part, an exemplar, may be
/// absent, and so may the labels.
#[derive(Debug, PartialEq)]
pub(super) struct Sample<'a> {
    pub(super) name: &'a str,
    pub(super) labels: Labels<'a>,
    pub(super) value: &'a str,
    pub(super) exemplar: Option<Exemplar>,
}

/// The names and the values of labels.
pub(super) type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

impl<'a> Sample<'a> {
    /// Reads a line; `None` if it has another form.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_at(line.find(['{', ' '])?);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (Labels::new(), rest),
        };
        let (value, exemplar) = match rest.split_once(" # {") {
            Some((value, exemplar)) => (value, self::exemplar(exemplar)),
            None => (rest, None),
        };
        Some(Self {
            name,
            labels,
            value: value.trim(),
            exemplar,
        })
    }

    /// The value of a counter or gauge. Whether it is an integer follows from the type of the metric: a
    /// number always has a point.
    pub(super) fn number(&self) -> Option<Number> {
        let integer = self.value.parse().map(Number::Int);
        integer
            .or_else(|_| self.value.parse().map(Number::Double))
            .ok()
    }

    /// The value of a label.
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        let (_, value) = labels.find(|(found, _)| *found == name)?;
        Some(value)
    }
}

/// Reads labels to their closing brace, and returns them with the text behind it.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Labels::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, value) = rest.trim_start_matches(',').split_once("=\"")?;
        let (value, behind) = value.split_at(closing_quote(value)?);
        labels.push((name, unescaped(value)));
        rest = &behind[1..];
    }
}

/// The place of the quotation mark that ends a value.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    })
}

/// The text of a value, in which `\`, `"` and line feeds are escaped.
fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return value.into();
    }
    let mut chars = value.chars();
    let unescaped = std::iter::from_fn(|| match chars.next()? {
        '\\' => chars.next().map(|it| if it == 'n' { '\n' } else { it }),
        plain => Some(plain),
    });
    unescaped.collect::<String>().into()
}

/// Reads an exemplar behind its opening brace.
fn exemplar(text: &str) -> Option<Exemplar> {
    let (labels, rest) = labels(text)?;
    let mut numbers = rest.split_whitespace().map(str::parse::<f64>);
    let value = numbers.next()?.ok()?;
    let seconds = numbers.next().and_then(Result::ok).unwrap_or_default();
    let mut exemplar = Exemplar {
        time_unix_nano: (seconds * 1e9) as u64,
        as_double: Some(value),
        ..Exemplar::default()
    };
    for (name, id) in labels {
        match name {
            "trace_id" => exemplar.trace_id = bytes(number(&id)?.to_be_bytes()),
            "span_id" => exemplar.span_id = bytes(u64::try_from(number(&id)?).ok()?.to_be_bytes()),
            _ => {}
        }
    }
    Some(exemplar)
}

/// The number of an id in hexadecimal digits.
fn number(id: &str) -> Option<u128> {
    u128::from_str_radix(id, 16).ok()
}

fn bytes<const N: usize>(id: [u8; N]) -> Bytes {
    Bytes::copy_from_slice(&id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The escapes of <https://prometheus.io/docs/specs/om/open_metrics_spec/#escaping>.
    #[test]
    fn values_are_read_with_their_escapes() {
        let line = r#"a_total{model="a\\b \"c\"\n},",target=""} 7"#;
        let sample = Sample::parse(line).unwrap();
        assert_eq!((sample.name, sample.value), ("a_total", "7"));
        assert_eq!(sample.label("model"), Some("a\\b \"c\"\n},"));
        assert_eq!(sample.label("target"), Some(""));
        assert_eq!(sample.number(), Some(Number::Int(7)));
        let sample = Sample::parse("up 0.0").unwrap();
        assert_eq!(sample.labels, []);
        assert_eq!(sample.number(), Some(Number::Double(0.0)));
    }

    #[test]
    fn an_exemplar_has_its_span_its_value_and_its_time() {
        let line = "a_bucket{le=\"0.5\"} 12 # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\",\
                    span_id=\"00f067aa0ba902b7\"} 0.31 1801469349.5";
        let sample = Sample::parse(line).unwrap();
        assert_eq!(sample.value, "12");
        let exemplar = sample.exemplar.unwrap();
        assert_eq!(exemplar.as_double, Some(0.31));
        assert_eq!(exemplar.time_unix_nano, 1_801_469_349_500_000_000);
        let span = [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7];
        assert_eq!(&exemplar.span_id[..], span);
        assert_eq!((exemplar.trace_id[0], exemplar.trace_id[15]), (0x4b, 0x36));
    }

    #[test]
    fn other_lines_are_none() {
        for line in ["", "name", "a{b=\"c\" 1", "a{b} 1", "a{b=\"c\\\"} 1"] {
            assert_eq!(Sample::parse(line), None, "{line}");
        }
    }
}
