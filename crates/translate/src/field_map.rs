//! Maps each field of a client's request to its translation for an upstream of another protocol.
//!
//! One table serves the code, the page `LEDGER.md` and the tests. A request to an upstream of the
//! same protocol is not translated and is not in the table. Fields that are dropped because of
//! their value rather than their name are reported by
//! [`encode::request`](crate::outbound::encode::request).

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
pub(crate) use self::responses::REQUIRED_ITEMS;
use crate::outbound::Protocol;

/// The treatment of a field in a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Translated to this field, or handled by the gateway itself.
    Mapped(&'static str),
    /// Left out and reported to the client.
    Dropped,
    /// The request is refused, because its meaning would change without the field.
    Refused,
}

/// The values of a field that a row applies to. `null` counts as absent and never matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Any value.
    Given,
    /// One of these keywords. The keyword of an object is its `type`, else its `role`, else empty;
    /// that of a number or a boolean is its text; that of an empty array or object is `[]` or `{}`.
    Is(&'static [&'static str]),
    /// Any value except these keywords, which are equivalent to leaving the field out.
    Unless(&'static [&'static str]),
    /// An object without this member.
    Without(&'static str),
}

/// The treatment of one field of one client protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The client's protocol.
    pub client: Protocol,
    /// The path of the field, such as `tools[].strict`. Nested fields are treated alike unless they
    /// have rows.
    pub field: &'static str,
    /// The values that the row applies to. Of several rows for a field the first match counts.
    pub when: When,
    /// The disposition for each of the two other protocols.
    pub dispositions: [(Protocol, Disposition); 2],
}

impl Row {
    /// Returns the disposition of the field for `upstream`.
    ///
    /// For the client's own protocol it applies to a request that is decoded and encoded again
    /// instead of being relayed: apart from a few, a field without a counterpart in either other
    /// protocol is not in the neutral form.
    #[must_use]
    pub fn disposition(&self, upstream: Protocol) -> Disposition {
        let listed = self
            .dispositions
            .iter()
            .find(|(protocol, _)| *protocol == upstream);
        listed.map_or_else(|| self.same_protocol(), |(_, disposition)| *disposition)
    }

    fn same_protocol(&self) -> Disposition {
        let [(_, one), (_, other)] = self.dispositions;
        match (one, other) {
            _ if SINGLE_PROTOCOL_FIELDS.contains(&(self.client, self.field)) => {
                Disposition::Mapped("the same")
            }
            (Disposition::Refused, Disposition::Refused) => Disposition::Refused,
            (Disposition::Mapped(_), _) | (_, Disposition::Mapped(_)) => {
                Disposition::Mapped("the same")
            }
            _ => Disposition::Dropped,
        }
    }

    fn matches(&self, value: &Value) -> bool {
        match self.when {
            When::Given => true,
            When::Is(keywords) => {
                keyword(value).is_some_and(|keyword| keywords.contains(&&*keyword))
            }
            When::Unless(keywords) => {
                !keyword(value).is_some_and(|keyword| keywords.contains(&&*keyword))
            }
            When::Without(member) => value
                .as_object()
                .is_some_and(|members| !has(members, member)),
        }
    }

    /// A row for any value, with the dispositions of the other protocols in the order of
    /// [`Protocol::ALL`].
    const fn new(
        client: Protocol,
        field: &'static str,
        first: Disposition,
        second: Disposition,
    ) -> Self {
        use Protocol::{Chat, Messages, Responses};
        let (one, other) = match client {
            Responses => (Chat, Messages),
            Chat => (Responses, Messages),
            Messages => (Responses, Chat),
        };
        Self {
            client,
            field,
            when: When::Given,
            dispositions: [(one, first), (other, second)],
        }
    }

    const fn is(self, keywords: &'static [&'static str]) -> Self {
        Self {
            when: When::Is(keywords),
            ..self
        }
    }

    const fn unless(self, keywords: &'static [&'static str]) -> Self {
        Self {
            when: When::Unless(keywords),
            ..self
        }
    }

    const fn without(self, member: &'static str) -> Self {
        Self {
            when: When::Without(member),
            ..self
        }
    }
}

/// Returns the complete table, by client protocol and in the field order of each request.
#[must_use]
pub fn rows() -> &'static [Row] {
    &TABLE.rows
}

/// Returns true if fields nested in `field` have rows. In that case each of its known members has
/// one.
#[must_use]
pub fn has_nested_rows(client: Protocol, field: &str) -> bool {
    TABLE.with_nested.contains(&(client, field))
}

/// Returns the names of the fields that a translation of `request` for `upstream` drops, each once.
///
/// Unknown fields are dropped too; the first 16 of them with a plain name are reported.
///
/// # Errors
/// 400 `unsupported_value` for the first field that is refused.
pub fn dropped_fields(
    client: Protocol,
    upstream: Protocol,
    request: &Value,
) -> Result<Vec<String>, ApiError> {
    let mut walk = Walk {
        client,
        upstream,
        field: String::new(),
        dropped: Vec::new(),
        unknown: 0,
    };
    walk.children(request, &Path::ROOT)?;
    Ok(walk.dropped)
}

