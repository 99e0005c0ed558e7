//! Checks the packages of a lock file against lists of minimum versions and bans.

use cargo_metadata::semver::Version;

use crate::outcome::Outcome;

/// Name and version of every package in the text of a `Cargo.lock`.
fn packages(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("[[package]]").skip(1).filter_map(|package| Some((value(package, "name")?, value(package, "version")?)))
}

fn value<'a>(package: &'a str, key: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

/// The problems of the text of a `Cargo.lock`, each in a sentence.
///
/// # Errors
///
/// If a version cannot be parsed.
pub(crate) fn problems(text: &str) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for (name, version) in packages(text) {
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            found.push(format!("{name} {version} is locked: {why}"));
        }
        let Some((_, least)) = LEAST.iter().find(|(package, _)| *package == name) else { continue };
        if parse(version)? < parse(least)? {
            found.push(format!("{name} {version} is locked, but versions below {least} have known vulnerabilities"));
        }
    }
    Ok(found)
}

fn parse(version: &str) -> Outcome<Version> {
    Version::parse(version).map_err(|error| format!("the version {version:?} cannot be read: {error}"))
}

/// The first versions without the advisories that concern a gateway.
const LEAST: &[(&str, &str)] = &[
    ("aws-lc-sys", "0.39.0"),
    ("bytes", "1.11.1"),
    ("h2", "0.4.17"),
    ("hyper", "1.11.0"),
    ("idna", "1.0.3"),
    ("rustls", "0.23.18"),
    ("rustls-webpki", "0.103.13"),
    ("slab", "0.4.11"),
    ("time", "0.3.47"),
    ("tracing-subscriber", "0.3.20"),
];

/// Banned packages, and the reasons. deny.toml bans the same for what is built.
const BANNED: &[(&str, &str)] = &[
    ("multipart", "forms are parsed with multer"),
    ("native-tls", "TLS is rustls"),
    ("openssl", "TLS is rustls"),
    ("openssl-sys", "TLS is rustls"),
    ("reqwest", "requests are sent with hyper"),
];

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "\
version = 4

[[package]]
name = \"h2\"
version = \"0.4.9\"
source = \"somewhere\"
dependencies = [
 \"bytes\",
]

[[package]]
name = \"bytes\"
version = \"1.11.1\"

[[package]]
name = \"openssl\"
version = \"0.10.1\"
";

    #[test]
    fn old_and_banned_packages_are_told() {
        assert_eq!(
            problems(LOCK).unwrap(),
            [
                "h2 0.4.9 is locked, but versions below 0.4.17 have known vulnerabilities",
                "openssl 0.10.1 is locked: TLS is rustls"
            ]
        );
    }

    #[test]
    fn every_least_version_can_be_read() {
        for (package, least) in LEAST {
            assert!(parse(least).is_ok(), "{package}");
        }
    }
}
