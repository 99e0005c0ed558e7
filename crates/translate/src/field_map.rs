//! What becomes of each field of a client's request on its way to an upstream of another protocol
//! (wire-reference §9.1).
//!
//! One table says it for the code, for the page that people read and for the tests. A request to an upstream of the
//! same protocol is not translated, and not in the table. What is lost for a value rather than for a field's name is
//! told by [`encode::request`](crate::outbound::encode::request).

mod chat;
mod messages;
mod page;
mod responses;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde_json::Value;
use wire::{ApiError, Code, ErrorKind, Path};

pub use self::page::markdown;
pub(crate) use self::responses::NEEDED;
use crate::outbound::Protocol;

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It is said as this, or done by the gateway itself.
    Mapped(&'static str),
    /// It is left out, and the client is told.
    Dropped,
    /// The request is refused: without the field it would not mean the same.
    Refused,
}

/// Which values of a field a row is about. `null` is never one: it means absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Any.
    Given,
    /// One of these words. The word of an object is its `type`, or its `role`, or empty; the word of a number or a
    /// boolean is how it is written; an empty array or object is `[]` or `{}`.
    Is(&'static [&'static str]),
    /// Any but these words, which mean as much as nothing.
    Unless(&'static [&'static str]),
    /// An object without this member.
    Without(&'static str),
}

/// What becomes of one field of one client protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The protocol that the client speaks.
    pub client: Protocol,
    /// The field, as `tools[].strict`. What is inside it goes the same way, unless there are rows for that.
    pub field: &'static str,
    /// For which of its values. Of several rows for a field the first that fits is the one.
    pub when: When,
    /// Its fate towards the two other protocols.
    pub towards: [(Protocol, Disposition); 2],
}

impl Row {
    /// The fate of the field towards `upstream`. Towards the client's own protocol it is that of a request which is not
    /// relayed but said anew: what has no place in either of the others has no neutral word, but for a few.
    #[must_use]
    pub fn fate(&self, upstream: Protocol) -> Disposition {
        let stated = self.towards.iter().find(|(protocol, _)| *protocol == upstream);
        stated.map_or_else(|| self.said_anew(), |(_, fate)| *fate)
    }

    fn said_anew(&self) -> Disposition {
        let [(_, one), (_, other)] = self.towards;
        match (one, other) {
            _ if OWN_WORDS.contains(&(self.client, self.field)) => Disposition::Mapped("the same"),
            (Disposition::Refused, Disposition::Refused) => Disposition::Refused,
            (Disposition::Mapped(_), _) | (_, Disposition::Mapped(_)) => Disposition::Mapped("the same"),
            _ => Disposition::Dropped,
        }
    }

    fn fits(&self, value: &Value) -> bool {
        match self.when {
            When::Given => true,
            When::Is(words) => word(value).is_some_and(|word| words.contains(&&*word)),
            When::Unless(words) => !word(value).is_some_and(|word| words.contains(&&*word)),
            When::Without(member) => value.as_object().is_some_and(|members| !has(members, member)),
        }
    }

    /// A row for any value; towards the other protocols in the order of [`Protocol::ALL`].
    const fn new(client: Protocol, field: &'static str, first: Disposition, second: Disposition) -> Self {
        use Protocol::{Chat, Messages, Responses};
        let (one, other) = match client {
            Responses => (Chat, Messages),
            Chat => (Responses, Messages),
            Messages => (Responses, Chat),
        };
        Self { client, field, when: When::Given, towards: [(one, first), (other, second)] }
    }

    const fn is(self, words: &'static [&'static str]) -> Self {
        Self { when: When::Is(words), ..self }
    }

    const fn unless(self, words: &'static [&'static str]) -> Self {
        Self { when: When::Unless(words), ..self }
    }

    const fn without(self, member: &'static str) -> Self {
        Self { when: When::Without(member), ..self }
    }
}

/// The whole table: by client protocol, in the order of its documents.
#[must_use]
pub fn rows() -> &'static [Row] {
    &TABLE.rows
}

/// Whether there are rows for what is inside the field, each of which then has one.
#[must_use]
pub fn is_open(client: Protocol, field: &str) -> bool {
    TABLE.open.contains(&(client, field))
}

/// What of a client's request is lost towards `upstream`: the names of the fields that are dropped, each once.
///
/// A field that is in no table is dropped too, and told when it has a plain name and is among the first 16.
///
/// # Errors
/// 400 `unsupported_value` for the first field that is refused.
pub fn losses(client: Protocol, upstream: Protocol, request: &Value) -> Result<Vec<String>, ApiError> {
    let mut walk = Walk { client, upstream, field: String::new(), dropped: Vec::new(), unknown: 0 };
    walk.inside(request, &Path::ROOT)?;
    Ok(walk.dropped)
}

/// A walk through a request. `field` is where it is, in the words of the table.
struct Walk {
    client: Protocol,
    upstream: Protocol,
    field: String,
    dropped: Vec<String>,
    /// How many of the dropped are in no table.
    unknown: usize,
}

