//! Which targets serve a model, in which order they are asked, and by which road.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Catalog, Family, Model};
use translate::envelope::Envelope;
use upstream::{Network, Options, Upstream, targets};

use crate::clock;
use crate::config::upstream::{EngineName, Protocol, TargetRef};
use crate::config::{Config, ConfigError, upstream as stated};

/// The targets of every model.
pub(crate) struct Routes {
    /// What new upstreams are reached over.
    network: Network,
    upstreams: BTreeMap<String, Arc<UpstreamTarget>>,
    targets: BTreeMap<String, Arc<[Target]>>,
}

/// One that may serve a model.
pub(crate) struct Target {
    /// Who it is.
    pub(crate) place: Backend,
    /// What it calls the model; nothing: as the client does.
    pub(crate) model: Option<String>,
    /// How often it is asked first, in proportion.
    pub(crate) weight: Option<u32>,
}

/// Who serves.
#[derive(Clone)]
pub(crate) enum Backend {
    /// An embedded engine: of text or of images, as the model is.
    Embedded,
    /// An upstream.
    Upstream(Arc<UpstreamTarget>),
}

/// An upstream and how to talk with it.
pub(crate) struct UpstreamTarget {
    /// What the operator says of it.
    pub(crate) stated: stated::Upstream,
    /// Its connections.
    pub(crate) upstream: Upstream,
    /// In what clients of another protocol keep the seals on its thoughts, when it seals them.
    pub(crate) envelope: Option<Envelope>,
    options: Options,
}

/// How a request gets to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// Bytes through.
    Relay,
    /// By neutral words.
    Translate(translate::outbound::Protocol),
}

impl Routes {
    /// The routes of a configuration, over `network`.
    pub(crate) fn new(config: &Config, catalog: &Catalog, network: Network) -> Result<Self, ConfigError> {
        Self::follow(config, catalog, &Self { network, upstreams: BTreeMap::new(), targets: BTreeMap::new() })
    }

    /// The routes of a configuration in the place of others. Upstreams that are as they were keep their connections.
    pub(crate) fn follow(config: &Config, catalog: &Catalog, before: &Self) -> Result<Self, ConfigError> {
        let (mut upstreams, mut problems) = (BTreeMap::new(), Vec::new());
        for stated in &config.upstreams {
            match UpstreamTarget::new(stated, before) {
                Ok(server) => {
                    if upstreams.insert(stated.name.clone(), server).is_some() {
                        problems.push(format!("upstream '{}': there are two of that name", stated.name));
                    }
                }
                Err(found) => {
                    problems.extend(found.into_iter().map(|problem| format!("upstream '{}': {problem}", stated.name)));
                }
            }
        }
        let known: Vec<_> = config.upstreams.iter().map(|stated| stated.name.as_str()).collect();
        let mut routes = Self { network: before.network.clone(), upstreams, targets: BTreeMap::new() };
        for entry in config.models.iter().flatten() {
            let Some(model) = catalog.find(&entry.model.id) else { continue };
            let found = entry.targets.iter().enumerate().map(|(i, stated)| {
                let place = routes.place(stated, model, &known);
                let name = |problem| format!("model '{}': targets[{i}]: {problem}", model.id);
                place.map(|place| place.map(|place| Target::new(place, stated))).map_err(name)
            });
            let (targets, wrong): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
            problems.extend(wrong.into_iter().filter_map(Result::err));
            let targets: Vec<_> = targets.into_iter().filter_map(Result::ok).flatten().collect();
            if !targets.is_empty() {
                routes.targets.insert(model.id.clone(), targets.into());
            }
        }
        if problems.is_empty() { Ok(routes) } else { Err(ConfigError::of(problems)) }
    }

    /// The targets of a model, in the order in which this request asks them. A model without any is embedded.
    pub(crate) fn of(&self, model: &str) -> Vec<SelectedTarget> {
        let Some(targets) = self.targets.get(model) else { return vec![SelectedTarget::embedded()] };
        let order = match &targets[..] {
            [_] => vec![0],
            targets => {
                let weights: Vec<_> = targets.iter().map(|target| target.weight).collect();
                // Half of the bits are enough for a draw.
                targets::order(&weights, clock::random_bits() as u64)
            }
        };
        let chosen = order.into_iter().filter_map(|at| targets.get(at));
        chosen.map(|target| SelectedTarget { place: target.place.clone(), model: target.model.clone() }).collect()
    }

