//! Walks through a request, and finds the fields that a translation drops or refuses.

use std::borrow::Cow;

use serde_json::Value;
use vendor::Protocol;
use wire::{ApiError, Path};

use super::outline::{Outline, Part};
use super::table::{self, Node};
use super::{Disposition, TAGS};

impl Outline<'_> {
    /// Returns the names of the fields that a translation for `upstream` drops, each once.
    ///
    /// Unknown fields are dropped too; the first 16 of them with a plain name are reported.
    ///
    /// # Errors
    /// 400 `unsupported_value` for the first field that is refused.
    pub fn dropped_fields(&self, upstream: Protocol) -> Result<Vec<String>, ApiError> {
        let mut walk = Walk {
            upstream,
            field: String::new(),
            is_history: false,
            dropped: Vec::new(),
            unknown: 0,
        };
        if let Some(root) = table::root(self.client) {
            walk.nested(root, &self.root, &Path::ROOT)?;
        }
        Ok(walk.dropped)
    }
}

/// A walk through a request. `field` is the path of the current value, as in the table.
struct Walk {
    upstream: Protocol,
    field: String,
    /// True within an earlier message, which is no reason to refuse a request.
    is_history: bool,
    dropped: Vec<String>,
    /// The number of dropped fields that are not in the table.
    unknown: usize,
}

impl Walk {
    fn value(&mut self, node: &Node, part: &Part<'_>, path: &Path<'_>) -> Result<(), ApiError> {
        if matches!(part, Part::Null) {
            return Ok(());
        }
        let row = node.rows.iter().find(|row| row.matches(part));
        match row.map(|row| row.disposition(self.upstream)) {
            Some(Disposition::Refused) if !self.is_history => Err(refusal(part, path)),
            Some(Disposition::Dropped | Disposition::Refused) => {
                self.drop();
                Ok(())
            }
            Some(Disposition::Mapped(_)) | None => self.nested(node, part, path),
        }
    }

    fn nested(&mut self, node: &Node, part: &Part<'_>, path: &Path<'_>) -> Result<(), ApiError> {
        match (part, &node.entry) {
            (Part::Array(messages), Some(node)) if CONVERSATIONS.contains(&&*self.field) => self
                .descend(["[", "]"], |walk| {
                    let last = messages.iter().rposition(is_of_user);
                    let mut messages = messages.iter().enumerate();
                    let walked = messages.try_for_each(|(i, message)| {
                        walk.is_history = last != Some(i) || !is_message_of_user(message);
                        walk.value(node, message, &path.index(i))
                    });
                    walk.is_history = false;
                    walked
                }),
            (Part::Array(entries), Some(node)) => self.descend(["[", "]"], |walk| {
                let mut entries = entries.iter().enumerate();
                entries.try_for_each(|(i, entry)| walk.value(node, entry, &path.index(i)))
            }),
            (Part::Object(members), _) if node.has_nested() => members
                .iter()
                .try_for_each(|(name, member)| self.member(node, name, member, &path.key(name))),
            _ => Ok(()),
        }
    }

    fn member(
        &mut self,
        node: &Node,
        name: &str,
        part: &Part<'_>,
        path: &Path<'_>,
    ) -> Result<(), ApiError> {
        // Other names are never field names, and could not be put into a header.
        if !is_plain(name) {
            return Ok(());
        }
        let dot = if self.field.is_empty() { "" } else { "." };
        self.descend([dot, name], |walk| match node.member(name) {
            Some(node) => walk.value(node, part, path),
            None => {
                walk.drop_unknown(part);
                Ok(())
            }
        })
    }

    /// Calls `visit` with `field` extended by `segment`.
    fn descend<T>(&mut self, segment: [&str; 2], visit: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.field.len();
        self.field.extend(segment);
        let result = visit(self);
        self.field.truncate(length);
        result
    }

    /// Records that a field without rows is dropped.
    fn drop_unknown(&mut self, part: &Part<'_>) {
        if !matches!(part, Part::Null) && self.unknown < MAX_UNKNOWN && self.drop() {
            self.unknown += 1;
        }
    }

    /// Records that the field is dropped. Returns false if it was recorded before.
    fn drop(&mut self) -> bool {
        let new = !self.dropped.contains(&self.field);
        if new {
            self.dropped.push(self.field.clone());
        }
        new
    }
}

fn is_message_of_user(message: &Part<'_>) -> bool {
    message.word("role") == Some("user")
}

/// Returns true for a message of the user and for the result of a call.
fn is_of_user(message: &Part<'_>) -> bool {
    let is_output = |kind: &str| kind.ends_with("_output");
    is_message_of_user(message)
        || matches!(message.word("role"), Some("tool" | "function"))
        || message.word("type").is_some_and(is_output)
}

fn refusal(part: &Part<'_>, path: &Path<'_>) -> ApiError {
    // For an object, the unsupported part is its kind.
    let kind = TAGS
        .into_iter()
        .find_map(|tag| Some((tag, part.word(tag)?)));
    match (kind, part) {
        (Some((tag, kind)), _) => {
            ApiError::unsupported_value(&path.key(tag).to_string(), &format!("'{kind}'"))
        }
        (None, Part::Keyword(word)) => ApiError::unsupported_value(&path.to_string(), &shown(word)),
        (None, _) => ApiError::unsupported_value(&path.to_string(), "the given value"),
    }
}

/// Returns a value as it is shown in a sentence: a text in quotes.
fn shown(word: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Value>(word) {
        Ok(Value::Bool(_) | Value::Number(_)) => word.into(),
        _ => format!("'{word}'").into(),
    }
}

/// Returns true if `name` has the form of a field name.
fn is_plain(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

const MAX_NAME: usize = 64;
/// The number of unknown fields that are reported.
const MAX_UNKNOWN: usize = 16;
/// The lists of messages.
const CONVERSATIONS: [&str; 2] = ["messages", "input"];
