//! Edits single values of a JSON document and leaves every other byte unchanged.

mod member_path;
pub(crate) mod members;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

pub use self::member_path::MemberPath;
use self::member_path::Step;
use self::members::{Member, Members, is_name};
use crate::Cursor;

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

    /// Replaces every value of the member `name` of the object at `path` with the JSON text `value`:
    /// parsers differ in which one of a repeated member counts. Returns true if there is any.
    pub fn replace_each(&mut self, path: &[&str], name: &str, value: &[u8]) -> bool {
        let document = self.document;
        let Some(start) = enter(document, path) else {
            return false;
        };
        let mut is_found = false;
        for member in Members::new(document, start) {
            if is_name(&document[member.name], name) {
                is_found = true;
                self.edit(member.value, value.to_vec());
            }
        }
        is_found
    }

    /// Replaces the member `name` of the object at `path` with the JSON text `value`, or adds it as
    /// the first member.
    pub fn put(&mut self, path: &[&str], name: &str, value: &str) {
        if !self.replace_each(path, name, value.as_bytes()) {
            self.add_missing(path, &[(name, value)]);
        }
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
        self.rename_in(&[], from, to);
        true
    }

    /// Renames the member `from` of the object at `path`, and keeps its value.
    pub fn rename_in(&mut self, path: &[&str], from: &str, to: &str) {
        let found = start_of(self.document, path).and_then(|at| member(self.document, at, from));
        if let Some(found) = found {
            self.edit(found.name, serde_json::Value::from(to).to_string().into());
        }
    }

    /// Replaces the value of the member `name` in each object of the top-level array `list`, where
    /// it is the JSON text `from`, with the JSON text `to`.
    pub fn replace_in_each(&mut self, list: &str, name: &str, from: &[u8], to: &[u8]) {
        let document = self.document;
        let Some(mut cursor) = enter_array(document, list) else {
            return;
        };
        while let Some(element) = cursor.pass_value() {
            let found = member(document, element.start, name);
            if let Some(found) = found.filter(|found| &document[found.value.clone()] == from) {
                self.edit(found.value, to.to_vec());
            }
            if !cursor.take(b',') {
                return;
            }
        }
    }

    /// Returns true if there is a value at `path` in the original document.
    #[must_use]
    pub fn has(&self, path: &[&str]) -> bool {
        find(self.document, path).is_some()
    }

    /// Returns the original document.
    #[must_use]
    pub fn document(&self) -> &'a [u8] {
        self.document
    }

    /// Returns the JSON text of the value at `path` in the original document.
    #[must_use]
    pub fn value(&self, path: &[&str]) -> Option<&'a [u8]> {
        find(self.document, path).map(|range| &self.document[range])
    }

    /// Returns true if the value at `path` in the original document is the JSON text `value`.
    #[must_use]
    pub fn has_value(&self, path: &[&str], value: &[u8]) -> bool {
        find(self.document, path).is_some_and(|found| &self.document[found] == value)
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
        let name = serde_json::Value::from(name);
        self.add_first(start, [format!("{name}:").as_bytes(), value].concat());
    }

    /// Adds members to the object at `path`, with these names and JSON texts, unless it has them or
    /// is absent.
    pub fn add_missing(&mut self, path: &[&str], members: &[(&str, &str)]) {
        if let Some(start) = enter(self.document, path) {
            self.add_missing_at(start, members);
        }
    }

    fn add_missing_at(&mut self, start: usize, members: &[(&str, &str)]) {
        let names: Vec<_> = Members::new(self.document, start)
            .map(|member| &self.document[member.name])
            .collect();
        let is_missing = |name: &str| !names.iter().any(|known| is_name(known, name));
        let missing = members.iter().filter(|(name, _)| is_missing(name));
        let added = missing
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect::<Vec<_>>()
            .join(",");
        if !added.is_empty() {
            self.add_first(start, added.into_bytes());
        }
    }

    /// Removes the members with the given names from the object at `path`, each with its separating
    /// comma. Call it at most once per object. Returns true if any member was found.
    pub fn remove(&mut self, path: &[&str], names: &[&str]) -> bool {
        enter(self.document, path).is_some_and(|start| self.remove_at(start, names))
    }

    fn remove_at(&mut self, start: usize, names: &[&str]) -> bool {
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
        let is_added = |range: &Range<usize>| *range == (start..start);
        let added = self.edits.iter_mut().rfind(|(range, _)| is_added(range));
        if let Some((_, members)) = added.filter(|_| found && !kept) {
            // Nothing is left behind the members that were added.
            members.pop_if(|last| *last == b',');
        }
        found
    }

    /// Calls `edit` for the JSON text of each element of the array at `path`, in order, and makes the
    /// edits that it returns. Returns true if there are any.
    pub fn edit_elements(
        &mut self,
        path: &[&str],
        mut edit: impl FnMut(&'a [u8]) -> ElementEdit,
    ) -> bool {
        let Some(range) = find(self.document, path) else {
            return false;
        };
        let mut cursor = Cursor::of_bytes(self.document, range.start);
        let is_filled = cursor.take(b'[') && cursor.peek() != Some(b']');
        let (mut left, mut is_changed) = (Vec::new(), false);
        while is_filled && let Some(element) = cursor.pass_value() {
            let element = &self.document[element];
            let edit = edit(element);
            is_changed |= edit != ElementEdit::Keep;
            left.extend(match edit {
                ElementEdit::Keep => Some(Cow::Borrowed(element)),
                ElementEdit::Replace(text) => Some(Cow::Owned(text)),
                ElementEdit::Remove => None,
            });
            if !cursor.take(b',') {
                break;
            }
        }
        if is_changed {
            self.edit(range, [b"[", &*left.join(&b','), b"]"].concat());
        }
        is_changed
    }

    /// Returns the names of the top-level members of the original document.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let members = Members::of_object(self.document, 0).into_iter().flatten();
        let name = |member: Member| serde_json::from_slice(&self.document[member.name]).ok();
        members.filter_map(name).collect()
    }

    /// Calls `edit` for each object that contains the member of `path`, or might, and makes the edit
    /// that it returns. Objects are visited in document order. Returns true if there was an edit.
    pub fn edit_each(
        &mut self,
        path: &MemberPath,
        mut edit: impl FnMut(&ObjectView<'a>) -> Option<MemberEdit>,
    ) -> bool {
        let mut starts = Vec::new();
        collect_objects(self.document, 0, &path.outer, &mut starts);
        let mut is_edited = false;
        for start in starts {
            let object = ObjectView {
                document: self.document,
                start,
            };
            let Some(edit) = edit(&object) else { continue };
            is_edited = true;
            let found = object.member(path.name());
            match (edit, found) {
                (MemberEdit::Remove, _) => {
                    self.remove_at(start, &[path.name()]);
                }
                (MemberEdit::Rename(to), Some(member)) => {
                    let to = serde_json::Value::from(to).to_string();
                    self.edit(member.name, to.into_bytes());
                }
                (MemberEdit::Set(value), Some(member)) => self.edit(member.value, value.into()),
                (MemberEdit::Set(value), None) => {
                    self.add_missing_at(start, &[(path.name(), &value)]);
                }
                (MemberEdit::Rename(_), None) => {}
            }
        }
        is_edited
    }

    /// Returns true if there are no edits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Returns the range of the value at `path` in the original document.
    pub(crate) fn range_of(&self, path: &[&str]) -> Option<Range<usize>> {
        find(self.document, path)
    }

    /// Returns the replaced ranges and their new contents, in document order.
    pub(crate) fn edits(&self) -> &[(Range<usize>, Vec<u8>)] {
        &self.edits
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

    /// Returns the edited document in non-empty pieces, so that large parts need not be copied.
    #[must_use]
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let mut pieces = Vec::with_capacity(2 * self.edits.len() + 1);
        let mut from = 0;
        let keep = |pieces: &mut Vec<_>, range: Range<usize>| {
            if !range.is_empty() {
                pieces.push(Piece::Kept(range));
            }
        };
        for (range, value) in &self.edits {
            keep(&mut pieces, from..range.start);
            if !value.is_empty() {
                pieces.push(Piece::New(value));
            }
            from = range.end;
        }
        keep(&mut pieces, from..self.document.len());
        pieces
    }

    /// Adds members before the others of the object whose opening brace ends at `start`.
    fn add_first(&mut self, start: usize, mut members: Vec<u8>) {
        let is_removed = |member: &Member| {
            let covers = |range: &Range<usize>| {
                range.start <= member.name.start && member.value.end <= range.end
            };
            let mut removed = self.edits.iter().filter(|(_, new)| new.is_empty());
            removed.any(|(range, _)| covers(range))
        };
        let has_added = self.edits.iter().any(|(range, _)| *range == (start..start));
        let has_kept = || Members::new(self.document, start).any(|member| !is_removed(&member));
        if has_added || has_kept() {
            members.push(b',');
        }
        self.edit(start..start, members);
    }

    pub(crate) fn edit(&mut self, range: Range<usize>, value: Vec<u8>) {
        // Members that are added at a position come before those that are removed from there on.
        let place = |range: &Range<usize>| (range.start, range.end);
        let is_before = |(other, _): &(Range<usize>, _)| place(other) < place(&range);
        let at = match self.edits.last() {
            Some(last) if !is_before(last) => self.edits.partition_point(is_before),
            _ => self.edits.len(),
        };
        // The edits are in order and do not overlap, so that only neighbours can overlap this one.
        let neighbours = &self.edits[at.saturating_sub(1)..self.edits.len().min(at + 1)];
        let overlaps = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        if !neighbours.iter().any(|(other, _)| overlaps(other)) {
            self.edits.insert(at, (range, value));
        }
    }
}

