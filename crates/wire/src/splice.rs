//! Edits single values of a JSON document and leaves every other byte unchanged.

use std::ops::Range;

/// A set of edits to one JSON document, located by path and applied together.
///
/// The document must have been accepted by a JSON parser. A path consists of the names of members,
/// and of the numbers of elements. Edits whose path does not exist have no effect.
///
/// ```
/// let document = br#"{"n": 1.50, "model" : "mine","metadata":{"a":1}}"#;
/// let mut splice = sluicegate_wire::Splice::new(document);
/// splice.replace(&["model"], b"\"theirs\"");
/// splice.remove(&[], &["metadata"]);
/// assert_eq!(splice.to_vec(), br#"{"n": 1.50, "model" : "theirs"}"#);
/// ```
#[derive(Debug)]
pub struct Splice<'a> {
    document: &'a [u8],
    /// Replaced ranges and their new contents, in document order and without overlap.
    edits: Vec<(Range<usize>, Vec<u8>)>,
}

impl<'a> Splice<'a> {
    /// Creates an empty set of edits to `document`.
    #[must_use]
    pub fn new(document: &'a [u8]) -> Self {
        Self {
            document,
            edits: Vec::new(),
        }
    }

    /// Replaces the value at `path`, a chain of member names, with the JSON text `value`. Returns
    /// true if it exists.
    pub fn replace(&mut self, path: &[&str], value: &[u8]) -> bool {
        let Some(range) = find(self.document, path) else {
            return false;
        };
        self.edit(range, value.to_vec());
        true
    }

    /// Replaces the member `name` of the object at `path` by another one, with this name and JSON
    /// text. Returns true if it exists.
    pub fn replace_member(&mut self, path: &[&str], name: &str, with: (&str, &[u8])) -> bool {
        let found = start_of(self.document, path).and_then(|at| member(self.document, at, name));
        let Some(found) = found else { return false };
        let member = [format!("\"{}\":", with.0).as_bytes(), with.1].concat();
        self.edit(found.name.start..found.value.end, member);
        true
    }

    /// Renames the top-level member `from`, and keeps its value. Returns false, and changes nothing,
    /// if there is a member `to` already.
    pub fn rename(&mut self, from: &str, to: &str) -> bool {
        if self.has(&[to]) {
            return false;
        }
        if let Some(found) = member(self.document, 0, from) {
            self.edit(found.name, serde_json::Value::from(to).to_string().into());
        }
        true
    }

    /// Replaces the value of the member `name` in each object of the top-level array `list`, where
    /// it is the JSON text `from`, with the JSON text `to`.
    pub fn replace_in_each(&mut self, list: &str, name: &str, from: &[u8], to: &[u8]) {
        let Some(mut at) = enter_array(self.document, list) else {
            return;
        };
        let document = self.document;
        while let Some(element) = (Scanner { document, at }).value() {
            let found = member(document, element.start, name);
            if let Some(found) = found.filter(|found| &document[found.value.clone()] == from) {
                self.edit(found.value, to.to_vec());
            }
            let mut rest = Scanner {
                document,
                at: element.end,
            };
            if rest.expect(b',').is_none() {
                return;
            }
            at = rest.at;
        }
    }

    /// Returns true if there is a value at `path` in the original document.
    #[must_use]
    pub fn has(&self, path: &[&str]) -> bool {
        find(self.document, path).is_some()
    }

    /// Sets the top-level member `name` to the JSON text `value`, adding it as the first member if
    /// absent.
    pub fn set(&mut self, name: &str, value: &[u8]) {
        if self.replace(&[name], value) {
            return;
        }
        let Some(start) = enter(self.document, &[]) else {
            return;
        };
        let comma = Members::new(self.document, start)
            .next()
            .map_or("", |_| ",");
        let name = serde_json::Value::from(name);
        let member = [format!("{name}:").as_bytes(), value, comma.as_bytes()].concat();
        self.edit(start..start, member);
    }

    /// Adds members to the object at `path`, with these names and JSON texts, unless it has them or
    /// is absent.
    pub fn add_missing(&mut self, path: &[&str], members: &[(&str, &str)]) {
        let Some(start) = enter(self.document, path) else {
            return;
        };
        let names: Vec<_> = Members::new(self.document, start)
            .map(|member| &self.document[member.name])
            .collect();
        let is_missing = |name: &str| !names.iter().any(|known| is_name(known, name));
        let missing = members.iter().filter(|(name, _)| is_missing(name));
        let mut added = missing
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect::<Vec<_>>()
            .join(",");
        if added.is_empty() {
            return;
        }
        if !names.is_empty() {
            added.push(',');
        }
        self.edit(start..start, added.into_bytes());
    }

