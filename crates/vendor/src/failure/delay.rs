//! The time to wait before a retry that an error states in its body, for servers that send no
//! `Retry-After` header.

use std::time::Duration;

/// Returns the delay in a sentence for people, in lower case, in whole seconds.
pub(super) fn in_sentence(text: &str) -> Option<u32> {
    SENTENCES.iter().find_map(|phrase| {
        let (_, rest) = text.split_once(phrase)?;
        seconds(rest)
    })
}

/// Returns the duration at the beginning of a text, such as `36.5s` or `1m30s`, in whole seconds,
/// rounded up.
pub(super) fn seconds(text: &str) -> Option<u32> {
    let mut sum: Option<Duration> = None;
    let mut rest = text;
    while let Some((part, behind)) = part(rest) {
        sum = Some(sum.unwrap_or_default().checked_add(part)?);
        rest = behind;
    }
    let sum = sum?;
    let started = u64::from(sum.subsec_nanos() > 0);
    u32::try_from(sum.as_secs() + started).ok()
}

/// Splits off a number with its unit.
fn part(text: &str) -> Option<(Duration, &str)> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, rest) = text.split_at(text.find(|c| !is_number(c))?);
    let rest = rest.trim_start_matches(' ');
    let end = rest.find(|c: char| !c.is_ascii_alphabetic());
    let (unit, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let (_, unit) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
    let number: f64 = number.parse().ok()?;
    Some((Duration::try_from_secs_f64(number * unit).ok()?, rest))
}

/// The words before the delay: OpenAI (<https://platform.openai.com/docs/guides/rate-limits>), Azure
/// (<https://learn.microsoft.com/azure/ai-services/openai/how-to/quota>).
const SENTENCES: [&str; 2] = ["try again in ", "retry after "];
/// Names of units, and their seconds.
const UNITS: [(&[&str], f64); 4] = [
    (&["ms", "milliseconds"], 0.001),
    (&["s", "sec", "second", "seconds"], 1.0),
    (&["m", "min", "minute", "minutes"], 60.0),
    (&["h", "hour", "hours"], 3600.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentences of OpenAI and Azure, and others of their forms.
    #[test]
    fn a_delay_is_read_in_whole_seconds() {
        for (text, owed) in [
            ("please try again in 4s. visit https://x.example", Some(4)),
            ("please try again in 4.2s.", Some(5)),
            ("please try again in 120ms", Some(1)),
            ("please try again in 6m0s. visit", Some(360)),
            ("please try again in 1h2m3.5s", Some(3724)),
            ("please retry after 7 seconds.", Some(7)),
            ("please retry after 1 minute.", Some(60)),
            ("please try again in a while", None),
            ("please try again in 4", None),
            ("please try again in 4 parsecs", None),
            ("please try again in 1.2.3s", None),
            ("please try again in 99999999999999999999h", None),
            ("please try again later", None),
        ] {
            assert_eq!(in_sentence(text), owed, "{text}");
        }
    }

    /// <https://protobuf.dev/reference/protobuf/google.protobuf/#duration>
    #[test]
    fn a_duration_of_google_is_rounded_up() {
        assert_eq!(seconds("36.5s"), Some(37));
        assert_eq!(seconds("36s"), Some(36));
        for text in ["", "s", "-1s", "36", "."] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
