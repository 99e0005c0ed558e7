//! The header `tracestate`, with which the systems of a trace pass on their own data:
//! <https://www.w3.org/TR/trace-context/#tracestate-header>.

use std::sync::Arc;

/// The entries of other systems, which are passed on unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceState(Arc<str>);

impl TraceState {
    /// Reads the values of all its headers, in their order. `None` if they have no entry, or if one is
    /// invalid. Entries beyond 512 characters are left out: first the ones with more than 128 characters,
    /// and then the last ones.
    pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut entries = Vec::new();
        for value in values {
            let found = str::from_utf8(value).ok()?.split(',');
            let found = found.map(|entry| entry.trim_matches([' ', '\t']));
            entries.extend(found.filter(|entry| !entry.is_empty()));
        }
        let is_valid = entries.len() <= MAX_ENTRIES && entries.iter().all(|entry| is_entry(entry));
        if !is_valid {
            return None;
        }
        if length(&entries) > MAX_LENGTH {
            entries.retain(|entry| entry.len() <= MAX_ENTRY_AT_BOUND);
        }
        while length(&entries) > MAX_LENGTH {
            entries.pop();
        }
        (!entries.is_empty()).then(|| Self(entries.join(",").into()))
    }

    /// The value of the header.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The length of the value with these entries.
fn length(entries: &[&str]) -> usize {
    let lengths = entries.iter().map(|entry| entry.len() + 1);
    lengths.sum::<usize>().saturating_sub(1)
}

/// True for `key=value` within the grammar of
/// <https://www.w3.org/TR/trace-context-2/#tracestate-header-field-values>.
fn is_entry(entry: &str) -> bool {
    let Some((key, value)) = entry.split_once('=') else {
        return false;
    };
    let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_of_key = |byte: u8| is_first(&byte) || b"_-*/@".contains(&byte);
    let is_key = key.as_bytes().first().is_some_and(is_first) && key.bytes().all(is_of_key);
    // The value cannot end in a space, which was trimmed.
    let is_of_value = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'=';
    let is_value = !value.is_empty() && value.bytes().all(is_of_value);
    is_key && is_value && key.len() <= MAX_PART && value.len() <= MAX_PART
}

/// The maximum number of entries.
const MAX_ENTRIES: usize = 32;
/// The maximum length of a key and of a value.
const MAX_PART: usize = 256;
/// The maximum length of the value that is passed on.
const MAX_LENGTH: usize = 512;
/// The maximum length of an entry if there is no room for all.
const MAX_ENTRY_AT_BOUND: usize = 128;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(values: &[&str]) -> Option<String> {
        let state = TraceState::parse(values.iter().map(|value| value.as_bytes()))?;
        Some(state.as_str().to_owned())
    }

    /// The examples of <https://www.w3.org/TR/trace-context/#tracestate-header-field-values> and
    /// <https://www.w3.org/TR/trace-context/#combined-header-value>.
    #[test]
    fn entries_are_passed_on_in_their_order() {
        let example = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
        assert_eq!(read(&[example]).as_deref(), Some(example));
        let split = ["rojo=00f067aa0ba902b7", "congo=t61rcWkgMzE"];
        assert_eq!(read(&split).as_deref(), Some(example));
        let spaced = "rojo=00f067aa0ba902b7 ,, \tcongo=t61rcWkgMzE,";
        assert_eq!(read(&[spaced]).as_deref(), Some(example));
        let tenant = "fw529a3039@dt=FfffffffFFFF, 0a/b*_-=a b";
        assert_eq!(
            read(&[tenant]).as_deref(),
            Some("fw529a3039@dt=FfffffffFFFF,0a/b*_-=a b")
        );
        assert_eq!(read(&[]), None);
        assert_eq!(read(&["", " , "]), None);
    }

    #[test]
    fn nothing_is_passed_on_if_an_entry_is_invalid() {
        for invalid in [
            "rojo", "rojo=", "=1", "Rojo=1", "_a=1", "a=b=c", "a b=1", "a=\u{e9}", "a=\u{7f}",
        ] {
            assert_eq!(read(&["congo=t61rcWkgMzE", invalid]), None, "{invalid}");
        }
        let long = "a".repeat(257);
        assert_eq!(read(&[&format!("{long}=1")]), None);
        assert_eq!(read(&[&format!("a={long}")]), None);
        let entries = |number: usize| {
            let entries = (0..number).map(|number| format!("a{number}=1"));
            entries.collect::<Vec<_>>().join(",")
        };
        assert!(read(&[&entries(32)]).is_some());
        assert_eq!(read(&[&entries(33)]), None);
    }

    #[test]
    fn long_entries_go_first_and_then_the_last_ones() {
        let (long, short) = ("1".repeat(200), "2".repeat(100));
        let state = format!("a={long},b={short},c={short},d={short}");
        assert_eq!(state.len(), 202 + 3 * 103);
        let kept = format!("a={long},b={short},c={short},d={short}");
        assert_eq!(read(&[&state]), Some(kept));
        let state = format!("{state},e={short},f={short},g={short}");
        let kept = format!("b={short},c={short},d={short},e={short}");
        assert_eq!(read(&[&state]), Some(kept));
    }

    proptest! {
        #[test]
        fn a_state_that_is_passed_on_is_bounded_and_read_unchanged(
            values in prop::collection::vec("[a-c=,@ -~]{0,300}", 0..5)
        ) {
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            if let Some(state) = read(&values) {
                prop_assert!(state.len() <= 512);
                prop_assert_eq!(read(&[&state]), Some(state));
            }
        }
    }
}
