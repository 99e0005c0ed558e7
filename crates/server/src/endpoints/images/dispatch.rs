//! Putting a request for pictures to whoever serves its model.

use std::sync::Arc;

use bytes::Bytes;
use engine::{EngineError, ImageEdit, ImageGeneration};
use http::{HeaderMap, HeaderValue};
use images::{Edit, Mask, Operation, Reference, Source};
use translate::inbound::{Pictures, image_request};
use translate::relay::{self, Images};
use upstream::relay::Relay;
use upstream::{Answer, Outgoing, Payload};
use wire::{ApiError, Splice};

use super::encode::Drawing;
use super::read::{ParsedRequest, Start};
use crate::attempt::{Coming, Dispatch, StartResult, Started, TargetFailure, Turn};
use crate::body::plain;
use crate::config::upstream::EditForm;
use crate::gateway::Gateway;
use crate::refusal::Refusal;
use crate::targets::{SelectedTarget, UpstreamTarget};
use crate::{clock, image_urls, outgoing};

/// A request for pictures on its way to an answer.
pub(super) struct ImageDispatch {
    asked: ParsedRequest,
    gateway: Arc<Gateway>,
    /// The name of the key.
    key: String,
    deadline: tokio::time::Instant,
}

impl ImageDispatch {
    /// A request that was put to nobody yet.
    pub(super) fn new(asked: ParsedRequest, gateway: &Arc<Gateway>, key: &str, deadline: tokio::time::Instant) -> Self {
        Self { asked, gateway: Arc::clone(gateway), key: key.to_owned(), deadline }
    }

    /// How many pictures are asked for: the validator has seen that it is a small number.
    fn count(&self) -> u32 {
        u32::try_from(self.asked.generation.count()).unwrap_or(1)
    }
}

impl Dispatch for ImageDispatch {
    type Manner = Drawing;

    async fn embedded(&mut self, turn: Turn) -> StartResult<Drawing> {
        let gateway = Arc::clone(&self.gateway);
        let Some(engine) = &gateway.easel else { return Err(TargetFailure::here(Refusal::no_engine())) };
        // Who draws keeps the pictures; what nobody else may need goes at once.
        if turn.last {
            self.asked.json = None;
        }
        let edit = match &self.asked.start {
            // Before they are fetched.
            Some(start) if start.references.len() > engine.most_references() => {
                return Err(TargetFailure::here(plain::refuse(&too_many(
                    start.references.len(),
                    engine.most_references(),
                ))));
            }
            Some(start) => Some(self.edit(start).await.map_err(TargetFailure::finally)?),
            None => None,
        };
        let request = image_request(&self.asked.generation, &self.asked.model, edit);
        let count = request.count;
        let ImageGeneration { traits, events } = engine.start(request).await.map_err(not_served)?;
        let pictures = Pictures::new(self.asked.operation, &traits, count, clock::random_bits());
        Ok(Started { dropped: Vec::new(), answer: Coming::Neutral(events, pictures), patience: None })
    }

    async fn upstream(&mut self, server: &UpstreamTarget, target: &SelectedTarget, turn: Turn) -> StartResult<Drawing> {
        let model = target.model.as_ref().unwrap_or(&self.asked.model);
        let (content_type, body) = self.body(server, model).await?;
        let streams = self.asked.generation.streams();
        let path = match self.asked.operation {
            Operation::Generation => "/images/generations",
            Operation::Edit => "/images/edits",
        };
        let outgoing = Outgoing { path, content_type, headers: HeaderMap::new(), body, accept_stream: streams };
        let patience = server.stated.event_idle;
        let answer = if streams {
            let answer = outgoing::ask(server, &outgoing, self.deadline, turn.first).await?;
            self.stream(answer, patience).await?
        } else {
            let incoming = server.upstream.ask(&outgoing, self.deadline, turn.first).await;
            let incoming = incoming.map_err(|failure| TargetFailure::of(failure.error))?;
            Coming::Whole(upstream::ImageReply::read(incoming, &server.upstream).await.map_err(TargetFailure::of)?)
        };
        Ok(Started { dropped: Vec::new(), answer, patience: Some(patience) })
    }
}

