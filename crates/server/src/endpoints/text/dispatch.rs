//! Putting a request for text to whoever serves its model.

use std::sync::Arc;

use engine::{EngineError, Generation};
use futures_util::TryStreamExt;
use http::{HeaderMap, HeaderValue};
use translate::field_map;
use translate::inbound::Inbound;
use translate::outbound::{Protocol, encode};
use upstream::relay::Relayed;
use upstream::{Outgoing, Upstream, listen};
use wire::{ApiError, Splice};

use super::{ParsedRequest, TextEndpoint};
use crate::attempt::{Coming, Dispatch, StartResult, Started, TargetFailure, Turn};
use crate::body::plain;
use crate::gateway::Gateway;
use crate::image_urls;
use crate::outgoing;
use crate::refusal::Refusal;
use crate::targets::{Handling, SelectedTarget, UpstreamTarget};

/// A request for text on its way to an answer.
pub(super) struct TextDispatch<D: TextEndpoint> {
    asked: ParsedRequest<D>,
    gateway: Arc<Gateway>,
    /// The name of the key.
    key: String,
    /// The request in neutral words, or what has none, once a target needed it.
    inbound: Option<Result<Inbound, ApiError>>,
}

impl<D: TextEndpoint> TextDispatch<D> {
    /// A request that was put to nobody yet.
    pub(super) fn new(asked: ParsedRequest<D>, gateway: &Arc<Gateway>, key: &str) -> Self {
        Self { asked, gateway: Arc::clone(gateway), key: key.to_owned(), inbound: None }
    }
}

impl<D: TextEndpoint> Dispatch for TextDispatch<D> {
    type Manner = D;

    async fn embedded(&mut self, turn: Turn) -> StartResult<D> {
        let gateway = Arc::clone(&self.gateway);
        let Some(engine) = &gateway.local else { return Err(TargetFailure::here(Refusal::no_engine())) };
        let mut inbound = self.inbound(turn).map_err(TargetFailure::here)?;
        inbound.request.reasoning.by_default = self.asked.thinks;
        let share = self.asked.upload.share();
        image_urls::inline(&mut inbound.request, &self.key, &gateway, share).await.map_err(TargetFailure::finally)?;
        let started = engine.start(inbound.request).await;
        // What is too much for a small model may be little for the next one.
        let Generation { dropped, events } = started.map_err(|error| TargetFailure::here(plain::refuse(&error)))?;
        inbound.dropped.extend(dropped);
        Ok(Started { dropped: inbound.dropped, answer: Coming::Neutral(events, ()), patience: None })
    }

    async fn upstream(&mut self, server: &UpstreamTarget, target: &SelectedTarget, turn: Turn) -> StartResult<D> {
        let model = target.model.clone().unwrap_or_else(|| self.asked.model.clone());
        match server.road(D::PROTOCOL) {
            Handling::Relay => self.relay(server, &model, turn).await,
            Handling::Translate(protocol) => self.translate(server, protocol, model, turn).await,
        }
    }
}

impl<D: TextEndpoint> TextDispatch<D> {
    /// Bytes through.
    async fn relay(&self, server: &UpstreamTarget, model: &str, turn: Turn) -> StartResult<D> {
        let ParsedRequest { upload, headers, streams, deadline, .. } = &self.asked;
        let mut splice = Splice::new(&upload.bytes);
        outgoing::rename(&mut splice, &self.asked.model, model);
        D::edit(server, &mut splice);
        let outgoing = Outgoing {
            path: D::UPSTREAM_PATH,
            content_type: HeaderValue::from_static("application/json"),
            headers: headers.clone(),
            body: outgoing::pieces(&splice, &upload.bytes).into(),
            accept_stream: *streams,
        };
        let answer = outgoing::ask(server, &outgoing, *deadline, turn.first).await?.at_most(outgoing::MAX_STREAM);
        let patience = server.stated.event_idle;
        let relayed = if *streams {
            upstream::relay::stream(answer, D::Relay::default(), D::SPOKEN, &self.asked.model, patience).await
        } else {
            upstream::relay::whole(answer, D::SPOKEN, &self.asked.model, patience).await
        };
        let answer = match relayed.map_err(TargetFailure::of)? {
            Relayed::Neutral(events) => Coming::Neutral(upstream::said(events), ()),
            Relayed::Stream(relay) => Coming::Relay(relay),
            Relayed::Whole(body, end) => Coming::Whole((body, end)),
        };
        Ok(Started { dropped: Vec::new(), answer, patience: Some(patience) })
    }

