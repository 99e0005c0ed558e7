//! Sends an image request to a target: the embedded engine or an upstream.

use std::sync::Arc;

use answer::Asked;
use bytes::Bytes;
use config::upstream::EditForm;
use engine::{EngineError, ImageEdit, ImageGeneration, ImageStream};
use http::{HeaderMap, HeaderValue, Method};
use images::{Edit, Mask, Operation, Reference, Source};
use policy::clock;
use policy::targets::{Backend, Target, UpstreamTarget};
use relay::RelayProtocol;
use tokio::time::{Instant, timeout_at};
use translate::inbound::{Pictures, image_request};
use upstream::{Outgoing, Payload, ResponseMeta};
use wire::{ApiError, Splice};

use super::inline::inline;
use super::read::{EditInputs, ParsedRequest};
use crate::exchange::refusal::Refusal;
use crate::request::attempt::{TargetFailure, Turn};
use crate::request::image_urls;
use crate::request::outgoing;
use crate::state::{Caller, GatewayState};

/// An image request and the state of its attempts.
pub(super) struct ImageDispatch {
    pub(super) parsed: ParsedRequest,
    state: Arc<GatewayState>,
    /// The name of the key.
    key: Arc<str>,
    pub(super) deadline: Instant,
    pub(super) asked: Arc<Asked>,
    /// The parts of the head of the last response for the log and for the client.
    pub(super) meta: ResponseMeta,
}

impl ImageDispatch {
    pub(super) fn new(parsed: ParsedRequest, caller: &Caller<'_>) -> Self {
        Self {
            parsed,
            state: Arc::clone(caller.state),
            key: Arc::clone(&caller.key.name),
            deadline: caller.deadline,
            asked: Arc::clone(&caller.record.targets.asked),
            meta: ResponseMeta::default(),
        }
    }

    /// Sends the request to the embedded engine; returns its events, and their encoder.
    pub(super) async fn embedded(
        &mut self,
        turn: Turn,
    ) -> Result<(ImageStream, Pictures), TargetFailure> {
        let state = Arc::clone(&self.state);
        let Some(engine) = &state.image_engine else {
            return Err(TargetFailure::fall_back(Refusal::no_engine()));
        };
        let settings = self.parsed.generation.check_settings();
        let inputs = self.parsed.inputs.as_ref();
        let files = inputs.map_or(Ok(()), |inputs| images::check_files(&inputs.files));
        settings
            .and(files)
            .map_err(|found| TargetFailure::fall_back(ApiError::from(found)))?;
        // The engine keeps the images for long, so the document is freed at once if no other target
        // may need it.
        if turn.last {
            self.parsed.json = None;
        }
        let edit = match &self.parsed.inputs {
            // Checked before any image is fetched.
            Some(inputs) if inputs.references.len() > engine.most_references() => {
                return Err(TargetFailure::fall_back(too_many(
                    inputs.references.len(),
                    engine.most_references(),
                )));
            }
            Some(inputs) => {
                let references = self
                    .references(inputs)
                    .await
                    .map_err(TargetFailure::fatal)?;
                Some(ImageEdit {
                    references,
                    mask: inputs.mask.clone(),
                })
            }
            None => None,
        };
        let request = image_request(&self.parsed.generation, &self.parsed.model, edit);
        let count = request.count;
        let ImageGeneration { traits, events } =
            engine.start(request).await.map_err(engine_failure)?;
        Ok((
            events,
            Pictures::new(self.parsed.operation, &traits, count, clock::random_bits()),
        ))
    }

    /// The request settings that a target leaves out. An upstream gets all settings; the engine
    /// gets only the settings that it has itself. Names that do not fit into a header are not
    /// listed.
    pub(super) fn dropped_at(&self, target: &Target) -> Vec<String> {
        match target.backend {
            Backend::Upstream(_) => Vec::new(),
            Backend::Embedded => {
                let is_listed = |name: &&String| {
                    name.len() <= MAX_NAME && name.bytes().all(|byte| byte.is_ascii_graphic())
                };
                let settings = self.parsed.generation.extra.keys();
                settings
                    .filter(is_listed)
                    .take(MAX_NAMES)
                    .cloned()
                    .collect()
            }
        }
    }

    /// Returns the request to an upstream.
    pub(super) async fn outgoing(
        &self,
        server: &UpstreamTarget,
        target: &Target,
        turn: &Turn,
    ) -> Result<Outgoing, TargetFailure> {
        let own = self.parsed.generation.model.as_deref();
        let model = target.model.as_deref().or(own);
        let (content_type, body) = self.body(server, model).await?;
        let path = match self.parsed.operation {
            Operation::Generation => "/images/generations",
            Operation::Edit => "/images/edits",
        };
        let accept_stream = self.parsed.generation.streams();
        Ok(Outgoing {
            method: Method::POST,
            path: path.into(),
            content_type,
            headers: turn.traced(HeaderMap::new()),
            body,
            accept_stream,
            client: Arc::clone(&self.key),
            sockets: None,
        })
    }

