//! `POST /v1/images/generations` — spec §4.5 — and `POST /v1/images/edits` — spec §4.6.
//!
//! Requests are read and judged; there is no engine yet that would answer them.

use bytes::Bytes;
use catalog::{DEFAULT_IMAGE_MODEL, Protocol};
use http::Response;
use images::{Edit, Generation};
use wire::{ApiError, Violations};

use super::text;
use crate::body::Body;
use crate::gateway::Admitted;
use crate::refusal::Refusal;

/// Answers a request for generations.
pub(crate) async fn generate<B>(admitted: Admitted<'_, B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes>,
{
    let asked = |body: &[u8]| Generation::read(body)?.validate().map(|valid| valid.model.clone());
    answer(admitted, Protocol::ImagesGenerations, asked).await
}

/// Answers a request for edits.
pub(crate) async fn edit<B>(admitted: Admitted<'_, B>) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes>,
{
    let asked = |body: &[u8]| Edit::read(body)?.validate().map(|valid| valid.generation.model.clone());
    answer(admitted, Protocol::ImagesEdits, asked).await
}

/// Judges a request; `asked` reads it and tells the model that it names.
async fn answer<B>(
    admitted: Admitted<'_, B>,
    protocol: Protocol,
    asked: impl FnOnce(&[u8]) -> Result<Option<String>, Violations>,
) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes>,
{
    let Admitted { gateway, catalog, key, request, record } = admitted;
    let upload = text::body(request, &gateway.limits, &gateway.budget).await?;
    let id = asked(&upload.bytes).map_err(ApiError::from)?.unwrap_or_else(|| DEFAULT_IMAGE_MODEL.to_owned());
    catalog.serves(&id, protocol)?;
    if !key.may_use(&id) {
        return Err(Refusal::model(&id));
    }
    if let Some(record) = record {
        record.model = Some(id);
    }
    Err(Refusal::no_engine())
}
