//! The targets of each model, the order in which they are tried, and whether they are relayed or
//! translated.

mod credentials;
mod hedge;
mod resolve;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, Facts, Family, Model};
use config::upstream::{CountTokens, Protocol};
use config::{Config, ConfigError};
use engine::EngineError;
use http::StatusCode;
use relay::seals::Openable;
use tokio::time::Instant;
use translate::outbound::encode::Settings;
use upstream::{
    Circuit, Credential, Effort, Incoming, Network, Options, OptionsError, Outgoing, Upstream,
};
use vendor::Protocol as Outbound;
use vendor::envelope::{Envelope, SealGroup};

pub use self::hedge::Hedge;
use crate::model_list::ModelList;
use crate::refresh_schedule::RefreshSchedule;
use crate::target_order::{self, Candidate};
use crate::{affinity, clock};

/// The targets of every model.
pub struct Routes {
    /// The network for new upstreams.
    network: Network,
    upstreams: BTreeMap<String, Arc<UpstreamTarget>>,
    /// The targets of each model, by its id in the catalog.
    targets: BTreeMap<String, Vec<Target>>,
}

/// A target of a model, as a request is sent to it.
#[derive(Clone)]
pub struct Target {
    /// The server or engine that answers.
    pub backend: Backend,
    /// The upstream's name of the model. `None`: the client's.
    pub model: Option<String>,
    /// The relative frequency with which it is tried first.
    pub weight: Option<u32>,
    /// The timeout for the first content of a stream, unless it is the last target that is asked.
    pub first_content_timeout: Option<Duration>,
    /// The hedges of its model, if it has any.
    pub hedge: Option<Arc<Hedge>>,
    /// Its place among the targets of its model.
    pub place: usize,
    /// The facts of its model; `None` at an embedded engine.
    facts: Option<Arc<TargetFacts>>,
}

/// The facts of the model of a target.
struct TargetFacts {
    /// The name of the model at the upstream.
    name: String,
    /// The facts under this name in the configuration.
    configured: Facts,
}

/// The engine or upstream that serves a target.
#[derive(Clone)]
pub enum Backend {
    /// The embedded text or image engine, depending on the model.
    Embedded,
    /// A model server.
    Upstream(Arc<UpstreamTarget>),
}

/// A configured upstream and its client.
pub struct UpstreamTarget {
    /// Its settings.
    pub config: config::upstream::Upstream,
    /// Its client, with its connections.
    pub upstream: Upstream,
    /// Wraps the seals of reasoning and of calls for clients of another protocol.
    pub envelope: Envelope,
    /// The refreshes of its key, if a command prints it.
    pub key_schedule: Option<RefreshSchedule>,
    /// The list of its models, if facts come from it.
    pub model_list: Option<ModelList>,
    options: Options,
}

impl Routes {
    /// Builds the routes of a configuration over `network`.
    pub fn new(config: &Config, network: Network) -> Result<Self, ConfigError> {
        Self::reload(
            config,
            &Self {
                network,
                upstreams: BTreeMap::new(),
                targets: BTreeMap::new(),
            },
        )
    }

