//! The parts of a request's input that the gateway keeps: the answers and items that the request
//! refers to.

#![expect(
    clippy::disallowed_methods,
    reason = "each error here has a row in tests/testkit/errors.toml"
)]

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use responses::{Item, Request};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::{ApiError, Code, ErrorKind, Piece, Splice, TextOr};

use crate::store::{ResponseStore, StoredResponse};

#[derive(Deserialize)]
struct BodyView<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
}

/// The kept answers and items that a request refers to. They are found and measured at once, and
/// copied only into the expanded request.
#[derive(Debug)]
pub struct StoredInput {
    previous: Option<Arc<StoredResponse>>,
    /// For each item of the request, the output item that it stands for, by its answer and its
    /// position there; `None` for an item of the request itself.
    references: Vec<Option<(Arc<StoredResponse>, usize)>>,
}

impl StoredInput {
    /// Finds the answers and items that a request of this key refers to. Returns `None` if it
    /// refers to nothing.
    ///
    /// # Errors
    /// Returns 400 for an unknown response or an item that is referred to twice, and 404 for an
    /// unknown item.
    pub fn find(
        kept: &ResponseStore,
        key: &str,
        request: &Request,
    ) -> Result<Option<Self>, ApiError> {
        let items = match &request.input {
            TextOr::Text(_) => &[][..],
            TextOr::List(items) => items,
        };
        let is_continued = request.previous_response_id.is_some();
        if !is_continued && items.iter().all(|item| reference(item).is_none()) {
            return Ok(None);
        }
        let previous = request.previous_response_id.as_deref();
        let previous = previous.map(|id| kept.get(key, id).ok_or_else(|| no_response(id)));
        let mut seen = HashSet::new();
        let references = items.iter().map(|item| match reference(item) {
            None => Ok(None),
            Some(id) if !seen.insert(id) => Err(repeated(id)),
            Some(id) => kept.item(key, id).map(Some).ok_or_else(|| no_item(id)),
        });
        Ok(Some(Self {
            previous: previous.transpose()?,
            references: references.collect::<Result<_, _>>()?,
        }))
    }

    /// Returns the length that the request grows by at most, in bytes.
    pub fn length(&self) -> usize {
        let previous = self.previous.iter();
        let previous = previous.map(|answer| answer.extent().bytes);
        let items = self.references.iter().flatten();
        let items = items.map(|(answer, position)| answer.output_length(*position));
        previous.chain(items).sum()
    }

    /// Returns an estimate of the tokens that the request grows by.
    pub fn tokens(&self) -> u64 {
        let previous = self.previous.iter().map(|answer| answer.extent().tokens);
        let items = self.references.iter().flatten();
        let items = items.map(|(answer, position)| answer.output_tokens(*position));
        previous.chain(items).sum()
    }

    /// Returns the number of items that come before the request's own items.
    pub fn before(&self) -> usize {
        let previous = self.previous.as_ref();
        previous.map_or(0, |answer| answer.extent().items)
    }

    /// Returns the body of the request with the items themselves. The previous conversation comes
    /// first: its input and its output, but not its instructions, as in the
    /// [guide](https://platform.openai.com/docs/guides/conversation-state).
    pub fn expand(&self, body: &[u8]) -> Vec<u8> {
        let mut splice = Splice::new(body);
        splice.replace(&["input"], INPUT);
        splice.remove(&[], &["previous_response_id"]);
        let mut out = Vec::with_capacity(body.len() + self.length());
        for piece in splice.pieces() {
            match piece {
                Piece::Kept(range) => out.extend_from_slice(&body[range]),
                Piece::New(new) if new == INPUT => self.write_input(body, &mut out),
                Piece::New(_) => {}
            }
        }
        out
    }

    fn write_input(&self, body: &[u8], out: &mut Vec<u8>) {
        let mut is_first = true;
        let mut append = |item: &str| {
            out.push(if is_first { b'[' } else { b',' });
            out.extend_from_slice(item.as_bytes());
            is_first = false;
        };
        let previous = self.previous.iter();
        previous
            .flat_map(|answer| answer.conversation())
            .for_each(|item| append(&item));
        let mut references = self.references.iter();
        for item in items(body) {
            match references.next() {
                Some(Some((answer, position))) => {
                    answer
                        .output(*position)
                        .into_iter()
                        .for_each(|item| append(&item));
                }
                _ => append(&item),
            }
        }
        out.extend_from_slice(if is_first { b"[]" } else { b"]" });
    }
}

/// Returns the items of a request's input, each as JSON. A string is a message of the user.
pub fn items(body: &[u8]) -> Vec<Cow<'_, str>> {
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

/// The error for a response that is unknown, or belongs to another key.
pub fn no_response(id: &str) -> ApiError {
    let id = wire::truncate_for_error(id);
    let sentence = format!("Previous response with id '{id}' not found.");
    let code = Code::PreviousResponseNotFound.as_str();
    ApiError::new(ErrorKind::InvalidRequest, code, sentence).with_param("previous_response_id")
}

/// The error for an item that a request refers to twice, which OpenAI refuses as well.
pub fn repeated(id: &str) -> ApiError {
    let id = wire::truncate_for_error(id);
    let sentence = format!(
        "Duplicate item found with id '{id}'. Remove duplicate items from your input and try again."
    );
    let code = Code::InvalidValue.as_str();
    ApiError::new(ErrorKind::InvalidRequest, code, sentence).with_param("input")
}

/// The error for an item that is not kept, or belongs to another key.
pub fn no_item(id: &str) -> ApiError {
    let id = wire::truncate_for_error(id);
    let sentence = format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false, and \
         only for a limited time otherwise; send the item itself."
    );
    ApiError::new(ErrorKind::NotFound, "not_found", sentence).with_param("input")
}

/// Stands for the input while the place of it is found.
const INPUT: &[u8] = b"[]";