    /// Removes the members with the given names from the object at `path`, each with its separating
    /// comma. Call it at most once per object. Returns true if any member was found.
    pub fn remove(&mut self, path: &[&str], names: &[&str]) -> bool {
        let Some(start) = enter(self.document, path) else {
            return false;
        };
        let mut found = false;
        let mut kept = false;
        for member in Members::new(self.document, start) {
            if !names
                .iter()
                .any(|name| is_name(&self.document[member.name.clone()], name))
            {
                kept = true;
                continue;
            }
            found = true;
            let range = match (kept, member.comma) {
                (true, Some(comma)) => comma..member.value.end,
                _ => member.name.start..member.next,
            };
            self.edit(range, Vec::new());
        }
        found
    }

    /// Returns true if there are no edits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Appends the edited document to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut from = 0;
        for (range, value) in &self.edits {
            out.extend_from_slice(&self.document[from..range.start]);
            out.extend_from_slice(value);
            from = range.end;
        }
        out.extend_from_slice(&self.document[from..]);
    }

    /// Returns the edited document.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.document.len() + 64);
        self.write(&mut out);
        out
    }

    /// Returns the edited document in pieces, so that large parts need not be copied.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let starts = std::iter::once(0).chain(self.edits.iter().map(|(range, _)| range.end));
        let ends = self
            .edits
            .iter()
            .map(|(range, _)| range.start)
            .chain([self.document.len()]);
        let new = self
            .edits
            .iter()
            .map(|(_, value)| Piece::New(value))
            .map(Some)
            .chain([None]);
        let kept = starts.zip(ends).map(|(start, end)| Piece::Kept(start..end));
        kept.zip(new)
            .flat_map(|(kept, new)| [Some(kept), new])
            .flatten()
    }

    fn edit(&mut self, range: Range<usize>, value: Vec<u8>) {
        let overlaps = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        if !self.edits.iter().any(|(other, _)| overlaps(other)) {
            let at = self
                .edits
                .partition_point(|(other, _)| other.start < range.start);
            self.edits.insert(at, (range, value));
        }
    }
}

/// A piece of an edited document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// An unchanged range of the original document.
    Kept(Range<usize>),
    /// Inserted bytes.
    New(&'a [u8]),
}

/// Returns the range of the value at `path`.
fn find(document: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let (last, outer) = path.split_last()?;
    let at = start_of(document, outer)?;
    let scanner = || Scanner { document, at };
    if scanner().next()? == b'[' {
        return scanner().element(last.parse().ok()?);
    }
    member(document, at, last).map(|member| member.value)
}

/// Returns the member of the object at a position.
fn member(document: &[u8], at: usize, name: &str) -> Option<Member> {
    let start = Scanner { document, at }.object()?;
    let matches = |member: &Member| is_name(&document[member.name.clone()], name);
    Members::new(document, start).find(matches)
}

/// Returns the position of the value at `path`.
fn start_of(document: &[u8], path: &[&str]) -> Option<usize> {
    if path.is_empty() {
        return Some(0);
    }
    find(document, path).map(|value| value.start)
}

/// Returns the position after the opening brace of the object at `path`.
fn enter(document: &[u8], path: &[&str]) -> Option<usize> {
    let at = start_of(document, path)?;
    Scanner { document, at }.object()
}

/// Returns the position after the opening bracket of the top-level array `list`, unless it is empty.
fn enter_array(document: &[u8], list: &str) -> Option<usize> {
    let at = start_of(document, &[list])?;
    let mut scanner = Scanner { document, at };
    scanner.expect(b'[')?;
    (document.get(scanner.at_next()) != Some(&b']')).then_some(scanner.at)
}

/// The position of one object member.
struct Member {
    /// The comma before it; `None` for the first.
    comma: Option<usize>,
    name: Range<usize>,
    value: Range<usize>,
    /// Start of the next member, or the closing brace.
    next: usize,
}

/// Iterator over the members of an object. It ends at the first syntax error.
struct Members<'a> {
    scanner: Scanner<'a>,
    comma: Option<usize>,
    ended: bool,
}

