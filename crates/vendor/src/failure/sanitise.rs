//! Removes the operator's addresses, keys and accounts from messages of upstreams before they are
//! forwarded.
//!
//! The text is checked word by word, and a word that may contain an address or a key is removed
//! entirely: losing a harmless word is preferable to leaking a key.

/// Returns the text without addresses, host names, keys and control characters, as one line of at
/// most 500 characters.
///
/// The result may be empty.
#[must_use]
pub(super) fn sanitised(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let mut kept = Vec::new();
    let mut is_announced = false;
    for word in visible
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
    {
        let lower = word.to_ascii_lowercase();
        if !is_announced && !is_private(&lower, word) {
            kept.push(word);
        }
        is_announced = announces_secret(&lower);
    }
    kept.join(" ").chars().take(MAX_CHARS).collect()
}

/// Returns true for invisible characters, which can hide or reorder words.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn is_private(lower: &str, word: &str) -> bool {
    is_url(lower)
        || names_secret(lower)
        || lower
            .split(|c: char| !is_address_char(c))
            .any(|atom| is_ip(atom) || is_host(atom))
        || lower.split(|c: char| !is_key_char(c)).any(has_key_prefix)
        || word.split(|c: char| !is_run_char(c)).any(is_random)
}

fn is_url(lower: &str) -> bool {
    lower.contains("://") || lower.contains("www.") || lower.contains('@')
}

/// Returns true if the next word is the value of a secret.
fn announces_secret(lower: &str) -> bool {
    let name = lower.trim_end_matches(|c: char| !c.is_alphanumeric());
    let has_colon = lower[name.len()..].contains([':', '=']);
    name.ends_with("bearer") || (has_colon && SECRETS.iter().any(|secret| name.ends_with(secret)))
}

/// Returns true for a masked key, or a secret preceded by its name.
fn names_secret(lower: &str) -> bool {
    let is_value = |rest: &str| {
        let rest = rest.trim_start_matches(['"', '\'']);
        rest.starts_with([':', '=']) && rest.contains(char::is_alphanumeric)
    };
    let is_named = |name: &&str| {
        lower
            .match_indices(*name)
            .any(|(at, _)| is_value(&lower[at + name.len()..]))
    };
    lower.contains("**") || SECRETS.iter().any(is_named)
}

fn is_address_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_')
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

fn is_run_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '/' | '=')
}

fn is_ip(atom: &str) -> bool {
    is_ipv6(atom) || atom.split([':', '-', '_']).any(is_ipv4)
}

fn is_ipv4(text: &str) -> bool {
    let numbers = text.trim_matches('.').split('.');
    numbers.clone().count() >= 4 && numbers.clone().all(|number| number.parse::<u8>().is_ok())
}

/// Distinguishes an address from a time of day, which has two colons, by more colons or a `::`.
fn is_ipv6(atom: &str) -> bool {
    let is_hex = atom
        .bytes()
        .all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    let has_groups = atom.contains("::") || atom.matches(':').count() > 3;
    is_hex && has_groups && atom.contains(|c: char| c.is_ascii_hexdigit())
}

