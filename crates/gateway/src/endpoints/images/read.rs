//! Parses image requests. An edit is sent as JSON or as a form, and is handled the same after it
//! was parsed.

use bytes::Bytes;
use catalog::{DEFAULT_IMAGE_MODEL, Model, Protocol};
use config::{Limits, bytes};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request};
use images::{Edit, FormFile, Generation, Operation, Rules, Source};
use wire::{ApiError, Path};

use crate::connection::client_body::ClientBody;
use crate::endpoints::{incoming, is_json, json_body, media_type};
use crate::exchange::body::budget::Share;
use crate::exchange::body::form;
use crate::exchange::refusal::Refusal;
use crate::request::image_urls;
use crate::state::{Caller, GatewayState};

/// A validated image request.
pub(super) struct ParsedRequest {
    /// The model of the request, or the default model.
    pub(super) model: String,
    pub(super) operation: Operation,
    pub(super) generation: Generation,
    /// The input images of an edit.
    pub(super) inputs: Option<EditInputs>,
    /// The document as received, if it was JSON and an upstream may need it.
    pub(super) json: Option<Bytes>,
    /// The share of the memory budget for bodies that all of this holds.
    pub(super) share: Share,
}

impl ParsedRequest {
    /// Returns the number of requested images, which validation has limited to a small number.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.generation.count()).unwrap_or(1)
    }
}

/// The input images of an edit.
pub(super) struct EditInputs {
    pub(super) references: Vec<Source>,
    pub(super) mask: Option<Bytes>,
    /// Further files of a form, which only an upstream may know.
    pub(super) files: Vec<FormFile>,
}

pub(super) fn protocol(operation: Operation) -> Protocol {
    match operation {
        Operation::Generation => Protocol::ImagesGenerations,
        Operation::Edit => Protocol::ImagesEdits,
    }
}

/// Reads and validates a generation request.
pub(super) async fn generation(
    request: Request<ClientBody>,
    caller: &Caller<'_>,
) -> Result<ParsedRequest, Refusal> {
    let Caller { state, key, .. } = caller;
    let upload = json_body(request, state.limits.json_body, state, key).await?;
    let read = || Generation::read(&upload.bytes);
    let read = state.long_work.run(upload.bytes.len(), read).await;
    let generation = read.map_err(ApiError::from)?;
    let model = model(&generation);
    let valid = generation
        .validate(&rules(&model, caller))
        .map_err(ApiError::from)?;
    let json = uses_upstream(&model, caller).then_some(upload.bytes);
    let share = match json {
        Some(_) => upload.share,
        None => state.budget.share(&key.name),
    };
    let generation = valid.into_inner();
    Ok(ParsedRequest {
        model,
        operation: Operation::Generation,
        generation,
        inputs: None,
        json,
        share,
    })
}

pub(super) fn is_form(headers: &HeaderMap) -> bool {
    media_type(headers) == FORM
}

/// Reads and validates an edit request.
pub(super) async fn edit(
    request: Request<ClientBody>,
    caller: &Caller<'_>,
) -> Result<ParsedRequest, Refusal> {
    let state = caller.state;
    let (head, body) = request.into_parts();
    let share = state.budget.share(&caller.key.name);
    let limit = state.limits.edit_body;
    let incoming = incoming(&head.headers, body, limit, state, share.clone())?;
    let media_type = media_type(&head.headers);
    let mut json = None;
    let edit = if is_json(&media_type) {
        let body = incoming.collect().await?.bytes;
        let read = || Edit::read(&body).map_err(ApiError::from);
        let edit = state.long_work.run(body.len(), read).await?;
        json = Some(body);
        edit
    } else if media_type == FORM {
        let content_type = head.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let boundary = form::boundary(content_type.unwrap_or_default())?;
        form::read(boundary, incoming, &state.limits).await?
    } else {
        return Err(Refusal::media_type(
            "application/json or multipart/form-data",
            &media_type,
        ));
    };
    check_pictures(&edit, &state.limits)?;
    let single = edit.image.clone();
    let model = model(&edit.generation);
    let valid = edit
        .validate(&rules(&model, caller))
        .map_err(ApiError::from)?;
    let mut valid = valid.into_inner();
    let files = std::mem::take(&mut valid.files);
    let (generation, references, mask) = valid.into_sources();
    if let Some(Source::Url(url)) = single {
        // `image` is ignored if there is `images`, but an upstream that gets the document may fetch
        // it.
        image_urls::check(&Path::ROOT.key("image"), &url, state)?;
    }
    check_urls(&references, state)?;
    let inputs = EditInputs {
        references,
        mask: mask.and_then(inline),
        files,
    };
    let json = json.filter(|_| uses_upstream(&model, caller));
    Ok(ParsedRequest {
        model,
        operation: Operation::Edit,
        generation,
        inputs: Some(inputs),
        json,
        share,
    })
}

/// Refuses an edit if any of its images is too large, sent as JSON or as a form.
fn check_pictures(edit: &Edit, limits: &Limits) -> Result<(), Refusal> {
    let limit = bytes(limits.picture);
    for (i, source) in edit.sources().enumerate() {
        check_picture(source, &format!("images[{i}].image_url"), limit)?;
    }
    edit.mask_source()
        .map_or(Ok(()), |mask| check_picture(mask, "mask", limit))
}

fn check_picture(source: &Source, param: &str, limit: usize) -> Result<(), Refusal> {
    match source {
        Source::Inline { bytes, .. } if bytes.len() > limit => {
            Err(Refusal::picture_too_large(param, bytes.len(), limit))
        }
        _ => Ok(()),
    }
}

/// Refuses URLs of input images that must not be fetched.
fn check_urls(references: &[Source], state: &GatewayState) -> Result<(), Refusal> {
    let images = Path::ROOT.key("images");
    for (i, source) in references.iter().enumerate() {
        if let Source::Url(url) = source {
            image_urls::check(&images.index(i).key("image_url"), url, state)?;
        }
    }
    Ok(())
}

/// Returns the bytes of a mask; validation has refused masks that are given by URL.
fn inline(mask: Source) -> Option<Bytes> {
    match mask {
        Source::Inline { bytes, .. } => Some(bytes),
        Source::Url(_) => None,
    }
}

fn model(generation: &Generation) -> String {
    generation
        .model
        .clone()
        .unwrap_or_else(|| DEFAULT_IMAGE_MODEL.to_owned())
}

/// True if an upstream may serve the model, so that the document may be needed.
fn uses_upstream(model: &str, caller: &Caller<'_>) -> bool {
    let model = caller.policy.catalog.find(model);
    model.is_some_and(|model| caller.policy.routes.uses_upstream(model))
}

fn rules(model: &str, caller: &Caller<'_>) -> Rules {
    let found = caller.policy.catalog.find(model);
    let mut rules = found.map_or_else(Rules::default, Model::images_rules);
    // An upstream has models with other settings; the engine checks its own.
    rules.unknown_settings = uses_upstream(model, caller);
    rules
}

/// The media type of a form (RFC 7578).
const FORM: &str = "multipart/form-data";
