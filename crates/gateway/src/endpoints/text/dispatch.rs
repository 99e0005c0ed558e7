//! Sends a text request to a target: the embedded engine or an upstream.

use std::sync::Arc;

use answer::{Answer, Asked, read_stream, until_stop};
use bytes::Bytes;
use engine::{EngineError, Generation, TextStream};
use field_map::Outline;
use futures_util::TryStreamExt;
use http::HeaderMap;
use policy::Policy;
use policy::targets::{Backend, Target, UpstreamTarget};
use relay::seals::{self, Marker, Openable};
use tokio::time::Instant;
use translate::inbound::{Inbound, Reply};
use translate::outbound::StopFilter;
use translate::outbound::encode::{self, DroppedField, EncodedRequest};
use upstream::{ClientSockets, Outgoing, ResponseMeta, Upstream};
use vendor::Protocol;
use vendor::envelope::{self, SealGroup};
use wire::{ApiError, Splice};

use super::{ParsedRequest, TextEndpoint, stamp};
use crate::exchange::answer::started::Started;
use crate::exchange::refusal::Refusal;
use crate::long_work::LongWork;
use crate::request::attempt::{StartResult, TargetFailure, Turn};
use crate::request::image_urls;
use crate::request::outgoing::{self, Draft};
use crate::state::{Caller, GatewayState};

/// A text request and the state of its attempts.
pub(super) struct TextDispatch<D: TextEndpoint> {
    pub(super) parsed: ParsedRequest<D>,
    state: Arc<GatewayState>,
    policy: Arc<Policy>,
    /// The name of the key.
    key: Arc<str>,
    /// The WebSockets to upstreams of the client's connection.
    sockets: Option<ClientSockets>,
    deadline: Instant,
    pub(super) asked: Arc<Asked>,
    /// The account of the first upstream of the client's protocol that was tried.
    first_group: Option<SealGroup>,
    /// The place of the target that has refused a seal, and gets none.
    without_seals: Option<usize>,
    /// Marks the seals of a relayed answer, if another upstream could get them.
    pub(super) marker: Option<Marker>,
    /// The plain reply that the events of a model are folded into, once the request was read for it.
    reply: Option<Box<Reply<D>>>,
    /// The parts of the head of the last response for the log and for the client.
    pub(super) meta: ResponseMeta,
}

pub(super) enum TextAnswer {
    /// The events of a model.
    Translated(TextStream),
    /// The response of an upstream that uses the client's protocol.
    Relayed(Answer),
}

impl<D: TextEndpoint> TextDispatch<D> {
    pub(super) fn new(parsed: ParsedRequest<D>, caller: &Caller<'_>) -> Self {
        Self {
            parsed,
            state: Arc::clone(caller.state),
            policy: Arc::clone(caller.policy),
            key: Arc::clone(&caller.key.name),
            sockets: caller.record.connection.sockets.clone(),
            deadline: caller.deadline,
            asked: Arc::clone(&caller.record.targets.asked),
            first_group: None,
            without_seals: None,
            marker: None,
            reply: None,
            meta: ResponseMeta::default(),
        }
    }

    /// Sends the request to a target, and returns its answer. Only the kind of a relayed answer is
    /// known.
    pub(super) async fn start_on(
        &mut self,
        target: &Target,
        turn: Turn,
    ) -> StartResult<TextAnswer> {
        let Backend::Upstream(server) = &target.backend else {
            // Boxed because its future is large, with the state for fetching images in it, and
            // would enlarge every request.
            return Box::pin(self.embedded(turn.last)).await;
        };
        let model = target.model.as_deref();
        if self.without_seals != Some(target.place) {
            self.without_seals = None;
        }
        match server.translation(D::PROTOCOL) {
            None => {
                // Only relayed answers have seals without a mark.
                let mut openable = server.openable(&mut self.first_group);
                if self.without_seals.is_some() {
                    openable = openable.none();
                }
                self.relay(server, model, openable, turn).await
            }
            Some(protocol) => {
                let model = model.unwrap_or(&self.parsed.model).to_owned();
                let translated = self.translate(server, protocol, model, turn).await;
                let is_other = protocol != D::UPSTREAM_PROTOCOL;
                translated.map_err(|failure| match is_other {
                    true => failure.without_reported(),
                    false => failure,
                })
            }
        }
    }