impl<'a> Members<'a> {
    fn new(document: &'a [u8], start: usize) -> Self {
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
fn is_name(key: &[u8], name: &str) -> bool {
    let inner = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
    inner == name.as_bytes()
        || memchr::memchr(b'\\', inner).is_some()
            && serde_json::from_slice::<String>(key).is_ok_and(|key| key == name)
}

/// A minimal tokenizer. It assumes valid JSON and returns `None` where the document is not.
struct Scanner<'a> {
    document: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// Enters an object and returns the position after its opening brace.
    fn object(mut self) -> Option<usize> {
        self.expect(b'{')?;
        Some(self.at)
    }

    /// Returns the start of the next token.
    fn at_next(&self) -> usize {
        let rest = &self.document[self.at..];
        self.at
            + rest
                .iter()
                .position(|byte| !byte.is_ascii_whitespace())
                .unwrap_or(rest.len())
    }

    /// Consumes and returns the next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        self.at = self.at_next();
        let byte = *self.document.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
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
    fn element(mut self, number: usize) -> Option<Range<usize>> {
        self.expect(b'[')?;
        for _ in 0..number {
            self.value()?;
            self.expect(b',')?;
        }
        self.value()
    }

    fn value(&mut self) -> Option<Range<usize>> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use strategies::json_value;

    use super::*;

    fn replaced(document: &str, path: &[&str], value: &str) -> String {
        let mut splice = Splice::new(document.as_bytes());
        splice.replace(path, value.as_bytes());
        String::from_utf8(splice.to_vec()).unwrap()
    }

    fn without(document: &str, names: &[&str]) -> String {
        let mut splice = Splice::new(document.as_bytes());
        splice.remove(&[], names);
        String::from_utf8(splice.to_vec()).unwrap()
    }

    #[test]
    fn members_are_renamed_and_replaced_in_each_element() {
        let edited = |document: &str, edit: &dyn Fn(&mut Splice<'_>)| {
            let mut splice = Splice::new(document.as_bytes());
            edit(&mut splice);
            String::from_utf8(splice.to_vec()).unwrap()
        };
        let rename = |splice: &mut Splice<'_>| _ = splice.rename("a", "b");
        assert_eq!(
            edited(r#"{"x":{"a":1}, "a" : [1]}"#, &rename),
            r#"{"x":{"a":1}, "b" : [1]}"#
        );
        for kept in [r#"{"a":1,"b":2}"#, r#"{"x":1}"#, "{}", "[]"] {
            assert_eq!(edited(kept, &rename), kept);
        }
        let replace = |splice: &mut Splice<'_>| splice.replace_in_each("l", "r", b"1", b"2");
        assert_eq!(
            edited(
                r#"{"r":1,"l":[{"r":1},{"r":11},[{"r":1}],{"x":{"r":1},"r" : 1}],"m":[{"r":1}]}"#,
                &replace
            ),
            r#"{"r":1,"l":[{"r":2},{"r":11},[{"r":1}],{"x":{"r":1},"r" : 2}],"m":[{"r":1}]}"#
        );
        for kept in [
            r#"{"l":[ ],"r":1}"#,
            r#"{"l":{"r":1}}"#,
            r#"{"l":"r"}"#,
            "{}",
        ] {
            assert_eq!(edited(kept, &replace), kept);
        }
    }

    #[test]
    fn one_value_changes_and_no_other_byte() {
        let document = "{ \"a\":{\"model\":1},\t\"model\" :\n\"x\\\"}\" ,\"n\":1.50e0 } ";
        assert_eq!(
            replaced(document, &["model"], "\"y\""),
            "{ \"a\":{\"model\":1},\t\"model\" :\n\"y\" ,\"n\":1.50e0 } "
        );
        assert_eq!(
            replaced(document, &["a", "model"], "2"),
            "{ \"a\":{\"model\":2},\t\"model\" :\n\"x\\\"}\" ,\"n\":1.50e0 } "
        );
        assert_eq!(replaced(document, &["b"], "2"), document);
        assert_eq!(replaced(document, &["n", "model"], "2"), document);
    }

    #[test]
    fn what_is_absent_is_added() {
        let set = |document: &str| {
            let mut splice = Splice::new(document.as_bytes());
            splice.set("m", b"1");
            String::from_utf8(splice.to_vec()).unwrap()
        };
        assert_eq!(set(r#"{"m": 0}"#), r#"{"m": 1}"#);
        assert_eq!(set(r#" { "n":2}"#), r#" {"m":1, "n":2}"#);
        assert_eq!(set("{ }"), r#"{"m":1 }"#);
    }

    #[test]
    fn a_path_may_lead_through_lists() {
        let document = r#"{"a":[{"b":1},[2,{"c":3}] ,4]}"#;
        assert_eq!(
            replaced(document, &["a", "0", "b"], "0"),
            r#"{"a":[{"b":0},[2,{"c":3}] ,4]}"#
        );
        assert_eq!(
            replaced(document, &["a", "1", "1", "c"], "0"),
            r#"{"a":[{"b":1},[2,{"c":0}] ,4]}"#
        );
        assert_eq!(
            replaced(document, &["a", "2"], "0"),
            r#"{"a":[{"b":1},[2,{"c":3}] ,0]}"#
        );
        for absent in [&["a", "3"][..], &["a", "b"], &["a", "0", "0"], &["0"]] {
            assert_eq!(replaced(document, absent, "0"), document);
        }
    }

    #[test]
    fn a_member_can_get_another_name() {
        let mut splice = Splice::new(br#"{"a":{ "b" : [1] ,"c":2}}"#);
        assert!(splice.replace_member(&["a"], "b", ("d", b"3")));
        assert!(!splice.replace_member(&["a"], "e", ("d", b"3")));
        assert_eq!(splice.to_vec(), br#"{"a":{ "d":3 ,"c":2}}"#);
    }

    #[test]
    fn missing_members_are_added_first() {
        let added = |document: &str| {
            let mut splice = Splice::new(document.as_bytes());
            splice.add_missing(&["a"], &[("b", "1"), ("c", "2")]);
            String::from_utf8(splice.to_vec()).unwrap()
        };
        assert_eq!(added(r#"{"a":{}}"#), r#"{"a":{"b":1,"c":2}}"#);
        assert_eq!(added(r#"{"a":{"c":0}}"#), r#"{"a":{"b":1,"c":0}}"#);
        assert_eq!(added(r#"{"a":{"b":0,"c":0}}"#), r#"{"a":{"b":0,"c":0}}"#);
        assert_eq!(added("{}"), "{}");
    }

    #[test]
    fn a_name_may_be_written_with_escapes() {
        assert_eq!(
            replaced(r#"{"mod\u0065l":1}"#, &["model"], "2"),
            r#"{"mod\u0065l":2}"#
        );
    }

    #[test]
    fn a_member_goes_with_one_comma() {
        assert_eq!(without(r#"{"a":1}"#, &["a"]), "{}");
        assert_eq!(without(r#"{ "a":1 , "b":2}"#, &["a"]), r#"{ "b":2}"#);
        assert_eq!(without(r#"{"a":1 , "b":2 }"#, &["b"]), r#"{"a":1  }"#);
        assert_eq!(
            without(r#"{"a":1,"b":2,"c":3}"#, &["b"]),
            r#"{"a":1,"c":3}"#
        );
        assert_eq!(without(r#"{"a":1,"b":2,"c":3}"#, &["b", "c"]), r#"{"a":1}"#);
        assert_eq!(without(r#"{"a":1,"b":2,"c":3}"#, &["b", "a"]), r#"{"c":3}"#);
        assert_eq!(without(r#"{"a":1,"b":2,"c":3}"#, &["c", "a"]), r#"{"b":2}"#);
        assert_eq!(without(r#"{"a":1,"b":2}"#, &["a", "b"]), "{}");
    }

    #[test]
    fn what_is_no_json_is_left_alone() {
        for document in [
            "",
            "{",
            "{\"a",
            "{\"a\\",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":\"",
            "{\"a\":[",
            "[1]",
            "{\"a\":1",
        ] {
            assert_eq!(replaced(document, &["a"], "2"), document);
            assert_eq!(without(document, &["a"]), document);
        }
    }

    #[test]
    fn pieces_are_the_document() {
        let document = br#"{"model":"a","x":[1,2],"y":3}"#;
        let mut splice = Splice::new(document);
        splice.replace(&["model"], b"\"b\"");
        splice.remove(&[], &["y"]);
        let pieces: Vec<&[u8]> = splice
            .pieces()
            .map(|piece| match piece {
                Piece::Kept(range) => &document[range],
                Piece::New(bytes) => bytes,
            })
            .collect();
        assert_eq!(pieces.concat(), splice.to_vec());
        assert_eq!(splice.to_vec(), br#"{"model":"b","x":[1,2]}"#);
    }

    proptest! {
        #[test]
        fn an_edit_is_what_a_parser_would_make_of_it(value in json_value(), name in any::<prop::sample::Index>()) {
            let Value::Object(object) = value else { return Ok(()) };
            let text = serde_json::to_string_pretty(&object).unwrap();
            let Some((key, _)) = object.iter().nth(name.index(object.len().max(1))) else { return Ok(()) };
            let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let mut expected = object.clone();
            expected.insert(key.clone(), Value::from("new"));
            prop_assert_eq!(read(&replaced(&text, &[key], "\"new\"")), Value::Object(expected));
            let mut expected = object.clone();
            expected.shift_remove(key);
            prop_assert_eq!(read(&without(&text, &[key])), Value::Object(expected));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut splice = Splice::new(&bytes);
            let found = splice.replace(&["a", "b"], b"1") | splice.remove(&[], &["a"]);
            prop_assert!(found || splice.to_vec() == bytes);
        }
    }
}