impl ImageDispatch {
    /// What an edit starts from, as bytes.
    async fn edit(&self, start: &Start) -> Result<ImageEdit, Refusal> {
        Ok(ImageEdit { references: self.references(start).await?, mask: start.mask.clone() })
    }

    async fn references(&self, start: &Start) -> Result<Vec<Bytes>, Refusal> {
        let mut references = Vec::new();
        for (i, source) in start.references.iter().enumerate() {
            references.push(match source {
                Source::Inline { bytes, .. } => bytes.clone(),
                Source::Url(url) => {
                    let param = format!("images[{i}].image_url");
                    image_urls::picture(url, Some(&param), &self.key, &self.gateway, &self.asked.share).await?.bytes
                }
            });
        }
        Ok(references)
    }

    /// The body for an upstream, in the form that it takes, and its type.
    async fn body(&self, server: &UpstreamTarget, model: &str) -> Result<(HeaderValue, Payload), TargetFailure> {
        match (&self.asked.json, &self.asked.start, server.stated.edits) {
            (Some(json), None, _) | (Some(json), Some(_), EditForm::AsSent | EditForm::Json) => {
                Ok((JSON, renamed(json, model).into()))
            }
            (None, Some(start), EditForm::Json) => self.as_json(start, model).map_err(TargetFailure::finally),
            (_, Some(start), _) => self.as_form(start, model).await.map_err(TargetFailure::finally),
            (None, None, _) => Err(TargetFailure::finally(ApiError::server_error())),
        }
    }

    fn as_json(&self, start: &Start, model: &str) -> Result<(HeaderValue, Payload), Refusal> {
        let mut generation = self.asked.generation.clone();
        generation.model = Some(model.to_owned());
        let mask = start.mask.clone().map(|bytes| Mask::from(Source::of(bytes)));
        let images = start.references.iter().cloned().map(Reference::from).collect();
        let edit = Edit { images: Some(images), image: None, mask, generation };
        let body = serde_json::to_vec(&edit).map_err(|error| Refusal {
            cause: Some(format!("an edit has no JSON form: {error}")),
            ..ApiError::server_error().into()
        })?;
        Ok((JSON, Bytes::from(body).into()))
    }

    async fn as_form(&self, start: &Start, model: &str) -> Result<(HeaderValue, Payload), Refusal> {
        let mut generation = self.asked.generation.clone();
        generation.model = Some(model.to_owned());
        let boundary = format!("sluicegate-{:032x}", clock::random_bits());
        let references = self.references(start).await?;
        let pieces = images::write_form(&generation, &references, start.mask.as_ref(), &boundary);
        let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"));
        Ok((content_type.unwrap_or(JSON), pieces.into()))
    }

    async fn stream(&self, answer: Answer, patience: std::time::Duration) -> Result<Coming<Drawing>, TargetFailure> {
        let (operation, count) = (self.asked.operation, self.count());
        match answer {
            Answer::Events(first, body) => {
                let relay = Relay::begin(first, body, Images::new(operation, count), &self.asked.model, patience).await;
                Ok(Coming::Relay(Box::new(relay.map_err(TargetFailure::of)?)))
            }
            Answer::Json(body) => {
                let (events, end) = relay::stream_of(&body, operation, count).map_err(TargetFailure::of)?;
                Ok(Coming::Told(events.into(), end))
            }
        }
    }
}

/// What this engine does not do, another target may.
fn not_served(error: EngineError) -> TargetFailure {
    match error {
        EngineError::Unsupported { .. } => TargetFailure::here(plain::refuse(&error)),
        error => TargetFailure::of(error),
    }
}

fn too_many(found: usize, most: usize) -> EngineError {
    let reason = format!("There are {found} pictures to start from; at most {most} are accepted.");
    EngineError::Unsupported { param: Some("images".to_owned()), reason }
}

/// A document under the upstream's name of the model, of which nothing large was copied.
fn renamed(json: &Bytes, model: &str) -> Vec<Bytes> {
    let mut splice = Splice::new(json);
    splice.set("model", serde_json::Value::from(model).to_string().as_bytes());
    outgoing::pieces(&splice, json)
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
