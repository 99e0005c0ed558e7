//! Response headers with the remaining quotas per minute, as the official clients know them.
//!
//! <https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers>,
//! <https://docs.anthropic.com/en/api/rate-limits#response-headers>

use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use quota::Level;
use wire::Style;

use super::QuotaState;
use crate::clock;

/// Adds the headers for each kind of quota that applies to a request. If quotas are degraded, a
/// single header says so, because the remaining amounts are unknown then.
pub fn add(state: QuotaState, headers: &mut HeaderMap, style: Style) {
    if state.is_degraded {
        headers.insert(LIMITS, HeaderValue::from_static("degraded"));
        return;
    }
    let [requests, tokens] = match style {
        Style::OpenAi => OPENAI,
        Style::Messages => MESSAGES,
    };
    for (names, level) in [
        (requests, state.remaining.requests),
        (tokens, state.remaining.tokens),
    ] {
        if let Some(level) = level {
            add_level(headers, style, names, level);
        }
    }
}

fn add_level(headers: &mut HeaderMap, style: Style, names: Names, level: Level) {
    let reset = match style {
        Style::OpenAi => span(level.reset),
        Style::Messages => time(level.reset),
    };
    let [limit, remaining, reset_name] = names;
    headers.insert(limit, level.limit.into());
    headers.insert(remaining, level.remaining.into());
    // It consists of visible ASCII.
    if let Ok(reset) = HeaderValue::try_from(reset) {
        headers.insert(reset_name, reset);
    }
}

/// Writes a number of microseconds as the vendor does: `1s`, `6m0s`, `20ms`.
fn span(microseconds: u64) -> String {
    let milliseconds = microseconds.div_ceil(1_000);
    let seconds = milliseconds.div_ceil(1_000);
    // Room for most, so that nothing is moved. Writing to memory cannot fail.
    let mut text = String::with_capacity(16);
    let _ = match (seconds / 60, seconds % 60) {
        _ if milliseconds < 1_000 => write!(text, "{milliseconds}ms"),
        (0, seconds) => write!(text, "{seconds}s"),
        (minutes, seconds) => write!(text, "{minutes}m{seconds}s"),
    };
    text
}

/// Writes the time after a number of microseconds from now as RFC 3339, in whole seconds.
fn time(microseconds: u64) -> String {
    let seconds = i64::try_from(microseconds.div_ceil(1_000_000)).unwrap_or(i64::MAX);
    let now = Timestamp::from_second(clock::unix_seconds()).unwrap_or_default();
    let at = now.checked_add(SignedDuration::from_secs(seconds));
    at.unwrap_or(Timestamp::MAX).to_string()
}

/// Header names for the limit, the remaining amount, and the reset time.
type Names = [HeaderName; 3];

/// The headers for requests and for tokens. Constants, because names are checked when they are made.
const OPENAI: [Names; 2] = [
    [
        HeaderName::from_static("x-ratelimit-limit-requests"),
        HeaderName::from_static("x-ratelimit-remaining-requests"),
        HeaderName::from_static("x-ratelimit-reset-requests"),
    ],
    [
        HeaderName::from_static("x-ratelimit-limit-tokens"),
        HeaderName::from_static("x-ratelimit-remaining-tokens"),
        HeaderName::from_static("x-ratelimit-reset-tokens"),
    ],
];
const MESSAGES: [Names; 2] = [
    [
        HeaderName::from_static("anthropic-ratelimit-requests-limit"),
        HeaderName::from_static("anthropic-ratelimit-requests-remaining"),
        HeaderName::from_static("anthropic-ratelimit-requests-reset"),
    ],
    [
        HeaderName::from_static("anthropic-ratelimit-tokens-limit"),
        HeaderName::from_static("anthropic-ratelimit-tokens-remaining"),
        HeaderName::from_static("anthropic-ratelimit-tokens-reset"),
    ],
];
const LIMITS: HeaderName = HeaderName::from_static("x-sluicegate-limits");

#[cfg(test)]
mod tests {
    use quota::Remaining;

    use super::*;

    const LEVEL: Level = Level {
        limit: 600,
        remaining: 12,
        reset: 58_800_000,
    };

    fn headers(style: Style, remaining: Remaining) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        let quotas = QuotaState {
            remaining,
            is_degraded: false,
        };
        add(quotas, &mut headers, style);
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
    fn degraded_quotas_report_nothing_else() {
        let quotas = QuotaState {
            remaining: Remaining {
                requests: Some(LEVEL),
                tokens: Some(LEVEL),
            },
            is_degraded: true,
        };
        let mut headers = HeaderMap::new();
        add(quotas, &mut headers, Style::OpenAi);
        assert_eq!(headers.len(), 1);
        assert_eq!(headers["x-sluicegate-limits"], "degraded");
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