/// A walk through a request. `field` is the path of the current value, as in the table.
struct Walk {
    client: Protocol,
    upstream: Protocol,
    field: String,
    dropped: Vec<String>,
    /// The number of dropped fields that are not in the table.
    unknown: usize,
}

impl Walk {
    fn value(&mut self, value: &Value, path: &Path<'_>) -> Result<(), ApiError> {
        if value.is_null() {
            return Ok(());
        }
        match self.disposition(value) {
            Some(Disposition::Refused) => Err(refusal(value, path)),
            Some(Disposition::Dropped) => {
                self.drop();
                Ok(())
            }
            Some(Disposition::Mapped(_)) | None => self.children(value, path),
        }
    }

    fn children(&mut self, value: &Value, path: &Path<'_>) -> Result<(), ApiError> {
        match value {
            Value::Array(entries) => self.descend(["[", "]"], |walk| {
                let mut entries = entries.iter().enumerate();
                entries.try_for_each(|(i, entry)| walk.value(entry, &path.index(i)))
            }),
            Value::Object(members) if self.has_nested_rows() => members
                .iter()
                .try_for_each(|(name, member)| self.member(name, member, &path.key(name))),
            _ => Ok(()),
        }
    }

    fn member(&mut self, name: &str, value: &Value, path: &Path<'_>) -> Result<(), ApiError> {
        // Other names are never field names, and could not be put into a header.
        if !is_plain(name) {
            return Ok(());
        }
        let dot = if self.field.is_empty() { "" } else { "." };
        self.descend([dot, name], |walk| {
            if walk.is_known() {
                return walk.value(value, path);
            }
            if !value.is_null() && walk.unknown < MAX_UNKNOWN && walk.drop() {
                walk.unknown += 1;
            }
            Ok(())
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

    fn disposition(&self, value: &Value) -> Option<Disposition> {
        let rows = TABLE.by_field.get(&(self.client, self.field.as_str()))?;
        Some(
            rows.iter()
                .find(|row| row.matches(value))?
                .disposition(self.upstream),
        )
    }

    fn has_nested_rows(&self) -> bool {
        self.field.is_empty() || has_nested_rows(self.client, &self.field)
    }

    fn is_known(&self) -> bool {
        self.has_nested_rows()
            || TABLE
                .by_field
                .contains_key(&(self.client, self.field.as_str()))
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

fn refusal(value: &Value, path: &Path<'_>) -> ApiError {
    // For an object, the unsupported part is its kind.
    let kind = value
        .as_object()
        .and_then(|members| TAGS.into_iter().find(|tag| members.contains_key(*tag)));
    let param = kind.map_or_else(|| path.to_string(), |tag| path.key(tag).to_string());
    let sentence = format!("'{param}' as it was sent is not supported by this model.");
    ApiError::new(
        ErrorKind::InvalidRequest,
        Code::UnsupportedValue.as_str(),
        sentence,
    )
    .with_param(param)
}

/// Returns the keyword that rows match a value by; `None` for an array with entries.
fn keyword(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        // Normalized, because the same number may be written as 1 and as 1.0.
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

/// Returns true if `name` has the form of a field name.
fn is_plain(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The rows, with lookup indices.
struct Table {
    rows: Vec<Row>,
    by_field: HashMap<(Protocol, &'static str), Vec<Row>>,
    /// The fields that have rows for nested fields.
    with_nested: HashSet<(Protocol, &'static str)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let rows = [responses::ROWS, chat::ROWS, messages::ROWS].concat();
    let mut by_field = HashMap::<_, Vec<_>>::new();
    let mut with_nested = HashSet::new();
    for row in &rows {
        by_field
            .entry((row.client, row.field))
            .or_default()
            .push(*row);
        let parents = row
            .field
            .match_indices(['.', '['])
            .map(|(end, _)| &row.field[..end]);
        with_nested.extend(parents.map(|parent| (row.client, parent)));
    }
    Table {
        rows,
        by_field,
        with_nested,
    }
});

/// Fields of a single protocol that the neutral form can represent.
const SINGLE_PROTOCOL_FIELDS: [(Protocol, &str); 3] = [
    (Protocol::Chat, "seed"),
    (Protocol::Messages, "top_k"),
    (Protocol::Messages, "messages[].content[].signature"),
];
/// The members that hold the kind of an object.
const TAGS: [&str; 2] = ["type", "role"];
const MAX_NAME: usize = 64;
/// The number of unknown fields that are reported.
const MAX_UNKNOWN: usize = 16;

/// Handled by the gateway itself.
const BY_GATEWAY: Disposition = Disposition::Mapped("(by the gateway)");
/// Redundant in the upstream's protocol, or only meaningful in the reply that it came from.
const NOT_NEEDED: Disposition = Disposition::Mapped("(not needed)");
