//! Writes the most frequent form of a plain reply of Chat Completions for the client.

use chat::lenient::FrequentReply;
use vendor::usage;

use super::End;

/// Returns a reply with its edits, or `None` if it is not of this form.
pub(super) fn chat(body: &[u8], model: &str) -> Option<(Vec<u8>, End)> {
    let reply = FrequentReply::read(body)?;
    let end = End {
        incomplete: reply.is_truncated,
        usage: reply.tokens.map(usage),
    };
    let [first, second] = reply.usage_details;
    let renamed = reply.model.map(|range| (range, Some(model)));
    let mut edits = [(first, None), (second, None), renamed.unwrap_or_default()];
    edits.sort_unstable_by_key(|(range, _)| range.start);
    let removed: usize = edits.iter().map(|(range, _)| range.len()).sum();
    // Exact, unless the name has escapes.
    let mut out = Vec::with_capacity(body.len() - removed + model.len() + QUOTES);
    let mut from = 0;
    for (range, name) in edits {
        out.extend_from_slice(&body[from..range.start]);
        if let Some(name) = name {
            serde_json::to_writer(&mut out, name).ok()?;
        }
        from = range.end;
    }
    out.extend_from_slice(&body[from..]);
    Some((out, end))
}

/// The number of quotes around a name.
const QUOTES: usize = 2;
