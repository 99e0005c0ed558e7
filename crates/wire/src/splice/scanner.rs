//! A scanner for the positions of members and values in a JSON document.

use std::ops::Range;

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
    scanner: Scanner<'a>,
    comma: Option<usize>,
    ended: bool,
}

impl<'a> Members<'a> {
    pub(crate) fn new(document: &'a [u8], start: usize) -> Self {
        Self {
            scanner: Scanner {
                document,
                at: start,
            },
            comma: None,
            ended: false,
        }
    }

    fn member(&mut self) -> Option<Member> {
        let name = self.scanner.string()?;
        self.scanner.expect(b':')?;
        let value = self.scanner.value()?;
        let end = self.scanner.at_next();
        let comma = self.comma;
        let next = match self.scanner.next()? {
            b',' => self.scanner.at_next(),
            b'}' => end,
            _ => return None,
        };
        self.comma = Some(end);
        self.ended = next == end;
        Some(Member {
            comma,
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
    inner == name.as_bytes()
        || memchr::memchr(b'\\', inner).is_some()
            && serde_json::from_slice::<String>(key).is_ok_and(|key| key == name)
}

/// A minimal tokenizer. It assumes valid JSON and returns `None` where the document is not.
pub(crate) struct Scanner<'a> {
    pub(crate) document: &'a [u8],
    pub(crate) at: usize,
}

impl Scanner<'_> {
    /// Enters an object and returns the position after its opening brace.
    pub(crate) fn object(mut self) -> Option<usize> {
        self.expect(b'{')?;
        Some(self.at)
    }

    /// Returns the start of the next token.
    pub(crate) fn at_next(&self) -> usize {
        let rest = &self.document[self.at..];
        self.at
            + rest
                .iter()
                .position(|byte| !byte.is_ascii_whitespace())
                .unwrap_or(rest.len())
    }

    /// Consumes and returns the next byte that is not white space.
    pub(crate) fn next(&mut self) -> Option<u8> {
        self.at = self.at_next();
        let byte = *self.document.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at_next();
        self.expect(b'"')?;
        self.rest_of_string()?;
        Some(start..self.at)
    }

    /// Skips the rest of a string after its opening quote. Uses memchr because base64 images are
    /// long strings.
    fn rest_of_string(&mut self) -> Option<()> {
        loop {
            let found = memchr::memchr2(b'"', b'\\', &self.document[self.at..])?;
            let byte = self.document[self.at + found];
            self.at += found + 1;
            if byte == b'"' {
                return Some(());
            }
            // Skip the escaped character.
            self.document.get(self.at)?;
            self.at += 1;
        }
    }

    /// Enters an array and returns the range of one of its elements.
    pub(crate) fn element(mut self, number: usize) -> Option<Range<usize>> {
        self.expect(b'[')?;
        for _ in 0..number {
            self.value()?;
            self.expect(b',')?;
        }
        self.value()
    }

    pub(crate) fn value(&mut self) -> Option<Range<usize>> {
        let start = self.at_next();
        match self.next()? {
            b'"' => self.rest_of_string()?,
            b'{' | b'[' => self.rest_of_nested()?,
            _ => {
                let rest = &self.document[self.at..];
                let is_end =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                self.at += rest.iter().position(is_end)?;
            }
        }
        Some(start..self.at)
    }

    /// Skips the rest of an object or array after its opening bracket.
    fn rest_of_nested(&mut self) -> Option<()> {
        let mut depth = 1_usize;
        while depth > 0 {
            let byte = *self.document.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => self.rest_of_string()?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        Some(())
    }
}
