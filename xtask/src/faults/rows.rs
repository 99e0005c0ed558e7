//! Every row of the list, with a few words for each.

use std::fmt;

/// A row: `H13`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) section: char,
    pub(super) number: usize,
}

/// Rows of one subject, numbered from one.
pub(super) struct Section {
    pub(super) letter: char,
    pub(super) title: &'static str,
    pub(super) faults: &'static [&'static str],
}

impl Row {
    /// The rows that lead the name of a test, and what is left of it: `c03_u19_gone` is C3, U19 and `gone`.
    pub(super) fn leading(name: &str) -> (Vec<Self>, &str) {
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

    /// `c03`.
    fn in_name(word: &str) -> Option<Self> {
        let &[section, tens, ones] = word.as_bytes() else { return None };
        let is_row = section.is_ascii_lowercase() && tens.is_ascii_digit() && ones.is_ascii_digit();
        let number = usize::from(tens.wrapping_sub(b'0')) * 10 + usize::from(ones.wrapping_sub(b'0'));
        is_row.then(|| Self { section: char::from(section.to_ascii_uppercase()), number })
    }

    pub(super) fn is_listed(self) -> bool {
        all().any(|row| row == self)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.section, self.number)
    }
}

/// Every row, in order.
pub(super) fn all() -> impl Iterator<Item = Row> {
    SECTIONS.iter().flat_map(|section| (1..=section.faults.len()).map(|number| Row { section: section.letter, number }))
}