/// An object of a document that is edited.
#[derive(Clone, Copy, Debug)]
pub struct ObjectView<'a> {
    document: &'a [u8],
    /// The position after the opening brace.
    start: usize,
}

impl<'a> ObjectView<'a> {
    /// Returns the JSON text of its member `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let member = self.member(name)?;
        Some(&self.document[member.value])
    }

    fn member(&self, name: &str) -> Option<Member> {
        let matches = |member: &Member| is_name(&self.document[member.name.clone()], name);
        Members::new(self.document, self.start).find(matches)
    }
}

/// An edit of one member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberEdit {
    /// Leaves it out.
    Remove,
    /// Gives it this name.
    Rename(String),
    /// Gives it this value, a JSON text, or adds it with the value.
    Set(String),
}

/// An edit of one element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementEdit {
    /// Leaves it as it is.
    Keep,
    /// Leaves it out.
    Remove,
    /// Writes this JSON text in its place.
    Replace(Vec<u8>),
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
    let mut cursor = Cursor::of_bytes(document, at);
    if cursor.take(b'[') {
        return element(cursor, last.parse().ok()?);
    }
    member(document, at, last).map(|member| member.value)
}

/// Returns the range of an element of the array whose bracket is behind the cursor.
fn element(mut cursor: Cursor<'_>, number: usize) -> Option<Range<usize>> {
    for _ in 0..number {
        cursor.pass_value()?;
        cursor.expect(b',')?;
    }
    cursor.pass_value()
}

