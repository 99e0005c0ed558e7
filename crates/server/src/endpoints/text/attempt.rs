//! Getting an answer to a request: its targets are asked in order until one has begun to answer.

use std::sync::{Arc, OnceLock};

use engine::{Generation, TextStream};
use http::HeaderValue;
use tokio::time::timeout_at;
use translate::inbound::Inbound;
use translate::ledger;
use translate::outbound::{Protocol, say};
use upstream::relay::Relayed;
use upstream::{Outgoing, listen};
use wire::{ApiError, Splice};

use super::{Asked, TextEndpoint};
use crate::ask::{self, Fallen};
use crate::gateway::Gateway;
use crate::policy::Policy;
use crate::references;
use crate::refusal::Refusal;
use crate::routes::{Chosen, Place, Road, Server};

/// A request on its way to an answer. It owns all it needs, so that it can go on within the answer's own body.
pub(crate) struct Attempt<D: TextEndpoint> {
    asked: Asked<D>,
    gateway: Arc<Gateway>,
    /// Kept until the end: a request sees one configuration.
    _policy: Arc<Policy>,
    targets: Vec<Chosen>,
    key: String,
    served: Arc<OnceLock<String>>,
    /// The request in neutral words, once a target needed it.
    inbound: Option<Inbound>,
}

/// An answer that has begun.
pub(crate) struct Begun<D: TextEndpoint> {
    /// What of the request is lost on the way.
    pub(crate) dropped: Vec<String>,
    /// What comes.
    pub(crate) answer: Coming<D>,
    /// How long it may go without an event.
    pub(crate) patience: Option<std::time::Duration>,
}

/// What comes of an answer.
pub(crate) enum Coming<D: TextEndpoint> {
    /// What a model does.
    Neutral(TextStream),
    /// What an upstream of the client's own protocol says.
    Relayed(Box<Relayed<D::Relay>>),
}

impl<D: TextEndpoint> Attempt<D> {
    /// Asks nobody yet.
    pub(crate) fn new(
        asked: Asked<D>,
        gateway: &Arc<Gateway>,
        policy: &Arc<Policy>,
        key: &str,
        served: Arc<OnceLock<String>>,
    ) -> Self {
        let targets = policy.routes.of(&asked.model);
        let (gateway, policy, key) = (Arc::clone(gateway), Arc::clone(policy), key.to_owned());
        Self { asked, gateway, _policy: policy, targets, key, served, inbound: None }
    }

    /// Asks the targets in order.
    ///
    /// # Errors
    /// The failure of the last one that was asked: the others are not asked when it is the request that is wrong.
    pub(crate) async fn begin(mut self) -> Result<Begun<D>, Refusal> {
        let deadline = self.asked.deadline;
        let mut last = None;
        for target in std::mem::take(&mut self.targets) {
            let asking = async {
                match &target.place {
                    Place::Embedded => self.embedded().await,
                    Place::Upstream(server) => self.upstream(server, &target, last.is_none()).await,
                }
            };
            match timeout_at(deadline, asking).await.unwrap_or_else(|_| Err(Fallen::finally(Refusal::timeout()))) {
                Ok(begun) => {
                    // Set once: a request is answered by one target.
                    let _ = self.served.set(target.label());
                    return Ok(begun);
                }
                Err(fallen) => {
                    self.note(&target, &fallen);
                    if !fallen.may_fall_back {
                        return Err(fallen.refusal);
                    }
                    last = Some(fallen.refusal);
                }
            }
        }
        Err(last.unwrap_or_else(Refusal::no_engine))
    }

    fn note(&self, target: &Chosen, fallen: &Fallen) {
        if let Place::Upstream(server) = &target.place {
            ask::note(&self.gateway.metrics, server, &fallen.refusal);
        }
    }

    async fn embedded(&mut self) -> Result<Begun<D>, Fallen> {
        let gateway = Arc::clone(&self.gateway);
        let Some(engine) = &gateway.local else { return Err(Fallen::here(Refusal::no_engine())) };
        let mut inbound = self.inbound().map_err(Fallen::finally)?;
        inbound.request.reasoning.by_default = self.asked.thinks;
        references::inline(&mut inbound.request, &self.key, &gateway).await.map_err(Fallen::finally)?;
        let Generation { dropped, events } = engine.start(inbound.request).await.map_err(Fallen::of)?;
        inbound.dropped.extend(dropped);
        Ok(Begun { dropped: inbound.dropped, answer: Coming::Neutral(events), patience: None })
    }

