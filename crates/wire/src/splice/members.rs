//! The positions of the members of an object in a JSON document.

use std::ops::Range;

use crate::Cursor;

/// The position of one object member.
pub(crate) struct Member {
    /// The comma before it; `None` for the first.
    pub(crate) comma: Option<usize>,
    pub(crate) name: Range<usize>,
    pub(crate) value: Range<usize>,
    /// Start of the next member, or the closing brace.
    pub(crate) next: usize,
}

/// Iterator over the members of an object. It ends at the first syntax error.
pub(crate) struct Members<'a> {
    cursor: Cursor<'a>,
    comma: Option<usize>,
    ended: bool,
}

impl<'a> Members<'a> {
    /// The members of an object whose opening brace ends at `start`.
    pub(crate) fn new(document: &'a [u8], start: usize) -> Self {
        Self {
            cursor: Cursor::of_bytes(document, start),
            comma: None,
            ended: false,
        }
    }

    /// The members of the object at a position.
    pub(crate) fn of_object(document: &'a [u8], at: usize) -> Option<Self> {
        let mut cursor = Cursor::of_bytes(document, at);
        cursor.expect(b'{')?;
        Some(Self::new(document, cursor.at()))
    }

    fn member(&mut self) -> Option<Member> {
        if self.cursor.peek()? != b'"' {
            return None;
        }
        let name = self.cursor.pass_value()?;
        self.cursor.expect(b':')?;
        let value = self.cursor.pass_value()?;
        let is_last = self.cursor.peek()? == b'}';
        let end = self.cursor.at();
        let next = if is_last {
            end
        } else {
            self.cursor.expect(b',')?;
            self.cursor.peek();
            self.cursor.at()
        };
        self.ended = is_last;
        Some(Member {
            comma: self.comma.replace(end),
            name,
            value,
            next,
        })
    }
}

impl Iterator for Members<'_> {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        if self.ended {
            return None;
        }
        let member = self.member();
        self.ended |= member.is_none();
        member
    }
}

/// Returns true if the JSON string literal `key`, which may contain escapes, equals `name`.
pub(crate) fn is_name(key: &[u8], name: &str) -> bool {
    let inner = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
    match memchr::memchr(b'\\', inner) {
        None => inner == name.as_bytes(),
        Some(_) => serde_json::from_slice::<String>(key).is_ok_and(|key| key == name),
    }
}
