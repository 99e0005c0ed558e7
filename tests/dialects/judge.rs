//! Compares the answer that a client has read with the answer that it is owed.

use serde_json::Value;
use simulator::Protocol;
use testkit::Response;
use testkit::dialects::{Outcome, Owed};
use testkit::events::added_up;
use testkit::reading::{Call, Ending, Reading, Usage};

/// Returns the problems of a reading, none if it is as owed. `is_own` is true for a client of the
/// upstream's protocol.
pub(crate) fn judge(owed: &Owed, reading: &Reading, client: Protocol, is_own: bool) -> Vec<String> {
    let mut wrong = reading.problems.clone();
    let end = reading.ending(client);
    let is_own_word =
        matches!(&end, Ending::Other(word) if is_own && owed.word.as_ref() == Some(word));
    let is_incomplete =
        matches!(end, Ending::Incomplete(reason) if owed.reason.is_none_or(|owed| owed == reason));
    let is_failure = end == Ending::Failure;
    let fits = match owed.outcome {
        Outcome::Complete => end == Ending::Complete || is_own_word,
        Outcome::Incomplete => is_incomplete || is_own_word,
        Outcome::Failure => is_failure,
        Outcome::NotComplete => is_incomplete || is_failure || is_own_word,
    };
    if !fits {
        wrong.push(format!("{end:?} instead of {:?}", owed.outcome));
    }
    if let Some(text) = &owed.text {
        let fits = if is_failure {
            text.starts_with(&reading.text)
        } else {
            *text == reading.text
        };
        if !fits {
            wrong.push(format!("text {:?} instead of {text:?}", reading.text));
        }
    }
    if owed.outcome == Outcome::Complete && fits {
        wrong.extend(content(owed, reading, client));
    }
    wrong
}

/// Returns the problems of the other content of a success.
fn content(owed: &Owed, reading: &Reading, client: Protocol) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(reasoning) = owed
        .reasoning
        .as_ref()
        .filter(|reasoning| **reasoning != reading.reasoning)
    {
        wrong.push(format!(
            "reasoning {:?} instead of {reasoning:?}",
            reading.reasoning
        ));
    }
    if calls(&reading.calls) != calls(&owed.calls) {
        wrong.push(format!(
            "calls {:?} instead of {:?}",
            reading.calls, owed.calls
        ));
    }
    if let Some(owed) = owed
        .usage
        .filter(|owed| !is_usage(*owed, reading.usage, client))
    {
        wrong.push(format!("usage {:?} instead of {owed:?}", reading.usage));
    }
    wrong
}

/// Returns the problem of the counts in the log, which are those that the server reports.
pub(crate) fn logged(owed: Option<Usage>, line: &Value) -> Option<String> {
    let found = [&line["input_tokens"], &line["output_tokens"]];
    let owed = owed?.totals().map(Value::from);
    (found != [&owed[0], &owed[1]]).then(|| format!("{found:?} in the log instead of {owed:?}"))
}

/// Adds up the events of a complete stream as a client does, and returns the differences from the
/// owed answer. Only a relayed stream may have content that the SDKs cannot place.
pub(crate) fn added(
    owed: &Owed,
    response: &Response,
    client: Protocol,
    is_own: bool,
) -> Vec<String> {
    let is_owed = owed.outcome == Outcome::Complete && response.is_stream();
    let content = added_up(client, &response.body).filter(|_| is_owed);
    let Some(mut content) = content.filter(|content| !is_own || content.problems.is_empty()) else {
        return Vec::new();
    };
    let mut wrong = std::mem::take(&mut content.problems);
    let answer = content.answers.remove(&0).unwrap_or_default();
    let text = answer.text + &answer.refusal;
    for (what, owed, added) in [
        ("text", &owed.text, &text),
        ("reasoning", &owed.reasoning, &answer.reasoning),
    ] {
        if let Some(owed) = owed.as_ref().filter(|owed| *owed != added) {
            wrong.push(format!("{what} {added:?} is added up instead of {owed:?}"));
        }
    }
    let added: Vec<_> = answer.calls.into_iter().map(called).collect();
    if calls(&added) != calls(&owed.calls) {
        wrong.push(format!(
            "calls {added:?} are added up instead of {:?}",
            owed.calls
        ));
    }
    wrong
}

fn called(call: accumulator::Call) -> Call {
    Call {
        name: call.name,
        arguments: call.arguments,
    }
}

/// Names and arguments as JSON, for arguments that are.
fn calls(calls: &[Call]) -> Vec<(&str, Result<Value, &str>)> {
    let arguments = |call| serde_json::from_str(call).map_err(|_| call);
    calls
        .iter()
        .map(|call| (call.name.as_str(), arguments(call.arguments.as_str())))
        .collect()
}

/// Returns true if these are the counts, as far as the client's protocol has them.
fn is_usage(owed: Usage, read: Option<Usage>, client: Protocol) -> bool {
    let Some(read) = read else { return false };
    let is_count = |owed: Option<u64>, read| owed.is_none_or(|owed| Some(owed) == read);
    let details = match client {
        Protocol::Responses => {
            is_count(owed.cached, read.cached) && is_count(owed.reasoning, read.reasoning)
        }
        Protocol::Messages => is_count(owed.cached, read.cached),
        Protocol::Chat | Protocol::Images => true,
    };
    (owed.input, owed.output) == (read.input, read.output) && details
}
