//! Parses `Retry-After` (RFC 9110 §10.2.3), including decimal fractions, which some servers send.

use std::time::{Duration, SystemTime};

/// Parses the value of a `Retry-After` header: seconds, with an optional decimal fraction, or a
/// date, which is compared with `now`; a date in the past is a delay of zero. Returns `None` for
/// anything else.
pub(crate) fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if value.starts_with(|first: char| first.is_ascii_digit()) {
        return seconds(value);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Parses the value of a header such as `retry-after-ms`: milliseconds, with an optional decimal fraction.
pub(crate) fn parse_milliseconds(value: &str) -> Option<Duration> {
    seconds(value.trim_matches([' ', '\t'])).map(|read| read / 1000)
}

/// Converts a delay to the `Retry-After` that clients get: whole seconds, rounded up, at least 1
/// and at most an hour.
pub(crate) fn clamp(wait: Duration) -> u32 {
    let whole = wait
        .as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0));
    whole.clamp(1, 3600) as u32
}

/// Parses digits with an optional decimal fraction: no sign, no exponent.
fn seconds(value: &str) -> Option<Duration> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let are_digits =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    // A value that is too large for a `Duration` saturates.
    Some(Duration::try_from_secs_f64(value.parse().ok()?).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1994-11-06 08:49:37 UTC, the example that RFC 9110 gives in three date formats.
    const DATE: Duration = Duration::from_secs(784_111_777);

    fn at(seconds_before: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + DATE - Duration::from_secs(seconds_before)
    }

    #[test]
    fn seconds_and_fractions_of_them() {
        for (value, millis) in [
            ("0", 0),
            ("7", 7_000),
            (" 7\t", 7_000),
            ("1.5", 1_500),
            ("007", 7_000),
            ("0.001", 1),
        ] {
            assert_eq!(
                parse(value, at(0)),
                Some(Duration::from_millis(millis)),
                "{value}"
            );
        }
        assert_eq!(
            parse("1000000000", at(0)),
            Some(Duration::from_secs(1_000_000_000))
        );
        assert_eq!(parse(&"9".repeat(400), at(0)), Some(Duration::MAX));
    }

    #[test]
    fn milliseconds_and_fractions_of_them() {
        for (value, micros) in [("0", 0), (" 26500 ", 26_500_000), ("0.5", 500)] {
            let owed = Some(Duration::from_micros(micros));
            assert_eq!(parse_milliseconds(value), owed, "{value}");
        }
        let long = parse_milliseconds(&"9".repeat(400)).unwrap();
        assert_eq!(clamp(long), 3600);
        for value in ["", "-1", "1e3", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(parse_milliseconds(value), None, "{value}");
        }
    }

    #[test]
    fn dates_in_all_their_forms() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(date, at(12)), Some(Duration::from_secs(12)), "{date}");
            assert_eq!(
                parse(date, at(0) + Duration::from_secs(1)),
                Some(Duration::ZERO),
                "{date}"
            );
        }
    }

    #[test]
    fn everything_else_says_nothing() {
        for value in [
            "",
            " ",
            "-1",
            "-0",
            "+1",
            "1e3",
            "1.",
            ".5",
            "1,5",
            "1 2",
            "0x10",
            "NaN",
            "inf",
            "soon",
            "7s",
            "١",
            "Sun, 06 Nov 1994",
            "Sun, 31 Feb 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(value, at(0)), None, "{value:?}");
        }
    }

    #[test]
    fn a_wait_is_within_bounds_and_in_whole_seconds() {
        for (millis, seconds) in [
            (0, 1),
            (1, 1),
            (1_000, 1),
            (1_001, 2),
            (29_001, 30),
            (600_000, 600),
            (3_599_001, 3600),
            (3_601_000, 3600),
        ] {
            assert_eq!(clamp(Duration::from_millis(millis)), seconds, "{millis}");
        }
        assert_eq!(clamp(Duration::MAX), 3600);
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(value in ".{0,40}") {
            if let Some(wait) = parse(&value, at(0)) {
                prop_assert!((1..=3600).contains(&clamp(wait)));
            }
        }

        #[test]
        fn whole_seconds_are_read(seconds: u32) {
            let wait = Duration::from_secs(u64::from(seconds));
            prop_assert_eq!(parse(&seconds.to_string(), at(0)), Some(wait));
        }
    }
}