    /// Builds the routes of a changed configuration. Unchanged upstreams keep their connections.
    pub fn reload(config: &Config, before: &Self) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let upstreams = before.connected(&config.upstreams, &mut problems);
        let mut targets = resolve::targets(config, &upstreams, &mut problems);
        before.add_hedges(config, &mut targets);
        if problems.is_empty() {
            Ok(Self {
                network: before.network.clone(),
                upstreams,
                targets,
            })
        } else {
            Err(ConfigError::new(problems))
        }
    }

    /// Builds the clients of the upstreams in a changed configuration.
    fn connected(
        &self,
        upstreams: &[config::upstream::Upstream],
        problems: &mut Vec<String>,
    ) -> BTreeMap<String, Arc<UpstreamTarget>> {
        let mut connected = BTreeMap::new();
        let credentials = credentials::read(upstreams, |upstream| self.printed_key(upstream));
        for (upstream, credential) in upstreams.iter().zip(credentials) {
            let name = &upstream.name;
            match UpstreamTarget::new(upstream, credential, self) {
                Ok(server) => {
                    if connected.insert(name.clone(), server).is_some() {
                        problems.push(format!("upstream '{name}': the name is used twice"));
                    }
                }
                Err(found) => problems.extend(
                    found
                        .iter()
                        .map(|problem| format!("upstream '{name}': {problem}")),
                ),
            }
        }
        connected
    }

    /// The upstream of the same name and settings.
    fn same(&self, config: &config::upstream::Upstream) -> Option<&Arc<UpstreamTarget>> {
        let same = self.upstreams.get(&config.name);
        same.filter(|same| same.config == *config)
    }

    /// The key of an upstream that a command has printed. It is refreshed in the background.
    fn printed_key(&self, config: &config::upstream::Upstream) -> Option<Credential> {
        let same = self.same(config).filter(|same| same.key_schedule.is_some());
        same.and_then(|same| same.options.credential.clone())
    }

    /// Adds the hedges of the models to their targets. Hedges of unchanged settings keep their budget.
    fn add_hedges(&self, config: &Config, targets: &mut BTreeMap<String, Vec<Target>>) {
        for entry in config.models.iter().flatten() {
            let id = &entry.model.id;
            let (Some(settings), Some(targets)) = (entry.hedge, targets.get_mut(id)) else {
                continue;
            };
            let before = self.targets.get(id).and_then(|targets| targets.first());
            let same = before.and_then(|target| target.hedge.clone());
            let same = same.filter(|hedge| hedge.settings == settings);
            let hedge = same.unwrap_or_else(|| Arc::new(Hedge::new(settings)));
            for target in targets {
                target.hedge = Some(Arc::clone(&hedge));
            }
        }
    }

    /// Returns the targets of a model in the order in which this request tries them. Among weighted
    /// targets it is drawn by the hash of the request's `conversation`, if that is known. A model
    /// without targets is embedded.
    pub fn select(&self, model: &Model, conversation: impl FnOnce() -> Option<u64>) -> Vec<Target> {
        let Some(targets) = self.targets.get(&model.id) else {
            return vec![Target::EMBEDDED];
        };
        if targets.len() < 2 || targets.iter().all(|target| target.weight.is_none()) {
            return targets.clone();
        }
        // Half of the random bits are enough for one draw.
        let draw = conversation().unwrap_or_else(|| clock::random_bits() as u64);
        target_order::order(&candidates(targets), draw)
            .into_iter()
            .filter_map(|at| targets.get(at).cloned())
            .collect()
    }

    /// All upstreams, with those that are no target of any model.
    pub fn upstreams(&self) -> impl Iterator<Item = &Arc<UpstreamTarget>> {
        self.upstreams.values()
    }

    /// True if the embedded engine may serve a model: it is a target, or the model has no targets.
    pub(crate) fn uses_embedded(&self, model: &Model) -> bool {
        let targets = self.configured(model);
        targets.is_empty()
            || targets
                .iter()
                .any(|target| matches!(target.backend, Backend::Embedded))
    }

    /// True if an upstream may serve a model.
    pub fn uses_upstream(&self, model: &Model) -> bool {
        self.configured(model)
            .iter()
            .any(|target| matches!(target.backend, Backend::Upstream(_)))
    }

    /// True if a target of a model counts the tokens of a prompt that it does not answer.
    pub fn counts_tokens(&self, model: &Model) -> bool {
        let counts = |target: &Target| match &target.backend {
            Backend::Embedded => true,
            Backend::Upstream(server) => server.config.count_tokens() != CountTokens::Off,
        };
        self.possible(model).iter().any(counts)
    }

    /// True if requests of this protocol may be relayed to a target of a model.
    pub fn may_relay(&self, model: &Model, protocol: catalog::Protocol) -> bool {
        let targets = self.configured(model);
        targets.iter().any(|target| target.relays(protocol))
    }

    /// True if all requests of this protocol are relayed, whatever their conversation: neither the
    /// choice among the targets of the model nor any of them depends on it.
    pub fn relays_all(&self, model: &Model, protocol: catalog::Protocol) -> bool {
        let targets = self.configured(model);
        let is_drawn = targets.len() > 1 && targets.iter().any(|target| target.weight.is_some());
        let is_relayed = |target: &Target| target.relays(protocol) && !target.binds_conversations();
        !targets.is_empty() && !is_drawn && targets.iter().all(is_relayed)
    }

    /// True if requests of Responses are relayed to the upstream of this name.
    pub fn relays_responses(&self, name: &str) -> bool {
        let server = self.upstreams.get(name);
        server.is_some_and(|server| server.translation(catalog::Protocol::Responses).is_none())
    }

    /// True if another upstream of the same protocol has another account, to which a client could send
    /// the seals of this one.
    pub fn has_other_account(&self, server: &UpstreamTarget) -> bool {
        let group = server.envelope.group();
        let protocol = server.config.protocol();
        let mut others = self.upstreams.values();
        others.any(|other| other.config.protocol() == protocol && other.envelope.group() != group)
    }

    /// The upstream of this name.
    pub fn upstream(&self, name: &str) -> Option<&Arc<UpstreamTarget>> {
        self.upstreams.get(name)
    }

    /// The targets that may answer requests for a model, in the order of the configuration. A model
    /// without targets is embedded.
    pub fn possible(&self, model: &Model) -> &[Target] {
        static EMBEDDED: Target = Target::EMBEDDED;
        match self.configured(model) {
            [] => std::slice::from_ref(&EMBEDDED),
            targets => targets,
        }
    }

    /// The targets of a model in the order of the configuration.
    pub fn configured(&self, model: &Model) -> &[Target] {
        self.targets.get(&model.id).map_or(&[], Vec::as_slice)
    }

    /// The upstreams that are not a target of any model of `catalog`.
    pub fn unused(&self, catalog: &Catalog) -> impl Iterator<Item = &str> {
        let backends = catalog
            .iter()
            .flat_map(|model| self.configured(model))
            .map(|target| &target.backend);
        let used: Vec<_> = backends
            .filter_map(|backend| match backend {
                Backend::Upstream(server) => Some(server.config.name.as_str()),
                Backend::Embedded => None,
            })
            .collect();
        self.upstreams
            .keys()
            .map(String::as_str)
            .filter(move |name| !used.contains(name))
    }
}