impl Walk {
    fn value(&mut self, value: &Value, path: &Path<'_>) -> Result<(), ApiError> {
        if value.is_null() {
            return Ok(());
        }
        match self.fate(value) {
            Some(Disposition::Refused) => Err(refusal(value, path)),
            Some(Disposition::Dropped) => {
                self.drop();
                Ok(())
            }
            Some(Disposition::Mapped(_)) | None => self.inside(value, path),
        }
    }

    fn inside(&mut self, value: &Value, path: &Path<'_>) -> Result<(), ApiError> {
        match value {
            Value::Array(entries) => self.step(["[", "]"], |walk| {
                let mut entries = entries.iter().enumerate();
                entries.try_for_each(|(i, entry)| walk.value(entry, &path.index(i)))
            }),
            Value::Object(members) if self.is_open() => {
                members.iter().try_for_each(|(name, member)| self.member(name, member, &path.key(name)))
            }
            _ => Ok(()),
        }
    }

    fn member(&mut self, name: &str, value: &Value, path: &Path<'_>) -> Result<(), ApiError> {
        // Others are no field's name, and no header's word.
        if !is_plain(name) {
            return Ok(());
        }
        let dot = if self.field.is_empty() { "" } else { "." };
        self.step([dot, name], |walk| {
            if walk.is_known() {
                return walk.value(value, path);
            }
            if !value.is_null() && walk.unknown < MAX_UNKNOWN && walk.drop() {
                walk.unknown += 1;
            }
            Ok(())
        })
    }

    /// Does something one step further down.
    fn step<T>(&mut self, step: [&str; 2], work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.field.len();
        self.field.extend(step);
        let done = work(self);
        self.field.truncate(length);
        done
    }

    fn fate(&self, value: &Value) -> Option<Disposition> {
        let rows = TABLE.of.get(&(self.client, self.field.as_str()))?;
        Some(rows.iter().find(|row| row.fits(value))?.fate(self.upstream))
    }

    fn is_open(&self) -> bool {
        self.field.is_empty() || is_open(self.client, &self.field)
    }

    fn is_known(&self) -> bool {
        self.is_open() || TABLE.of.contains_key(&(self.client, self.field.as_str()))
    }

    /// Tells that the field is lost, when that was not told.
    fn drop(&mut self) -> bool {
        let new = !self.dropped.contains(&self.field);
        if new {
            self.dropped.push(self.field.clone());
        }
        new
    }
}

fn refusal(value: &Value, path: &Path<'_>) -> ApiError {
    // Of an object it is the kind that is not supported.
    let kind = value.as_object().and_then(|members| TAGS.into_iter().find(|tag| members.contains_key(*tag)));
    let param = kind.map_or_else(|| path.to_string(), |tag| path.key(tag).to_string());
    let sentence = format!("'{param}' as it was sent is not supported by this model.");
    ApiError::new(ErrorKind::InvalidRequest, Code::UnsupportedValue.as_str(), sentence).with_param(param)
}

/// The word by which a row knows a value; nothing for an array of something.
fn word(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        // The same number may be written as 1 and as 1.0.
        Value::Number(number) => number.as_f64().map(|number| Cow::Owned(number.to_string())),
        Value::Bool(_) => Some(Cow::Owned(value.to_string())),
        Value::Array(entries) => entries.is_empty().then_some(Cow::Borrowed("[]")),
        Value::Object(members) if members.is_empty() => Some(Cow::Borrowed("{}")),
        Value::Object(members) => {
            let kind = TAGS.into_iter().find_map(|tag| members.get(tag)?.as_str());
            Some(Cow::Borrowed(kind.unwrap_or_default()))
        }
        Value::Null => None,
    }
}

fn has(members: &serde_json::Map<String, Value>, name: &str) -> bool {
    members.get(name).is_some_and(|member| !member.is_null())
}

/// Whether a name is one as the protocols have them.
fn is_plain(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The rows, and where to find them.
struct Table {
    rows: Vec<Row>,
    of: HashMap<(Protocol, &'static str), Vec<Row>>,
    /// The fields inside of which there are rows.
    open: HashSet<(Protocol, &'static str)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let rows = [responses::ROWS, chat::ROWS, messages::ROWS].concat();
    let (mut of, mut open) = (HashMap::<_, Vec<_>>::new(), HashSet::new());
    for row in &rows {
        of.entry((row.client, row.field)).or_default().push(*row);
        let steps = row.field.match_indices(['.', '[']).map(|(end, _)| &row.field[..end]);
        open.extend(steps.map(|above| (row.client, above)));
    }
    Table { rows, of, open }
});

/// Fields with a neutral word that only their own protocol has.
const OWN_WORDS: [(Protocol, &str); 3] =
    [(Protocol::Chat, "seed"), (Protocol::Messages, "top_k"), (Protocol::Messages, "messages[].content[].signature")];
/// The members that tell the kind of an object.
const TAGS: [&str; 2] = ["type", "role"];
const MAX_NAME: usize = 64;
/// How many fields that are in no table are told.
const MAX_UNKNOWN: usize = 16;

/// What the gateway does itself.
const HERE: Disposition = Disposition::Mapped("(by the gateway)");
/// What is only about the reply that it came in.
const SPENT: Disposition = Disposition::Mapped("(not needed)");