/// Returns true if `atom` may be a host name. The path of a field looks similar, but it contains a
/// number or an underscore, or does not end in a top-level domain.
fn is_host(atom: &str) -> bool {
    let atom = atom.trim_matches(['.', ':', '-', '_']);
    let (name, port) = atom.split_once(':').unwrap_or((atom, ""));
    let has_port = (2..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    let labels: Vec<_> = name.split('.').collect();
    let is_label = |label: &&str| !label.is_empty() && !label.contains('_');
    if !labels.iter().all(is_label) || !name.contains(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let ends_like_host =
        labels.len() > 1 && labels.last().is_some_and(|last| TOP_LEVEL.contains(last));
    let is_path = labels
        .iter()
        .any(|label| label.bytes().all(|b| b.is_ascii_digit()));
    let is_local = name == "localhost" || name.ends_with(".localdomain");
    has_port || is_local || ends_like_host || (labels.len() > 2 && !is_path)
}

fn has_key_prefix(atom: &str) -> bool {
    KEY_PREFIXES
        .iter()
        .any(|prefix| atom.len() > prefix.len() && atom.starts_with(prefix))
}

/// Returns true for a long run of characters that is not an identifier: identifiers consist of
/// short words.
fn is_random(run: &str) -> bool {
    run.len() >= MIN_RUN && !is_lower_name(run) && !is_camel_name(run)
}

/// Matches `max_completion_tokens`, `multi-turn-conversation`.
fn is_lower_name(run: &str) -> bool {
    run.split(['_', '-', '/'])
        .all(|word| word.len() < MIN_RUN && word.bytes().all(|b| b.is_ascii_lowercase()))
}

/// Matches `additionalProperties`: words of at least three letters, each but the first capitalized.
fn is_camel_name(run: &str) -> bool {
    let mut since_capital = 3;
    let fits = run.bytes().all(|b| match b {
        b'a'..=b'z' => {
            since_capital += 1;
            since_capital < MIN_RUN
        }
        b'A'..=b'Z' => std::mem::replace(&mut since_capital, 0) > 2,
        _ => false,
    });
    fits && since_capital > 2
}

/// The maximum number of characters that are kept.
const MAX_CHARS: usize = 500;

/// The minimum length of a run of characters that counts as a key without a known prefix.
const MIN_RUN: usize = 20;

/// Prefixes of API keys and account ids.
const KEY_PREFIXES: [&str; 19] = [
    "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "org-", "org_", "proj-", "proj_", "key-", "key_",
    "ghp_", "gho_", "hf_", "gsk_", "xai-", "akia", "aiza",
];

/// Names of secrets.
const SECRETS: [&str; 7] = [
    "key",
    "token",
    "secret",
    "password",
    "authorization",
    "credential",
    "bearer",
];

/// Top-level domains and other suffixes of upstream host names.
const TOP_LEVEL: [&str; 35] = [
    "ai", "app", "at", "au", "biz", "ca", "ch", "cloud", "cluster", "cn", "co", "com", "corp",
    "de", "dev", "edu", "eu", "fr", "gov", "home", "info", "internal", "intranet", "io", "jp",
    "kr", "lan", "local", "net", "nl", "org", "ru", "se", "svc", "uk",
];

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_about_fields_are_kept() {
        for text in [
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "messages.0.content.1.image.source: Field required",
            "Invalid schema: In context=(), 'additionalProperties' is required to be supplied and to be false.",
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 + 1000).",
            "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for model-5.5",
            "Invalid 'tools[0].function.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'.",
            "tools.0.custom.input_schema: JSON schema is invalid, e.g. draft 2020-12",
            "invalid x-api-key or a malformed header at 12:30",
        ] {
            let kept = sanitised(text);
            let lost: Vec<_> = text
                .split(' ')
                .filter(|word| !kept.contains(word))
                .collect();
            assert!(lost.iter().all(|word| word.contains("12:30")), "{lost:?}");
        }
    }

    #[test]
    fn one_line_of_bounded_length() {
        assert_eq!(
            sanitised("a\r\nb\u{0}c\td\u{202e}e\u{1b}[31m"),
            "a b c de [31m"
        );
        assert_eq!(sanitised("\n \u{200b}"), "");
        let long = sanitised(&"\u{e9} \u{1f600}".repeat(1000));
        assert_eq!(long.chars().count(), 500);
    }

    #[test]
    fn secrets_with_their_names() {
        for text in [
            "Authorization: Bearer hunter2",
            "api_key=hunter2",
            "{\"token\":\"hunter2\"}",
            "password: hunter2",
        ] {
            assert!(!sanitised(text).contains("hunter2"), "{text}");
        }
        assert!(!sanitised("Incorrect key: abc1****wxyz").contains("wxyz"));
    }

    fn canary() -> impl Strategy<Value = String> {
        prop_oneof![
            "(https?|wss?|redis)://[a-z]{1,9}(:[0-9]{1,5})?(/[a-z0-9?=&]{0,9})?",
            "[a-z]{1,9}(\\.[a-z]{2,9}){1,3}:[0-9]{2,5}",
            "[a-z]{1,9}(\\.[a-z0-9-]{0,5}[a-z])?\\.(com|net|io|internal|local|svc)(:[0-9]{2,5})?",
            any::<Ipv4Addr>().prop_map(|address| address.to_string()),
            (any::<Ipv4Addr>(), 1..65535_u16)
                .prop_map(|(address, port)| format!("{address}:{port}")),
            any::<Ipv6Addr>()
                .prop_map(|address| address.to_string())
                .prop_filter("a name", |text| text.len() > 2),
            (any::<Ipv6Addr>(), 1..65535_u16)
                .prop_map(|(address, port)| format!("[{address}]:{port}")),
            "(sk|pk|org|key)-[A-Za-z0-9_-]{1,40}",
            "[A-Za-z0-9+/]{10,30}[0-9][A-Za-z0-9+/]{10,30}={0,2}",
            "[0-9a-f]{20,64}",
            "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
            "[Bb]earer [!-~]{4,40}",
            "[a-z]{2,9}@[a-z]{2,9}\\.[a-z]{2,3}",
        ]
    }

    proptest! {
        /// Secrets that are planted in an upstream's message are always removed.
        #[test]
        fn p07_planted_canaries_never_survive(
            before in "([a-z]{1,8} |\u{e9}\n|[(\"'<,]){0,5}", canary in canary(), after in "([)\"'>,.;:!]{0,2}( [a-z]{1,8})*)?",
        ) {
            let kept = sanitised(&format!("{before}{canary}{after}"));
            let secret = canary.split(' ').next_back().unwrap();
            prop_assert!(!kept.contains(secret) || before.contains(secret) || after.contains(secret), "{}", kept);
        }

        #[test]
        fn any_text_comes_out_as_one_short_line(text in any::<String>()) {
            let kept = sanitised(&text);
            prop_assert!(kept.chars().count() <= MAX_CHARS && !kept.contains(char::is_control));
        }
    }
}
