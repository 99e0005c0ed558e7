//! Parsing of a single line: its end and the field it sets (WHATWG HTML §9.2.6).

use memchr::memchr2;

/// The field set by a non-blank line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Data,
    Event,
    Id,
    Retry,
    /// A line that begins with a colon.
    Comment,
    /// A line that sets no field known to the standard.
    Unknown,
}

/// Returns the field that `line` sets and the offset of its value.
#[inline]
pub(crate) fn field(line: &[u8]) -> (Field, usize) {
    let (field, name) = match line {
        [b'd', b'a', b't', b'a', ..] => (Field::Data, 4),
        [b'e', b'v', b'e', b'n', b't', ..] => (Field::Event, 5),
        [b'i', b'd', ..] => (Field::Id, 2),
        [b'r', b'e', b't', b'r', b'y', ..] => (Field::Retry, 5),
        [b':', ..] => return (Field::Comment, 1),
        _ => return (Field::Unknown, line.len()),
    };
    match &line[name..] {
        [b':', b' ', ..] => (field, name + 2),
        [b':', ..] => (field, name + 1),
        [] => (field, name),
        _ => (Field::Unknown, line.len()),
    }
}

/// Splits `text` after its first line: returns the line without its end and the rest, `None` if the
/// line has no end.
pub(crate) fn split(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(end) = memchr2(b'\n', b'\r', text) else {
        return (text, None);
    };
    let (line, rest) = text.split_at(end);
    (line, Some(rest.strip_prefix(b"\r\n").unwrap_or(&rest[1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Field, &str) {
        let (field, value) = field(line.as_bytes());
        (field, &line[value..])
    }

    #[test]
    fn a_name_without_a_colon_is_a_field_with_an_empty_value() {
        for (name, field) in [
            ("data", Field::Data),
            ("event", Field::Event),
            ("id", Field::Id),
            ("retry", Field::Retry),
        ] {
            assert_eq!(read(name), (field, ""));
            assert_eq!(read(&format!("{name}:")), (field, ""));
            assert_eq!(read(&format!("{name}: a:b")), (field, "a:b"));
            assert_eq!(read(&format!("{name}s: a")).0, Field::Unknown);
        }
    }

    #[test]
    fn one_leading_space_is_no_part_of_the_value() {
        assert_eq!(read("data:a"), (Field::Data, "a"));
        assert_eq!(read("data:  a "), (Field::Data, " a "));
        assert_eq!(read("data:\ta"), (Field::Data, "\ta"));
        assert_eq!(read("data:\u{a0}a"), (Field::Data, "\u{a0}a"));
    }

    #[test]
    fn other_names_and_comments_set_nothing() {
        for line in [
            "Data: a",
            " data: a",
            "data : a",
            "dat",
            "foo",
            "\u{feff}data: a",
        ] {
            assert_eq!(read(line).0, Field::Unknown, "{line:?}");
        }
        for line in [":", ": a", ":data: a"] {
            assert_eq!(read(line).0, Field::Comment, "{line:?}");
        }
    }

    #[test]
    fn a_line_ends_at_lf_cr_or_crlf() {
        assert_eq!(split(b"a\nb"), (&b"a"[..], Some(&b"b"[..])));
        assert_eq!(split(b"a\rb"), (&b"a"[..], Some(&b"b"[..])));
        assert_eq!(split(b"a\r\n\nb"), (&b"a"[..], Some(&b"\nb"[..])));
        assert_eq!(split(b"a\n\rb"), (&b"a"[..], Some(&b"\rb"[..])));
        assert_eq!(split(b"a\r"), (&b"a"[..], Some(&b""[..])));
        assert_eq!(split("a\u{2028}\u{85}\u{b}b".as_bytes()).1, None);
    }
}
