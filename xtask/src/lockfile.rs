//! Checks the packages of a lock file against lists of minimum versions and bans.

use cargo_metadata::semver::Version;
use serde::Deserialize;

/// A `Cargo.lock`.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Version,
}

/// The problems of the text of a `Cargo.lock`, each in a sentence.
pub(crate) fn problems(text: &str) -> Result<Vec<String>, toml::de::Error> {
    let lock: Lock = toml::from_str(text)?;
    let mut found = Vec::new();
    for Package { name, version } in &lock.package {
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| banned == name) {
            found.push(format!("{name} {version} is locked: {why}"));
        }
        if let Some((_, least)) = LEAST
            .iter()
            .find(|(package, least)| package == name && version < least)
        {
            found.push(format!(
                "{name} {version} is locked, but versions below {least} have known vulnerabilities"
            ));
        }
    }
    Ok(found)
}

/// The first versions without the advisories that concern a gateway.
const LEAST: &[(&str, Version)] = &[
    ("aws-lc-sys", Version::new(0, 39, 0)),
    ("bytes", Version::new(1, 11, 1)),
    ("h2", Version::new(0, 4, 17)),
    ("hyper", Version::new(1, 11, 0)),
    ("idna", Version::new(1, 0, 3)),
    ("rustls", Version::new(0, 23, 18)),
    ("rustls-webpki", Version::new(0, 103, 13)),
    ("slab", Version::new(0, 4, 11)),
    ("time", Version::new(0, 3, 47)),
    ("tracing-subscriber", Version::new(0, 3, 20)),
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
    fn old_and_banned_packages_are_reported() {
        assert_eq!(
            problems(LOCK).unwrap(),
            [
                "h2 0.4.9 is locked, but versions below 0.4.17 have known vulnerabilities",
                "openssl 0.10.1 is locked: TLS is rustls"
            ]
        );
    }
}