    /// Returns the request for a hedge, unless a server may keep its response or go on in the background.
    /// The state of the attempt is in `asked`, and the seals belong to `first`, the first target.
    pub(super) fn hedged(&self, first: &Target, asked: Arc<Asked>) -> Option<Self> {
        let model = self.policy.catalog.find(&self.parsed.model)?;
        if self.parsed.notes.is_in_background || model.keeps_responses() {
            return None;
        }
        let mut first_group = None;
        if let Backend::Upstream(server) = &first.backend
            && first.relays(D::PROTOCOL)
        {
            server.openable(&mut first_group);
        }
        Some(Self {
            parsed: ParsedRequest {
                body: self.parsed.body.again(),
                model: self.parsed.model.clone(),
                headers: self.parsed.headers.clone(),
                ..self.parsed
            },
            state: Arc::clone(&self.state),
            policy: Arc::clone(&self.policy),
            key: Arc::clone(&self.key),
            // Its target does not know the conversation, so it gets one HTTP request.
            sockets: None,
            deadline: self.deadline,
            asked,
            first_group,
            without_seals: None,
            marker: None,
            reply: None,
            meta: ResponseMeta::default(),
        })
    }

    /// Leaves out the seals of the request when this target is tried again.
    pub(super) fn leave_out_seals(&mut self, target: &Target) -> bool {
        self.without_seals.replace(target.place) != Some(target.place)
    }

    async fn embedded(&mut self, is_last: bool) -> StartResult<TextAnswer> {
        let state = Arc::clone(&self.state);
        let Some(engine) = &state.text_engine else {
            return Err(TargetFailure::fall_back(Refusal::no_engine()));
        };
        let mut inbound = self.inbound(is_last).map_err(TargetFailure::fall_back)?;
        inbound.request.reasoning.by_default = self.parsed.reasons_by_default;
        self.asked.lose(&inbound.dropped);
        let share = &self.parsed.body.upload.share;
        image_urls::inline(&mut inbound.request, &self.key, &state, share)
            .await
            .map_err(|error| TargetFailure::fatal(error.with_image_url_code(D::IMAGE_URL_CODE)))?;
        let started = engine.start(inbound.request).await;
        // A request that is too large for a small model may fit the next one.
        let Generation { dropped, events } = started.map_err(TargetFailure::fall_back)?;
        inbound.dropped.extend(dropped);
        Ok(Started {
            dropped: inbound.dropped,
            answer: TextAnswer::Translated(events),
        })
    }

    /// Relays the request; only the model's name and a few fields change.
    async fn relay(
        &mut self,
        server: &UpstreamTarget,
        model: Option<&str>,
        openable: Openable,
        turn: Turn,
    ) -> StartResult<TextAnswer> {
        self.parsed.body.release();
        let is_marked = self.policy.routes.has_other_account(server);
        self.marker = is_marked.then(|| Marker::new(D::UPSTREAM_PROTOCOL, &server.envelope));
        let ParsedRequest {
            body,
            headers,
            streams,
            ..
        } = &self.parsed;
        let whole = &body.upload.bytes;
        let adapt = || {
            let mut splice = Splice::new(whole);
            if let Some(model) = model {
                outgoing::replace_model(&mut splice, &self.parsed.model, model);
            }
            D::edit(server, self.parsed.notes, &mut splice);
            let lost = match self.parsed.notes.has_no_seals {
                true => Vec::new(),
                false => seals::leave_out_foreign(D::UPSTREAM_PROTOCOL, &openable, &mut splice),
            };
            let draft = Draft {
                protocol: D::UPSTREAM_PROTOCOL,
                model: model.unwrap_or(&self.parsed.model),
                is_relayed: true,
            };
            let (body, mut dropped) = outgoing::adapted(server, draft, &splice, whole);
            dropped.extend(lost.into_iter().map(str::to_owned));
            (body, dropped)
        };
        let (body, mut dropped) = self.state.long_work.run(whole.len(), adapt).await;
        if self.parsed.notes.hides_image_tools {
            dropped.push("tools[]".to_owned());
        }
        self.asked.lose(&dropped);
        let headers = server.config.without_fixed(headers.clone());
        let headers = turn.traced(self.with_affinity(server, headers));
        let path = outgoing::path(D::UPSTREAM_PROTOCOL);
        let outgoing = Outgoing {
            sockets: self.sockets.clone(),
            ..outgoing::json(&self.key, path, headers, body, *streams)
        };
        let (deadline, meta) = (self.deadline, &mut self.meta);
        let answer =
            outgoing::send_and_classify(server, &outgoing, deadline, turn.effort(), meta).await?;
        Ok(Started {
            dropped,
            answer: TextAnswer::Relayed(answer.at_most(outgoing::MAX_STREAM)),
        })
    }

