//! The parts of a conversation that an upstream does not take.

use std::borrow::Cow;

use engine::{TextRequest, Turn, UserPart};
use vendor::Protocol;

use super::{DroppedField, DroppedFields, Quirks, check_data, messages};
use crate::in_words;

/// Returns the request with texts in place of the documents of earlier messages and of results that
/// the upstream does not take, because they come with each later request. Only the last message of
/// the user may be refused for its documents. A model that reads texts alone gets texts for all
/// images and documents.
pub(super) fn readable<'a>(
    protocol: Protocol,
    mut request: Cow<'a, TextRequest>,
    quirks: &Quirks,
    dropped: &mut DroppedFields,
) -> Cow<'a, TextRequest> {
    let is_lost = |part: &UserPart| !takes(protocol, quirks.text_only, part);
    let last = last_of_user(&request.turns).filter(|_| !quirks.text_only);
    let has_lost =
        |(i, turn): (usize, &Turn)| !is_new(i, turn, last) && parts(turn).iter().any(is_lost);
    if !request.turns.iter().enumerate().any(has_lost) {
        return request;
    }
    for (i, turn) in request.to_mut().turns.iter_mut().enumerate() {
        if is_new(i, turn, last) {
            continue;
        }
        for part in parts_mut(turn) {
            if is_lost(part) {
                put_in_words(part, dropped);
            }
        }
    }
    request
}

/// Returns false for a document in a form that the protocol does not have.
fn takes(protocol: Protocol, is_text_only: bool, part: &UserPart) -> bool {
    if is_text_only {
        return matches!(part, UserPart::Text(_) | UserPart::CacheBreakpoint(_));
    }
    match (protocol, part) {
        (Protocol::Chat, UserPart::FileUrl { .. }) => false,
        (
            Protocol::Messages,
            UserPart::File {
                media_type, data, ..
            },
        ) => messages::takes(media_type, data),
        (
            Protocol::Responses,
            UserPart::File {
                media_type, data, ..
            },
        ) => check_data(media_type, data).is_ok(),
        _ => true,
    }
}

/// Replaces an image or a document by a text.
fn put_in_words(part: &mut UserPart, dropped: &mut DroppedFields) {
    let text = match part {
        UserPart::Image { .. } => {
            dropped.add(DroppedField::Images);
            in_words::IMAGE.to_owned()
        }
        UserPart::File {
            name,
            media_type,
            data,
        } => {
            dropped.add(DroppedField::Documents);
            messages::text_of(media_type, data)
                .unwrap_or_else(|| in_words::document(name.as_deref()))
        }
        UserPart::FileUrl { url, .. } => {
            dropped.add(DroppedField::Documents);
            in_words::document(Some(url))
        }
        UserPart::Text(_) | UserPart::CacheBreakpoint(_) => return,
    };
    *part = UserPart::Text(text);
}

/// The position of the last turn that is not the model's.
fn last_of_user(turns: &[Turn]) -> Option<usize> {
    let is_users = |turn: &Turn| matches!(turn, Turn::User(_) | Turn::Tool(_));
    turns.iter().rposition(is_users)
}

/// Returns true for a message of the user that nothing but an answer follows.
fn is_new(place: usize, turn: &Turn, last_of_user: Option<usize>) -> bool {
    matches!(turn, Turn::User(_)) && last_of_user == Some(place)
}

fn parts(turn: &Turn) -> &[UserPart] {
    match turn {
        Turn::User(parts) => parts,
        Turn::Tool(result) => &result.content,
        Turn::System(_) | Turn::Assistant(_) => &[],
    }
}

fn parts_mut(turn: &mut Turn) -> &mut [UserPart] {
    match turn {
        Turn::User(parts) => parts,
        Turn::Tool(result) => &mut result.content,
        Turn::System(_) | Turn::Assistant(_) => &mut [],
    }
}
