//! The ledger as a page for people.

use std::fmt::Write;

use super::{Disposition, Row, When, rows};
use crate::outbound::Protocol;

/// The ledger as a page in Markdown.
#[must_use]
pub fn markdown() -> String {
    Protocol::ALL.into_iter().fold(HEAD.to_owned(), |page, client| page + &section(client))
}

fn section(client: Protocol) -> String {
    let mut rows = rows().iter().filter(|row| row.client == client).peekable();
    let Some([(one, _), (other, _)]) = rows.peek().map(|row| row.towards) else { return String::new() };
    let (name, one, other) = (client.name(), one.name(), other.name());
    let mut page = format!("\n## {name}\n\n| Field | When | To {one} | To {other} |\n|---|---|---|---|\n");
    for Row { field, when, towards: [(_, one), (_, other)], .. } in rows {
        // Writing to a text cannot fail.
        let _ = writeln!(page, "| `{field}` | {} | {} | {} |", condition(*when), fate(*one), fate(*other));
    }
    page
}

fn condition(when: When) -> String {
    match when {
        When::Given => String::new(),
        When::Is(words) => list(words),
        When::Unless(words) => format!("not {}", list(words)),
        When::Without(member) => format!("without `{member}`"),
    }
}

fn list(words: &[&str]) -> String {
    let words = words.iter().map(|word| if word.is_empty() { "nothing".to_owned() } else { format!("`{word}`") });
    words.collect::<Vec<_>>().join(", ")
}

fn fate(fate: Disposition) -> String {
    match fate {
        Disposition::Mapped(to) => to.to_owned(),
        Disposition::Dropped => "**dropped**".to_owned(),
        Disposition::Refused => "**refused**".to_owned(),
    }
}

const HEAD: &str = "\
# What translation loses

A request goes to an upstream of its own protocol as it came. To an upstream of another protocol it is translated, and
this is what becomes of each field on the way. It is written by a test from the table in `src/ledger`.

*Dropped* fields are named in the header `x-sluicegate-dropped` of the reply; a *refused* one is answered with 400
`unsupported_value`. `null` is as good as absent. A field that is in none of the tables is dropped. What is inside a
field goes the way of the field, unless it has a row of its own; of several rows for a field the first that fits counts.

Some things are lost for their value, not for their name. `temperature` above 1 is lowered for Messages; it, `top_p` and
`top_k` are left out where the upstream's version refuses them. Earlier thoughts reach Chat Completions beside tool
calls, and Messages with their seal, else they are left out (`reasoning`). Instructions in the midst of a conversation
go to the front for Messages (`system_position`). Documents that are neither PDF nor text, arguments that are no JSON
object and a conversation that begins with the model are refused for Messages.
";
