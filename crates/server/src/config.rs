//! The operator's file: TOML, every key known, every mistake told.

mod fetch;
pub(crate) mod key;
mod limits;
pub(crate) mod upstream;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use auth::Entry;
use catalog::{Catalog, Model};
use jiff::SignedDuration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use self::fetch::Fetch;
use self::key::Key;
pub(crate) use self::limits::Limits;

wire::read_objects!(Config, Local, Easel);

/// What an operator may set. The default is a gateway that works without a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Addresses for clients. A second one serves the same paths: the fallback address (spec §9.3).
    pub(crate) listen: Vec<SocketAddr>,
    /// The address for `/livez`, `/readyz` and `/metrics`. Off in a file unless set.
    pub(crate) admin: Option<SocketAddr>,
    /// How much and how long.
    pub(crate) limits: Limits,
    /// Who may ask.
    pub(crate) keys: Vec<Key>,
    /// The models; absent: the built-in ten.
    pub(crate) models: Option<Vec<ModelEntry>>,
    /// Model servers to which models may be handed.
    pub(crate) upstreams: Vec<upstream::Upstream>,
    /// The embedded text engine.
    pub(crate) local: Local,
    /// The embedded image engine.
    pub(crate) easel: Easel,
    /// Pictures that requests name by address.
    pub(crate) fetch: Fetch,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![DEFAULT_LISTEN],
            admin: None,
            limits: Limits::default(),
            keys: Vec::new(),
            models: None,
            upstreams: Vec::new(),
            local: Local::default(),
            easel: Easel::default(),
            fetch: Fetch::default(),
        }
    }
}

/// One model, by what it promises and who serves it.
#[derive(Clone, Debug)]
pub(crate) struct ModelEntry {
    /// Who serves it. Empty: the embedded engine of its family.
    pub(crate) targets: Vec<upstream::Target>,
    /// What it promises.
    pub(crate) model: Model,
}

/// Taken apart by hand: serde's flattening would take settings that nobody knows.
impl<'de> Deserialize<'de> for ModelEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut settings = toml::Table::deserialize(from)?;
        let targets = settings.remove("targets").map(toml::Value::try_into).transpose().map_err(D::Error::custom)?;
        let model = settings.try_into().map_err(D::Error::custom)?;
        Ok(Self { targets: targets.unwrap_or_default(), model })
    }
}

/// The embedded text engine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub(crate) struct Local {
    /// A GGUF file of the llama family. Absent: the one that `cargo xtask fetch-model` brings.
    pub(crate) model: Option<PathBuf>,
    /// Threads for the arithmetic. Absent: one less than there are cores.
    pub(crate) threads: Option<usize>,
    /// Answers generated at once; the rest wait in order. Absent: 4.
    pub(crate) generations: Option<usize>,
}

/// The embedded image engine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub(crate) struct Easel {
    /// Pictures decoded and drawn at once. Absent: as many as there are cores.
    #[cfg_attr(not(feature = "easel"), allow(dead_code, reason = "a file may set up what this build leaves out"))]
    pub(crate) threads: Option<usize>,
}

/// Why there is no gateway. One line a problem.
#[derive(Debug)]
pub struct ConfigError(Vec<String>);

impl Config {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::one(error.to_string()));
        text.and_then(|text| Self::parse(&text)).map_err(|error| error.within(&path.display()))
    }

    /// Reads the text of a file.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::one(error.to_string()))?;
        let mut problems = config.limits.problems();
        problems.extend(config.fetch.problems());
        if config.easel.threads == Some(0) {
            problems.push("easel.threads: must be more than 0".to_owned());
        }
        if config.listen.is_empty() {
            problems.push("listen: at least one address is needed, such as \"127.0.0.1:8080\"".to_owned());
        }
        if problems.is_empty() { Ok(config) } else { Err(ConfigError(problems)) }
    }

    /// The entries of its keys.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, ConfigError> {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for key in &self.keys {
            match key.entry() {
                Ok(entry) => entries.push(entry),
                Err(found) => {
                    problems.extend(found.into_iter().map(|problem| format!("key '{}': {problem}", key.name)));
                }
            }
        }
        if problems.is_empty() { Ok(entries) } else { Err(ConfigError(problems)) }
    }

    /// Its models, or the built-in ten.
    pub(crate) fn catalog(&self) -> Result<Catalog, ConfigError> {
        match &self.models {
            None => Ok(Catalog::builtin()),
            Some(models) => Catalog::new(models.iter().map(|entry| entry.model.clone()).collect()).map_err(ConfigError),
        }
    }
}

impl ConfigError {
    pub(crate) fn one(problem: String) -> Self {
        Self(vec![problem])
    }

    pub(crate) fn of(problems: Vec<String>) -> Self {
        Self(problems)
    }

    fn within(self, file: &impl std::fmt::Display) -> Self {
        Self(self.0.into_iter().map(|problem| format!("{file}: {problem}")).collect())
    }
}

impl From<auth::RingErrors> for ConfigError {
    fn from(found: auth::RingErrors) -> Self {
        Self(found.iter().map(ToString::to_string).collect())
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let read = SignedDuration::deserialize(from)?;
    Duration::try_from(read).map_err(|_| D::Error::custom("a duration cannot be negative"))
}

/// Where clients are served without a file.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// Where operators are served without a file.
pub(crate) const DEFAULT_ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);
