//! Renders the table as the page `LEDGER.md`.

use std::fmt::Write;

use vendor::Protocol;

use super::{Disposition, Row, When, rows};

/// Renders the table as Markdown.
#[must_use]
pub fn markdown() -> String {
    Protocol::ALL
        .into_iter()
        .fold(HEAD.to_owned(), |page, client| page + &section(client))
}

fn section(client: Protocol) -> String {
    let mut rows = rows().iter().filter(|row| row.client == client).peekable();
    let Some([(one, _), (other, _)]) = rows.peek().map(|row| row.dispositions) else {
        return String::new();
    };
    let head = format!("| Field | When | To {one} | To {other} |");
    let mut page = format!("\n## {client}\n\n{head}\n|---|---|---|---|\n");
    for Row {
        field,
        when,
        dispositions: [(_, one), (_, other)],
        ..
    } in rows
    {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            page,
            "| `{field}` | {} | {} | {} |",
            condition(*when),
            disposition(*one),
            disposition(*other)
        );
    }
    page
}

fn condition(when: When) -> String {
    match when {
        When::Given => String::new(),
        When::Is(keywords) => list(keywords),
        When::Unless(keywords) => format!("not {}", list(keywords)),
        When::Without(member) => format!("without `{member}`"),
    }
}

fn list(keywords: &[&str]) -> String {
    let quoted = |keyword: &&str| {
        if keyword.is_empty() {
            "nothing".to_owned()
        } else {
            format!("`{keyword}`")
        }
    };
    keywords.iter().map(quoted).collect::<Vec<_>>().join(", ")
}

fn disposition(disposition: Disposition) -> String {
    match disposition {
        Disposition::Mapped(to) => to.to_owned(),
        Disposition::Dropped => "**dropped**".to_owned(),
        Disposition::Refused => "**refused**".to_owned(),
    }
}

const HEAD: &str = "\
# Fields that translation drops or refuses

A request to an upstream of the client's protocol is relayed unchanged. For an upstream of another protocol it is
translated; this page lists the translation of each field. A test generates it from the table in `src/field_map`.

*Dropped* fields are named in the response header `x-sluicegate-dropped`; a *refused* field is answered with 400
`unsupported_value`. `null` counts as absent. A field that is in none of the tables is dropped. Nested fields are
treated like the field that contains them unless they have a row; of several rows for a field the first match counts.

Some fields are dropped because of their value. `temperature` above 1 is lowered for Messages; it, `top_p` and `top_k`
are left out if the upstream's version refuses them. The effort becomes the `thinking` that the model takes, and is left
out (`reasoning_effort`) where it takes none: in older models, and together with a forced call, with other sampling, or
with the beginning of the answer. Earlier reasoning is sent to Chat Completions only beside tool calls, and to Responses
and Messages only with its signature, or without it to servers that take it so, and if something follows it in its turn;
otherwise it is left out (`reasoning`). For Messages, instructions in the middle of a conversation move to the front, and
instructions alone become a message of the user (`system_position`), and new documents that are neither PDF nor text are
refused. A limit of less than 16 tokens is
raised for Responses (`max_tokens`). `parallel_tool_calls` is left out for upstreams that do not know it. Further
rules of single vendors and models are in the [rules of vendors](../../docs/vendor-rules.md).

The gateway itself ends an answer at the stop sequences that an upstream does not take: all of them
for Responses and for the reasoning models of OpenAI, more than four in Chat Completions, or than its server takes, and
white space in Messages.

Nothing in the history of a conversation is a reason to refuse it. Results stand directly behind their calls, and what
came between follows (`message_position`); a result without a call becomes a message of the user (`call_id`). A call
without a result gets one that says so, and several results of a call become one (`tool_result`). Text of the assistant
behind its calls goes before them in Messages (`message_position`). Images and documents in the results of tools follow
in a message of the user for Chat Completions (`tool_result_position`). Documents that the upstream does not take become
a text with their name (`documents`), and so do other parts and files by their id, which are named by their field; only
those in the last message of the user are refused. A model that reads texts alone gets texts for all of them, and for
images (`images`). Records of tools that ran at the vendor, and blocks of unknown types, are left out. Arguments of a
call that are no object become its only member (`arguments`). Messages that say nothing are left out. Ids of calls that
come again, and ids and names of tools that an upstream would refuse, are replaced; names are restored in the answers. A
document without a name gets one. Texts that are joined are joined as they are. The first line of Claude Code's
instructions, `x-anthropic-billing-header`, is left out.

The tools of Responses clients are offered as functions: a freeform tool with one text, the functions of a namespace
with names that join both, and a search for tools that the client runs. So are the custom tools of Chat clients, with one
text. Their calls come back as the client knows them.

Schemas of tools get a type and properties, and alternatives at their root become one object (`json_schema`). Answers of
OpenAI are `strict` only if their schema permits it. The objects in answers of Claude permit no other members, and some
limits are left out (`json_schema`).
";