pub(super) const SECTIONS: &[Section] = &[
    Section {
        letter: 'H',
        title: "framing of HTTP",
        faults: &[
            "A length and chunks at once",
            "Lengths that differ or are no numbers",
            "Transfer codings beside plain chunks",
            "HTTP/1.0 with a coding or without a length",
            "Chunks with wrong, huge or endless sizes",
            "A Host that is missing, doubled or malformed",
            "Unusual targets and methods",
            "Upgrades, and a second request behind one",
            "Paths that are nearly a route",
            "Header lines that are malformed",
            "Bare line feeds within a head",
            "Pipelined requests",
            "A request in any pieces",
            "Expectation of 100 Continue",
            "Another protocol on the plain port",
            "Floods of HTTP/2 frames",
            "Trailers of a request",
            "Connection naming other headers",
        ],
    },
    Section {
        letter: 'L',
        title: "limits and hostile clients",
        faults: &[
            "A connection that says nothing",
            "A head that drips in",
            "A body that drips in",
            "Heads that are too large",
            "Bodies that are too large",
            "Many large bodies at once",
            "One connection too many",
            "No file descriptors left",
            "One address with very many connections",
            "Small requests that cost much",
            "A compressed request",
            "Bodies where none belong, none where one does",
            "Trouble in the TLS handshake",
            "A flood of TLS handshakes",
        ],
    },
    Section {
        letter: 'A',
        title: "keys",
        faults: &[
            "No key, or none that can be read",
            "Keys that are unknown, revoked, expired, disabled",
            "A key that is nearly right",
            "Odd bytes in the header of the key",
            "A key without permission for the route or model",
            "An unknown model, a forbidden model",
            "A route without the check of keys",
            "No keys can be loaded",
            "A flood of wrong keys",
            "A key revoked under way",
            "Pages for operators",
            "Keys at rest",
        ],
    },
    Section {
        letter: 'J',
        title: "JSON bodies",
        faults: &[
            "What is no JSON document",
            "Deep nesting",
            "Numbers at the edge",
            "A key said twice",
            "Values of a wrong type",
            "Required fields missing, values outside of the rules",
            "Fields that nobody knows",
            "Bodies that are costly to read",
            "Text at the edge of Unicode",
            "A wrong content type",
            "Counts that are too small or too large",
            "Schemas that refer to themselves",
        ],
    },
    Section {
        letter: 'M',
        title: "multipart forms",
        faults: &[
            "A boundary that is none",
            "A form that breaks off",
            "Too many parts",
            "Part heads without end",
            "Parts or forms that are too large",
            "Fields doubled, mixed, unknown, unnamed",
            "File names with designs",
            "Encodings and forms within parts",
            "Data that looks like a boundary",
            "Other line ends, text around the parts",
            "A form that drips in",
            "A client that leaves during its upload",
        ],
    },
    Section {
        letter: 'S',
        title: "event streams of upstreams",
        faults: &[
            "A stream in any pieces",
            "Every form of line, field and comment",
            "A last event without its blank line",
            "Lines and events that are too large",
            "Events that are malformed",
            "Events of an unknown type",
            "Anything behind the end",
            "Usage missing or said twice",
            "A stream without events",
            "Comments without end",
            "What is no UTF-8",
            "Text that looks like framing",
            "Names of events that contradict their data",
            "A compressed stream",
            "Indices out of order or out of bounds",
            "Any order of events, between protocols",
        ],
    },
    Section {
        letter: 'U',
        title: "failing upstreams",
        faults: &[
            "Nobody listens",
            "Nobody accepts",
            "A name that is not resolved",
            "TLS that cannot be trusted",
            "No head comes",
            "A connection that has gone stale",
            "A stall within the stream",
            "A connection that breaks",
            "A stream that ends without its end",
            "A length that is wrong",
            "A plain reply under the type of a stream",
            "A plain reply where a stream was asked for",
            "What middleboxes say",
            "A failure told within a stream",
            "When to come back",
            "A request refused upstream",
            "A failure that passes",
            "Unusual heads of answers",
            "An upstream faster than its client",
            "A stream left open behind its end",
            "A stream that drips",
            "An answer that is another's",
        ],
    },
    Section {
        letter: 'C',
        title: "clients that leave or do not read",
        faults: &[
            "Gone at any moment",
            "Half closed",
            "A client that does not read",
            "Many vanish at once",
            "Gone while work is being done",
            "Gone at the very end",
            "A panic in a handler",
            "Work dropped at any await",
        ],
    },
    Section {
        letter: 'O',
        title: "overload",
        faults: &[
            "Over the limit, a plain request",
            "Over the limit, a Responses stream",
            "Over the limit, any other stream",
            "Permits after every fault",
            "Five times the load",
            "A storm of retries",
            "One key that takes all",
            "A busy embedded engine",
            "After the load",
            "Health under load",
        ],
    },
    Section {
        letter: 'D',
        title: "stop, reload, clock, disk",
        faults: &[
            "Stop with idle connections",
            "Stop with streams that end in time",
            "Stop with streams that do not",
            "A second signal",
            "Stop before the answer has begun",
            "Killed",
            "A new process on the same port",
            "Reload under load, of any file",
            "Reload that takes a model away",
            "Reload of certificates",
            "A wall clock that jumps",
            "The process suspended",
            "A log that cannot be written",
            "A telemetry sink that is down",
            "Memory at its limit",
            "Secrets that are unreadable or open to all",
        ],
    },
    Section {
        letter: 'F',
        title: "fetching pictures",
        faults: &[
            "Addresses that are not asked",
            "Networks that are not public",
            "Other spellings of an address",
            "A name that changes its address",
            "Redirects",
            "A certificate of another name",
            "Bodies that are too large, slow, or compressed",
            "What is no picture",
            "What the error says",
            "Proxies and the hosts file",
            "Many fetches at once",
            "Our own address",
            "A picture kept for others",
            "Fetching switched off",
            "Every route that takes an address",
        ],
    },
    Section {
        letter: 'I',
        title: "pictures",
        faults: &[
            "A header of enormous size",
            "Pictures made to be costly",
            "A decoder that panics",
            "Base64 that is none",
            "Data URLs that are none",
            "Masks that do not fit",
            "Many pictures decoded at once",
            "What decoders say",
            "Pictures in the log",
        ],
    },
    Section {
        letter: 'P',
        title: "what gets out",
        faults: &[
            "Headers of clients",
            "An upstream without a key",
            "Control bytes on their way into a header",
            "Control bytes on their way into the log",
            "Secrets anywhere",
            "Labels of metrics without bound",
            "Secrets in an upstream's error",
            "Headers of answers",
        ],
    },
    Section {
        letter: 'E',
        title: "the embedded text engine",
        faults: &[
            "A model file that is damaged",
            "Prompts that are too long, empty or special",
            "Text without end",
            "Chances that are no numbers",
            "Cancelled between tokens",
            "The engine's thread dies",
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
}
