//! The endpoints, one file each, and the reading of JSON that they share.

pub(crate) mod chat;
pub(crate) mod count_tokens;
pub(crate) mod images;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod responses;
pub mod stored_response;
pub mod text;

use std::borrow::Cow;

use auth::Entry;
use bytesize::ByteSize;
use coding::Coding;
use config::bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request};

use crate::connection::client_body::ClientBody;
use crate::exchange::body::budget::Share;
use crate::exchange::body::upload::{Incoming, Upload};
use crate::exchange::refusal::Refusal;
use crate::state::GatewayState;

/// Reads the body of a request with this key, which must be JSON.
async fn json_body(
    request: Request<ClientBody>,
    limit: ByteSize,
    state: &GatewayState,
    key: &Entry,
) -> Result<Upload, Refusal> {
    let (head, body) = request.into_parts();
    let share = state.budget.share(&key.name);
    let incoming = incoming(&head.headers, body, limit, state, share)?;
    let media_type = media_type(&head.headers);
    if !is_json(&media_type) {
        return Err(Refusal::media_type(JSON, &media_type));
    }
    incoming.collect().await
}

/// Prepares to read a body, which may be compressed, into its `share` of the memory. `limit` is for the
/// body as it is sent, and for the decoded one. Refuses a `Content-Length` over it before any of the body
/// is read.
fn incoming(
    headers: &HeaderMap,
    body: ClientBody,
    limit: ByteSize,
    state: &GatewayState,
    share: Share,
) -> Result<Incoming, Refusal> {
    let limit = bytes(limit);
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit as u64) {
        return Err(Refusal::too_large());
    }
    let codings = headers.get_all(CONTENT_ENCODING).iter();
    let coding = Coding::of(codings.map(HeaderValue::as_bytes))
        .map_err(|_| Refusal::content_encoding(coding::ACCEPTED))?;
    Ok(Incoming::new(body, limit, &state.limits, share).with_coding(coding))
}

/// Returns the media type of the body in lower case; JSON if the request has no `Content-Type`.
fn media_type(headers: &HeaderMap) -> Cow<'_, str> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return JSON.into();
    };
    if value == JSON {
        return JSON.into();
    }
    let media_type = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let media_type = media_type.trim();
    match media_type.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => media_type.to_ascii_lowercase().into(),
        false => media_type.into(),
    }
}

fn is_json(media_type: &str) -> bool {
    media_type == JSON || media_type.ends_with("+json")
}

/// The media type of nearly every request.
const JSON: &str = "application/json";

#[cfg(test)]
mod tests;
