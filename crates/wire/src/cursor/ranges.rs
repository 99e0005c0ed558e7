//! Moves over parts of a document without checking them: a parser has accepted the document, or reads
//! it afterwards.

use std::ops::Range;

use memchr::memchr2;

use super::Cursor;

impl<'a> Cursor<'a> {
    /// Creates a cursor at a position of a document, which need not be UTF-8.
    pub(crate) fn of_bytes(document: &'a [u8], at: usize) -> Self {
        Self {
            rest: document.get(at..).unwrap_or_default(),
            length: document.len(),
        }
    }

    /// Moves over the next byte, and returns it.
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// Moves over the rest of a text behind its opening quote, whatever it contains. Returns `None` if
    /// the text has no end. It uses memchr, because most of a long document is text.
    #[inline]
    pub(crate) fn pass_text(&mut self) -> Option<()> {
        let mut rest = self.rest;
        loop {
            let found = memchr2(b'"', b'\\', rest)?;
            rest = match &rest[found..] {
                [b'"', behind @ ..] => {
                    self.rest = behind;
                    return Some(());
                }
                // A backslash goes with the byte behind it.
                [_, _, behind @ ..] => behind,
                _ => return None,
            };
        }
    }

    /// Moves over a value, and returns its range.
    #[inline]
    pub(crate) fn pass_value(&mut self) -> Option<Range<usize>> {
        self.peek();
        let start = self.at();
        match self.byte()? {
            b'"' => self.pass_text()?,
            b'{' | b'[' => self.pass_nested()?,
            _ => {
                let is_end =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                let length = self.rest.iter().position(is_end)?;
                self.rest = &self.rest[length..];
            }
        }
        Some(start..self.at())
    }

    /// Moves over the rest of an object or array behind its opening bracket.
    fn pass_nested(&mut self) -> Option<()> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.byte()? {
                b'"' => self.pass_text()?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        Some(())
    }
}
