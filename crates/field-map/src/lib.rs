#![doc = include_str!("../README.md")]

mod chat;
mod messages;
mod outline;
mod page;
mod responses;
mod table;
mod walk;

use vendor::Protocol;

pub use self::outline::Outline;
use self::outline::Part;
pub use self::page::markdown;
use self::table::Node;

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
    /// the keyword of a number or a boolean is its text; the keyword of an empty array or object is
    /// `[]` or `{}`.
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

    fn matches(&self, part: &Part<'_>) -> bool {
        let is_one_of = |keywords: &[&str]| {
            part.keyword()
                .is_some_and(|keyword| keywords.contains(&keyword))
        };
        match self.when {
            When::Given => true,
            When::Is(keywords) => is_one_of(keywords),
            When::Unless(keywords) => !is_one_of(keywords),
            When::Without(member) => part.is_object() && !part.has(member),
        }
    }

    /// Returns true if the value decides about the field, and not only that it was given.
    fn depends_on_value(&self) -> bool {
        // An error about an object names the member that holds its kind.
        let is_refused = |(_, disposition): &(_, _)| *disposition == Disposition::Refused;
        self.when != When::Given || self.dispositions.iter().any(is_refused)
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
    &table::TABLE.rows
}

/// Returns true if fields nested in `field` have rows. In that case each of its known members has
/// one.
#[must_use]
pub fn has_nested_rows(client: Protocol, field: &str) -> bool {
    table::find(client, field).is_some_and(Node::has_nested)
}

/// Fields of a single protocol that the neutral form can represent.
const SINGLE_PROTOCOL_FIELDS: [(Protocol, &str); 3] = [
    (Protocol::Chat, "seed"),
    (Protocol::Messages, "top_k"),
    (Protocol::Messages, "messages[].content[].signature"),
];
/// The members that hold the kind of an object.
const TAGS: [&str; 2] = ["type", "role"];

/// Handled by the gateway itself.
const BY_GATEWAY: Disposition = Disposition::Mapped("(by the gateway)");
/// Redundant in the upstream's protocol, or only meaningful in the reply that it came from.
const NOT_NEEDED: Disposition = Disposition::Mapped("(not needed)");