    /// Translates the request and the answer between the client's and the upstream's protocol.
    async fn translate(
        &mut self,
        server: &UpstreamTarget,
        protocol: Protocol,
        model: String,
        turn: Turn,
    ) -> StartResult<TextAnswer> {
        let (state, length) = (Arc::clone(&self.state), self.parsed.body.upload.bytes.len());
        let encode = || self.encoded(server, protocol, &model, turn.last);
        let (encoded, mut dropped) = state.long_work.run(length, encode).await?;
        let headers = if protocol == D::UPSTREAM_PROTOCOL {
            server.config.without_fixed(self.parsed.headers.clone())
        } else {
            HeaderMap::new()
        };
        let headers = turn.traced(self.with_affinity(server, headers));
        let whole = Bytes::from(encoded.body);
        let draft = Draft {
            protocol,
            model: &model,
            is_relayed: false,
        };
        let (body, left_out) = outgoing::adapted(server, draft, &Splice::new(&whole), &whole);
        // The gateway itself has set the options of the stream.
        dropped.extend(left_out.into_iter().filter(|name| name != "stream_options"));
        self.asked.lose(&dropped);
        let path = outgoing::path(protocol);
        let outgoing = Outgoing {
            // The input no longer has the items of the client.
            sockets: self.sockets.clone().map(ClientSockets::without_previous),
            ..outgoing::json(&self.key, path, headers, body, self.parsed.streams)
        };
        let (deadline, meta) = (self.deadline, &mut self.meta);
        let answer = outgoing::send_and_classify(server, &outgoing, deadline, turn.effort(), meta)
            .await?
            .at_most(outgoing::MAX_STREAM);
        let mut events = read_stream(answer, protocol, Arc::clone(&self.asked))
            .await
            .map_err(TargetFailure::of)?;
        if !encoded.stops.is_empty() {
            // A plain reply is complete, and its usage with it.
            let filter = StopFilter::new(encoded.stops, !self.parsed.streams);
            events = until_stop(events, filter);
        }
        let mut sealer = server.envelope.sealer();
        events = Box::pin(events.map_ok(move |event| sealer.event(event)));
        if !encoded.names.is_empty() {
            let mut names = encoded.names;
            events = Box::pin(events.map_ok(move |event| names.restore(event)));
        }
        // A streaming client never gets an upstream's message (`vendor::in_stream`).
        if !self.parsed.streams {
            let upstream = server.upstream.clone();
            events = Box::pin(events.map_err(move |error| without_key(error, &upstream)));
        }
        Ok(Started {
            dropped,
            answer: TextAnswer::Translated(events),
        })
    }

    /// Records the length of the events of an answer, and the kinds of content that they leave out.
    pub(super) fn noted(&self, events: TextStream) -> TextStream {
        let asked = Arc::clone(&self.asked);
        Box::pin(events.inspect_ok(move |event| asked.note(event)))
    }

