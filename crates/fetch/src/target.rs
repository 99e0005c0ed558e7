//! Validates untrusted URLs before the DNS lookup. Nothing here does I/O.

use thiserror::Error;
use url::{Host, Url};

/// A URL that may be fetched: https, port 443, a public host name, no userinfo, no fragment.
///
/// It is parsed once. Everything that is sent, resolved and verified comes from this one value, so
/// that two parsers cannot interpret the same text in two ways.
///
/// ```
/// use sluicegate_fetch::target::{NotAllowed, Target};
///
/// let target = Target::parse("https://Pictures.Example.com/cat.png?signature=secret")?;
/// assert_eq!(target.host(), "pictures.example.com");
/// assert_eq!(target.path_and_query(), "/cat.png?signature=secret");
/// assert_eq!(Target::parse("https://127.1/"), Err(NotAllowed::Literal));
/// # Ok::<(), NotAllowed>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    /// In lower case, without a trailing dot.
    host: String,
}

/// A rejected URL. The sender of the URL is at fault: a client, or an upstream whose reply has URLs
/// of images. `Display` completes "the URL is not allowed: ", and clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotAllowed {
    /// The URL is longer than [`MAX_LENGTH`]. Its sender has to give a shorter one.
    #[error("it is longer than {MAX_LENGTH} bytes")]
    Length,
    /// The URL is not absolute, or is ambiguous. Its sender has to write it in full, without
    /// spaces, control characters and backslashes.
    #[error("it is no absolute URL, or has spaces, control characters or backslashes")]
    Malformed,
    /// The scheme is not https. Its sender has to use https.
    #[error("its scheme is not https")]
    Scheme,
    /// The URL has a user or a password. Its sender has to leave them out.
    #[error("it has a user or a password")]
    Userinfo,
    /// The port is not 443. Its sender has to use a host that serves the image on port 443.
    #[error("its port is not 443")]
    Port,
    /// The URL has a fragment. Its sender has to leave it out.
    #[error("it has a fragment")]
    Fragment,
    /// The host is an IP address, in any notation. Its sender has to give a host name.
    #[error("its host is an address, not a name")]
    Literal,
    /// The host is not a name of the public DNS. Its sender has to give the name of a public host.
    #[error("its host is no public name")]
    Name,
}

impl Target {
    /// Parses and validates the URL of a client.
    ///
    /// # Errors
    /// When the URL is not allowed.
    pub fn parse(text: &str) -> Result<Self, NotAllowed> {
        check_text(text)?;
        let url = Url::parse(text).map_err(|_| NotAllowed::Malformed)?;
        if url.scheme() == SCHEME
            && !text
                .get(..PREFIX.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
        {
            return Err(NotAllowed::Malformed);
        }
        Self::validate(url)
    }

    /// Resolves the `Location` of a response to a request for this target (RFC 9110 §10.2.2), with
    /// the same validation.
    ///
    /// # Errors
    /// When the URL is not allowed.
    pub fn join(&self, location: &str) -> Result<Self, NotAllowed> {
        check_text(location)?;
        let url = self.url.join(location).map_err(|_| NotAllowed::Malformed)?;
        Self::validate(url)
    }

    /// The host name, for the DNS lookup, the `Host` header and the verification of the
    /// certificate.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The request target.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// The parsed URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    fn validate(url: Url) -> Result<Self, NotAllowed> {
        // Percent-encoding can make the URL longer than its text.
        if url.as_str().len() > MAX_LENGTH {
            return Err(NotAllowed::Length);
        }
        if url.scheme() != SCHEME {
            return Err(NotAllowed::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NotAllowed::Userinfo);
        }
        // `port` is `None` for the default port of the scheme.
        if url.port().is_some() {
            return Err(NotAllowed::Port);
        }
        if url.fragment().is_some() {
            return Err(NotAllowed::Fragment);
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => public_name(name)?,
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => return Err(NotAllowed::Literal),
            None => return Err(NotAllowed::Name),
        };
        Ok(Self { url, host })
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Target")
            .field(&log_form(self.url.as_str()))
            .finish()
    }
}

/// Returns the host and path of a text that may be a URL, for logs. Userinfo and query are left
/// out: the query of a signed URL is a credential. Text that is not a URL is left out as a whole.
#[must_use]
pub fn log_form(text: &str) -> String {
    let mut form = match Url::parse(text) {
        Ok(url) if url.has_host() => {
            format!("{}{}", url.host_str().unwrap_or_default(), url.path())
        }
        Ok(url) => format!("({} URL)", url.scheme()),
        Err(_) => "(no URL)".to_owned(),
    };
    form.truncate(form.floor_char_boundary(MAX_LOGGED));
    form
}

