//! Replaces the references of a request by what they refer to.

use std::borrow::Cow;

use responses::{Item, Request};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::{ApiError, Code, ErrorKind, Splice, TextOr};

use crate::kept::Kept;

#[derive(Deserialize)]
struct BodyView<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
}

/// Returns true if a request refers to an answer or to an item.
pub(super) fn refers(request: &Request) -> bool {
    let refers = |item| reference(item).is_some();
    request.previous_response_id.is_some()
        || matches!(&request.input, TextOr::List(items) if items.iter().any(refers))
}

/// Returns the body of a request that refers to what this key has been answered, with the items
/// themselves. The previous conversation comes first: its input and its output, but not its
/// instructions, as in the
/// [guide](https://platform.openai.com/docs/guides/conversation-state).
///
/// Also returns the number of items that come first. Returns 400 for an unknown response, and 404
/// for an unknown item.
pub(super) fn expand(
    kept: &Kept,
    key: &str,
    body: &[u8],
    request: &Request,
) -> Result<(Vec<u8>, usize), ApiError> {
    let (mut input, mut before) = (Vec::new(), 0);
    if let Some(id) = &request.previous_response_id {
        let previous = kept.get(key, id).ok_or_else(|| no_response(id))?;
        for item in previous.conversation() {
            append(&item, &mut input);
            before += 1;
        }
    }
    let references = match &request.input {
        TextOr::Text(_) => vec![None],
        TextOr::List(items) => items.iter().map(reference).collect(),
    };
    for (item, reference) in items(body).into_iter().zip(references) {
        let Some(id) = reference else {
            append(&item, &mut input);
            continue;
        };
        let (answer, position) = kept.item(key, id).ok_or_else(|| no_item(id))?;
        if let Some(item) = answer.output(position) {
            append(&item, &mut input);
        }
    }
    let mut splice = Splice::new(body);
    splice.replace(&["input"], &[b"[", &*input, b"]"].concat());
    splice.remove(&[], &["previous_response_id"]);
    Ok((splice.to_vec(), before))
}

/// Returns the items of a request's input, each as JSON. A string is a message of the user.
pub(super) fn items(body: &[u8]) -> Vec<Cow<'_, str>> {
    let Ok(BodyView { input }) = serde_json::from_slice(body) else {
        return Vec::new();
    };
    match serde_json::from_str::<Vec<&RawValue>>(input.get()) {
        Ok(items) => items
            .into_iter()
            .map(|item| Cow::Borrowed(item.get()))
            .collect(),
        Err(_) => vec![Cow::Owned(format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{}}}]}}"#,
            input.get()
        ))],
    }
}

/// Returns the id that an item refers to. Some clients leave the type out.
fn reference(item: &Item) -> Option<&str> {
    match item {
        Item::ItemReference(reference) => Some(&reference.id),
        Item::Other(members) if item.kind().is_empty() && members.len() == 2 => {
            members.get("id")?.as_str()
        }
        _ => None,
    }
}

fn append(item: &str, input: &mut Vec<u8>) {
    if !input.is_empty() {
        input.push(b',');
    }
    input.extend_from_slice(item.as_bytes());
}

/// The error for a response that is unknown, or that of another key.
pub(crate) fn no_response(id: &str) -> ApiError {
    let id = wire::truncate_for_error(id);
    let sentence = format!("Previous response with id '{id}' not found.");
    let code = Code::PreviousResponseNotFound.as_str();
    ApiError::new(ErrorKind::InvalidRequest, code, sentence).with_param("previous_response_id")
}

fn no_item(id: &str) -> ApiError {
    let id = wire::truncate_for_error(id);
    let sentence = format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false, and \
         only for a limited time otherwise; send the item itself."
    );
    ApiError::new(ErrorKind::NotFound, "not_found", sentence).with_param("input")
}
