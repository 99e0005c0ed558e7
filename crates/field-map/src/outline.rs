//! Reads the parts of a request by which the field map decides.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use vendor::Protocol;
use wire::Cursor;

use super::TAGS;
use super::table::{self, Node};

/// The parts of a client's request by which the [rows](super::rows) decide: its members, their kinds
/// and keywords, but none of its long texts.
#[derive(Debug)]
pub struct Outline<'a> {
    pub(super) client: Protocol,
    pub(super) root: Part<'a>,
}

impl<'a> Outline<'a> {
    /// Reads the request of a client from its JSON document.
    ///
    /// # Errors
    /// If the document is not JSON.
    pub fn read(client: Protocol, document: &'a [u8]) -> Result<Self, serde_json::Error> {
        let detail = Detail::Rows(table::root(client));
        let root = match Self::frequent(document, detail) {
            Some(root) => root,
            None => Part::of(serde_json::from_slice(document)?, detail),
        };
        Ok(Self { client, root })
    }

    /// Reads a document of the most frequent form, without a copy of its texts.
    fn frequent(document: &'a [u8], detail: Detail) -> Option<Part<'a>> {
        let mut cursor = Cursor::new(document)?;
        let root = read(document, &mut cursor, detail)?;
        cursor.end()?;
        Some(root)
    }
}

/// A value of a request.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Null,
    /// Any other value that no row looks into.
    Given,
    /// A text, number or boolean that may be a keyword.
    Keyword(Cow<'a, str>),
    Array(Vec<Part<'a>>),
    Object(Vec<(Cow<'a, str>, Part<'a>)>),
}

impl Part<'_> {
    fn of(value: Value, detail: Detail) -> Self {
        match value {
            Value::Null => Self::Null,
            _ if !detail.is_needed() => Self::Given,
            Value::Bool(value) => Self::Keyword(value.to_string().into()),
            Value::Number(number) => number.as_f64().map_or(Self::Given, Self::number),
            Value::String(text) => Self::Keyword(text.into()),
            Value::Array(entries) => {
                let entries = entries.into_iter();
                Self::Array(
                    entries
                        .map(|value| Self::of(value, detail.entry()))
                        .collect(),
                )
            }
            Value::Object(members) => {
                let member = |(name, value): (String, Value)| {
                    let part = Self::of(value, detail.member(&name));
                    (name.into(), part)
                };
                Self::Object(members.into_iter().map(member).collect())
            }
        }
    }

    /// The same number may be written as 1 and as 1.0.
    fn number(value: f64) -> Self {
        Self::Keyword(value.to_string().into())
    }

    /// The keyword that rows match a value by; `None` for an array with entries and for a text that
    /// is longer than any keyword.
    pub(super) fn keyword(&self) -> Option<&str> {
        match self {
            Self::Null | Self::Given => None,
            Self::Keyword(keyword) => Some(keyword),
            Self::Array(entries) => entries.is_empty().then_some("[]"),
            Self::Object(members) if members.is_empty() => Some("{}"),
            Self::Object(_) => Some(self.kind().unwrap_or_default()),
        }
    }

    /// The kind that an object has in one of its members.
    fn kind(&self) -> Option<&str> {
        TAGS.into_iter().find_map(|tag| self.word(tag))
    }

    /// The word that an object has as a member.
    pub(super) fn word(&self, name: &str) -> Option<&str> {
        match self.member(name)? {
            Self::Keyword(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Returns true if it is an object with this member, and that is not null.
    pub(super) fn has(&self, name: &str) -> bool {
        !matches!(self.member(name), None | Some(Self::Null))
    }

    /// The last member of this name, because that counts where a name is given twice.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        let mut members = members.iter().rev();
        members
            .find(|(member, _)| member == name)
            .map(|(_, part)| part)
    }
}

/// The amount of a value that is read.
#[derive(Clone, Copy)]
enum Detail {
    /// The parts that the rows of a field, and of the fields nested in it, look at.
    Rows(Option<&'static Node>),
    /// A keyword.
    Keyword,
}

impl Detail {
    /// Returns true if more is read than whether there is a value.
    fn is_needed(self) -> bool {
        match self {
            Self::Rows(node) => node.is_some_and(|node| {
                node.has_nested() || node.rows.iter().any(super::Row::depends_on_value)
            }),
            Self::Keyword => true,
        }
    }

    fn node(self) -> Option<&'static Node> {
        match self {
            Self::Rows(node) => node,
            Self::Keyword => None,
        }
    }

    fn entry(self) -> Self {
        Self::Rows(self.node().and_then(|node| node.entry.as_deref()))
    }

    fn member(self, name: &str) -> Self {
        let detail = Self::Rows(self.node().and_then(|node| node.member(name)));
        if TAGS.contains(&name) && !detail.is_needed() {
            return Self::Keyword;
        }
        detail
    }
}

/// Reads a value of a document of the most frequent form.
fn read<'a>(document: &'a [u8], cursor: &mut Cursor<'a>, detail: Detail) -> Option<Part<'a>> {
    let first = cursor.peek()?;
    if first == b'n' {
        cursor.word("null")?;
        return Some(Part::Null);
    }
    if !detail.is_needed() {
        cursor.skip(DEPTH)?;
        return Some(Part::Given);
    }
    match first {
        b'"' => text(document.get(cursor.string()?)?),
        b'[' => {
            let mut entries = Vec::new();
            cursor.elements(|cursor| {
                entries.push(read(document, cursor, detail.entry())?);
                Some(())
            })?;
            Some(Part::Array(entries))
        }
        b'{' => {
            let mut members = Vec::new();
            cursor.members(|cursor, member| {
                let name = str::from_utf8(member.name).ok()?;
                members.push((name.into(), read(document, cursor, detail.member(name))?));
                Some(())
            })?;
            Some(Part::Object(members))
        }
        b't' => cursor.word("true").map(|()| Part::Keyword("true".into())),
        b'f' => cursor.word("false").map(|()| Part::Keyword("false".into())),
        _ => serde_json::from_slice(cursor.number()?)
            .ok()
            .map(Part::number),
    }
}

/// A text with its quotes.
fn text(quoted: &[u8]) -> Option<Part<'_>> {
    if quoted.len() > MAX_KEYWORD {
        return Some(Part::Given);
    }
    let Text(text) = serde_json::from_slice(quoted).ok()?;
    Some(Part::Keyword(text))
}

/// A text, without a copy if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The most bytes of a text with its quotes that is compared with keywords. Each of their characters
/// may be written as an escape of six bytes.
const MAX_KEYWORD: usize = 512;
/// The deepest nesting of a value that is skipped.
const DEPTH: u8 = wire::MAX_DEPTH as u8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{When, rows};

    #[test]
    fn keywords_are_compared_in_any_form() {
        for row in rows() {
            let (When::Is(keywords) | When::Unless(keywords)) = row.when else {
                continue;
            };
            for keyword in keywords {
                let escape = |unit| format!("\\u{unit:04x}");
                let escaped: String = keyword.encode_utf16().map(escape).collect();
                let quoted = format!("\"{escaped}\"");
                let part = text(quoted.as_bytes()).unwrap();
                assert_eq!(part.keyword(), Some(*keyword));
            }
        }
    }

    #[test]
    fn outline_reads_only_members_that_rows_test() {
        let document = br#"{"input":[{"type":"mess\u0061ge","content":[{"text":"\n","type":"input_text"}],"other":{"a":1}}],"store":null}"#;
        let detail = Detail::Rows(table::root(Protocol::Responses));
        assert_eq!(
            format!("{:?}", Outline::frequent(document, detail).unwrap()),
            r#"Object([("input", Array([Object([("type", Keyword("message")), ("content", Array([Object([("text", Given), ("type", Keyword("input_text"))])])), ("other", Given)])])), ("store", Null)])"#
        );
        assert!(Outline::read(Protocol::Chat, b"{\"messages\":[}").is_err());
        assert!(Outline::read(Protocol::Chat, b"{} {}").is_err());
    }

    #[test]
    fn of_two_members_of_a_name_the_last_counts() {
        let document = br#"{"response_format":{"type":"json_object","type":"text"}}"#;
        let outline = Outline::read(Protocol::Chat, document).unwrap();
        assert_eq!(outline.dropped_fields(Protocol::Messages), Ok(Vec::new()));
    }
}