    /// Notes the usage and the images that a plain reply reports: its images were generated,
    /// whatever happens to them.
    pub(super) fn note_reply(&self, reply: &[u8]) {
        let reported = &self.asked.reported;
        reported.set_usage(relay::Images::usage_of_reply(reply));
        reported.set_pictures(relay::pictures_of_reply(reply));
    }

    /// Returns a plain reply of an upstream with the bytes of its images, and fetches those that are
    /// URLs.
    pub(super) async fn with_bytes(&self, reply: Bytes) -> Result<Bytes, TargetFailure> {
        let inlined = inline(reply, &self.key, &self.state, &self.parsed.share);
        timeout_at(self.deadline, inlined)
            .await
            .unwrap_or_else(|_| {
                Err(EngineError::Timeout(
                    "the images of the reply were not fetched in time".to_owned(),
                ))
            })
            .map_err(TargetFailure::of)
    }

    /// Returns the bytes of the input images, and fetches those that are given by URL.
    async fn references(&self, inputs: &EditInputs) -> Result<Vec<Bytes>, Refusal> {
        let mut references = Vec::new();
        for (i, source) in inputs.references.iter().enumerate() {
            references.push(match source {
                Source::Inline { bytes, .. } => bytes.clone(),
                Source::Url(url) => {
                    let param = format!("images[{i}].image_url");
                    image_urls::fetch_image(
                        url,
                        Some(&param),
                        &self.key,
                        &self.state,
                        &self.parsed.share,
                    )
                    .await?
                    .bytes
                }
            });
        }
        Ok(references)
    }

    /// Returns the body for an upstream, in the format that it accepts, with its content type.
    /// Without a `model`, the upstream's default is requested.
    async fn body(
        &self,
        server: &UpstreamTarget,
        model: Option<&str>,
    ) -> Result<(HeaderValue, Payload), TargetFailure> {
        match (&self.parsed.json, &self.parsed.inputs, server.config.edits) {
            (Some(json), None, _) | (Some(json), Some(_), EditForm::AsSent | EditForm::Json) => {
                Ok((JSON, renamed(json, model).into()))
            }
            (None, Some(inputs), EditForm::Json) => self.as_json(inputs, model),
            (_, Some(inputs), _) => {
                let form = self.as_form(inputs, model).await;
                form.map_err(TargetFailure::fatal)
            }
            (None, None, _) => Err(TargetFailure::fatal(ApiError::server_error())),
        }
    }

    fn as_json(
        &self,
        inputs: &EditInputs,
        model: Option<&str>,
    ) -> Result<(HeaderValue, Payload), TargetFailure> {
        let files = images::check_files(&inputs.files);
        files.map_err(|found| TargetFailure::fall_back(ApiError::from(found)))?;
        let mut generation = self.parsed.generation.clone();
        generation.model = model.map(str::to_owned);
        images::name_lists(&mut generation);
        let mut edit = Edit::default();
        edit.generation = generation;
        edit.images = Some(
            inputs
                .references
                .iter()
                .cloned()
                .map(Reference::from)
                .collect(),
        );
        edit.mask = inputs
            .mask
            .clone()
            .map(|bytes| Mask::from(Source::of(bytes)));
        let body = serde_json::to_vec(&edit).map_err(|error| {
            let cause = format!("failed to serialize the edit: {error}");
            TargetFailure::fatal(Refusal::internal(cause))
        })?;
        Ok((JSON, Bytes::from(body).into()))
    }

    async fn as_form(
        &self,
        inputs: &EditInputs,
        model: Option<&str>,
    ) -> Result<(HeaderValue, Payload), Refusal> {
        let mut generation = self.parsed.generation.clone();
        generation.model = model.map(str::to_owned);
        let boundary = format!("sluicegate-{:032x}", clock::random_bits());
        let references = self.references(inputs).await?;
        let pieces = images::write_form(
            &generation,
            &references,
            inputs.mask.as_ref(),
            &inputs.files,
            &boundary,
        );
        let content_type =
            HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"));
        Ok((content_type.unwrap_or(JSON), pieces.into()))
    }
}

/// Returns the failure of the engine. A request that it does not support may succeed at another
/// target.
fn engine_failure(error: EngineError) -> TargetFailure {
    match error {
        EngineError::Unsupported { .. } => TargetFailure::fall_back(error),
        error => TargetFailure::of(error),
    }
}

fn too_many(found: usize, most: usize) -> EngineError {
    let reason = format!("There are {found} pictures to start from; at most {most} are accepted.");
    EngineError::Unsupported {
        param: Some("images".to_owned()),
        reason,
    }
}

/// Returns the document with the upstream's name of the model, without copying the large parts.
fn renamed(json: &Bytes, model: Option<&str>) -> Vec<Bytes> {
    let mut splice = Splice::new(json);
    if let Some(model) = model {
        splice.set(
            "model",
            serde_json::Value::from(model).to_string().as_bytes(),
        );
    }
    outgoing::edited_chunks(&splice, json)
}

/// The length of a name, and the number of names, in the list of settings that were left out.
const MAX_NAME: usize = 64;
const MAX_NAMES: usize = 16;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