/// Returns the member of the object at a position.
fn member(document: &[u8], at: usize, name: &str) -> Option<Member> {
    let matches = |member: &Member| is_name(&document[member.name.clone()], name);
    Members::of_object(document, at)?.find(matches)
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
    let mut cursor = Cursor::of_bytes(document, start_of(document, path)?);
    cursor.expect(b'{')?;
    Some(cursor.at())
}

/// Adds the position after the opening brace of each object that the steps lead to from the value at
/// `at`.
fn collect_objects(document: &[u8], at: usize, steps: &[Step], starts: &mut Vec<usize>) {
    let mut cursor = Cursor::of_bytes(document, at);
    if cursor.expect(b'{').is_none() {
        return;
    }
    let start = cursor.at();
    let Some((step, rest)) = steps.split_first() else {
        return starts.push(start);
    };
    let object = ObjectView { document, start };
    let Some(value) = object.member(&step.name).map(|member| member.value) else {
        return;
    };
    if !step.each {
        return collect_objects(document, value.start, rest, starts);
    }
    let mut cursor = Cursor::of_bytes(document, value.start);
    if cursor.expect(b'[').is_none() || cursor.peek() == Some(b']') {
        return;
    }
    while let Some(element) = cursor.pass_value() {
        collect_objects(document, element.start, rest, starts);
        if !cursor.take(b',') {
            return;
        }
    }
}

/// Returns a cursor after the opening bracket of the top-level array `list`, unless it is empty.
fn enter_array<'a>(document: &'a [u8], list: &str) -> Option<Cursor<'a>> {
    let mut cursor = Cursor::of_bytes(document, start_of(document, &[list])?);
    cursor.expect(b'[')?;
    (cursor.peek() != Some(b']')).then_some(cursor)
}
