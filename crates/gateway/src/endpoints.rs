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
use config::bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request};

use crate::exchange::body::ClientBody;
use crate::exchange::body::upload::{Incoming, Upload};
use crate::exchange::refusal::Refusal;
use crate::state::GatewayState;

/// Reads the body of a request with this key, which must be JSON.
async fn json_body(
    request: Request<impl ClientBody>,
    limit: ByteSize,
    state: &GatewayState,
    key: &Entry,
) -> Result<Upload, Refusal> {
    let limit = bytes(limit);
    check_length(request.headers(), limit)?;
    let media_type = media_type(request.headers())?;
    if !is_json(&media_type) {
        return Err(Refusal::media_type(JSON, &media_type));
    }
    let share = state.budget.share(&key.name);
    Incoming::new(request.into_body(), limit, &state.limits, share)
        .collect()
        .await
}

/// Refuses a body whose `Content-Length` is over the limit, before any of it is read.
fn check_length(headers: &HeaderMap, limit: usize) -> Result<(), Refusal> {
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit as u64) {
        Err(Refusal::too_large())
    } else {
        Ok(())
    }
}

/// Returns the media type of the body in lower case; JSON if the request has no `Content-Type`.
/// Refuses a compressed body.
fn media_type(headers: &HeaderMap) -> Result<Cow<'_, str>, Refusal> {
    if let Some(coding) = headers.get(CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Refusal::content_encoding());
    }
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(JSON.into());
    };
    if value == JSON {
        return Ok(JSON.into());
    }
    let media_type = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let media_type = media_type.trim();
    Ok(
        match media_type.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => media_type.to_ascii_lowercase().into(),
            false => media_type.into(),
        },
    )
}

fn is_json(media_type: &str) -> bool {
    media_type == JSON || media_type.ends_with("+json")
}

/// The media type of nearly every request.
const JSON: &str = "application/json";

#[cfg(test)]
mod tests;
