//! Keeps keys and passwords out of the messages about a configuration, which go to the log.

/// Returns a problem without the secrets of its [lines](line).
pub(crate) fn problem(problem: &str) -> String {
    problem.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a line without the user and the password of an address, without the values in the query of an
/// address, which can be keys, and without a `password=`.
pub(crate) fn line(line: &str) -> String {
    let line = match (line.find("://"), line.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://…{}", &line[..scheme], &line[at..])
        }
        _ => line.to_owned(),
    };
    let words = line.split_inclusive(ENDS_OF_ADDRESSES);
    let line: String = words.map(without_values).collect();
    let Some(password) = line.find(PASSWORD) else {
        return line;
    };
    let (before, secret) = line.split_at(password + PASSWORD.len());
    let end = secret.find([' ', '&', '\'', '"']).unwrap_or(secret.len());
    format!("{before}…{}", &secret[end..])
}

/// Leaves out the values in the query of an address, and keeps their names.
fn without_values(word: &str) -> String {
    let address = word.trim_end_matches(ENDS_OF_ADDRESSES);
    let end = &word[address.len()..];
    let Some((base, query)) = address
        .split_once('?')
        .filter(|(base, _)| base.contains("://"))
    else {
        return word.to_owned();
    };
    let values = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) => format!("{name}=…"),
        None => "…".to_owned(),
    });
    let values = values.collect::<Vec<_>>().join("&");
    format!("{base}?{values}{end}")
}

/// The characters at which an address in a line ends.
const ENDS_OF_ADDRESSES: [char; 3] = [' ', '\'', '"'];
const PASSWORD: &str = "password=";

#[cfg(test)]
mod tests {
    use crate::error::ConfigError;
    use crate::file::Config;

    fn error(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
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
            (
                "[[upstreams]]\nbase_url = \"https://h/v1?token=secr-et\nname = \"u\"",
                "2 | base_url = \"https://h/v1?token=…",
            ),
        ] {
            let error = error(settings);
            assert!(error.contains(shown), "{error}");
            assert!(!error.contains("secr"), "{error}");
        }
        for (problem, shown) in [
            (
                "base_url: 'http://gate:secr@et@h:999999' is not a URL",
                "base_url: 'http://…@h:999999' is not a URL",
            ),
            (
                "base_url: 'http://h:999999/v1?api-version=1&key=secr-et&secr' is not a URL",
                "base_url: 'http://h:999999/v1?api-version=…&key=…&…' is not a URL",
            ),
        ] {
            assert_eq!(ConfigError::one(problem.to_owned()).to_string(), shown);
        }
    }
}
