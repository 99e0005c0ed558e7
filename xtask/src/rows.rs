//! All rows of the list of faults, each with a short description, and the tests that name them.

mod program;
mod scan;

use std::{fmt, fs};

pub(crate) use self::scan::{Shown, tests};
use crate::outcome::Outcome;
use crate::workspace;

/// A row: `H13`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    pub(crate) section: char,
    pub(crate) number: usize,
}

/// Rows of one subject, numbered from one.
pub(crate) struct Section {
    pub(crate) letter: char,
    pub(crate) title: &'static str,
    pub(crate) faults: &'static [&'static str],
}

impl Row {
    /// The rows at the beginning of a test's name, and the rest of the name: `c03_u19_gone` is C3, U19 and `gone`.
    pub(crate) fn leading(name: &str) -> (Vec<Self>, &str) {
        let mut rows = Vec::new();
        let mut rest = name;
        while let Some((row, behind)) =
            rest.split_once('_').and_then(|(word, behind)| Some((Self::in_name(word)?, behind)))
        {
            rows.push(row);
            rest = behind;
        }
        (rows, rest)
    }

    /// Parses one row in the spelling of test names: `c03`.
    fn in_name(word: &str) -> Option<Self> {
        let &[section, tens, ones] = word.as_bytes() else { return None };
        let is_row = section.is_ascii_lowercase() && tens.is_ascii_digit() && ones.is_ascii_digit();
        let number = usize::from(tens.wrapping_sub(b'0')) * 10 + usize::from(ones.wrapping_sub(b'0'));
        is_row.then(|| Self { section: char::from(section.to_ascii_uppercase()), number })
    }

    pub(crate) fn is_listed(self) -> bool {
        all().any(|row| row == self)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.section, self.number)
    }
}

/// Every row, in order.
pub(crate) fn all() -> impl Iterator<Item = Row> {
    SECTIONS.iter().flat_map(|section| (1..=section.faults.len()).map(|number| Row { section: section.letter, number }))
}

/// Every test of the repository that names rows.
pub(crate) struct Tests(pub(crate) Vec<Shown>);

impl Tests {
    pub(crate) fn read() -> Outcome<Self> {
        let root = workspace::root();
        let mut shown = Vec::new();
        for name in workspace::files()?.iter().filter(|name| may_hold_tests(name)) {
            // A file that was deleted but not yet committed cannot be read.
            let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
            shown.extend(tests(name, &text));
        }
        Ok(Self(shown))
    }

    /// The arguments of `cargo test` that run the tests of `rows`, in one program; `near` is a source file that was
    /// changed.
    pub(crate) fn arguments(&self, rows: &[String], near: &str) -> Option<String> {
        program::arguments(&self.0, rows, near)
    }
}

/// Returns true if a test, named by its path in its program, is one of this row: `bounds::l04_heads_are_bounded` is
/// of `L4`.
pub(crate) fn is_of(test: &str, row: &str) -> bool {
    let name = test.rsplit("::").next().unwrap_or(test);
    Row::leading(name).0.iter().any(|leading| leading.to_string() == row)
}

/// Returns true for the name of a row: `H13`.
pub(crate) fn is_row(name: &str) -> bool {
    all().any(|row| row.to_string() == name)
}