    pub(super) fn long_work(&self) -> &LongWork {
        &self.state.long_work
    }

    /// Adds the header that binds the conversation to one server of the upstream, if it has one.
    fn with_affinity(&self, server: &UpstreamTarget, mut headers: HeaderMap) -> HeaderMap {
        let name = server.config.affinity_header.as_ref();
        if let Some((name, conversation)) = name.zip(self.parsed.conversation)
            && let Ok(value) = format!("{conversation:016x}").try_into()
        {
            headers.insert(name, value);
        }
        headers
    }

    /// Encodes the request for an upstream of another protocol, and names the fields that are lost.
    fn encoded(
        &mut self,
        server: &UpstreamTarget,
        protocol: Protocol,
        model: &str,
        is_last: bool,
    ) -> Result<(EncodedRequest, Vec<String>), TargetFailure> {
        let mut dropped = self
            .dropped_fields(protocol)
            .map_err(TargetFailure::fall_back)?;
        if self.parsed.notes.is_stored {
            dropped.retain(|name| name != "store");
        }
        let mut inbound = self.inbound(is_last).map_err(TargetFailure::fall_back)?;
        model.clone_into(&mut inbound.request.model);
        let mut has_foreign = server.envelope.unseal(&mut inbound.request);
        if self.without_seals.is_some() {
            envelope::remove_seals(&mut inbound.request);
            has_foreign = true;
        }
        let settings = server.settings(model, self.parsed.streams, true);
        let encoded = encode::request(protocol, &inbound.request, &settings)
            .map_err(TargetFailure::fall_back)?;
        // Of the paths in `inbound`, those with an index are in the field map as well.
        let has_index = |path: &String| path.contains('[') && !path.contains("[]");
        let mut fields = inbound.dropped;
        fields.retain(|path| !has_index(path));
        for name in encoded
            .dropped
            .iter()
            .map(ToString::to_string)
            .chain(has_foreign.then(|| DroppedField::Reasoning.to_string()))
            .chain(fields)
        {
            if !dropped.contains(&name) {
                dropped.push(name);
            }
        }
        Ok((encoded, dropped))
    }

    /// Returns the names of the request's fields that the upstream's protocol cannot express.
    fn dropped_fields(&self, protocol: Protocol) -> Result<Vec<String>, Refusal> {
        let outline = Outline::read(D::UPSTREAM_PROTOCOL, &self.parsed.body.upload.bytes);
        let outline = outline.map_err(|error| {
            Refusal::internal(format!(
                "failed to parse the request a second time: {error}"
            ))
        })?;
        Ok(outline.dropped_fields(protocol)?)
    }

    /// Returns the request in the neutral model. A plain reply is prepared with it.
    fn inbound(&mut self, is_last: bool) -> Result<Inbound, ApiError> {
        let ParsedRequest {
            body,
            model,
            streams,
            ..
        } = &mut self.parsed;
        let model = self.policy.catalog.find(model);
        body.neutral(model, is_last, |request| {
            if !*streams && self.reply.is_none() {
                self.reply = Some(Box::new(Reply::new(request, &stamp())));
            }
        })
    }

    /// Returns the plain reply that the events of a model are folded into. A relayed request is read
    /// again for it, because its upstream was not expected to answer with events.
    pub(super) fn reply(&mut self) -> Result<Box<Reply<D>>, ApiError> {
        if let Some(reply) = self.reply.take() {
            return Ok(reply);
        }
        let model = self.policy.catalog.find(&self.parsed.model);
        let request = self.parsed.body.parsed_again(model)?;
        Ok(Box::new(Reply::new(&request, &stamp())))
    }
}

/// Redacts the upstream's API key from a failure that the client gets to see.
fn without_key(mut error: EngineError, upstream: &Upstream) -> EngineError {
    if let EngineError::Rejected { message, param, .. } = &mut error {
        upstream.redact(message);
        param.iter_mut().for_each(|param| upstream.redact(param));
    }
    error
}