impl Target {
    /// The target of a model without any.
    pub const EMBEDDED: Self = Self {
        backend: Backend::Embedded,
        model: None,
        weight: None,
        first_content_timeout: None,
        hedge: None,
        place: 0,
        facts: None,
    };

    /// A target of no particular model.
    pub fn at(server: &Arc<UpstreamTarget>) -> Self {
        Self {
            backend: Backend::Upstream(Arc::clone(server)),
            ..Self::EMBEDDED
        }
    }

    /// False if this target is known to have no larger window than `other`, which has
    /// refused a prompt as too long for its context of `limit` tokens.
    pub fn may_be_larger(&self, other: &Self, limit: Option<u64>) -> bool {
        let refused = other.window().or(limit);
        !matches!((self.window(), refused), (Some(own), Some(refused)) if own <= refused)
    }

    /// The tokens of the longest prompt that it takes, if that is known.
    fn window(&self) -> Option<u64> {
        self.facts().max_input_tokens.map(u64::from)
    }

    /// The facts of its model: of the configuration, else of the list of its upstream.
    pub fn facts(&self) -> Facts {
        let configured = self.configured_facts().map(|(_, facts)| facts.clone());
        let listed = self.listed_facts().unwrap_or_default();
        configured.unwrap_or_default().or(&listed)
    }

    /// The name of its model at its upstream, and the facts under this name in the configuration.
    pub fn configured_facts(&self) -> Option<(&str, &Facts)> {
        let facts = self.facts.as_ref()?;
        Some((&facts.name, &facts.configured))
    }

    /// The facts of its model in the list of its upstream, if there is one and it was read.
    pub fn listed_facts(&self) -> Option<Facts> {
        let Backend::Upstream(server) = &self.backend else {
            return None;
        };
        server
            .model_list
            .as_ref()?
            .facts(&self.facts.as_ref()?.name)
    }

    /// True if a request can be sent to it at once: it is an upstream, and its circuit breaker is closed.
    pub fn is_available(&self) -> bool {
        let Backend::Upstream(server) = &self.backend else {
            return false;
        };
        let mut hosts = server.upstream.health().into_iter();
        hosts.any(|host| host.circuit == Circuit::Closed)
    }

    /// True if requests of this protocol are relayed to it.
    pub fn relays(&self, protocol: catalog::Protocol) -> bool {
        match &self.backend {
            Backend::Embedded => false,
            Backend::Upstream(server) => server.translation(protocol).is_none(),
        }
    }

    /// True if it gets the hash of the conversation in a header.
    pub fn binds_conversations(&self) -> bool {
        matches!(&self.backend, Backend::Upstream(server) if server.config.affinity_header.is_some())
    }

    /// True if it gets the ids of traces.
    pub fn is_traced(&self) -> bool {
        matches!(&self.backend, Backend::Upstream(server) if server.config.trace)
    }

    /// The vendor, in the words of the conventions for telemetry.
    pub fn provider(&self) -> &'static str {
        match &self.backend {
            Backend::Embedded => "sluicegate",
            Backend::Upstream(server) => server.config.provider(),
        }
    }

    /// The name for logs and metrics.
    pub fn label(&self) -> &str {
        match &self.backend {
            Backend::Embedded => "embedded",
            Backend::Upstream(server) => &server.config.name,
        }
    }
}