/// Returns true if a file may contain tests of the product.
fn may_hold_tests(name: &str) -> bool {
    let in_crate = |rest: &str| rest.split('/').nth(1).is_some_and(|folder| folder == "src" || folder == "tests");
    name.ends_with(".rs") && (name.starts_with("tests/") || name.strip_prefix("crates/").is_some_and(in_crate))
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        letter: 'H',
        title: "HTTP framing",
        faults: &[
            "Content-Length together with Transfer-Encoding",
            "Repeated or invalid Content-Length headers",
            "Transfer codings other than `chunked`",
            "HTTP/1.0 with a transfer coding or without a length",
            "Chunks with invalid, huge or endless sizes",
            "A missing, repeated or malformed Host header",
            "Unusual request targets and methods",
            "Upgrade requests, and a second request after one",
            "Paths that resemble a route",
            "Malformed header lines",
            "Bare line feeds in a head",
            "Pipelined requests",
            "A request split into any pieces",
            "Expect: 100-continue",
            "Another protocol on the HTTP port",
            "Floods of HTTP/2 frames",
            "Request trailers",
            "Connection headers that name other headers",
        ],
    },
    Section {
        letter: 'L',
        title: "limits and hostile clients",
        faults: &[
            "A connection on which nothing is sent",
            "A head that arrives byte by byte",
            "A body that arrives byte by byte",
            "Heads that are too large",
            "Bodies that are too large",
            "Many large bodies at once",
            "A connection over the limit",
            "No file descriptors left",
            "Very many connections from one address",
            "Small requests that are expensive",
            "A compressed request",
            "Unexpected and missing bodies",
            "Failing TLS handshakes",
            "A flood of TLS handshakes",
        ],
    },
    Section {
        letter: 'A',
        title: "keys",
        faults: &[
            "A missing or unreadable key",
            "Unknown, revoked, expired or disabled keys",
            "A key that is nearly correct",
            "Unusual bytes in the key header",
            "A key without permission for the route or model",
            "An unknown model, a model without permission",
            "A route without authentication",
            "No keys can be loaded",
            "A flood of wrong keys",
            "A key that is revoked during a request",
            "Operator endpoints",
            "Keys at rest",
        ],
    },
    Section {
        letter: 'J',
        title: "JSON bodies",
        faults: &[
            "Invalid JSON documents",
            "Deep nesting",
            "Numbers at the limits of their range",
            "A repeated member",
            "Values of the wrong type",
            "Missing required fields, invalid values",
            "Unknown fields",
            "Bodies that are expensive to parse",
            "Unusual Unicode text",
            "A wrong media type",
            "Counts out of range",
            "Schemas that refer to themselves",
        ],
    },
    Section {
        letter: 'M',
        title: "multipart forms",
        faults: &[
            "An invalid boundary",
            "A truncated form",
            "Too many parts",
            "Endless part headers",
            "Parts or forms that are too large",
            "Repeated, mixed, unknown and unnamed fields",
            "Malicious file names",
            "Encodings and forms within parts",
            "Data that looks like a boundary",
            "Other line endings, text around the parts",
            "A form that arrives byte by byte",
            "A client that disconnects during its upload",
        ],
    },
    Section {
        letter: 'S',
        title: "event streams of upstreams",
        faults: &[
            "A stream split into any pieces",
            "Every form of line, field and comment",
            "A last event without a blank line",
            "Lines and events that are too large",
            "Malformed events",
            "Events of an unknown type",
            "Data after the terminal event",
            "Missing or repeated usage",
            "A stream without events",
            "Endless comments",
            "Invalid UTF-8",
            "Text that looks like framing",
            "Event names that contradict their data",
            "A compressed stream",
            "Indices out of order or out of bounds",
            "Any order of events, translated between protocols",
        ],
    },
    Section {
        letter: 'U',
        title: "failing upstreams",
        faults: &[
            "A refused connection",
            "A connection that times out",
            "A name that cannot be resolved",
            "An untrusted TLS certificate",
            "A response head that does not arrive",
            "A stale idle connection",
            "A stall in the middle of a stream",
            "A connection that is reset",
            "A stream without its terminal event",
            "A wrong Content-Length",
            "A plain reply with the media type of a stream",
            "A plain reply to a request for a stream",
            "Responses of proxies and other middleboxes",
            "A failure event within a stream",
            "Retry-After",
            "A request that the upstream refuses",
            "A transient failure",
            "Unusual response heads",
            "An upstream faster than its client",
            "A stream left open after its terminal event",
            "A stream that arrives byte by byte",
            "A response that belongs to another request",
        ],
    },
    Section {
        letter: 'C',
        title: "clients that disconnect or do not read",
        faults: &[
            "A disconnect at any moment",
            "A half-closed connection",
            "A client that does not read",
            "Many disconnects at once",
            "A disconnect during work",
            "A disconnect at the very end",
            "A panic in a handler",
            "Futures dropped at any await point",
        ],
    },
    Section {
        letter: 'O',
        title: "overload",
        faults: &[
            "A plain request over the limit",
            "A Responses stream over the limit",
            "Any other stream over the limit",
            "Permits after every fault",
            "Five times the load",
            "A storm of retries",
            "One key that uses all permits",
            "A busy embedded engine",
            "After the load",
            "Health under load",
        ],
    },
    Section {
        letter: 'D',
        title: "shutdown, reload, clock, disk",
        faults: &[
            "Shutdown with idle connections",
            "Shutdown with streams that end in time",
            "Shutdown with streams that do not end in time",
            "A second signal",
            "Shutdown before the response has started",
            "A killed process",
            "A new process on the same port",
            "Reload under load, of any file",
            "Reload that removes a model",
            "Reload of certificates",
            "A wall clock that jumps",
            "A suspended process",
            "A log that cannot be written",
            "A telemetry sink that is down",
            "The memory limit",
            "Secrets that are unreadable or readable by everyone",
        ],
    },
    Section {
        letter: 'F',
        title: "fetching pictures",
        faults: &[
            "Addresses that must not be fetched",
            "Networks that are not public",
            "Other notations of an address",
            "A name that changes its address",
            "Redirects",
            "A certificate for another name",
            "Bodies that are too large, slow, or compressed",
            "Data that is not a picture",
            "The text of the error",
            "Proxies and the hosts file",
            "Many fetches at once",
            "The gateway's own address",
            "A cached picture of another client",
            "Fetching disabled",
            "Every route that accepts a URL",
        ],
    },
    Section {
        letter: 'I',
        title: "pictures",
        faults: &[
            "A header that claims an enormous size",
            "Pictures that are expensive to decode",
            "A decoder that panics",
            "Invalid base64",
            "Invalid data URLs",
            "Masks that do not fit",
            "Many pictures decoded at once",
            "Messages of decoders",
            "Pictures in the log",
        ],
    },
    Section {
        letter: 'P',
        title: "headers, secrets and private data",
        faults: &[
            "Headers that clients send",
            "An upstream without a key",
            "Control characters in header values",
            "Control characters in the log",
            "Secrets in any output",
            "Unbounded metric labels",
            "Secrets in an error of an upstream",
            "Response headers",
        ],
    },
    Section {
        letter: 'E',
        title: "the embedded text engine",
        faults: &[
            "A damaged model file",
            "Prompts that are too long, empty or special",
            "Endless text",
            "Probabilities that are not numbers",
            "Cancellation between tokens",
            "A panic of the engine's thread",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_with_rows() {
        let leading = |name| {
            let (rows, rest) = Row::leading(name);
            (rows.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), rest)
        };
        assert_eq!(leading("h01_a"), ("H1".to_owned(), "a"));
        assert_eq!(leading("c03_u19_gone_by_u16_x"), ("C3 U19".to_owned(), "gone_by_u16_x"));
        assert_eq!(leading("H01_a"), (String::new(), "H01_a"));
        assert_eq!(leading("h1_a"), (String::new(), "h1_a"));
        assert_eq!(leading("h01"), (String::new(), "h01"));
    }

    #[test]
    fn the_list_is_whole() {
        let counts: Vec<_> = SECTIONS.iter().map(|section| (section.letter, section.faults.len())).collect();
        let expected = "H18 L14 A12 J12 M12 S16 U22 C8 O10 D16 F15 I9 P8 E6";
        let expected = expected.split(' ').map(|word| (char::from(word.as_bytes()[0]), word[1..].parse().unwrap()));
        assert_eq!(counts, expected.collect::<Vec<_>>());
        assert!(Row { section: 'E', number: 6 }.is_listed() && !Row { section: 'E', number: 7 }.is_listed());
    }

    #[test]
    fn tests_are_looked_for_where_the_product_is() {
        assert!(
            ["crates/sse/src/lines.rs", "crates/sse/tests/it/a.rs", "tests/faults/a.rs"]
                .iter()
                .all(|name| may_hold_tests(name))
        );
        assert!(
            !["xtask/src/a.rs", "fuzz/src/lib.rs", "crates/sse/benches/a.rs", "tests/a.md"]
                .iter()
                .any(|name| may_hold_tests(name))
        );
    }
}