    /// By neutral words.
    async fn translate(
        &mut self,
        server: &UpstreamTarget,
        protocol: Protocol,
        model: String,
        turn: Turn,
    ) -> StartResult<D> {
        let mut dropped = self.losses(protocol).map_err(TargetFailure::here)?;
        let mut inbound = self.inbound(turn).map_err(TargetFailure::here)?;
        inbound.request.model = model;
        let envelope = server.envelope.as_ref().filter(|_| D::SEALS);
        if let Some(envelope) = envelope {
            envelope.unseal(&mut inbound.request);
        }
        let settings = encode::Settings {
            stream: self.asked.streams,
            max_tokens: server.stated.max_tokens,
            sampling: server.stated.sampling,
        };
        let spoken = encode::request(protocol, &inbound.request, &settings);
        let spoken = spoken.map_err(|error| TargetFailure::here(plain::refuse(&error)))?;
        outgoing::add(&mut dropped, spoken.dropped.iter().map(ToString::to_string));
        let outgoing = Outgoing {
            path: outgoing::path(protocol),
            content_type: HeaderValue::from_static("application/json"),
            headers: HeaderMap::new(),
            body: bytes::Bytes::from(spoken.body).into(),
            accept_stream: self.asked.streams,
        };
        let answer =
            outgoing::ask(server, &outgoing, self.asked.deadline, turn.first).await?.at_most(outgoing::MAX_STREAM);
        let patience = server.stated.event_idle;
        let mut events = listen(answer, protocol, patience).await.map_err(TargetFailure::of)?;
        if let Some(envelope) = envelope {
            let mut sealer = envelope.sealer();
            events = Box::pin(events.map_ok(move |event| sealer.event(event)));
        }
        // Who streams is told nothing in the words of an upstream (`translate::in_stream`).
        if !self.asked.streams {
            let upstream = server.upstream.clone();
            events = Box::pin(events.map_err(move |error| without_key(error, &upstream)));
        }
        Ok(Started { dropped, answer: Coming::Neutral(events, ()), patience: Some(patience) })
    }

    /// The names of what the upstream's protocol has no place for.
    fn losses(&self, protocol: Protocol) -> Result<Vec<String>, Refusal> {
        let document = serde_json::from_slice(&self.asked.upload.bytes).map_err(|error| Refusal {
            cause: Some(format!("a request that was read cannot be read again: {error}")),
            ..ApiError::server_error().into()
        })?;
        Ok(field_map::losses(D::SPOKEN, protocol, &document)?)
    }

    /// The request in neutral words. It is copied only where another target may need it too.
    fn inbound(&mut self, turn: Turn) -> Result<Inbound, ApiError> {
        if let Some(valid) = self.asked.valid.take() {
            self.inbound = Some(D::request(*valid));
        }
        let inbound = if turn.last { self.inbound.take() } else { self.inbound.clone() };
        inbound.unwrap_or_else(|| Err(ApiError::server_error()))
    }
}

/// What a failure tells the client, without the key that the upstream was shown.
fn without_key(mut error: EngineError, upstream: &Upstream) -> EngineError {
    if let EngineError::Rejected { message, param, .. } = &mut error {
        upstream.redact(message);
        param.iter_mut().for_each(|param| upstream.redact(param));
    }
    error
}