    /// Whether the embedded engine may be asked for a model: a target of it, or that it has none.
    pub(crate) fn stay(&self, model: &str) -> bool {
        let stated = self.stated(model);
        stated.is_empty() || stated.iter().any(|target| matches!(target.place, Backend::Embedded))
    }

    /// Whether requests for a model may leave the house.
    pub(crate) fn leave(&self, model: &str) -> bool {
        self.stated(model).iter().any(|target| matches!(target.place, Backend::Upstream(_)))
    }

    /// The targets of a model as they are stated.
    pub(crate) fn stated(&self, model: &str) -> &[Target] {
        self.targets.get(model).map_or(&[], |targets| targets)
    }

    /// The upstreams that no model of `catalog` has as a target.
    pub(crate) fn unused(&self, catalog: &Catalog) -> impl Iterator<Item = &str> {
        let places = catalog.iter().flat_map(|model| self.stated(&model.id)).map(|target| &target.place);
        let used: Vec<_> = places
            .filter_map(|place| match place {
                Backend::Upstream(server) => Some(server.stated.name.as_str()),
                Backend::Embedded => None,
            })
            .collect();
        self.upstreams.keys().map(String::as_str).filter(move |name| !used.contains(name))
    }

    /// Who a target is; nothing when the upstream it names is wrong, which was told already.
    fn place(&self, stated: &stated::Target, model: &Model, known: &[&str]) -> Result<Option<Backend>, String> {
        let embedded = match model.family {
            Family::Images => EngineName::Easel,
            _ => EngineName::Local,
        };
        match stated.refers()? {
            TargetRef::Engine(engine) if engine == embedded => Ok(Some(Backend::Embedded)),
            TargetRef::Engine(_) => Err(format!("this engine does not serve the family '{}'", model.family.as_str())),
            TargetRef::Upstream(name) => match self.upstreams.get(name) {
                Some(server) if server.serves(model) => Ok(Some(Backend::Upstream(Arc::clone(server)))),
                Some(server) => Err(format!(
                    "upstream '{name}' speaks {}, which does not serve the family '{}'",
                    server.stated.protocol.as_str(),
                    model.family.as_str()
                )),
                None if known.contains(&name) => Ok(None),
                None => Err(format!("there is no upstream '{name}'; there are: {}", list(known))),
            },
        }
    }
}

/// A target as one request asks it.
#[derive(Clone)]
pub(crate) struct SelectedTarget {
    /// Who it is.
    pub(crate) place: Backend,
    /// What it calls the model; nothing: as the client does.
    pub(crate) model: Option<String>,
}

impl SelectedTarget {
    fn embedded() -> Self {
        Self { place: Backend::Embedded, model: None }
    }

    /// Who it is, for the log.
    pub(crate) fn label(&self) -> &str {
        match &self.place {
            Backend::Embedded => "embedded",
            Backend::Upstream(server) => &server.stated.name,
        }
    }
}

impl Target {
    fn new(place: Backend, stated: &stated::Target) -> Self {
        Self { place, model: stated.model.clone(), weight: stated.weight }
    }
}

impl UpstreamTarget {
    fn new(stated: &stated::Upstream, before: &Routes) -> Result<Arc<Self>, Vec<String>> {
        let options = stated.options()?;
        let same = before.upstreams.get(&stated.name);
        // A key behind the same name may be another one now.
        if let Some(same) = same.filter(|same| same.stated == *stated && same.options == options) {
            return Ok(Arc::clone(same));
        }
        let upstream = Upstream::over(&before.network, options.clone()).map_err(|error| vec![error.to_string()])?;
        let envelope = (stated.protocol == Protocol::Messages).then(|| Envelope::new(&stated.secret()));
        Ok(Arc::new(Self { stated: stated.clone(), options, upstream, envelope }))
    }

    fn serves(&self, model: &Model) -> bool {
        (self.stated.protocol == Protocol::Images) == (model.family == Family::Images)
    }

    /// The road from a protocol of clients to this upstream.
    pub(crate) fn road(&self, client: catalog::Protocol) -> Handling {
        use translate::outbound::Protocol as Outbound;
        let (own, outbound) = match self.stated.protocol {
            Protocol::Responses => (catalog::Protocol::Responses, Outbound::Responses),
            Protocol::Chat => (catalog::Protocol::Chat, Outbound::Chat),
            Protocol::Messages => (catalog::Protocol::Messages, Outbound::Messages),
            Protocol::Images => return Handling::Relay,
        };
        if own == client && !self.stated.repair { Handling::Relay } else { Handling::Translate(outbound) }
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
