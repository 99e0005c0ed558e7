//! The errors of the TOML parser, in terms of the settings.

/// Returns the error of the parser, which quotes the line at fault, with the path of the setting. The
/// texts of that line are left out if the setting can be secret.
pub(crate) fn message(text: &str, error: &toml::de::Error, setting: &str) -> String {
    let message = with_setting(error, setting);
    let span = error.span().unwrap_or_default();
    let (Some(before), Some(after)) = (text.get(..span.start), text.get(span.end..)) else {
        return message;
    };
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    let end = after.find('\n').map_or(text.len(), |end| span.end + end);
    let lines = &text[begin..end];
    let table = before
        .lines()
        .rfind(|line| line.trim_start().starts_with('['));
    let is_secret = |line: &str| SECRET.iter().any(|name| line.contains(name));
    match lines.lines().chain(table).any(is_secret) {
        true => without_texts(message, lines),
        false => message,
    }
}

/// Puts the path of the setting before the message of an error, behind the line that it quotes. The path
/// `.` is the file as a whole.
fn with_setting(error: &toml::de::Error, setting: &str) -> String {
    let shown = error.to_string();
    let quoted = shown.trim_end().strip_suffix(error.message());
    let Some(quoted) = quoted.filter(|_| setting != ".") else {
        return shown;
    };
    let message = in_words_of_toml(error.message());
    let is_single = message == "invalid type: table, expected an array";
    let advice = match is_single && !setting.contains(['.', '[']) {
        true => format!("; each entry begins with [[{setting}]]"),
        false => String::new(),
    };
    format!("{quoted}{setting}: {message}{advice}")
}

/// Replaces the names that Rust has for types in a message of serde.
fn in_words_of_toml(message: &str) -> String {
    if !message.starts_with("invalid ") {
        return message.to_owned();
    }
    if let Some((found, _)) = message.split_once("expected struct ") {
        return format!("{found}expected a table");
    }
    let names = NAMES_OF_TYPES.iter();
    names.fold(message.to_owned(), |message, (rust, toml)| {
        message.replace(rust, toml)
    })
}

/// Leaves out each text that is quoted in some lines of the file. A text without an end reaches to the
/// end of its line.
fn without_texts(message: String, lines: &str) -> String {
    let quoted = lines
        .lines()
        .flat_map(|line| line.split(['"', '\'']).skip(1).step_by(2));
    let long = quoted.filter(|text| text.len() >= SHORTEST);
    long.fold(message, |message, text| message.replace(text, "…"))
}

/// The length of the shortest text that can be a secret.
const SHORTEST: usize = 8;
/// The settings whose values can be keys or passwords, or have these in them.
const SECRET: [&str; 8] = [
    "accounting",
    "admin_key",
    "api_key",
    "hash",
    "headers",
    "key =",
    "key=",
    "limits =",
];
/// Types in messages of serde, and their names in TOML.
const NAMES_OF_TYPES: [(&str, &str); 11] = [
    ("type: map", "type: table"),
    ("type: sequence", "type: array"),
    ("expected a map", "expected a table"),
    ("expected an object", "expected a table"),
    ("expected a sequence", "expected an array"),
    ("expected a nonzero u64", "expected an integer above 0"),
    ("expected u32", "expected an integer of 0 or more"),
    ("expected u64", "expected an integer of 0 or more"),
    ("expected usize", "expected an integer of 0 or more"),
    (
        "expected socket address",
        "expected an address with a port, such as \"127.0.0.1:8080\"",
    ),
    (
        "invalid socket address syntax",
        "expected an address with a port, such as \"127.0.0.1:8080\"",
    ),
];

#[cfg(test)]
mod tests {
    use crate::file::Config;

    fn error(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_of_the_parser_quote_no_secret() {
        let upstream =
            "[[upstreams]]\nname = \"u\"\nbase_url = \"http://h/v1\"\nprotocol = \"chat\"\n";
        for setting in [
            "api_key = \"sk-secret\"",
            "api_key = 'sk-secret'",
            "api_key = { key = \"sk-secret\" }",
            "api_key = { command = \"echo sk-secret\" }",
            "headers = \"x: sk-secret\"",
            "api_key = \"sk-secret",
            "[upstreams.headers]\nx-other = [\"sk-secret\"]",
        ] {
            let error = error(&format!("{upstream}{setting}\n"));
            assert!(error.contains("at line "), "{error}");
            assert!(!error.contains("sk-"), "{error}");
        }
    }

    #[test]
    fn errors_of_the_parser_quote_other_settings() {
        let error = error("[limits]\nconcurrency = \"many\"\n");
        assert!(error.contains("2 | concurrency = \"many\""), "{error}");
    }

    #[test]
    fn errors_of_the_parser_name_the_setting_and_the_types_of_toml() {
        for (settings, line, message) in [
            (
                "[limits]\nconcurrency = \"many\"",
                2,
                "limits.concurrency: invalid type: string \"many\", expected an integer of 0 or more",
            ),
            (
                "[limits]\nconcurrency = -1",
                2,
                "limits.concurrency: invalid value: integer `-1`, expected an integer of 0 or more",
            ),
            (
                "[[keys]]\nname = \"a\"\nhash = \"b\"\nscopes = []\n[[keys]]\nname = \"b\"\n",
                5,
                "keys[1]: missing field `hash`",
            ),
            (
                "[[keys]]\nname = \"a\"\nhash = \"b\"\nscopes = \"text\"",
                4,
                "keys[0].scopes: invalid type: string \"text\", expected an array",
            ),
            (
                "[[upstreams]]\nname = \"a\"\n[[upstreams]]\nname = \"b\"\nbase_urls = \"\"",
                5,
                "upstreams[1].base_urls: unknown field `base_urls`, expected one of ",
            ),
            (
                "[[prices]]\nmodel = \"a\"\ninput = \"1\"\noutput = \"1\"\n[[prices]]\nmodel = \"b\"\ninput = 1",
                7,
                "prices[1]",
            ),
            (
                "listen = \"127.0.0.1:80\"",
                1,
                "listen: invalid type: string \"127.0.0.1:80\", expected an array",
            ),
            (
                "[[quotas]]\nbudget = 50",
                2,
                "quotas[0].budget: invalid type: integer `50`, expected a table",
            ),
            (
                "listen = [\"localhost:80\"]",
                1,
                "listen[0]: expected an address with a port, such as \"127.0.0.1:8080\"",
            ),
            (
                "admin = 9090",
                1,
                "admin: invalid type: integer `9090`, expected an address with a port, such as \"127.0.0.1:8080\"",
            ),
            (
                "[keys]\nname = \"a\"",
                1,
                "keys: invalid type: table, expected an array; each entry begins with [[keys]]",
            ),
            (
                "[[upstreams]]\nname = \"u\"\napi_key = \"sk-secret\"",
                3,
                "upstreams[0].api_key: invalid type: string \"…\", expected a table such as { env = \"NAME\" } or { file = \"path\" }, and not the key itself",
            ),
            (
                "limits = []",
                1,
                "limits: invalid type: array, expected a table",
            ),
        ] {
            let error = error(settings);
            let place = format!("TOML parse error at line {line}, column ");
            assert!(error.starts_with(&place), "{error}");
            assert!(
                error.lines().last().unwrap().starts_with(message),
                "{error}"
            );
        }
    }
}