    async fn upstream(&mut self, server: &Server, target: &Chosen, first: bool) -> Result<Begun<D>, Fallen> {
        let model = target.model.clone().unwrap_or_else(|| self.asked.model.clone());
        match server.road(D::PROTOCOL) {
            Road::Relay => self.relay(server, &model, first).await,
            Road::Translate(protocol) => self.translate(server, protocol, model, first).await,
        }
    }

    /// Bytes through.
    async fn relay(&self, server: &Server, model: &str, first: bool) -> Result<Begun<D>, Fallen> {
        let Asked { upload, headers, streams, deadline, .. } = &self.asked;
        let mut splice = Splice::new(&upload.bytes);
        ask::rename(&mut splice, &self.asked.model, model);
        D::edit(server, &mut splice);
        let outgoing = Outgoing {
            path: D::UPSTREAM_PATH,
            content_type: HeaderValue::from_static("application/json"),
            headers: headers.clone(),
            body: ask::pieces(&splice, &upload.bytes).into(),
            accept_stream: *streams,
        };
        let answer = ask::ask(server, &outgoing, *deadline, first).await?;
        let patience = server.stated.event_idle;
        let relayed = if *streams {
            upstream::relay::stream(answer, D::Relay::default(), D::SPOKEN, &self.asked.model, patience).await
        } else {
            upstream::relay::whole(answer, D::SPOKEN, &self.asked.model, patience).await
        };
        let answer = match relayed.map_err(Fallen::of)? {
            Relayed::Neutral(events) => Coming::Neutral(upstream::said(events)),
            relayed => Coming::Relayed(Box::new(relayed)),
        };
        Ok(Begun { dropped: Vec::new(), answer, patience: Some(patience) })
    }

    /// By neutral words.
    async fn translate(
        &mut self,
        server: &Server,
        protocol: Protocol,
        model: String,
        first: bool,
    ) -> Result<Begun<D>, Fallen> {
        let mut dropped = self.losses(protocol).map_err(Fallen::finally)?;
        let mut inbound = self.inbound().map_err(Fallen::finally)?;
        inbound.request.model = model;
        let settings = say::Settings {
            stream: self.asked.streams,
            max_tokens: server.stated.max_tokens,
            sampling: server.stated.sampling,
        };
        let spoken = say::request(protocol, &inbound.request, &settings).map_err(Fallen::of)?;
        ask::add(&mut dropped, inbound.dropped);
        ask::add(&mut dropped, spoken.dropped.iter().map(ToString::to_string));
        let outgoing = Outgoing {
            path: ask::path(protocol),
            content_type: HeaderValue::from_static("application/json"),
            headers: http::HeaderMap::new(),
            body: bytes::Bytes::from(spoken.body).into(),
            accept_stream: self.asked.streams,
        };
        let answer = ask::ask(server, &outgoing, self.asked.deadline, first).await?;
        let patience = server.stated.event_idle;
        let events = listen(answer, protocol, patience).await.map_err(Fallen::of)?;
        Ok(Begun { dropped, answer: Coming::Neutral(events), patience: Some(patience) })
    }

    /// The names of what the upstream's protocol has no place for.
    fn losses(&self, protocol: Protocol) -> Result<Vec<String>, Refusal> {
        if protocol == D::SPOKEN {
            return Ok(Vec::new());
        }
        let document = serde_json::from_slice(&self.asked.upload.bytes).map_err(|error| Refusal {
            cause: Some(format!("a request that was read cannot be read again: {error}")),
            ..ApiError::server_error().into()
        })?;
        Ok(ledger::losses(D::SPOKEN, protocol, &document)?)
    }

    /// The request in neutral words.
    fn inbound(&mut self) -> Result<Inbound, Refusal> {
        if self.inbound.is_none() {
            self.inbound = Some(D::request(self.asked.valid.clone())?);
        }
        self.inbound.clone().ok_or_else(|| ApiError::server_error().into())
    }
}

impl Chosen {
    /// Who answers, for the log.
    fn label(&self) -> String {
        match &self.place {
            Place::Embedded => "embedded".to_owned(),
            Place::Upstream(server) => server.stated.name.clone(),
        }
    }
}