impl UpstreamTarget {
    fn new(
        config: &config::upstream::Upstream,
        credential: Result<Option<Credential>, String>,
        before: &Routes,
    ) -> Result<Arc<Self>, Vec<String>> {
        let same = before.same(config);
        let is_stale = before.printed_key(config).is_some();
        let options = config.options(credential)?;
        // The options include the key, which may have changed behind the same name.
        if let Some(same) = same.filter(|same| same.options == options) {
            same.request_refreshes();
            return Ok(Arc::clone(same));
        }
        let unusable = |error: OptionsError| vec![error.to_string()];
        let upstream =
            Upstream::with_network(&before.network, options.clone()).map_err(unusable)?;
        let model_list = config
            .model_list_options(&options)
            .map_err(|error| vec![error])?;
        let model_list = model_list.map(|options| ModelList::new(&before.network, options));
        Ok(Arc::new(Self {
            config: config.clone(),
            key_schedule: config
                .refresh()
                .map(|interval| RefreshSchedule::new(interval, is_stale)),
            model_list: model_list.transpose().map_err(unusable)?,
            options,
            upstream,
            envelope: Envelope::new(&config.secret()),
        }))
    }

    /// Refreshes its key and the list of its models soon.
    fn request_refreshes(&self) {
        let schedules = [
            self.key_schedule.as_ref(),
            self.model_list.as_ref().map(|list| &list.schedule),
        ];
        let schedules = schedules.into_iter().flatten();
        schedules.for_each(RefreshSchedule::request);
    }

    /// Replaces its API key, which requests carry from now on.
    pub fn replace_credential(&self, credential: Credential) {
        if let Some(list) = &self.model_list {
            list.replace_credential(credential.clone());
        }
        self.upstream.replace_credential(credential);
    }

    /// Returns the seals that it can open. `first` is the account of the request's first target: this one, if
    /// no target was tried.
    pub fn openable(&self, first: &mut Option<SealGroup>) -> Openable {
        Openable::at(&self.envelope, first, self.config.quirks.unsigned_thinking)
    }

    /// Sends a request and reads the head of its response, with this effort. A key that the upstream
    /// rejects is refreshed, if a command prints it.
    pub async fn send_to_upstream(
        &self,
        outgoing: &Outgoing,
        deadline: Instant,
        effort: Effort,
    ) -> Result<Incoming, EngineError> {
        let incoming = self
            .upstream
            .send_with_retry(outgoing, deadline, effort)
            .await?;
        if incoming.status == StatusCode::UNAUTHORIZED
            && let Some(schedule) = &self.key_schedule
        {
            schedule.rejected();
        }
        Ok(incoming)
    }

    fn serves(&self, model: &Model) -> bool {
        (self.config.protocol() == Protocol::Images) == (model.family == Family::Images)
    }

    /// Returns the protocol that the requests of a client protocol are translated to, or `None` if
    /// they are relayed.
    pub fn translation(&self, client: catalog::Protocol) -> Option<Outbound> {
        let (own, outbound) = self.text_protocol()?;
        (own != client).then_some(outbound)
    }

    /// The protocol of a text upstream, as a client protocol and as an upstream protocol.
    pub fn text_protocol(&self) -> Option<(catalog::Protocol, Outbound)> {
        match self.config.protocol() {
            Protocol::Responses => Some((catalog::Protocol::Responses, Outbound::Responses)),
            Protocol::Chat => Some((catalog::Protocol::Chat, Outbound::Chat)),
            Protocol::Messages => Some((catalog::Protocol::Messages, Outbound::Messages)),
            Protocol::Images => None,
        }
    }

    /// The settings for encoding a request for this `model`, which requests a stream or not.
    /// `sealed` is true if the client gets the signatures of the reasoning.
    pub fn settings(&self, model: &str, stream: bool, sealed: bool) -> Settings {
        let rules = &self.config.rules;
        Settings {
            stream,
            max_tokens: self.config.max_tokens,
            sampling: self.config.sampling && !rules.drops(model, "temperature"),
            sealed,
            quirks: rules.encoding(model, self.config.quirks.for_model(model)),
        }
    }
}

/// Returns the targets as the candidates to order. A target that is listed twice is two candidates.
fn candidates(targets: &[Target]) -> Vec<Candidate> {
    let id = |target: &Target| affinity::target_id(target.label(), target.model.as_deref());
    let mut candidates: Vec<Candidate> = Vec::with_capacity(targets.len());
    for target in targets {
        let mut id = id(target);
        while candidates.iter().any(|other| other.id == id) {
            id = id.wrapping_add(1);
        }
        candidates.push(Candidate {
            id,
            weight: target.weight,
        });
    }
    candidates
}
