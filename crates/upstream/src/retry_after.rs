//! `Retry-After`, as servers write it (RFC 9110 §10.2.3) and a little beyond.

use std::time::{Duration, SystemTime};

/// How long a `Retry-After` of `value` asks to wait: seconds, a decimal fraction of them too, or a date, which is
/// compared with `now`; a date that has passed is no wait at all. Everything else says nothing.
#[must_use]
pub fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if value.starts_with(|first: char| first.is_ascii_digit()) {
        return seconds(value);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// What a client of ours is told: whole seconds, at least 1 and at most 30.
///
/// Client libraries stop retrying altogether when they are told to wait for long.
#[must_use]
pub fn clamp(wait: Duration) -> u32 {
    let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    whole.clamp(1, 30) as u32
}

/// Digits, and perhaps a point and digits after it: no sign, no exponent.
fn seconds(value: &str) -> Option<Duration> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let are_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    // More seconds than can be counted are as good as the most that can.
    Some(Duration::try_from_secs_f64(value.parse().ok()?).unwrap_or(Duration::MAX))
}
