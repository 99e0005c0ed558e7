//! Keeps keys and passwords out of the messages about a configuration, which go to the log.

/// Returns the error of the parser, which quotes the line at fault. The texts of that line are left out
/// if the setting can be secret.
pub(crate) fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let message = error.to_string();
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

/// Leaves out each text that is quoted in some lines of the file. A text without an end reaches to the
/// end of its line.
fn without_texts(message: String, lines: &str) -> String {
    let quoted = lines
        .lines()
        .flat_map(|line| line.split(['"', '\'']).skip(1).step_by(2));
    let long = quoted.filter(|text| text.len() >= SHORTEST);
    long.fold(message, |message, text| message.replace(text, "…"))
}

/// Returns a problem without the user and the password of an address, and without a `password=`.
pub(crate) fn problem(problem: &str) -> String {
    problem.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    let line = match (line.find("://"), line.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://…{}", &line[..scheme], &line[at..])
        }
        _ => line.to_owned(),
    };
    let Some(password) = line.find(PASSWORD) else {
        return line;
    };
    let (before, secret) = line.split_at(password + PASSWORD.len());
    let end = secret.find([' ', '&', '\'', '"']).unwrap_or(secret.len());
    format!("{before}…{}", &secret[end..])
}

const PASSWORD: &str = "password=";
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

#[cfg(test)]
mod tests {
    use crate::error::ConfigError;
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
    fn problems_quote_no_password() {
        for (settings, shown) in [
            (
                "[state]\naccounting = \"host=db password=secr-et user=a\"",
                "is 'host=db password=… user=a', but must be 'sqlite:'",
            ),
            (
                "[state]\naccounting = \"postgres://gate:secr@et@db.example/usage",
                "at line 2",
            ),
        ] {
            let error = error(settings);
            assert!(error.contains(shown), "{error}");
            assert!(!error.contains("secr"), "{error}");
        }
        let problem = "base_url: 'http://gate:secr@et@h:999999' is not a URL".to_owned();
        assert_eq!(
            ConfigError::one(problem).to_string(),
            "base_url: 'http://…@h:999999' is not a URL"
        );
    }
}