/// Rejects text that parsers are known to interpret differently: the URL standard removes tabs and
/// line ends, and treats `\` as `/`.
fn check_text(text: &str) -> Result<(), NotAllowed> {
    if text.len() > MAX_LENGTH {
        return Err(NotAllowed::Length);
    }
    let is_ambiguous = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    // After more slashes, some parsers find a host, and others find none.
    let is_without_host = text
        .get(..NO_HOST.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(NO_HOST));
    if is_without_host || text.starts_with("///") || text.contains(is_ambiguous) {
        Err(NotAllowed::Malformed)
    } else {
        Ok(())
    }
}

/// Returns the name without a trailing dot, if it may be a name of the public DNS.
fn public_name(name: &str) -> Result<String, NotAllowed> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_letter)
    };
    let has_labels = name.len() <= MAX_NAME && name.contains('.') && name.split('.').all(is_label);
    let is_under = |zone: &str| {
        name.strip_suffix(zone)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if !has_labels || NOT_PUBLIC.iter().any(|zone| is_under(zone)) {
        return Err(NotAllowed::Name);
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    // Resolvers may take such a name for an address, even though the URL parser did not.
    if last.starts_with(|c: char| c.is_ascii_digit()) {
        Err(NotAllowed::Literal)
    } else {
        Ok(name)
    }
}

const SCHEME: &str = "https";
const PREFIX: &str = "https://";
const NO_HOST: &str = "https:///";
/// The maximum length of a URL, in bytes.
pub const MAX_LENGTH: usize = 8 << 10;
/// The maximum length of a name (RFC 1035 §2.3.4), without a trailing dot.
const MAX_NAME: usize = 253;
/// The maximum length of a label (RFC 1035 §2.3.4).
const MAX_LABEL: usize = 63;
/// The maximum length of a URL in logs, in bytes.
const MAX_LOGGED: usize = 256;

/// Names and zones that do not belong to the public DNS: of special use (RFC 6761, 6762, 7686,
/// 8375), of private use, and the metadata services of cloud providers, which return credentials.
const NOT_PUBLIC: &[&str] = &[
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
    "onion",
    "private",
    "svc",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn assert_rejected(text: &str, expected: NotAllowed) {
        assert_eq!(Target::parse(text), Err(expected), "{text}");
    }

    #[test]
    fn public_names_are_taken_and_normalised() {
        let table = [
            ("https://ok.example/a.png", "ok.example", "/a.png"),
            ("HTTPS://OK.Example", "ok.example", "/"),
            ("https://ok.example:443/a?b=c", "ok.example", "/a?b=c"),
            ("https://ok.example./", "ok.example", "/"),
            ("https://b\u{fc}cher.example/", "xn--bcher-kva.example", "/"),
            ("https://a_b.ok.example/", "a_b.ok.example", "/"),
            ("https://localhost.ok.example/", "localhost.ok.example", "/"),
        ];
        for (text, host, path) in table {
            let target = Target::parse(text).unwrap();
            assert_eq!(
                (target.host(), target.path_and_query()),
                (host, path),
                "{text}"
            );
        }
    }

    /// Only https on port 443, without userinfo and fragment, is allowed.
    #[test]
    fn f01_only_https_on_its_own_port_without_extras() {
        for text in [
            "http://ok.example/",
            "file:///etc/passwd",
            "ftp://ok.example/",
            "gopher://ok.example/",
        ] {
            assert_rejected(text, NotAllowed::Scheme);
        }
        assert_rejected("data:image/png;base64,AAAA", NotAllowed::Scheme);
        for text in [
            "",
            "//ok.example/",
            "ok.example",
            "https:ok.example",
            "https:/ok.example",
            "https://",
        ] {
            assert_rejected(text, NotAllowed::Malformed);
        }
        for text in [
            "https://a@ok.example/",
            "https://a:b@ok.example/",
            "https://:b@ok.example/",
        ] {
            assert_rejected(text, NotAllowed::Userinfo);
        }
        for text in [
            "https://ok.example:80/",
            "https://ok.example:8443/",
            "https://ok.example:0/",
        ] {
            assert_rejected(text, NotAllowed::Port);
        }
        assert_rejected("https://ok.example/#", NotAllowed::Fragment);
        assert_rejected("https://ok.example/#a", NotAllowed::Fragment);
    }

    /// A URL that parsers interpret differently is rejected.
    #[test]
    fn f03_ambiguous_urls_are_rejected() {
        for text in [
            "https:///ok.example/",
            "HTTPS:////ok.example/",
            "https:///127.0.0.1/",
        ] {
            assert_rejected(text, NotAllowed::Malformed);
        }
        for text in [
            "https://ok.example\\@127.0.0.1/",
            " https://ok.example/",
            "https://ok.exa\tmple/",
            "https://a b/",
        ] {
            assert_rejected(text, NotAllowed::Malformed);
        }
        let longest = format!(
            "https://ok.example/{}",
            "a".repeat(MAX_LENGTH - "https://ok.example/".len())
        );
        assert!(Target::parse(&longest).is_ok());
        assert_rejected(&format!("{longest}a"), NotAllowed::Length);
        assert_rejected(
            &format!("https://ok.example/{}", "\u{e9}".repeat(MAX_LENGTH / 3)),
            NotAllowed::Length,
        );
        // The URL parser removes tabs.
        assert_rejected(
            &format!("https://ok.example/{}", "\t".repeat(MAX_LENGTH)),
            NotAllowed::Length,
        );
    }

    /// An IP address as the host is rejected in every notation.
    #[test]
    fn f03_an_address_is_no_name_in_any_spelling() {
        let literals = [
            "127.0.0.1",
            "127.0.0.1.",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "8.8.8.8",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "%31%32%37.0.0.1",
            "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
            "\u{2460}\u{2461}\u{2466}.0.0.1",
        ];
        for host in literals {
            assert_rejected(&format!("https://{host}/"), NotAllowed::Literal);
        }
        assert_rejected("https://[fe80::1%25lo]/", NotAllowed::Malformed);
    }

    /// Names of the local machine, of private networks and of cloud metadata services are rejected
    /// before the DNS lookup.
    #[test]
    fn f02_near_names_are_refused() {
        let names = [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "localhost.localdomain",
            "router",
            "printer.local",
            "nas.lan",
            "metadata.google.internal",
            "metadata.google.internal.",
            "kubernetes.default.svc",
            "a.onion",
            "a..b",
            "localhost..",
            "metadata.tencentyun.com",
        ];
        for host in names {
            assert_rejected(&format!("https://{host}/"), NotAllowed::Name);
        }
        let long = format!("https://{}example/", "a.".repeat(124));
        assert_rejected(&long, NotAllowed::Name);
    }

    /// The target of a redirect is validated by all rules.
    #[test]
    fn f05_a_redirect_keeps_all_rules() {
        let base = Target::parse("https://ok.example/a/b?c").unwrap();
        assert_eq!(base.join("../d?e").unwrap().path_and_query(), "/d?e");
        assert_eq!(
            base.join("//other.example/x").unwrap().host(),
            "other.example"
        );
        assert_eq!(base.join("http://ok.example/"), Err(NotAllowed::Scheme));
        assert_eq!(base.join("//ok.example:8443/"), Err(NotAllowed::Port));
        assert_eq!(base.join("//127.1/"), Err(NotAllowed::Literal));
        assert_eq!(base.join("//a@ok.example/"), Err(NotAllowed::Userinfo));
        assert_eq!(base.join("/\\evil.example/"), Err(NotAllowed::Malformed));
    }

    /// Logs have the host and path of a URL, and neither its query nor data.
    #[test]
    fn f09_the_log_has_no_query_and_no_data() {
        assert_eq!(
            log_form("https://u:p@ok.example/a?secret#b"),
            "ok.example/a"
        );
        assert_eq!(log_form("data:image/png;base64,SECRET"), "(data URL)");
        assert_eq!(log_form("SECRET"), "(no URL)");
        assert_eq!(
            log_form(&format!("https://ok.example/{}", "a".repeat(999))).len(),
            MAX_LOGGED
        );
        assert_eq!(
            format!(
                "{:?}",
                Target::parse("https://ok.example/a?secret").unwrap()
            ),
            "Target(\"ok.example/a\")"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text in ".*") {
            assert_invariants(&text);
        }

        /// Any text that looks like a URL is rejected, or is a public https URL.
        #[test]
        fn f01_any_text_like_a_url_is_judged(text in "[hH]ttps://[a-z0-9.:@\\[\\]%#?/\\\\x\u{2460}-\u{2468}\u{3002}]{0,40}") {
            assert_invariants(&text);
        }
    }

    fn assert_invariants(text: &str) {
        let _ = log_form(text);
        let Ok(target) = Target::parse(text) else {
            return;
        };
        let url = target.url();
        assert_eq!(
            (url.scheme(), url.port_or_known_default()),
            ("https", Some(443))
        );
        assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
        assert!(target.host().parse::<std::net::IpAddr>().is_err() && target.host().contains('.'));
        assert!(target.path_and_query().starts_with('/'));
        assert_eq!(
            Target::parse(url.as_str()).as_ref(),
            Ok(&target),
            "parsing it again gives the same target"
        );
    }
}
