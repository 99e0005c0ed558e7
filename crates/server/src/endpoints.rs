//! The endpoints: one file each, and what the three text endpoints share.

pub(crate) mod chat;
pub(crate) mod images;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod responses;
pub(crate) mod text;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use wire::ApiError;

use crate::body::Body;
use crate::refusal::Refusal;

/// A reply of status 200 whose body is `value` as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Response<Body>, Refusal> {
    let body = serde_json::to_vec(value).map_err(|error| Refusal {
        cause: Some(format!("a reply has no JSON form: {error}")),
        ..ApiError::server_error().into()
    })?;
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
