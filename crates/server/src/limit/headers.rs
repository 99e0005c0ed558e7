//! The response headers that report what is left of the quotas per minute, as the official clients
//! know them.
//!
//! <https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers>,
//! <https://docs.anthropic.com/en/api/rate-limits#response-headers>

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use quota::{Level, Remaining};

use crate::clock;
use crate::refusal::Style;

/// Adds the headers for each kind of quota that applies to the request.
pub(crate) fn add(headers: &mut HeaderMap, style: Style, remaining: Remaining) {
    for (unit, level) in [
        ("requests", remaining.requests),
        ("tokens", remaining.tokens),
    ] {
        if let Some(level) = level {
            add_level(headers, style, unit, level);
        }
    }
}

fn add_level(headers: &mut HeaderMap, style: Style, unit: &str, level: Level) {
    let reset = match style {
        Style::OpenAi => span(level.reset),
        Style::Messages => time(level.reset),
    };
    let values = [
        ("limit", level.limit.to_string()),
        ("remaining", level.remaining.to_string()),
        ("reset", reset),
    ];
    for (what, value) in values {
        let name = match style {
            Style::OpenAi => format!("x-ratelimit-{what}-{unit}"),
            Style::Messages => format!("anthropic-ratelimit-{unit}-{what}"),
        };
        // Both consist of visible ASCII.
        if let (Ok(name), Ok(value)) = (
            HeaderName::try_from(name),
            HeaderValue::try_from(value.as_str()),
        ) {
            headers.insert(name, value);
        }
    }
}

/// Writes a number of microseconds as the vendor does: `1s`, `6m0s`, `20ms`.
fn span(microseconds: u64) -> String {
    let milliseconds = microseconds.div_ceil(1_000);
    if milliseconds < 1_000 {
        return format!("{milliseconds}ms");
    }
    let seconds = milliseconds.div_ceil(1_000);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// Writes the time after a number of microseconds from now as RFC 3339, in whole seconds.
fn time(microseconds: u64) -> String {
    let seconds = i64::try_from(microseconds.div_ceil(1_000_000)).unwrap_or(i64::MAX);
    let now = Timestamp::from_second(clock::unix_seconds()).unwrap_or_default();
    let at = now.checked_add(SignedDuration::from_secs(seconds));
    at.unwrap_or(Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVEL: Level = Level {
        limit: 600,
        remaining: 12,
        reset: 58_800_000,
    };

    fn headers(style: Style, remaining: Remaining) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        add(&mut headers, style, remaining);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        let pairs = headers.iter();
        let mut pairs: Vec<_> = pairs
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn a_protocol_has_its_own_headers() {
        let remaining = Remaining {
            requests: Some(LEVEL),
            tokens: None,
        };
        let found = headers(Style::OpenAi, remaining);
        let expected = [
            ("x-ratelimit-limit-requests", "600"),
            ("x-ratelimit-remaining-requests", "12"),
            ("x-ratelimit-reset-requests", "59s"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));

        let remaining = Remaining {
            requests: None,
            tokens: Some(LEVEL),
        };
        let found = headers(Style::Messages, remaining);
        assert_eq!(found[0].0, "anthropic-ratelimit-tokens-limit");
        assert_eq!(found[1].0, "anthropic-ratelimit-tokens-remaining");
        assert_eq!(found[2].0, "anthropic-ratelimit-tokens-reset");
        let at: Timestamp = found[2].1.parse().unwrap();
        let ahead = at.as_second() - clock::unix_seconds();
        assert!((49..=59).contains(&ahead), "{ahead}");
        assert!(headers(Style::OpenAi, Remaining::default()).is_empty());
    }

    #[test]
    fn spans_are_written_as_the_vendor_does() {
        for (microseconds, text) in [
            (0, "0ms"),
            (20_000, "20ms"),
            (999_001, "1s"),
            (1_000_000, "1s"),
            (59_000_001, "1m0s"),
            (360_000_000, "6m0s"),
        ] {
            assert_eq!(span(microseconds), text, "{microseconds}");
        }
    }
}
