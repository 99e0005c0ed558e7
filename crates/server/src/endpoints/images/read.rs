//! Reading requests for pictures. An edit comes as JSON or as a form; once it was read, nobody can tell which it was.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use catalog::{DEFAULT_IMAGE_MODEL, Model, Protocol};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request};
use images::{Edit, Generation, Operation, Rules, Source};
use wire::{ApiError, ErrorKind, Path};

use crate::body::form;
use crate::body::upload::{Incoming, Share};
use crate::config::Limits;
use crate::endpoints::{bytes, check_length, is_json, json_body, media_type};
use crate::gateway::{Caller, Gateway};
use crate::image_urls;
use crate::refusal::Refusal;

/// A request that keeps every rule.
pub(super) struct ParsedRequest {
    /// The model that it names, or the one for those that name none.
    pub(super) model: String,
    /// Which of the two endpoints it came to.
    pub(super) operation: Operation,
    /// What is to be made.
    pub(super) generation: Generation,
    /// What an edit starts from.
    pub(super) start: Option<Start>,
    /// The document that it came as, when that is wanted for an upstream and was no form.
    pub(super) json: Option<Bytes>,
    /// What all that holds of the memory for bodies.
    pub(super) share: Share,
}

/// What an edit starts from.
pub(super) struct Start {
    /// The pictures, in order.
    pub(super) references: Vec<Source>,
    /// The bytes of the mask.
    pub(super) mask: Option<Bytes>,
}

/// The place in the catalog of an operation.
pub(super) fn protocol(operation: Operation) -> Protocol {
    match operation {
        Operation::Generation => Protocol::ImagesGenerations,
        Operation::Edit => Protocol::ImagesEdits,
    }
}

/// Reads a request for generations.
pub(super) async fn generation<B>(request: Request<B>, caller: &Caller<'_>) -> Result<ParsedRequest, Refusal>
where
    B: http_body::Body<Data = Bytes, Error: Error>,
{
    let upload = json_body(request, caller.gateway.limits.json_body, caller.gateway).await?;
    let generation = Generation::read(&upload.bytes).map_err(ApiError::from)?;
    let model = model(&generation);
    let valid = generation.validate(&rules(&model, caller)).map_err(ApiError::from)?;
    let (json, share) = upload.into_parts();
    let json = caller.policy.routes.leave(&model).then_some(json);
    let share = if json.is_some() { share } else { Share::default() };
    let generation = valid.into_inner();
    Ok(ParsedRequest { model, operation: Operation::Generation, generation, start: None, json, share })
}

/// Whether a request is a form by its own account.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    media_type(headers).is_ok_and(|media_type| media_type == FORM)
}

/// Reads a request for edits.
pub(super) async fn edit<B>(request: Request<B>, caller: &Caller<'_>) -> Result<ParsedRequest, Refusal>
where
    B: http_body::Body<Data = Bytes, Error: Error> + Send,
{
    let gateway = caller.gateway;
    let limit = bytes(gateway.limits.edit_body);
    check_length(request.headers(), limit)?;
    let media_type = media_type(request.headers())?;
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let incoming = Incoming::new(request.into_body(), limit, &gateway.limits, &gateway.budget);
    let share = incoming.share();
    let mut json = None;
    let edit = if is_json(&media_type) {
        let body = incoming.whole().await?.bytes;
        json = Some(body.clone());
        from_json(body, share.clone(), gateway).await?
    } else if media_type == FORM {
        let boundary = form::boundary(&content_type.unwrap_or_default())?;
        form::read(boundary, incoming, &gateway.limits).await?
    } else {
        return Err(Refusal::media_type("application/json or multipart/form-data", &media_type));
    };
    check_pictures(&edit, &gateway.limits)?;
    let single = edit.image.clone();
    let model = model(&edit.generation);
    let valid = edit.validate(&rules(&model, caller)).map_err(ApiError::from)?;
    let (generation, references, mask) = valid.into_inner().into_sources();
    if let Some(Source::Url(url)) = single {
        // Beside `images` it means nothing here, and an upstream that the document goes to may read it.
        image_urls::judge(&Path::ROOT.key("image"), &url, gateway)?;
    }
    judge_addresses(&references, gateway)?;
    let start = Start { references, mask: mask.and_then(inline) };
    let json = json.filter(|_| caller.policy.routes.leave(&model));
    Ok(ParsedRequest { model, operation: Operation::Edit, generation, start: Some(start), json, share })
}

/// Megabytes of base64 are no work for a thread that others wait for. The work goes on when the client leaves, and
/// holds its share of the memory until it is done. It is done for few at once: a list of nothing takes many times more
/// memory than its text.
async fn from_json(body: Bytes, share: Share, gateway: &Gateway) -> Result<Edit, Refusal> {
    let turn = Arc::clone(&gateway.reading).acquire_owned().await;
    let read = move || {
        let _turn = turn;
        let read = Edit::read(&body).map_err(ApiError::from);
        drop((body, share));
        read
    };
    let read = tokio::task::spawn_blocking(read).await;
    let cause = |error| Refusal { cause: Some(format!("reading failed: {error}")), ..ApiError::server_error().into() };
    Ok(read.map_err(cause)??)
}

/// Refuses pictures that are too large each, however they came.
fn check_pictures(edit: &Edit, limits: &Limits) -> Result<(), Refusal> {
    let limit = bytes(limits.picture);
    for (i, source) in edit.sources().enumerate() {
        check_picture(source, &format!("images[{i}].image_url"), limit)?;
    }
    edit.mask_source().map_or(Ok(()), |mask| check_picture(mask, "mask", limit))
}

fn check_picture(source: &Source, param: &str, limit: usize) -> Result<(), Refusal> {
    match source {
        Source::Inline { bytes, .. } if bytes.len() > limit => {
            let sentence = format!("'{param}' is a picture of {} bytes; at most {limit} are taken.", bytes.len());
            Err(ApiError::new(ErrorKind::TooLarge, "request_too_large", sentence).with_param(param).into())
        }
        _ => Ok(()),
    }
}

fn judge_addresses(references: &[Source], gateway: &Gateway) -> Result<(), Refusal> {
    let images = Path::ROOT.key("images");
    for (i, source) in references.iter().enumerate() {
        if let Source::Url(url) = source {
            image_urls::judge(&images.index(i).key("image_url"), url, gateway)?;
        }
    }
    Ok(())
}

fn inline(mask: Source) -> Option<Bytes> {
    match mask {
        Source::Inline { bytes, .. } => Some(bytes),
        Source::Url(_) => None,
    }
}

fn model(generation: &Generation) -> String {
    generation.model.clone().unwrap_or_else(|| DEFAULT_IMAGE_MODEL.to_owned())
}

fn rules(model: &str, caller: &Caller<'_>) -> Rules {
    caller.policy.catalog.find(model).map_or_else(Rules::default, Model::images_rules)
}

/// The media type of a form (RFC 7578).
const FORM: &str = "multipart/form-data";
